/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/call_stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/drain/call_budget.h"

static void put(struct call_stream *calls, int64_t time)
{
	const struct call call = { .time_ns = time, .count = 1 };

	call_stream_put(calls, &call);
}

/* Calls arrive out of order, as CPUs send at the same time, and are read in order. */
static void test_order(void **state)
{
	struct call_stream *calls = call_stream_new();
	uint64_t position = 0, missed = 0;
	struct call out[8];

	put(calls, 10);
	put(calls, 30);
	put(calls, 20);
	put(calls, 25);
	assert_int_equal(call_stream_take(calls, &position, 30, out, 8, &missed), 3);
	assert_int_equal(out[1].time_ns, 20);
	assert_int_equal(out[2].time_ns, 25);
	assert_int_equal(call_stream_take(calls, &position, 30, out, 8, &missed), 0);
	assert_int_equal(call_stream_take(calls, &position, 31, out, 8, &missed), 1);
	assert_int_equal(missed, 0);
	assert_int_equal(position, call_stream_position(calls));
	call_stream_unref(calls);
}

/* A reader that is too slow misses the oldest calls and learns how many; the stream goes on. */
static void test_slow_reader(void **state)
{
	enum { N = 20000 };
	struct call_stream *calls = call_stream_new();
	uint64_t position = 0, missed = 0, taken = 0;
	struct call out[16];
	size_t n;

	for (int64_t i = 0; i < N; i++)
		put(calls, i);
	while ((n = call_stream_take(calls, &position, INT64_MAX, out, 16, &missed)) > 0)
		taken += n;
	assert_true(missed > 0 && taken > 0);
	assert_int_equal(missed + taken, N);
	assert_int_equal(out[15].time_ns, N - 1);
	call_stream_unref(calls);
}

/* The record is that of a BPF program, but its numbers are not believed. */
static void test_exec(void **state)
{
	struct record_exec_call record = { .parent = 7, .n = UINT32_MAX, .all = 3 };
	struct call_stream *calls = call_stream_new();
	struct call call = { .time_ns = 1 }, out;
	uint64_t position = 0, missed = 0;

	memset(record.path, 'p', sizeof(record.path));
	memset(record.parent_comm, 'c', sizeof(record.parent_comm));
	memset(record.arguments, 'a', sizeof(record.arguments));
	call.exec = call_exec_new(&record);
	call_stream_put(calls, &call);
	assert_int_equal(call_stream_take(calls, &position, 2, &out, 1, &missed), 1);
	call_stream_unref(calls);
	assert_int_equal(out.exec->parent, 7);
	assert_int_equal(strlen(out.exec->parent_comm), COMM_LEN - 1);
	assert_int_equal(strlen(out.exec->text), EXEC_PATH - 1);
	assert_int_equal(out.exec->n, EXEC_ARGUMENTS);
	assert_int_equal(out.exec->all, EXEC_ARGUMENTS);
	assert_int_equal(out.exec->text[EXEC_PATH + EXEC_ARGUMENTS - 1], 'a');
	call_fini(&out);
}

static void step(struct call_budget *budget, struct call_counts *now, uint64_t calls,
		 uint64_t run_ns)
{
	now->time_ns += CALL_BUDGET_TICK_NS;
	now->calls += calls;
	now->wanted += calls;
	now->run_ns += run_ns;
	call_budget_update(budget, now);
}

static void test_budget_of_load(void **state)
{
	struct call_counts now = { .time_ns = NS_PER_S };
	struct call_budget budget;
	int i;

	call_budget_init(&budget, 25, 0, 0, now.time_ns);
	step(&budget, &now, 1000, 10 * NS_PER_MS);
	assert_int_equal(budget.load_percent, 10);
	assert_int_equal(budget.calls_per_s, 10000);
	assert_int_equal(budget.every, 1);
	step(&budget, &now, 10000, 100 * NS_PER_MS);
	assert_int_equal(budget.every, 4);
	step(&budget, &now, 10000, 20 * NS_PER_MS);
	assert_int_equal(budget.every, 4);
	for (i = 0; i < 20; i++)
		step(&budget, &now, 10, NS_PER_US);
	assert_int_equal(budget.every, 1);
	assert_false(budget.is_over);
}

/* A session that is over its budget for two seconds, at the lowest rate, has to end. */
static void test_budget_over(void **state)
{
	struct call_counts now = { .time_ns = NS_PER_S };
	struct call_budget budget;
	int i;

	call_budget_init(&budget, 25, 0, 0, now.time_ns);
	for (i = 0; i < 20; i++)
		step(&budget, &now, 1000000, 90 * NS_PER_MS);
	assert_int_equal(budget.every, CALL_BUDGET_EVERY_MAX);
	assert_false(budget.is_over);
	for (i = 0; i < 20; i++)
		step(&budget, &now, 1000000, 90 * NS_PER_MS);
	assert_true(budget.is_over);
	step(&budget, &now, 10, 10);
	assert_false(budget.is_over);
}

/*
 * Intervals without calls, in which a busy host gives their thread no CPU, do not hide that a
 * session is over its budget; one that is within it on average goes on.
 */
static void test_budget_over_at_times(void **state)
{
	struct call_counts now = { .time_ns = NS_PER_S };
	struct call_budget often, seldom;
	bool is_over = false;
	int i;

	call_budget_init(&often, 25, 0, 0, now.time_ns);
	for (i = 0; i < 60; i++) {
		step(&often, &now, 1000000, i % 2 ? 0 : 90 * NS_PER_MS);
		is_over |= often.is_over;
	}
	assert_true(is_over);
	call_budget_init(&seldom, 25, 0, 0, now.time_ns);
	seldom.last = now;
	for (i = 0; i < 600; i++) {
		step(&seldom, &now, 1000000, i % 5 ? 0 : 90 * NS_PER_MS);
		assert_false(seldom.is_over);
	}
	/* The costly beginning, when more calls were recorded, does not count later. */
	call_budget_init(&seldom, 10, 0, 0, now.time_ns);
	seldom.last = now;
	for (i = 0; i < 100; i++) {
		step(&seldom, &now, 1000000, (i == 0 ? 1600 : i == 99 ? 12 : 5) * NS_PER_MS);
		assert_false(seldom.is_over);
	}
}

/* Calls are recorded at the rate that is asked for, or a lower one if that costs too much. */
static void test_budget_of_rate(void **state)
{
	struct call_counts now = { .time_ns = NS_PER_S };
	struct call_budget budget;

	call_budget_init(&budget, 25, 0, 1000, now.time_ns);
	step(&budget, &now, 50, 0);
	assert_int_equal(budget.every, 1);
	step(&budget, &now, 20000, 0);
	assert_int_equal(budget.every, 200);
	step(&budget, &now, 0, 0);
	assert_int_equal(budget.every, 1);
	step(&budget, &now, 50, 100 * NS_PER_MS);
	assert_int_equal(budget.every, 4);
	assert_false(budget.is_over);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	       cmocka_unit_test(test_exec),
		cmocka_unit_test(test_slow_reader),    cmocka_unit_test(test_budget_of_load),
		cmocka_unit_test(test_budget_over),    cmocka_unit_test(test_budget_over_at_times),
		cmocka_unit_test(test_budget_of_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
