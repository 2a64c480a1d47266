/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The builder of offcpu. The clock is made up, and windows are 1000 ns long: window n is
 * [1000 n, 1000 (n + 1)) and has epoch n.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/layout.h"
#include "daemon/window/build_offcpu_internal.h"

extern const struct window_builder_ops build_offcpu;

enum { LENGTH = 1000, MIN_WAIT = 100, NO_PID = 0x3f000000 /* above any pid_max */ };

static struct process_table *processes;
static struct stack_table *stacks;
static struct window_builder *builder;

static int set_up(void **state)
{
	struct window_builder_options options = { .kind = PROBE_OFFCPU, .min_wait_ns = MIN_WAIT };

	if (process_table_new(1 << 20, &processes) || stack_table_new(1 << 20, &stacks))
		return -1;
	options.processes = processes;
	options.stacks = stacks;
	return window_builder_new(&build_offcpu, &options, &builder);
}

static int tear_down(void **state)
{
	window_builder_free(builder);
	stack_table_free(stacks);
	process_table_free(processes);
	return 0;
}

static size_t threads_known(void)
{
	return HASH_COUNT(((struct offcpu_builder *)builder)->threads);
}

static struct thread thread_of(uint64_t uid, uint32_t status, uint64_t since_ns, uint32_t epoch)
{
	return (struct thread){
		.uid = uid,
		.tid = NO_PID + (uint32_t)uid,
		.tgid = NO_PID + (uint32_t)uid,
		.start_boot_ns = uid,
		.leader_boot_ns = uid,
		.status = status,
		.flags = THREAD_IS_SHOWN,
		.wait_state = status == THREAD_RUNNABLE ? STATE_PREEMPTED : 1,
		.since_ns = since_ns,
		.epoch = epoch,
		.comm = "image1",
	};
}

static void begin(uint32_t n)
{
	window_builder_begin(builder, n * LENGTH, (n + 1) * LENGTH, n + 1);
}

static struct window *finish(void)
{
	struct window *window = window_builder_finish(builder);

	assert_non_null(window);
	return window;
}

/* Cuts window n with one thread (NULL: none). */
static struct window *cut(uint32_t n, const struct thread *thread)
{
	begin(n);
	if (thread)
		window_builder_add_thread(builder, thread);
	return finish();
}

static void assert_sums(const struct window *window, uint64_t on, uint64_t blocked,
			uint64_t runnable)
{
	assert_int_equal(window->n_images, 1);
	assert_int_equal(window->images[0].sums.on_ns, on);
	assert_int_equal(window->images[0].sums.blocked_ns, blocked);
	assert_int_equal(window->images[0].sums.runnable_ns, runnable);
}

static void add_wait(uint64_t uid, uint64_t start, uint64_t wake, uint64_t end, uint32_t exec_gen)
{
	struct record_wait wait = {
		.head.type = RECORD_WAIT,
		.key = { .uid = uid, .kstack = STACK_FAULT, .exec_gen = exec_gen, .state = 1 },
		.start_ns = start,
		.wake_ns = wake,
		.end_ns = end,
	};

	window_builder_add_record(builder, &wait.head);
}

static void add_end(const struct thread *thread, uint64_t end_ns)
{
	struct record_thread_end end = {
		.head.type = RECORD_THREAD_END,
		.end_ns = end_ns,
		.thread = *thread,
	};

	window_builder_add_record(builder, &end.head);
}

/* Adds an exec in window `epoch` by a thread that has had on_ns on a CPU by then. */
static void add_exec(uint64_t uid, uint32_t old_gen, uint32_t epoch, uint64_t on_ns)
{
	struct record_process exec = {
		.head.type = RECORD_EXEC,
		.uid = uid,
		.tgid = NO_PID + (uint32_t)uid,
		.leader_boot_ns = uid,
		.exec_gen = old_gen + 1,
		.before.tid = NO_PID + (uint32_t)uid,
		.before.start_boot_ns = uid,
		.before.exec_gen = old_gen,
		.comm = "image2",
		.old_comm = "image1",
		.epoch = epoch,
		.sums.on_ns = on_ns,
	};

	window_builder_add_record(builder, &exec.head);
}

static void test_each_window_has_its_length(void **state)
{
	/* The thread runs from 1200, sleeps from 1700, is woken at 3400 and runs again from 3500.
	 */
	struct thread t = thread_of(1, THREAD_BLOCKED, 1700, 1);
	struct window *window;

	t.sums = (struct thread_sums){ .on_ns = 500, .switches = 1 };
	window = cut(1, &t);
	assert_sums(window, 500, 300, 0);
	window_unref(window);
	window = cut(2, &t);
	assert_sums(window, 0, 1000, 0);
	window_unref(window);
	t.wake_ns = 3400;
	t.status = THREAD_ON_CPU;
	t.since_ns = 3500;
	t.sums.blocked_ns = 1700;
	t.sums.runnable_ns = 100;
	t.at_cut = (struct thread_sums){ .on_ns = 500, .blocked_ns = 1300, .switches = 1 };
	t.epoch = 3;
	window = cut(3, &t);
	assert_sums(window, 500, 400, 100);
	window_unref(window);
}

/* The thread is woken and runs between cut and reading: at_cut has its sums at the cut. */
static void test_events_after_the_cut_are_of_the_next(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 2050, 2);
	struct window *window;

	t.sums = (struct thread_sums){ .on_ns = 100, .blocked_ns = 940, .runnable_ns = 10 };
	t.at_cut = (struct thread_sums){ .on_ns = 100, .blocked_ns = 900 };
	window = cut(1, &t);
	assert_sums(window, 100, 900, 0);
	window_unref(window);
	window = cut(2, &t);
	assert_sums(window, 950, 40, 10);
	window_unref(window);
}

static void test_runnable_waits(void **state)
{
	struct thread t = thread_of(1, THREAD_RUNNABLE, 1100, 1);
	struct window *window;

	t.sums.on_ns = 100;
	window = cut(1, &t);
	assert_sums(window, 100, 0, 900);
	assert_int_equal(window->n_opens, 1);
	assert_int_equal(window->opens[0].wake_ns, 1100);
	window_unref(window);
}

/* What a hidden thread did since its wakeup is known only when its wait ends: until then it sleeps.
 */
static void test_hidden_waits(void **state)
{
	struct thread t = thread_of(1, THREAD_BLOCKED, 1100, 1);
	struct window *window;

	t.flags = 0;
	t.wake_ns = 1400;
	t.sums.on_ns = 100;
	window = cut(1, &t);
	assert_sums(window, 100, 900, 0);
	assert_int_equal(window->n_opens, 1);
	assert_true(window->opens[0].wake_ns == INT64_MAX);
	window_unref(window);
	t.flags = THREAD_IS_SHOWN;
	window = cut(2, &t);
	assert_int_equal(window->opens[0].wake_ns, 1400);
	window_unref(window);
}

/* The thread has been off its CPU since 1100, 800 ns of that because it had no quota. */
static void test_throttled(void **state)
{
	struct thread t = thread_of(1, THREAD_RUNNABLE, 1100, 1);
	struct window *window;

	t.sums.on_ns = 100;
	t.wait_state = STATE_PREEMPTED | STATE_THROTTLED;
	t.open_throttled_ns = 800;
	window = cut(1, &t);
	assert_sums(window, 100, 0, 900);
	assert_int_equal(window->images[0].sums.throttled_ns, 800);
	assert_int_equal(window->opens[0].state, t.wait_state);
	assert_int_equal(window->opens[0].throttled_ns, 800);
	window_unref(window);
	t.status = THREAD_ON_CPU;
	t.since_ns = 2500;
	t.sums.runnable_ns = 1400;
	t.sums.throttled_ns = 1200;
	t.epoch = 1;
	window = cut(2, &t);
	assert_sums(window, 500, 0, 500);
	assert_int_equal(window->images[0].sums.throttled_ns, 400);
	window_unref(window);
}

/* A row of the programs becomes a row of the window, with all of its sums. */
static void test_a_row_has_all_its_sums(void **state)
{
	const struct thread t = thread_of(1, THREAD_ON_CPU, 1100, 1);
	const struct wait_key key = { .uid = 1, .kstack = STACK_FAULT, .state = 2 };
	struct wait_sums sums = {
		.count = 3,
		.blocked_ns = 500,
		.runnable_ns = 90,
		.throttled_ns = 40,
		.max_ns = 300,
		.max_end_ns = 1900,
	};
	uint64_t buckets[WAIT_BUCKETS] = {};
	const struct window_row *row;
	struct window *window;

	sums.buckets[2] = 1;
	sums.buckets[5] = 2;
	window_builder_add(builder, &key, &sums);
	window = cut(1, &t);
	assert_int_equal(window->n_rows, 1);
	row = &window->rows[0];
	assert_int_equal(row->image, 0);
	assert_int_equal(row->state, 2);
	assert_int_equal(row->count, 3);
	assert_int_equal(row->blocked_ns, 500);
	assert_int_equal(row->runnable_ns, 90);
	assert_int_equal(row->throttled_ns, 40);
	assert_int_equal(row->max_ns, 300);
	assert_int_equal(row->max_end_ns, 1900);
	window_row_add_buckets(window, row, buckets);
	assert_int_equal(buckets[2], 1);
	assert_int_equal(buckets[5], 2);
	window_unref(window);
}

/* A thread that was asleep for long when it was found at 1010 counts from then on. */
static void test_seeded_threads_count_from_the_start(void **state)
{
	struct thread t = thread_of(1, THREAD_BLOCKED, 3, 1);
	struct window *window;

	t.flags = THREAD_IS_SEEDED;
	t.seeded_ns = 1010;
	t.epoch = 1;
	t.wait_state |= STATE_SEEDED;
	begin(0);
	window_builder_add_thread(builder, &t);
	window = finish();
	assert_int_equal(window->n_images, 0);
	window_unref(window);
	window = cut(1, &t);
	assert_sums(window, 0, 990, 0);
	assert_int_equal(window->opens[0].start_ns, 3);
	window_unref(window);
	window = cut(2, &t);
	assert_sums(window, 0, 1000, 0);
	window_unref(window);
}

static void test_the_end_of_a_thread(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 1000, 1);
	struct window *window = cut(1, &t);

	assert_sums(window, 1000, 0, 0);
	window_unref(window);
	t.sums = (struct thread_sums){ .on_ns = 1300, .switches = 1 };
	t.at_cut = (struct thread_sums){ .on_ns = 1000 };
	t.epoch = 2;
	add_end(&t, 2300);
	window = cut(2, NULL);
	assert_sums(window, 300, 0, 0);
	window_unref(window);
	assert_int_equal(threads_known(), 0);
}

/* A thread ends between the cut at 2000 and the reading: both windows have their part of it. */
static void test_an_end_after_the_cut(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 1500, 2);
	struct window *window;

	t.sums = (struct thread_sums){ .on_ns = 540, .switches = 1 };
	t.at_cut = (struct thread_sums){ .on_ns = 500 };
	begin(1);
	add_end(&t, 2040);
	window = finish();
	assert_sums(window, 500, 0, 0);
	assert_int_equal(window->images[0].sums.switches, 0);
	window_unref(window);
	window = cut(2, NULL);
	assert_sums(window, 40, 0, 0);
	assert_int_equal(window->images[0].sums.switches, 1);
	window_unref(window);
	assert_int_equal(threads_known(), 0);
}

/* A thread left its CPU during the cut: its end has a time after the cut and the old epoch. */
static void test_an_end_on_the_cut_counts_once(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 1500, 1);
	struct window *window;

	t.sums.on_ns = 501;
	add_end(&t, 2001);
	window = cut(1, NULL);
	assert_sums(window, 501, 0, 0);
	window_unref(window);
	assert_int_equal(threads_known(), 0);
}

/* A thread's slot is free at one reading; the record of its end arrives after the next one. */
static void test_an_end_that_arrives_late(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 1000, 1);
	struct window *window = cut(1, &t);

	window_unref(window);
	window = cut(2, NULL);
	assert_int_equal(window->n_images, 0);
	window_unref(window);
	t.sums = (struct thread_sums){ .on_ns = 2010, .switches = 1 };
	t.at_cut = (struct thread_sums){ .on_ns = 2000 };
	t.epoch = 3;
	add_end(&t, 3010);
	window = cut(3, NULL);
	/* The time that the window before missed is in this one with its own, once. */
	assert_sums(window, 1010, 0, 0);
	window_unref(window);
	assert_int_equal(threads_known(), 0);
}

static void test_an_end_of_a_forgotten_thread(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 0, 5);
	struct window *window;

	t.sums.on_ns = 5010;
	t.at_cut.on_ns = 5000;
	add_end(&t, 5010);
	window = cut(5, NULL);
	assert_sums(window, 10, 0, 0);
	window_unref(window);
}

static void test_unseen_threads_are_forgotten(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 1000, 1);

	window_unref(cut(1, &t));
	window_unref(cut(2, NULL));
	assert_int_equal(threads_known(), 1);
	window_unref(cut(3, NULL));
	assert_int_equal(threads_known(), 0);
}

static void test_a_wait_over_cuts(void **state)
{
	struct thread t = thread_of(1, THREAD_BLOCKED, 1500, 1);
	struct window *window = cut(1, &t);

	assert_int_equal(window->n_opens, 1);
	assert_int_equal(window->opens[0].start_ns, 1500);
	assert_true(window->opens[0].wake_ns == INT64_MAX);
	assert_int_equal(window->opens[0].kernel->flags, STACK_IS_UNREAD);
	window_unref(window);
	window = cut(2, &t);
	assert_int_equal(window->n_opens, 1);
	assert_int_equal(window->n_spans, 0);
	window_unref(window);
	add_wait(1, 1500, 3200, 3300, 0);
	t = thread_of(1, THREAD_ON_CPU, 3300, 3);
	window = cut(3, &t);
	assert_int_equal(window->n_opens, 0);
	assert_int_equal(window->n_spans, 1);
	assert_int_equal(window->spans[0].wake_ns, 3200);
	assert_int_equal(window->spans[0].kernel->flags, STACK_IS_FAULT);
	window_unref(window);
}

/* A wait that ends when its window does belongs to that window, one that ends later does not. */
static void test_a_wait_that_ends_at_the_cut(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 2000, 1);
	struct window *window;

	begin(1);
	window_builder_add_thread(builder, &t);
	add_wait(1, 1500, 1900, 2000, 0);
	window = finish();
	assert_int_equal(window->n_spans, 1);
	assert_int_equal(window->n_opens, 0);
	window_unref(window);
	window = cut(2, &t);
	assert_int_equal(window->n_spans, 0);
	window_unref(window);
	begin(3);
	window_builder_add_thread(builder, &t);
	add_wait(1, 3500, 3900, 4001, 0);
	window = finish();
	assert_int_equal(window->n_spans, 0);
	window_unref(window);
	window = cut(4, &t);
	assert_int_equal(window->n_spans, 1);
	window_unref(window);
}

/* A wait is marked if the iterator missed its thread, but not if the iterator did not run. */
static void test_unseen_waits(void **state)
{
	struct thread seen = thread_of(1, THREAD_BLOCKED, 1500, 1), t;
	struct window *window;

	t = thread_of(2, THREAD_RUNNABLE, 1500, 1);
	seen.seen_cut = t.seen_cut = 1;
	begin(1);
	window_builder_add_thread(builder, &seen);
	window_builder_add_thread(builder, &t);
	window = finish();
	assert_int_equal(window->n_opens, 2);
	assert_int_equal((window->opens[0].state | window->opens[1].state) & STATE_UNSEEN, 0);
	window_unref(window);

	seen.seen_cut = 2;
	begin(2);
	window_builder_add_thread(builder, &seen);
	window_builder_add_thread(builder, &t);
	window = finish();
	assert_int_equal(window->n_opens, 2);
	assert_int_equal(window->opens[0].state & STATE_UNSEEN ? 1 : 0,
			 window->images[window->opens[0].image].uid == 2);
	assert_int_equal(window->opens[1].state & STATE_UNSEEN ? 1 : 0,
			 window->images[window->opens[1].image].uid == 2);
	window_unref(window);
}

/* A row of sampled waits is a part of what its thread's short waits are estimated to be. */
static void test_sampled_rows_are_an_estimate(void **state)
{
	struct wait_key key = { .uid = 1, .kstack = STACK_FAULT, .state = 1 | STATE_SAMPLED };
	struct wait_sums sums = { .count = 4, .blocked_ns = 150, .runnable_ns = 50, .max_ns = 90 };
	struct thread t = thread_of(1, THREAD_ON_CPU, 1900, 1);
	struct window *window;

	t.sums = (struct thread_sums){ .blocked_ns = 200, .short_count = 5 };
	begin(1);
	window_builder_add_thread(builder, &t);
	window_builder_add(builder, &key, &sums);
	key.kstack = STACK_NONE;
	window_builder_add(builder, &key, &sums);
	key.state = 1;
	window_builder_add(builder, &key, &sums);
	window = finish();
	assert_int_equal(window->n_rows, 3);
	assert_int_equal(window->rows[0].state, 1 | STATE_SAMPLED);
	assert_int_equal(window->images[0].estimate.count, 8);
	assert_int_equal(window->images[0].estimate.blocked_ns, 300);
	assert_int_equal(window->images[0].estimate.runnable_ns, 100);
	window_unref(window);
}

/* A user stack that is read during a wait belongs to that wait, not to the thread's next one. */
static void test_user_stack_of_open_wait(void **state)
{
	const struct record_open_stack record = {
		.head.type = RECORD_OPEN_STACK,
		.uid = 1,
		.since_ns = 1200,
		.ustack = STACK_FAULT,
	};
	struct thread t = thread_of(1, THREAD_BLOCKED, 1200, 1);
	struct window *window = cut(1, &t);

	assert_int_equal(window->n_opens, 1);
	assert_null(window->opens[0].user);
	window_unref(window);

	window_builder_add_record(builder, &record.head);
	window = cut(2, &t);
	assert_int_equal(window->opens[0].user->flags, STACK_IS_FAULT);
	window_unref(window);

	t = thread_of(1, THREAD_BLOCKED, 3500, 3);
	window = cut(3, &t);
	assert_int_equal(window->n_opens, 1);
	assert_null(window->opens[0].user);
	window_unref(window);
}

/* A wait that ends between cut and reading is open once, however its thread is read. */
static void test_a_wait_that_ends_after_the_cut(void **state)
{
	static const uint32_t statuses[] = { THREAD_BLOCKED, THREAD_ON_CPU };
	size_t i;

	for (i = 0; i < 2; i++) {
		uint64_t uid = i + 1;
		struct thread t = thread_of(uid, statuses[i], i ? 2030 : 1500, i ? 2 : 1);
		struct window *window;

		t.at_cut.blocked_ns = 500;
		begin(1);
		window_builder_add_thread(builder, &t);
		add_wait(uid, 1500, 2020, 2030, 0);
		window = finish();
		assert_int_equal(window->n_opens, 1);
		assert_int_equal(window->n_spans, 0);
		assert_int_equal(window->opens[0].kernel->flags, STACK_IS_FAULT);
		window_unref(window);
		t = thread_of(uid, THREAD_ON_CPU, 2030, 2);
		window = cut(2, &t);
		assert_int_equal(window->n_opens, 0);
		assert_int_equal(window->n_spans, 1);
		window_unref(window);
		add_end(&t, 3000);
		window_unref(cut(2, NULL));
	}
}

/* A wait below the minimum at the cut is open only if a record shows that it grew longer. */
static void test_young_waits(void **state)
{
	struct thread t = thread_of(1, THREAD_BLOCKED, 1950, 1);
	struct window *window = cut(1, &t);

	assert_int_equal(window->n_opens, 0);
	window_unref(window);
	t.since_ns = 2950;
	begin(2);
	window_builder_add_thread(builder, &t);
	add_wait(1, 2950, 3100, 3100, 0);
	window = finish();
	assert_int_equal(window->n_opens, 1);
	assert_int_equal(window->opens[0].start_ns, 2950);
	window_unref(window);
}

static void test_a_wake_time_from_before_is_none(void **state)
{
	struct thread t = thread_of(1, THREAD_BLOCKED, 1500, 1);
	struct window *window;

	t.wake_ns = 1400;
	window = cut(1, &t);
	assert_true(window->opens[0].wake_ns == INT64_MAX);
	window_unref(window);
}

/* If stacks are taken at switch-out, an open wait has both of them. */
static void test_stacks_of_the_switch_out(void **state)
{
	struct thread t = thread_of(1, THREAD_BLOCKED, 1500, 1);
	uint64_t ip = 1;
	struct window *window;
	bool is_new;

	stack_table_put(stacks, 100, NULL, &ip, 1, &is_new);
	stack_table_put(stacks, 101, NULL, &ip, 1, &is_new);
	t.kstack = 100;
	t.ustack = 101;
	window = cut(1, &t);
	assert_int_equal(window->opens[0].kernel->raw_id, 100);
	assert_int_equal(window->opens[0].user->raw_id, 101);
	window_unref(window);
}

/*
 * If they were not taken, as the wait was not expected to be long, it has the stacks that were read
 * while it lasted, also when it has ended.
 */
static void test_stacks_not_taken_at_the_switch_out(void **state)
{
	struct thread t = thread_of(1, THREAD_BLOCKED, 1500, 1);
	const struct record_open_stack user = {
		.head = { RECORD_OPEN_STACK, sizeof(user) },
		.uid = 1,
		.since_ns = 1500,
		.ustack = 101,
	};
	const struct record_wait wait = {
		.head = { RECORD_WAIT, sizeof(wait) },
		.key = { .uid = 1, .kstack = 100, .ustack = STACK_NO_HOOK, .state = 1 },
		.start_ns = 1500,
		.wake_ns = 2500,
		.end_ns = 2500,
	};
	uint64_t ip = 1;
	struct window *window;
	bool is_new;

	stack_table_put(stacks, 100, NULL, &ip, 1, &is_new);
	stack_table_put(stacks, 101, NULL, &ip, 1, &is_new);
	t.kstack = t.ustack = STACK_NO_HOOK;
	t.open_kstack = 100;
	t.open_since_ns = 1500;
	begin(1);
	window_builder_add_record(builder, &user.head);
	window_builder_add_thread(builder, &t);
	window = finish();
	assert_int_equal(window->opens[0].kernel->raw_id, 100);
	assert_int_equal(window->opens[0].user->raw_id, 101);
	window_unref(window);
	begin(2);
	window_builder_add_record(builder, &wait.head);
	window = finish();
	assert_int_equal(window->n_spans, 1);
	assert_int_equal(window->spans[0].kernel->raw_id, 100);
	assert_int_equal(window->spans[0].user->raw_id, 101);
	window_unref(window);
}

static void add_row(uint64_t uid, uint32_t exec_gen, uint64_t count)
{
	struct wait_key key = { .uid = uid, .exec_gen = exec_gen, .state = 1 };
	struct wait_sums sums = { .count = count, .blocked_ns = 300 * count };

	window_builder_add(builder, &key, &sums);
}

static void assert_row_image(const struct window *window, size_t row, uint32_t exec_gen,
			     const char *comm)
{
	const struct window_image *image = &window->images[window->rows[row].image];

	assert_int_equal(image->exec_gen, exec_gen);
	assert_string_equal(image->comm, comm);
}

static void test_waits_go_to_their_image(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 1900, 1);
	struct window *window;

	t.exec_gen = 2;
	memcpy(t.comm, "image2", 7);
	t.sums.on_ns = 800;
	add_exec(1, 1, 1, 650);
	begin(1);
	window_builder_add_thread(builder, &t);
	add_row(1, 1, 5);
	add_row(1, 2, 6);
	window = finish();
	assert_int_equal(window->n_images, 2);
	assert_row_image(window, 0, 1, "image1");
	assert_row_image(window, 1, 2, "image2");
	assert_int_equal(window->rows[1].count, 6);
	/* Each image has its own part of the time on the CPU, up to the cut. */
	assert_int_equal(window->images[window->rows[0].image].sums.on_ns, 650);
	assert_int_equal(window->images[window->rows[1].image].sums.on_ns, 250);
	window_unref(window);
	/* The old image has no part in the next window. */
	t.sums.on_ns = 1000;
	t.since_ns = 3000;
	t.at_cut.on_ns = 1000;
	window = cut(2, &t);
	assert_int_equal(window->n_images, 1);
	assert_string_equal(window->images[0].comm, "image2");
	assert_int_equal(window->images[0].sums.on_ns, 100);
	window_unref(window);
}

/*
 * The record of an exec right after the cut arrives in this window; the old image's last waits are
 * in the next one.
 */
static void test_an_exec_after_the_cut(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 1500, 1);
	struct window *window;

	t.exec_gen = 2;
	t.epoch = 2;
	t.at_cut.on_ns = 500;
	memcpy(t.comm, "image2", 7);
	begin(1);
	window_builder_add_thread(builder, &t);
	add_exec(1, 1, 2, 520);
	window = finish();
	/* It is read as the new image, but was the old one when the window ended. */
	assert_sums(window, 500, 0, 0);
	assert_string_equal(window->images[0].comm, "image1");
	window_unref(window);
	begin(2);
	window_builder_add_thread(builder, &t);
	add_row(1, 1, 5);
	window = finish();
	assert_int_equal(window->n_images, 2);
	assert_row_image(window, 0, 1, "image1");
	assert_int_equal(window->images[window->rows[0].image].sums.on_ns, 20);
	assert_int_equal(window->images[!window->rows[0].image].sums.on_ns, 980);
	window_unref(window);
	begin(3);
	window_builder_add_thread(builder, &t);
	add_row(1, 2, 5);
	window = finish();
	assert_int_equal(window->n_images, 1);
	assert_row_image(window, 0, 2, "image2");
	window_unref(window);
}

/*
 * A thread that is not the main thread and calls exec takes over the main thread's tid and start
 * time; what it did before has its own.
 */
static void test_an_exec_off_the_main_thread(void **state)
{
	struct thread t = thread_of(1, THREAD_ON_CPU, 1900, 1);
	struct record_process exec = {
		.head.type = RECORD_EXEC,
		.uid = 1,
		.tgid = t.tgid,
		.leader_boot_ns = 1,
		.exec_gen = 2,
		.before.tid = NO_PID + 7,
		.before.start_boot_ns = 77,
		.before.exec_gen = 1,
		.epoch = 1,
		.sums.on_ns = 650,
	};
	struct window *window;
	const struct window_image *before, *after;

	t.exec_gen = 2;
	t.sums.on_ns = 800;
	window_builder_add_record(builder, &exec.head);
	begin(1);
	window_builder_add_thread(builder, &t);
	add_row(1, 1, 5);
	add_row(1, 2, 6);
	window = finish();
	before = &window->images[window->rows[0].image];
	after = &window->images[window->rows[1].image];
	assert_int_equal(before->tid, NO_PID + 7);
	assert_int_equal(before->start_boot_ns, 77);
	assert_int_equal(after->tid, NO_PID + 1);
	assert_int_equal(after->start_boot_ns, 1);
	assert_int_equal(window->n_images, 2);
	window_unref(window);
}

static void test_waits_of_unknown_threads_are_counted(void **state)
{
	struct window *window;

	begin(1);
	add_row(7, 1, 5);
	add_wait(8, 900, 1500, 1500, 0);
	window = finish();
	assert_int_equal(window->n_rows, 0);
	assert_int_equal(window->n_spans, 0);
	assert_int_equal(window->lost[WINDOW_LOST_WAIT_THREADS], 6);
	assert_int_equal(window->lost[WINDOW_LOST_MEMORY], 0);
	window_unref(window);
	window = cut(2, NULL);
	assert_int_equal(window->lost[WINDOW_LOST_WAIT_THREADS], 0);
	window_unref(window);
}

static int set_up_spawns(void **state)
{
	int r = set_up(state);

	if (!r)
		builder->options.counts_spawns = true;
	return r;
}

/* Adds a fork, exec or exit of a child of "sh", which exits after `life` ns. */
static void add_process(uint32_t type, uint64_t uid, const char *comm, uint64_t life)
{
	struct record_process record = {
		.head.type = type,
		.uid = uid,
		.tgid = NO_PID + 1,
		.parent_comm = "sh",
		.time_ns = 1500,
		.life_ns = life,
		.cpu_ns = 300,
		.sums.on_ns = 200,
	};

	memcpy(record.comm, comm, strlen(comm));
	window_builder_add_record(builder, &record.head);
}

static void assert_spawn(const struct window *window, size_t i, const char *comm,
			 struct spawn_sums wanted)
{
	assert_true(i < window->spawns.n);
	assert_string_equal(window->spawns.v[i].parent, "sh");
	assert_string_equal(window->spawns.v[i].comm, comm);
	assert_memory_equal(&window->spawns.v[i].sums, &wanted, sizeof(wanted));
}

/* The last thread of a process runs for 40 ns, and the process lives for 70 ns, after its exit. */
static void test_spawns(void **state)
{
	struct thread t = thread_of(7, THREAD_ON_CPU, 1500, 1);
	struct window *window;

	begin(1);
	add_process(RECORD_FORK, 0, "sh", 0);
	add_process(RECORD_EXEC, 0, "true", 0);
	add_process(RECORD_EXIT, 7, "true", 900);
	t.sums.on_ns = 240;
	add_end(&t, 1570);
	/* A process whose last thread is not known, and one that lived for long. */
	add_process(RECORD_EXIT, 0, "true", 100);
	add_process(RECORD_EXIT, 0, "true", SPAWN_SHORT_NS);
	window = finish();
	assert_int_equal(window->spawns.ns, LENGTH);
	assert_int_equal(window->spawns.n, 2);
	assert_spawn(window, 0, "sh", (struct spawn_sums){ .forks = 1 });
	assert_spawn(window, 1, "true",
		     (struct spawn_sums){ 0, 1, 3, 2, 300 + 40 + 300, 900 + 70 + 100 });
	assert_int_equal(window->spawns.n_others, 0);
	window_unref(window);
	window = cut(2, NULL);
	assert_int_equal(window->spawns.ns, LENGTH);
	assert_int_equal(window->spawns.n, 0);
	window_unref(window);
}

/* A window is cut while the last thread exits: the process is counted once, in the next one. */
static void test_an_exit_over_a_cut(void **state)
{
	struct thread t = thread_of(7, THREAD_ON_CPU, 1500, 1);
	struct window *window;

	begin(1);
	add_process(RECORD_EXIT, 7, "true", 900);
	window_builder_add_thread(builder, &t);
	window = finish();
	assert_int_equal(window->spawns.n, 0);
	window_unref(window);
	begin(2);
	t.sums.on_ns = 210;
	add_end(&t, 2001);
	window = finish();
	assert_spawn(window, 0, "true", (struct spawn_sums){ 0, 0, 1, 1, 310, 900 + 501 });
	window_unref(window);
	window = cut(3, NULL);
	assert_int_equal(window->spawns.n, 0);
	assert_int_equal(threads_known(), 0);
	window_unref(window);
}

/* The ring had no room for the record of the thread's end: the exit is counted as it was. */
static void test_an_exit_without_the_end_of_the_thread(void **state)
{
	uint64_t exits = 0;
	struct window *window;
	uint32_t n;

	begin(1);
	add_process(RECORD_EXIT, 7, "true", 900);
	window_unref(finish());
	for (n = 2; n < 5; n++) {
		window = cut(n, NULL);
		exits += window->spawns.n;
		if (window->spawns.n)
			assert_spawn(window, 0, "true",
				     (struct spawn_sums){ 0, 0, 1, 1, 300, 900 });
		window_unref(window);
	}
	assert_int_equal(exits, 1);
	assert_int_equal(threads_known(), 0);
	/* A builder that is freed has such an exit, too. */
	add_process(RECORD_EXIT, 8, "true", 900);
}

/* Adds an exit of the process 1 that started at `start`, reported by a thread. */
static void add_thread_exit(uint64_t uid, uint64_t start, uint32_t n_threads, uint64_t cpu_ns)
{
	struct record_process record = {
		.head.type = RECORD_EXIT,
		.uid = uid,
		.tgid = NO_PID + 1,
		.leader_boot_ns = start,
		.n_threads = n_threads,
		.comm = "true",
		.parent_comm = "sh",
		.time_ns = 1500,
		.life_ns = 900,
		.cpu_ns = cpu_ns,
		.sums.on_ns = 200,
	};

	window_builder_add_record(builder, &record.head);
}

/* Threads that exit at the same moment each see that no thread is left. */
static void test_an_exit_that_several_threads_report(void **state)
{
	struct thread t = thread_of(7, THREAD_ON_CPU, 1500, 1);
	struct window *window;
	uint32_t n;

	begin(1);
	t.sums.on_ns = 210;
	/* The second report, which has more, comes before the first thread has ended. */
	add_thread_exit(7, 5, 2, 300);
	add_thread_exit(8, 5, 2, 400);
	add_end(&t, 1510);
	t.uid = 8;
	add_end(&t, 1520);
	/* It comes after that; and the last thread is not known. */
	add_thread_exit(9, 6, 3, 300);
	t.uid = 9;
	add_end(&t, 1510);
	add_thread_exit(10, 6, 1, 400);
	t.uid = 10;
	add_end(&t, 1530);
	add_thread_exit(0, 6, 1, 500);
	/* Another process with this pid. */
	add_thread_exit(0, 7, 1, 50);
	window = finish();
	assert_int_equal(window->spawns.n, 1);
	assert_spawn(window, 0, "true",
		     (struct spawn_sums){ 0, 0, 3, 3, 410 + 310 + 50, 920 + 910 + 900 });
	window_unref(window);
	/* A report in the next window is one too many, and then it is forgotten. */
	begin(2);
	add_thread_exit(0, 5, 1, 1);
	window = finish();
	assert_int_equal(window->spawns.n, 0);
	window_unref(window);
	for (n = 3; n < 5; n++)
		window_unref(cut(n, NULL));
	assert_null(((struct offcpu_builder *)builder)->exited);
	/* A builder that is freed has one, too. */
	add_thread_exit(11, 8, 2, 1);
}

/* Threads of the kernel are not counted, nor anything by a session that a client started. */
static void test_what_is_not_counted(void **state)
{
	struct record_process record = { .head.type = RECORD_FORK, .is_kernel = 1 };
	struct window *window;

	begin(1);
	window_builder_add_record(builder, &record.head);
	record.head.type = RECORD_EXIT;
	window_builder_add_record(builder, &record.head);
	window = finish();
	assert_int_equal(window->spawns.n, 0);
	window_unref(window);
	builder->options.counts_spawns = false;
	begin(2);
	add_process(RECORD_FORK, 0, "sh", 0);
	add_process(RECORD_EXIT, 7, "true", 900);
	window = finish();
	assert_int_equal(window->spawns.ns, 0);
	assert_int_equal(window->spawns.n, 0);
	assert_int_equal(threads_known(), 0);
	window_unref(window);
}

#define TEST(name)	  cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_SPAWNS(name) cmocka_unit_test_setup_teardown(name, set_up_spawns, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_each_window_has_its_length),
		TEST(test_events_after_the_cut_are_of_the_next),
		TEST(test_runnable_waits),
		TEST(test_hidden_waits),
		TEST(test_throttled),
		TEST(test_a_row_has_all_its_sums),
		TEST(test_seeded_threads_count_from_the_start),
		TEST(test_the_end_of_a_thread),
		TEST(test_an_end_after_the_cut),
		TEST(test_an_end_on_the_cut_counts_once),
		TEST(test_an_end_that_arrives_late),
		TEST(test_an_end_of_a_forgotten_thread),
		TEST(test_unseen_threads_are_forgotten),
		TEST(test_a_wait_over_cuts),
		TEST(test_a_wait_that_ends_at_the_cut),
		TEST(test_unseen_waits),
		TEST(test_sampled_rows_are_an_estimate),
		TEST(test_user_stack_of_open_wait),
		TEST(test_a_wait_that_ends_after_the_cut),
		TEST(test_young_waits),
		TEST(test_a_wake_time_from_before_is_none),
		TEST(test_stacks_of_the_switch_out),
		TEST(test_stacks_not_taken_at_the_switch_out),
		TEST(test_waits_go_to_their_image),
		TEST(test_an_exec_after_the_cut),
		TEST(test_an_exec_off_the_main_thread),
		TEST(test_waits_of_unknown_threads_are_counted),
		TEST_SPAWNS(test_spawns),
		TEST_SPAWNS(test_an_exit_over_a_cut),
		TEST_SPAWNS(test_an_exit_without_the_end_of_the_thread),
		TEST_SPAWNS(test_an_exit_that_several_threads_report),
		TEST_SPAWNS(test_what_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
