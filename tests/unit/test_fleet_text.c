/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fields of TabSeparated and literals of SQL whatever the text; SHA-256; ids of stacks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/arena.h"
#include "common/base.h"
#include "fleet/base/clickhouse.h"
#include "fleet/base/stack_hash.h"
#include "fleet/base/tsv.h"

/* All bytes that a text can have. */
static void every_byte(char text[static 256])
{
	for (int i = 1; i < 256; i++)
		text[i - 1] = (char)i;
	text[255] = '\0';
}

static void test_fields(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	char every[256];
	const char *texts[] = { every, "", "it's, [here]", "\\" };
	const struct wire_strs list = { texts, ARRAY_SIZE(texts) };
	const int64_t numbers[] = { 0, INT64_MAX, 7 };
	struct wire_strs strs;
	struct int_list ints;
	struct text out;
	char *fields[4];

	every_byte(every);
	text_init(&out, SIZE_MAX);
	tsv_put(&out, every);
	text_put(&out, "\t", 1);
	tsv_put_strings(&out, &list);
	text_put(&out, "\t", 1);
	tsv_put_ints(&out, &(struct int_list){ numbers, ARRAY_SIZE(numbers) });
	text_put(&out, "\t", 1);
	tsv_put_uint(&out, UINT64_MAX);
	text_put(&out, "", 1);
	assert_int_equal(out.error, 0);
	assert_null(strchr(out.data, '\n'));
	assert_int_equal(tsv_split(out.data, fields, ARRAY_SIZE(fields)), 4);
	assert_string_equal(tsv_text(fields[0]), every);
	assert_int_equal(tsv_strings(fields[1], arena, &strs), 0);
	assert_int_equal(strs.n, list.n);
	for (size_t i = 0; i < list.n; i++)
		assert_string_equal(strs.v[i], texts[i]);
	assert_int_equal(tsv_ints(fields[2], arena, &ints), 0);
	assert_int_equal(ints.n, 3);
	assert_int_equal(ints.v[1], INT64_MAX);
	assert_string_equal(fields[3], "18446744073709551615");
	text_fini(&out);
}

static void test_wrong_fields(void **state)
{
	static const char *const arrays[] = { "",	 "[",	   "]",	  "['a'",
					      "['a]",	 "['a',]", "[a]", "['a'b]",
					      "['a\\']", "['a'] ", "[,]", "['a' ]" };
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	struct wire_strs strs;
	struct int_list ints;
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		assert_int_equal(tsv_strings(arrays[i], arena, &strs), -EINVAL);
	assert_int_equal(tsv_ints("[1,x]", arena, &ints), -EINVAL);
	assert_int_equal(tsv_ints("[1,99999999999999999999]", arena, &ints), -EINVAL);
	assert_int_equal(tsv_ints("[]", arena, &ints), 0);
	assert_int_equal(ints.n, 0);
	assert_int_equal(tsv_uint("", &number), -EINVAL);
	assert_int_equal(tsv_uint("-1", &number), -EINVAL);
	assert_int_equal(tsv_uint("18446744073709551616", &number), -EINVAL);
}

/* No byte of a text gets into SQL but as a digit. */
static void test_sql(void **state)
{
	char every[256];
	struct text out;

	every_byte(every);
	text_init(&out, SIZE_MAX);
	sql_put_text(&out, every);
	text_put(&out, "", 1);
	assert_memory_equal(out.data, "unhex('0102", 11);
	assert_int_equal(strspn(out.data + 7, "0123456789abcdef"), 2 * 255);
	assert_string_equal(out.data + 7 + 2 * 255, "')");
	text_reset(&out);
	sql_put_text(&out, NULL);
	text_put(&out, "", 1);
	assert_string_equal(out.data, "unhex('')");
	text_fini(&out);
}

/* Every part of a stack is in its id, and parts do not run into each other. */
static void test_stack_ids(void **state)
{
	struct wire_frame frames[] = {
		{ .kind = "native", .name = "ab", .module = "c", .offset = 1 }
	};
	const char *flags[] = { "truncated" };
	struct wire_stack stack = { "0xff", { frames, 1 }, { NULL, 0 }, WIRE_ABSENT };
	uint64_t first = stack_hash(&stack);

	assert_int_equal(stack_host_id(&stack), 255);
	/* As Python's hashlib has it for ff, 1, native, ab, c and 1, each with a NUL behind it. */
	assert_true(first == UINT64_C(0x8a679cc674826da0));
	assert_int_equal(stack_hash(&stack), first);
	frames[0].name = "a";
	frames[0].module = "bc";
	assert_int_not_equal(stack_hash(&stack), first);
	frames[0].name = "ab";
	frames[0].module = "c";
	frames[0].offset = WIRE_ABSENT;
	assert_int_not_equal(stack_hash(&stack), first);
	frames[0].offset = 1;
	stack.flags = (struct wire_strs){ flags, 1 };
	assert_int_not_equal(stack_hash(&stack), first);
	stack.flags.n = 0;
	stack.id = "0xfe";
	assert_int_not_equal(stack_hash(&stack), first);
	stack.id = "0xff";
	assert_int_equal(stack_hash(&stack), first);
}

static void test_address(void **state)
{
	static const char *const wrong[] = { "ftp://h", "http://u:p@h", "http://h/?x=1", "h:1",
					     "" };
	struct clickhouse_address address = { .database = "stackd" };
	struct clickhouse_error error = { 0 };
	struct clickhouse *clickhouse = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		address.url = wrong[i];
		assert_int_equal(clickhouse_new(&address, &clickhouse, &error), -EINVAL);
		assert_null(clickhouse);
	}
	address.url = "http://127.0.0.1:1/";
	address.database = "a;b";
	assert_int_equal(clickhouse_new(&address, &clickhouse, &error), -EINVAL);
	address.database = "stackd";
	assert_int_equal(clickhouse_new(&address, &clickhouse, &error), 0);
	assert_int_equal(clickhouse_set(clickhouse, "a", "1&b=2"), -EINVAL);
	assert_int_equal(clickhouse_set(clickhouse, "max_memory_usage", "1"), 0);
	assert_int_equal(clickhouse_run(clickhouse, "SELECT 1", &error), -ECONNREFUSED);
	assert_true(error.text[0]);
	clickhouse_free(clickhouse);
}

static void test_shards(void **state)
{
	assert_int_equal(clickhouse_shard_of("a", 1), 0);
	assert_int_equal(clickhouse_shard_of("a", 0), 0);
	/* FNV-1a of "a" is 0xaf63dc4c8601ec8c. */
	assert_int_equal(clickhouse_shard_of("a", 16), 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),	cmocka_unit_test(test_wrong_fields),
		cmocka_unit_test(test_sql),	cmocka_unit_test(test_stack_ids),
		cmocka_unit_test(test_address), cmocka_unit_test(test_shards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
