/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

enum { LIMIT = 1 << 20, DEPTH = 100 };

static struct stack_table *table;

static int set_up(void **state)
{
	return stack_table_new(LIMIT, &table);
}

static int tear_down(void **state)
{
	table = stack_table_free(table);
	return 0;
}

static struct stack *put(uint64_t id, uint64_t first_ip, size_t n, bool is_new_wanted)
{
	uint64_t ip[DEPTH];
	struct stack *stack;
	bool is_new;
	size_t i;

	for (i = 0; i < n; i++)
		ip[i] = first_ip + i;
	stack = stack_table_put(table, id, NULL, ip, n, &is_new);
	assert_int_equal(is_new, is_new_wanted);
	stack_unref(stack);
	return stack;
}

static void resolve(struct stack *stack, const char *name)
{
	struct symbol symbol = { .kind = FRAME_NATIVE, .file_offset = 5, .name = name };

	stack->frames[stack->n_frames++] = stack_table_frame(table, &symbol);
	stack->is_resolved = true;
}

static struct stack_table_stats stats(void)
{
	struct stack_table_stats out;

	stack_table_stats(table, &out);
	return out;
}

static void test_a_stack_is_kept_once(void **state)
{
	struct stack *stack = put(100, 1, 3, true), *got;

	assert_ptr_equal(put(100, 1, 3, false), stack);
	assert_int_equal(stats().stacks, 1);
	got = stack_table_get(table, 100, false);
	assert_ptr_equal(got, stack);
	assert_int_equal(stack->flags, 0);
	assert_int_equal(stack->ip[2], 3);
	stack_unref(got);
}

static void test_two_stacks_of_one_id_are_marked(void **state)
{
	struct stack *stack = put(100, 1, 3, true);

	put(100, 2, 3, false);
	put(100, 2, 3, false);
	assert_true(stack->flags & STACK_IS_AMBIGUOUS);
	assert_int_equal(stats().ambiguous, 1);
}

static void test_an_unknown_id_is_no_other_stack(void **state)
{
	struct stack *kernel, *user, *fault;

	put(100, 1, 3, true);
	kernel = stack_table_get(table, 101, false);
	user = stack_table_get(table, 102, true);
	fault = stack_table_get(table, STACK_FAULT, true);
	assert_null(stack_table_get(table, STACK_NONE, true));
	assert_int_equal(kernel->flags, STACK_IS_LOST);
	assert_int_equal(user->flags, STACK_IS_LOST);
	assert_ptr_not_equal(kernel, user);
	assert_int_equal(fault->flags, STACK_IS_FAULT);
	assert_int_equal(stats().unknown, 2);
}

/* Windows keep the names that they have; the table gives the new ones, and then forgets the old. */
static void test_a_stack_is_named_again(void **state)
{
	struct stack *old = put(100, 1, 3, true), *again, *got;
	size_t before;

	old->flags = STACK_IS_NO_ROW | STACK_IS_FROZEN | STACK_IS_OF_PROGRAM;
	resolve(old, "old");
	before = stats().bytes;
	got = stack_table_get(table, 100, true);
	assert_null(stack_table_successor(table, got));
	again = stack_table_again(table, old);
	assert_int_equal(again->flags, STACK_IS_NO_ROW);
	assert_memory_equal(again->ip, old->ip, 3 * sizeof(*old->ip));
	stack_table_discard(table, again);
	assert_int_equal(stats().bytes, before);

	again = stack_table_again(table, old);
	resolve(again, "new");
	assert_ptr_equal(stack_table_replace(table, old, again), again);
	assert_string_equal(got->frames[0]->name, "old");
	assert_ptr_equal(put(100, 1, 3, false), again);
	assert_ptr_equal(stack_table_successor(table, old), again);
	stack_unref(again);
	assert_true(stats().bytes > before);

	/* The old one was replaced already. */
	stack_unref(again);
	again = stack_table_again(table, old);
	resolve(again, "newest");
	assert_null(stack_table_replace(table, old, again));
	stack_unref(got);
	stack_table_sweep(table, INT64_MAX / 2, 0);
	assert_int_equal(stats().bytes, before);
	assert_int_equal(stats().frames, 1);
}

static void test_frames_are_shared_and_counted(void **state)
{
	struct stack *a = put(100, 1, 1, true), *b = put(101, 2, 1, true);
	size_t before = stats().bytes;
	static char name[1001];

	memset(name, 'n', 1000);
	resolve(a, name);
	assert_true(stats().bytes > before + 1000);
	before = stats().bytes;
	resolve(b, name);
	assert_ptr_equal(a->frames[0], b->frames[0]);
	assert_int_equal(stats().bytes, before);
	assert_int_equal(stats().frames, 1);
	stack_table_sweep(table, -1000000000, INT64_MAX);
	assert_int_equal(stats().frames, 0);
	assert_int_equal(stats().bytes, 0);
}

static void test_equal_files_keep_their_paths(void **state)
{
	static const char *const paths[] = { "/opt/ledger/ledgerd", "/opt/billing/billing-sync",
					     "/opt/ledger/ledgerd", NULL };
	struct symbol symbol = { .kind = FRAME_NATIVE, .file_id = 7, .name = "f" };
	struct stack *stack = put(100, 1, ARRAY_SIZE(paths), true);

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		symbol.module = paths[i];
		stack->frames[stack->n_frames++] = stack_table_frame(table, &symbol);
	}
	stack->is_resolved = true;
	assert_string_equal(stack->frames[0]->module, paths[0]);
	assert_string_equal(stack->frames[1]->module, paths[1]);
	assert_ptr_equal(stack->frames[2], stack->frames[0]);
	assert_null(stack->frames[3]->module);
}

static void test_sweep_spares_what_is_used(void **state)
{
	struct stack *used = put(100, 1, 1, true), *fresh = put(101, 2, 1, true);

	put(102, 3, 1, true); /* not resolved yet: a sweep must keep it */
	resolve(used, "used");
	resolve(fresh, "fresh");
	stack_ref(used);
	stack_table_sweep(table, INT64_C(3600) * 1000000000, INT64_MAX);
	assert_int_equal(stats().stacks, 3);
	stack_table_sweep(table, -1000000000, INT64_MAX);
	assert_int_equal(stats().stacks, 2);
	assert_ptr_equal(put(100, 1, 1, false), used);
	put(101, 2, 1, true);
	stack_unref(used);
}

static void test_the_limit_holds(void **state)
{
	uint64_t ip[DEPTH] = {}, id = 1000;
	bool is_new;

	while (!stats().full && id < 100000) {
		stack_unref(stack_table_put(table, id++, NULL, ip, DEPTH, &is_new));
		assert_true(is_new == !stats().full);
	}
	assert_true(stats().full > 0);
	assert_true(stats().bytes <= LIMIT);
	assert_int_equal(stats().stacks, id - 1000 - stats().full);
	/* With a higher limit the table takes stacks again. */
	stack_table_set_max(table, 2 * LIMIT);
	stack_unref(stack_table_put(table, id++, NULL, ip, DEPTH, &is_new));
	assert_true(is_new);
	assert_int_equal(stats().full, 1);
}

static void test_a_dropped_stack_is_new_again(void **state)
{
	struct stack *stack = put(1000, 1, DEPTH, true);
	size_t bytes = stats().bytes;

	stack_table_drop(table, stack_ref(stack));
	assert_int_equal(stats().stacks, 0);
	assert_true(stats().bytes < bytes);
	put(1000, 1, DEPTH, true);
}

/*
 * Two sessions bring one stack at the same time, and one of them drops it as it cannot be resolved:
 * the other one keeps a stack that was lost.
 */
static void test_a_dropped_stack_is_lost_to_others(void **state)
{
	struct stack *stack = put(1000, 1, DEPTH, true),
		     *other = stack_table_get(table, 1000, false);
	struct stack *lost = stack_table_get(table, 1001, false);

	assert_ptr_equal(other, stack);
	stack_table_drop(table, stack_ref(stack));
	assert_int_equal(stats().stacks, 0);
	assert_true(put(1000, 1, DEPTH, true) != other);
	stack_table_sweep(table, -1000000000, INT64_MAX);
	assert_true(other->is_resolved);
	assert_int_equal(other->flags, STACK_IS_LOST);
	assert_int_equal(other->n_frames, 1);
	assert_ptr_equal(other->frames[0], lost->frames[0]);
	assert_int_equal(other->place_id, lost->place_id);
	stack_unref(other);
	stack_unref(lost);
	stack_table_sweep(table, -1000000000, INT64_MAX);
}

static void *ask_in_vain(void *arg)
{
	uint64_t *unknown = arg;

	stack_unref(stack_table_get(table, 102, true));
	stack_unref(stack_table_get(table, 103, true));
	*unknown = stack_unknown_here();
	return NULL;
}

/* Each thread counts the unknown ids that it asked for itself. */
static void test_unknown_ids_are_whose_they_are(void **state)
{
	uint64_t before = stack_unknown_here(), there = 0;
	pthread_t thread;

	stack_unref(stack_table_get(table, 101, false));
	assert_int_equal(pthread_create(&thread, NULL, ask_in_vain, &there), 0);
	pthread_join(thread, NULL);
	assert_int_equal(there, 2);
	assert_int_equal(stack_unknown_here() - before, 1);
	assert_int_equal(stats().unknown, 3);
}

/* A sweep keeps stacks without references only as far as they take little memory. */
static void test_few_are_kept_for_later(void **state)
{
	struct stack *stack;
	uint64_t id = 1000;

	while (stats().bytes <= LIMIT / 2) {
		stack = put(id, id * DEPTH, DEPTH, true);
		id++;
		resolve(stack, "name");
	}
	stack_table_sweep(table, INT64_C(3600) * 1000000000, INT64_MAX);
	assert_true(stats().bytes <= LIMIT / 32 + 8192);
	assert_true(stats().bytes > LIMIT / 32 - 8192);
}

/* Returns the memory to which windows refer, after a sweep. */
static size_t referred(void)
{
	stack_table_sweep(table, INT64_C(3600) * 1000000000, INT64_MAX);
	return stack_table_referred_bytes(table);
}

/*
 * What windows refer to counts in their memory. What only waits for its window or may be used again
 * does not.
 */
static void test_only_what_windows_have_counts(void **state)
{
	struct stack *stack = put(100, 1, DEPTH, true), *idle = put(101, 1, DEPTH, true);
	size_t frames;

	stack_ref(stack);
	stack_hold(stack);
	resolve(stack, "name");
	resolve(idle, "name");
	frames = referred();
	assert_true(frames > 0 && frames < DEPTH * 16);
	assert_int_equal(stats().stacks, 2);
	stack_ref(stack); /* as a window does */
	assert_true(referred() >= frames + DEPTH * 16);
	stack_release_hold(stack);
	assert_true(referred() >= frames + DEPTH * 16);
	stack_unref(stack);
	assert_int_equal(referred(), frames);
}

static struct stack *user_stack(uint64_t id, struct process *process, const char *name)
{
	const uint64_t ip[2] = { id, id };
	struct symbol symbol = { .kind = FRAME_NATIVE, .file_offset = 5, .name = name };
	struct stack *stack;
	bool is_new;

	stack = stack_table_put(table, id, process, ip, 2, &is_new);
	stack->frames[stack->n_frames++] = stack_table_frame(table, &symbol);
	stack->id = 77;
	stack->is_resolved = true;
	return stack;
}

/*
 * Files with the same build-id whose code is elsewhere in the file have frames of their own, which
 * keep what is known of the file.
 */
static void test_frames_keep_their_file(void **state)
{
	static const uint8_t build_id[20] = { 1 };
	const struct code_segment here = { 0x1000, 0x1000, 8 }, there = { 0x1000, 0x2000, 8 };
	struct code_file *file = code_file_new(build_id, sizeof(build_id), &here, 1);
	struct code_file *other = code_file_new(build_id, sizeof(build_id), &there, 1);
	struct symbol symbol = { .file_id = 9, .file_offset = 0x1004, .name = "f", .code = file };
	struct frame *frame = stack_table_frame(table, &symbol), *same, *another, *unknown;
	uint64_t offset;

	assert_non_null(frame);
	same = stack_table_frame(table, &symbol);
	symbol.code = other;
	another = stack_table_frame(table, &symbol);
	symbol.code = NULL;
	unknown = stack_table_frame(table, &symbol);
	code_file_unref(file);
	code_file_unref(other);
	assert_ptr_equal(same, frame);
	assert_ptr_not_equal(another, frame);
	assert_ptr_not_equal(unknown, frame);
	assert_int_equal(frame->file_id, another->file_id);
	assert_true(code_file_offset(frame->code, frame->file_offset, &offset));
	assert_int_equal(offset, 0x1004);
	assert_true(code_file_offset(another->code, another->file_offset, &offset));
	assert_int_equal(offset, 0x2004);
	assert_null(unknown->code);
	stack_table_drop_frame(table, same);
	stack_table_drop_frame(table, frame);
	stack_table_drop_frame(table, another);
	stack_table_drop_frame(table, unknown);
}

/* Returns the start time of this process, as BPF gives it. */
static uint64_t self_start_ns(void)
{
	struct procfs_stat stat;
	int fd = procfs_open(getpid(), &stat);

	assert_true(fd >= 0);
	close(fd);
	return procfs_ticks_ns(stat.start_ticks) + 1;
}

/* An id stands for a process, too: the same addresses in another one may be other functions. */
static void test_a_stack_of_another_process_is_marked(void **state)
{
	struct process_table *processes;
	struct process *process[2];
	struct stack *stack = NULL;
	const uint64_t ip = 1;
	bool is_new;
	size_t i;

	assert_int_equal(process_table_new(1 << 20, &processes), 0);
	for (i = 0; i < 2; i++) {
		const struct process_id id = { .pid = 4190000 + (int32_t)i, .start_boot_ns = 5 };

		process[i] = process_table_see(processes, &id, true, "short");
		stack = stack_table_put(table, 100, process[i], &ip, 1, &is_new);
		assert_int_equal(is_new, i == 0);
		assert_int_equal(stack->flags & STACK_IS_AMBIGUOUS, i ? STACK_IS_AMBIGUOUS : 0);
		stack_unref(stack);
		process_unref(process[i]);
	}
	table = stack_table_free(table);
	process_table_free(processes);
}

/* Equal stacks of processes that have exited become one in a window, and only then are freed. */
static void test_windows_share_stacks(void **state)
{
	struct process_table *processes;
	struct window *window = window_new();
	struct process *process[4];
	struct stack *first;
	size_t i;

	assert_int_equal(process_table_new(1 << 20, &processes), 0);
	for (i = 0; i < 4; i++) {
		/* The last one is this process: the table's threads see in /proc that it runs. */
		const struct process_id id = {
			.pid = i < 3 ? 4190000 + (int32_t)i : getpid(),
			.exec_gen = 1,
			.start_boot_ns = i < 3 ? 5 : self_start_ns(),
		};

		/* As it is a kernel thread, the table does not find out that it is made up. */
		process[i] = process_table_see(processes, &id, true, "short");
		window_add_row(window)->user =
			user_stack(100 + i, process[i], i == 2 ? "other" : "equal");
		if (i < 3)
			process_table_note_exit(processes, &id);
		process_unref(process[i]);
	}
	window_share_stacks(window, table);
	first = window->rows[0].user;
	assert_ptr_equal(window->rows[1].user, first);
	assert_ptr_not_equal(window->rows[2].user, first);
	assert_string_equal(first->frames[0]->name, "equal");
	assert_string_equal(window->rows[2].user->frames[0]->name, "other");
	assert_null(first->process);
	assert_null(first->ip);
	assert_true(first->is_user && first->is_resolved && first->id == 77);
	assert_int_not_equal(first->raw_id, window->rows[2].user->raw_id);
	/* The process runs, so its stacks keep their addresses. */
	assert_ptr_equal(window->rows[3].user->process, process[3]);
	assert_int_equal(window->rows[3].user->ip[0], 103);
	referred();
	assert_int_equal(stats().stacks, 1);
	/* The stacks that it stands for have gone; that of the process that runs has the frame,
	 * too. */
	assert_int_equal(first->frames[0]->refs, 2);
	assert_string_equal(first->frames[0]->name, "equal");
	window_unref(window);
	stack_table_sweep(table, -1000000000, INT64_MAX);
	assert_int_equal(stats().bytes, 0);
	process_table_free(processes);
}

/* But it keeps those that came since the cut: the open window has them, and they are sent once. */
static void test_short_of_room_keeps_what_is_new(void **state)
{
	uint64_t id = 1000, n_old;
	int64_t cut;

	while (stats().bytes <= LIMIT / 4) {
		resolve(put(id, id * DEPTH, DEPTH, true), "name");
		id++;
	}
	n_old = stats().stacks;
	cut = clock_ns(CLOCK_MONOTONIC);
	while (stats().bytes <= LIMIT / 4 * 3) {
		resolve(put(id, id * DEPTH, DEPTH, true), "name");
		id++;
	}
	stack_table_sweep(table, INT64_C(3600) * 1000000000, cut);
	assert_true(stats().stacks >= id - 1000 - n_old);
	assert_true(stats().stacks < id - 1000);
}

static struct stack *referenced[LIMIT / 1000];
static size_t n_referenced, n_asked;

static void give_up_half(void *userdata)
{
	size_t half = n_referenced / 2;

	n_asked++;
	while (n_referenced > half)
		stack_unref(referenced[--n_referenced]);
}

static void fill_with_referenced(void)
{
	uint64_t id = 1000;

	n_asked = n_referenced = 0;
	stack_table_set_relief(table, give_up_half, NULL);
	while (stats().bytes + DEPTH * 16 + 400 < LIMIT) {
		resolve(put(id, id * DEPTH, DEPTH, true), "name");
		referenced[n_referenced++] = stack_table_get(table, id, false);
		id++;
	}
	assert_int_equal(n_asked, 0);
}

/* Before a new stack is rejected, references to old ones are given up. */
static void test_full_makes_room_first(void **state)
{
	size_t n;

	fill_with_referenced();
	n = n_referenced;
	for (uint64_t id = 1; id <= n / 4; id++)
		put(100000 + id, 1, DEPTH, true);
	assert_int_equal(n_asked, 1);
	assert_int_equal(stats().full, 0);
	for (size_t i = 0; i < n_referenced; i++)
		assert_int_equal(referenced[i]->ip[0], (1000 + i) * DEPTH);
}

/* A stack that was put has a reference, so no sweep of another thread takes it away. */
static void test_full_spares_what_was_put(void **state)
{
	uint64_t ip[DEPTH] = { 7 };
	struct stack *held;
	uint64_t id = 100000;
	bool is_new;

	held = stack_table_put(table, 900, NULL, ip, DEPTH, &is_new);
	resolve(held, "held");
	fill_with_referenced();
	while (!n_asked && id < 100010)
		put(id++, 1, DEPTH, true);
	assert_int_equal(n_asked, 1);
	assert_ptr_equal(stack_table_get(table, 900, true), held);
	assert_int_equal(held->ip[0], 7);
	stack_unref(held);
	stack_unref(held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_a_stack_is_kept_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_two_stacks_of_one_id_are_marked, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_an_unknown_id_is_no_other_stack, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_frames_are_shared_and_counted, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_equal_files_keep_their_paths, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_sweep_spares_what_is_used, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_limit_holds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_dropped_stack_is_new_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_a_dropped_stack_is_lost_to_others, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_unknown_ids_are_whose_they_are, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_few_are_kept_for_later, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_only_what_windows_have_counts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_frames_keep_their_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_stack_of_another_process_is_marked, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_windows_share_stacks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_stack_is_named_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_short_of_room_keeps_what_is_new, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_full_makes_room_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_spares_what_was_put, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
