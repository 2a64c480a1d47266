/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/unwind_shared.h"
#include "common/base.h"
#include "daemon/unwind/unwind.h"

enum { WORDS = 100, TABLES = 8, SEGMENTS = 32 };

/* The memory and maps that the kernel would have, in plain memory. */
static struct {
	uint64_t words[WORDS];
	struct unwind_table tables[TABLES];
	struct unwind_segment segments[SEGMENTS];
	struct unwind_process process;
	bool has_process;
	struct unwind_code_key code_key;
	struct unwind_code code;
	unsigned int codes;
	unsigned int waits;
} kernel;

static uint64_t *on_map(void *userdata, uint32_t first, uint32_t n)
{
	assert_true(first + n <= WORDS);
	return kernel.words + first;
}

static void on_unmap(void *userdata, uint64_t *words, uint32_t first, uint32_t n)
{
}

static int on_put(void *userdata, const struct unwind_process *process, bool is_new_only)
{
	if (is_new_only && kernel.has_process)
		return -EEXIST;
	kernel.process = *process;
	kernel.has_process = true;
	return 0;
}

static bool on_get(void *userdata, uint32_t tgid, struct unwind_process *out)
{
	*out = kernel.process;
	return kernel.has_process && kernel.process.tgid == tgid;
}

static void on_drop(void *userdata, uint32_t tgid)
{
	kernel.has_process = false;
}

static int on_put_code(void *userdata, const struct unwind_code_key *key,
		       const struct unwind_code *code)
{
	kernel.code_key = *key;
	kernel.code = *code;
	kernel.codes++;
	return 0;
}

static void on_drop_code(void *userdata, const struct unwind_code_key *key)
{
	kernel.codes--;
}

static void on_wait(void *userdata)
{
	kernel.waits++;
}

static struct unwind *start(void)
{
	struct unwind_memory memory = {
		.n_words = WORDS,
		.map = on_map,
		.unmap = on_unmap,
		.tables = kernel.tables,
		.n_tables = TABLES,
		.segments = kernel.segments,
		.n_segments = SEGMENTS,
		.put = on_put,
		.get = on_get,
		.drop = on_drop,
		.n_codes = 2,
		.put_code = on_put_code,
		.drop_code = on_drop_code,
		.wait = on_wait,
	};
	struct unwind *unwind;

	memset(&kernel, 0, sizeof(kernel));
	assert_int_equal(unwind_new(&memory, &unwind), 0);
	return unwind;
}

static struct unwind_file *file_get(struct unwind *unwind, uint64_t inode)
{
	struct file_state key = { .dev = 1, .inode = inode };
	struct unwind_file *file = unwind_file_get(unwind, &key, 0x1000);

	assert_non_null(file);
	return file;
}

/*
 * Makes rows with n_parts parts of n words each; all words have this value. Loads only the wanted
 * parts if `wanted` is not NULL.
 */
static void file_load_some(struct unwind_file *file, const struct unwind_wanted *wanted,
			   uint32_t n_parts, uint32_t n, uint64_t value)
{
	uint64_t words[WORDS];
	struct unwind_part *parts = (struct unwind_part *)words;
	struct unwind_rows rows = { .words = words, .n_parts = n_parts, .n_frames = 1 };

	rows.n_words = n_parts + 1 + n_parts * n;
	assert_true(rows.n_words <= WORDS);
	for (size_t i = 0; i < rows.n_words; i++)
		words[i] = value;
	for (uint32_t i = 0; i < n_parts; i++)
		parts[i] = (struct unwind_part){ .at = 2 * (n_parts + 1 + i * n) };
	unwind_file_load(file, wanted, &rows, 0, 0);
}

static void file_load_parts(struct unwind_file *file, uint32_t n_parts, uint32_t n, uint64_t value)
{
	file_load_some(file, NULL, n_parts, n, value);
}

/* Makes rows with one part of n words. */
static void file_load(struct unwind_file *file, uint32_t n, uint64_t value)
{
	file_load_parts(file, 1, n - 2, value);
}

static struct unwind_part *part_of(uint32_t table, uint32_t part)
{
	assert_true(part < kernel.tables[table].n_parts);
	return (struct unwind_part *)&kernel.words[kernel.tables[table].parts + part];
}

/* True if walks find the part, and all of its words have this value. */
static bool has_part(uint32_t table, uint32_t part, uint64_t value)
{
	uint32_t at;

	if (kernel.tables[table].state != UNWIND_LOADED)
		return false;
	at = part_of(table, part)->at;
	assert_true(!at || (!(at % 2) && kernel.words[at / 2] == value));
	return at;
}

static void test_tables(void **state)
{
	struct unwind *unwind = start();
	struct unwind_file *a = file_get(unwind, 1), *b = file_get(unwind, 2);
	struct unwind_stats stats;

	assert_ptr_equal(a, file_get(unwind, 1));
	assert_true(unwind_file_is_wanted(a));
	file_load(a, 30, 7);
	assert_false(unwind_file_is_wanted(a));
	assert_true(has_part(1, 0, 7));
	assert_int_equal(kernel.tables[1].n_frames, 1);
	assert_int_equal(kernel.words[kernel.tables[1].parts + 1], 7);
	/* Equal rows are kept once; others of the same size are not taken for equal. */
	file_load(b, 30, 7);
	assert_int_equal(kernel.tables[2].parts, kernel.tables[1].parts);
	file_load(file_get(unwind, 3), 30, 8);
	assert_int_not_equal(kernel.tables[3].parts, kernel.tables[1].parts);
	unwind_stats(unwind, &stats);
	assert_int_equal(stats.bytes, 60 * sizeof(uint64_t));
	assert_int_equal(stats.tables, 3);
	unwind_free(unwind);
}

static void test_errors(void **state)
{
	struct unwind *unwind = start();
	struct unwind_file *none = file_get(unwind, 1), *big = file_get(unwind, 2);

	unwind_file_load(none, NULL, NULL, -ENODATA, 0);
	assert_int_equal(kernel.tables[1].state, UNWIND_NO_ROWS);
	assert_false(unwind_file_is_wanted(none));
	unwind_file_load(big, NULL, NULL, -E2BIG, 0);
	unwind_file_need(big, 0x1000);
	assert_false(unwind_file_is_wanted(big)); /* it cannot get smaller */
	unwind_free(unwind);
}

static void test_loaded(void **state)
{
	struct unwind *unwind = start();
	struct unwind_file *a = file_get(unwind, 1), *b = file_get(unwind, 2);
	struct unwind_file *none = file_get(unwind, 3), *bad = file_get(unwind, 4);

	assert_int_equal(unwind_file_loaded(a), UNWIND_ROWS_AWAITED);
	unwind_file_need(a, 0x1000);
	file_load(a, 60, 1);
	assert_int_equal(unwind_file_loaded(a), UNWIND_ROWS_ALL);
	unwind_file_load(none, NULL, NULL, -ENODATA, 0);
	assert_int_equal(unwind_file_loaded(none), UNWIND_ROWS_NONE);
	unwind_file_load(bad, NULL, NULL, -EBADMSG, 0);
	assert_int_equal(unwind_file_loaded(bad), UNWIND_ROWS_REFUSED);
	unwind_file_need(b, 0x1000);
	file_load_parts(b, 4, 10, 2);
	assert_int_equal(unwind_file_loaded(b), UNWIND_ROWS_SOME);
	unwind_file_need(b, 0x1000 + (3 << UNWIND_PART_SHIFT));
	assert_int_equal(unwind_file_loaded(b), UNWIND_ROWS_AWAITED);
	unwind_free(unwind);
}

/* A file that had no room is tried again at once when its rows are asked for, but only once. */
static void test_expected(void **state)
{
	struct unwind *unwind = start();
	struct unwind_file *a = file_get(unwind, 1), *b = file_get(unwind, 2);
	struct unwind_file *c = file_get(unwind, 3);

	unwind_file_need(a, 0x1000);
	file_load(a, 80, 1);
	file_load(b, 80, 2);
	assert_int_equal(unwind_file_loaded(b), UNWIND_ROWS_REFUSED);
	assert_false(unwind_file_is_needed(b));
	unwind_file_expect(b);
	assert_true(unwind_file_is_needed(b));
	assert_int_equal(unwind_file_loaded(b), UNWIND_ROWS_AWAITED);
	unwind_file_load(b, NULL, NULL, -EBADMSG, 0);
	unwind_file_expect(b);
	assert_int_equal(unwind_file_loaded(b), UNWIND_ROWS_REFUSED);
	unwind_file_put(a);
	unwind_file_need(c, 0x1000 + (1 << UNWIND_PART_SHIFT));
	file_load_parts(c, 4, 23, 3);
	assert_int_equal(unwind_file_loaded(c), UNWIND_ROWS_SOME);
	/* The parts that are missing are awaited, until not all turn out to have room at once. */
	unwind_file_expect(c);
	assert_int_equal(unwind_file_loaded(c), UNWIND_ROWS_AWAITED);
	file_load_parts(c, 4, 23, 3);
	assert_int_equal(unwind_file_loaded(c), UNWIND_ROWS_SOME);
	unwind_file_expect(c);
	assert_int_equal(unwind_file_loaded(c), UNWIND_ROWS_SOME);
	unwind_free(unwind);
}

/* Files without references are evicted first, then rows not used by walks; rows in use stay. */
static void test_eviction(void **state)
{
	struct unwind *unwind = start();
	struct unwind_file *a = file_get(unwind, 1), *b = file_get(unwind, 2);
	struct unwind_file *c = file_get(unwind, 3), *d = file_get(unwind, 4);

	unwind_file_need(a, 0x1000);
	file_load(a, 40, 1);
	file_load(b, 40, 2);
	file_load(c, 40, 3); /* no walk has missed it, so it displaces nothing */
	assert_int_equal(kernel.tables[3].state, UNWIND_ABSENT);
	assert_false(unwind_file_is_wanted(c));
	unwind_file_need(c, 0x1000);
	assert_true(unwind_file_is_wanted(c));
	file_load(c, 40, 3);
	assert_true(has_part(1, 0, 1));
	assert_false(has_part(2, 0, 2));
	assert_true(has_part(3, 0, 3));
	assert_int_equal(kernel.waits, 1);
	/* Walks use both now. */
	unwind_file_need(d, 0x1000);
	file_load(d, 40, 4);
	assert_false(has_part(4, 0, 4));
	assert_false(unwind_file_is_wanted(d)); /* used later than the other */
	unwind_file_put(a);
	unwind_file_need(b, 0x1000);
	file_load(b, 40, 2);
	assert_int_equal(kernel.tables[1].state, UNWIND_ABSENT);
	assert_true(has_part(2, 0, 2));
	assert_true(has_part(3, 0, 3));
	unwind_free(unwind);
}

/* Checks that only those parts of a file that does not fit are loaded which walks have missed. */
static void test_parts(void **state)
{
	struct unwind *unwind = start();
	struct unwind_file *a = file_get(unwind, 1), *big = file_get(unwind, 2);
	const uint64_t bytes = 1 << UNWIND_PART_SHIFT;

	unwind_file_need(a, 0x1000);
	file_load(a, 42, 1);
	unwind_file_need(big, 0x1000 + 2 * bytes + 8);
	file_load_parts(big, 4, 20, 2);
	assert_true(has_part(2, 0, 2)); /* there is room for it */
	assert_false(has_part(2, 1, 2));
	assert_true(has_part(2, 2, 2));
	assert_false(unwind_file_is_wanted(big));
	/* Parts that no walk has used are evicted for parts that walks miss. */
	unwind_file_need(big, 0x1000 + 2 * bytes + 8);
	assert_false(unwind_file_is_wanted(big)); /* it is loaded by now */
	unwind_file_need(big, 0x1000 + 4 * bytes);
	assert_true(unwind_file_is_wanted(
		big)); /* a return address behind the last part: the call is at its end */
	file_load_parts(big, 4, 20, 2);
	assert_false(has_part(2, 0, 2));
	assert_true(has_part(2, 2, 2));
	assert_true(has_part(2, 3, 2));
	assert_true(has_part(1, 0, 1));
	/* Nothing is left that could be evicted. */
	unwind_file_need(big, 0x1000);
	file_load_parts(big, 4, 20, 2);
	assert_false(has_part(2, 0, 2));
	assert_false(unwind_file_is_wanted(big));
	/* With room enough, all parts are loaded. */
	unwind_file_put(a);
	unwind_file_need(big, 0x1000 + bytes);
	file_load_parts(big, 4, 20, 2);
	for (uint32_t i = 0; i < 4; i++)
		assert_true(has_part(2, i, 2));
	assert_int_equal(kernel.tables[1].state, UNWIND_ABSENT);
	unwind_free(unwind);
}

/* Checks that missed parts can be compiled and loaded alone, without the others. */
static void test_wanted_parts(void **state)
{
	struct unwind *unwind = start();
	struct unwind_file *a = file_get(unwind, 1), *big = file_get(unwind, 2);
	const uint64_t bytes = 1 << UNWIND_PART_SHIFT;
	struct unwind_wanted wanted;

	assert_false(unwind_file_missed(big, &wanted)); /* none is loaded */
	unwind_file_need(a, 0x1000);
	file_load(a, 42, 1);
	unwind_file_need(big, 0x1000);
	file_load_parts(big, 4, 20, 2);
	assert_true(has_part(2, 0, 2));
	assert_false(unwind_file_missed(big, &wanted)); /* none is missed */
	unwind_file_need(big, 0x1000 + 2 * bytes + 8);
	assert_true(unwind_file_missed(big, &wanted));
	assert_int_equal(wanted.n, 1);
	assert_int_equal(wanted.parts[0], 2);
	assert_int_equal(wanted.n_frames, 1);
	assert_int_equal(wanted.n_rules, 0);
	assert_int_equal(wanted.frames[0], 2);

	/* What is missed meanwhile was not compiled, so it is not loaded. */
	unwind_file_need(big, 0x1000 + 3 * bytes + 8);
	unwind_notice(unwind);
	file_load_some(big, &wanted, 4, 20, 2);
	assert_true(has_part(2, 2, 2));
	assert_false(has_part(2, 3, 2));
	unwind_wanted_fini(&wanted);
	assert_true(unwind_file_missed(big, &wanted));
	assert_int_equal(wanted.n, 1);
	assert_int_equal(wanted.parts[0], 3);

	/* Parts of another table are not mixed with those that are loaded. */
	wanted.hash++;
	file_load_some(big, &wanted, 4, 20, 2);
	assert_false(has_part(2, 3, 2));
	unwind_wanted_fini(&wanted);

	unwind_free(unwind);
}

/* Of files that nobody maps, the one whose rows have not been used for the longest time goes. */
static void test_longest_unused(void **state)
{
	for (uint32_t first = 1; first <= 2; first++) {
		struct unwind *unwind = start();
		struct unwind_file *files[] = { file_get(unwind, 1), file_get(unwind, 2) };
		struct unwind_file *c = file_get(unwind, 3);
		uint32_t last = 3 - first;

		file_load(files[0], 40, 1);
		file_load(files[1], 40, 2);
		kernel.tables[first].used = part_of(first, 0)->used = 1;
		unwind_notice(unwind);
		kernel.tables[last].used = part_of(last, 0)->used = 1;
		unwind_notice(unwind);
		unwind_file_put(files[0]);
		unwind_file_put(files[1]);
		unwind_file_need(c, 0x1000);
		file_load(c, 40, 3);
		assert_true(has_part(3, 0, 3));
		assert_false(has_part(first, 0, first));
		assert_true(has_part(last, 0, last));
		unwind_free(unwind);
	}
}

/* Rows of a file that nobody maps go before those that a process has and no walk has used yet. */
static void test_unmapped_first(void **state)
{
	for (uint32_t gone = 1; gone <= 2; gone++) {
		struct unwind *unwind = start();
		struct unwind_file *files[] = { file_get(unwind, 1), file_get(unwind, 2) };
		struct unwind_file *c = file_get(unwind, 3);
		uint32_t left = 3 - gone;

		file_load(files[0], 40, 1);
		file_load(files[1], 40, 2);
		unwind_file_put(files[gone - 1]);
		unwind_file_need(c, 0x1000);
		file_load(c, 40, 3);
		assert_true(has_part(3, 0, 3));
		assert_false(has_part(gone, 0, gone));
		assert_true(has_part(left, 0, left));
		unwind_free(unwind);
	}
}

/* Parts say that walks have used them. */
static void test_used_parts(void **state)
{
	struct unwind *unwind = start();
	struct unwind_file *a = file_get(unwind, 1), *b = file_get(unwind, 2);

	file_load_parts(a, 3, 28, 1);
	kernel.tables[1].used = part_of(1, 2)->used = 1;
	unwind_notice(unwind);
	assert_int_equal(kernel.tables[1].used, 0);
	assert_int_equal(part_of(1, 2)->used, 0);
	unwind_file_need(b, 0x1000);
	file_load(b, 50, 2);
	assert_true(has_part(2, 0, 2));
	assert_false(has_part(1, 0, 1));
	assert_false(has_part(1, 1, 1));
	assert_true(has_part(1, 2, 1));
	unwind_free(unwind);
}

static void test_runs(void **state)
{
	struct unwind *unwind = start();
	struct unwind_mapping mappings[] = {
		{ 0x400000, 0x500000, 0x3000, file_get(unwind, 1), false, 0x77 },
		{ 0x7f0000000000, 0x7f0000001000, 0, NULL, true, 0 },
		{ 0x7f0000001000, 0x7f0000002000, 0, NULL, true, 0 },
	};
	struct unwind_owner owner = { .pid = 9, .exec_gen = 3, .start_boot_ns = 1234567890 };
	struct address_space *run = address_space_new(unwind, mappings, ARRAY_SIZE(mappings)),
			     *more;
	const struct unwind_segment *segments;

	assert_non_null(run);
	unwind_process_set(run, &owner);
	assert_int_equal(kernel.process.leader_boot_ns, 0);
	assert_int_equal(kernel.process.ticks, 123);
	assert_int_equal(kernel.process.exec_gen, UNWIND_ANY_EXEC);
	assert_int_equal(kernel.process.check, unwind_check(&kernel.process));
	assert_int_equal(kernel.process.n,
			 2); /* adjacent mappings of generated code are one segment */
	segments = &kernel.segments[kernel.process.first];
	assert_int_equal(segments[-1].bias, kernel.process.generation);
	assert_int_equal(segments[0].bias, 0x400000 - 0x2000);
	assert_int_equal(segments[0].table, 1);
	assert_int_equal(segments[0].state, 0x77);
	assert_int_equal(segments[1].end, 0x7f0000002000);
	/* An entry of a process that is exactly known is not replaced by a guess. */
	owner.is_exact = true;
	unwind_process_set(run, &owner);
	assert_int_equal(kernel.process.exec_gen, 3);
	owner.is_exact = false;
	unwind_process_set(run, &owner);
	assert_int_equal(kernel.process.exec_gen, 3);
	/*
	 * A freed address space is invalid at once; its segments are used again only after a wait.
	 */
	address_space_free(run);
	assert_int_not_equal(segments[-1].bias, kernel.process.generation);
	for (int i = 0; i < 30; i++) {
		more = address_space_new(unwind, mappings, ARRAY_SIZE(mappings));
		assert_non_null(more);
		address_space_free(more);
	}
	assert_true(kernel.waits > 0);
	unwind_free(unwind);
}

static void test_drop(void **state)
{
	struct unwind *unwind = start();
	struct unwind_owner owner = {
		.pid = 9,
		.exec_gen = 3,
		.start_boot_ns = 1234567890,
		.is_exact = true,
	};
	struct unwind_owner before = owner;
	struct address_space *run = address_space_new(unwind, NULL, 0);

	unwind_process_set(run, &owner);
	before.exec_gen = 2;
	unwind_process_drop(unwind, &before); /* the image before the exec */
	assert_true(kernel.has_process);
	before.exec_gen = 3;
	before.start_boot_ns--;
	unwind_process_drop(unwind, &before); /* another process with this pid */
	assert_true(kernel.has_process);
	unwind_process_drop(unwind, &owner);
	assert_false(kernel.has_process);
	address_space_free(run);
	unwind_free(unwind);
}

static void test_codes(void **state)
{
	struct unwind *unwind = start();
	struct file_state key = { .inode = 1, .size = 1 };
	struct unwind_file *file = unwind_file_get(unwind, &key, 0x1000);
	struct unwind_code_key code = { .inode = 7, .size = 1, .offset = 0x2000, .generation = 3 };

	/* Rows count from the base of the file; a mapping starts at its offset. */
	unwind_code_learn(unwind, file, &code, 0x3000);
	assert_memory_equal(&kernel.code_key, &code, sizeof(code));
	assert_int_equal(kernel.code.from_base, 0x2000);
	assert_int_equal(kernel.code.is_generated, 0);
	assert_true(kernel.code.table != 0);
	assert_int_equal(kernel.codes, 1);

	/* The same key again, then one of generated code; a third one makes the oldest go. */
	unwind_code_learn(unwind, file, &code, 0x3000);
	assert_int_equal(kernel.codes, 1);
	code.inode = 8;
	unwind_code_learn(unwind, NULL, &code, 0);
	assert_int_equal(kernel.code.is_generated, 1);
	assert_int_equal(kernel.code.table, 0);
	assert_int_equal(kernel.codes, 2);
	code.inode = 9;
	unwind_code_learn(unwind, file, &code, 0x3000);
	assert_int_equal(kernel.codes, 2);

	/* When the table number of a file is given to another file, its keys are removed. */
	unwind_file_put(file);
	for (uint64_t i = 2; i < 2 + TABLES - 1; i++) {
		key.inode = i;
		assert_non_null(unwind_file_get(unwind, &key, 0));
	}
	assert_int_equal(kernel.codes, 1);
	unwind_free(unwind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tables),	       cmocka_unit_test(test_errors),
		cmocka_unit_test(test_eviction),       cmocka_unit_test(test_parts),
		cmocka_unit_test(test_used_parts),     cmocka_unit_test(test_runs),
		cmocka_unit_test(test_drop),	       cmocka_unit_test(test_codes),
		cmocka_unit_test(test_loaded),	       cmocka_unit_test(test_expected),
		cmocka_unit_test(test_wanted_parts),   cmocka_unit_test(test_longest_unused),
		cmocka_unit_test(test_unmapped_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
