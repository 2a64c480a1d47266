/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What has to be sent: each window once, also if windows were merged, and gaps with their reasons.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/arena.h"
#include "common/base.h"
#include "fleet/send/plan.h"

#define S      NS_PER_S
#define MINUTE (60 * S)

enum { MAX = 64 };

static struct wire_window windows[MAX];
static struct wire_gap gaps[MAX];
static struct plan_span spans[MAX];
static struct wire_windows_reply reply;
static struct plan_spans known;
static struct arena *arena;
static struct plan plan;

static int set_up(void **state)
{
	reply = (struct wire_windows_reply){ { windows, 0 }, { gaps, 0 } };
	known = (struct plan_spans){ .v = spans };
	arena = arena_new();
	return 0;
}

static int tear_down(void **state)
{
	arena = arena_free(arena);
	return 0;
}

static void add_window(int64_t start, int64_t end)
{
	windows[reply.windows.n++] =
		(struct wire_window){ .seq = start, .start = start, .end = end };
}

static void add_known(int64_t start, int64_t end)
{
	spans[known.n++] = (struct plan_span){ start, end };
}

static void make(int64_t each_ns, int64_t until_ns)
{
	assert_int_equal(plan_make(&reply, &known, each_ns, until_ns, arena, &plan), 0);
}

static void check(size_t i, int64_t start, int64_t end, const char *reason)
{
	assert_true(i < plan.n);
	assert_int_equal(plan.v[i].start_ns, start);
	assert_int_equal(plan.v[i].end_ns, end);
	if (reason)
		assert_string_equal(plan.v[i].reason, reason);
	else
		assert_null(plan.v[i].reason);
}

static void test_missing(void **state)
{
	for (int64_t i = 0; i < 4; i++)
		add_window(100 * S + 5 * S * i, 105 * S + 5 * S * i);
	make(0, 0);
	assert_int_equal(plan.n, 4);
	check(0, 100 * S, 105 * S, NULL);
	add_known(100 * S, 105 * S);
	add_known(110 * S, 115 * S);
	make(0, 0);
	assert_int_equal(plan.n, 2);
	check(0, 105 * S, 110 * S, NULL);
	check(1, 115 * S, 120 * S, NULL);
	add_known(105 * S, 110 * S);
	add_known(115 * S, 120 * S);
	known.n = 0;
	for (int64_t i = 0; i < 4; i++)
		add_known(100 * S + 5 * S * i, 105 * S + 5 * S * i);
	make(0, 0);
	assert_int_equal(plan.n, 0);
}

/* A window that the daemon merged from others is not sent where these were. */
static void test_merged(void **state)
{
	add_known(100 * S, 105 * S);
	add_known(105 * S, 110 * S);
	add_window(100 * S, 110 * S);
	add_window(110 * S, 170 * S);
	make(0, 0);
	assert_int_equal(plan.n, 1);
	check(0, 110 * S, 170 * S, NULL);
	add_known(110 * S, 120 * S);
	add_known(150 * S, 155 * S);
	make(0, 0);
	assert_int_equal(plan.n, 2);
	check(0, 120 * S, 150 * S, PLAN_MERGED);
	check(1, 155 * S, 170 * S, PLAN_MERGED);
}

static void test_gaps(void **state)
{
	add_known(100 * S, 105 * S);
	gaps[reply.gaps.n++] = (struct wire_gap){ 150 * S, 160 * S, "stackd did not run", NULL };
	add_window(140 * S, 150 * S);
	add_window(160 * S, 165 * S);
	/* Less than a gap lies between these two. */
	add_window(165 * S + 1, 170 * S);
	make(0, 0);
	assert_int_equal(plan.n, 5);
	check(0, 105 * S, 140 * S, PLAN_AGED);
	check(1, 140 * S, 150 * S, NULL);
	check(2, 150 * S, 160 * S, "stackd did not run");
	check(3, 160 * S, 165 * S, NULL);
	check(4, 165 * S + 1, 170 * S, NULL);
	/* Once sent, gaps are known. */
	known.n = 0;
	add_known(100 * S, 105 * S);
	for (size_t i = 0; i < plan.n; i++)
		add_known(plan.v[i].start_ns, plan.v[i].end_ns);
	make(0, 0);
	assert_int_equal(plan.n, 0);
}

/* Windows that overlap, as after a step of the clock, are sent as one. */
static void test_overlap(void **state)
{
	add_window(100 * S, 105 * S);
	add_window(103 * S, 108 * S);
	add_window(104 * S, 106 * S);
	add_window(108 * S, 113 * S);
	make(0, 0);
	assert_int_equal(plan.n, 2);
	check(0, 100 * S, 108 * S, NULL);
	check(1, 108 * S, 113 * S, NULL);
}

/* After a step back, what was sent before stays, and what is not sent for that reason is said. */
static void test_set_back(void **state)
{
	add_window(100 * S, 105 * S);
	add_window(103 * S, 108 * S);
	add_known(100 * S, 105 * S);
	make(0, 0);
	assert_int_equal(plan.n, 1);
	check(0, 105 * S, 108 * S, PLAN_BACK);
	assert_int_equal(plan.lost.start_ns, 100 * S);
	assert_int_equal(plan.lost.end_ns, 108 * S);
	add_known(105 * S, 110 * S);
	make(0, 0);
	assert_int_equal(plan.n, 0);
	assert_int_equal(plan.lost.end_ns, 108 * S);
	/* Both were sent as one: nothing is lost. */
	known.n = 0;
	add_known(100 * S, 108 * S);
	make(0, 0);
	assert_int_equal(plan.n, 0);
	assert_int_equal(plan.lost.end_ns, 0);
	/* Merged windows are no step of the clock. */
	reply.windows.n = known.n = 0;
	add_known(100 * S, 105 * S);
	add_known(105 * S, 110 * S);
	add_window(100 * S, 110 * S);
	make(0, 0);
	assert_int_equal(plan.lost.end_ns, 0);
}

/* A minute has the windows whose middle lies in it, and waits for the last one. */
static void test_minutes(void **state)
{
	for (int64_t i = 0; i < 30; i++)
		add_window(3 * S + 5 * S * i, 8 * S + 5 * S * i);
	make(MINUTE, 0);
	assert_int_equal(plan.n, 2);
	check(0, 3 * S, 58 * S, NULL);
	check(1, 58 * S, 118 * S, NULL);
	make(MINUTE, 3 * MINUTE - 1);
	assert_int_equal(plan.n, 2);
	make(MINUTE, 3 * MINUTE);
	assert_int_equal(plan.n, 3);
	check(2, 118 * S, 153 * S, NULL);
	/* A window that is longer than a minute stands for the minute of its middle. */
	reply.windows.n = 0;
	add_window(0, 600 * S);
	add_window(600 * S, 1200 * S);
	make(MINUTE, 10000 * S);
	assert_int_equal(plan.n, 2);
	check(0, 0, 600 * S, NULL);
}

/* What the server would remove again is not sent, and a gap begins where that ends. */
static void test_limit(void **state)
{
	add_window(100 * S, 105 * S);
	add_window(105 * S, 110 * S);
	add_window(200 * S, 205 * S);
	make(0, 0);
	assert_int_equal(plan.n, 4);
	plan_limit(&plan, 104 * S);
	assert_int_equal(plan.n, 4);
	check(0, 100 * S, 105 * S, NULL);
	plan_limit(&plan, 110 * S);
	assert_int_equal(plan.n, 2);
	check(0, 110 * S, 200 * S, PLAN_AGED);
	plan_limit(&plan, 150 * S);
	assert_int_equal(plan.n, 2);
	check(0, 150 * S, 200 * S, PLAN_AGED);
	check(1, 200 * S, 205 * S, NULL);
	plan_limit(&plan, 205 * S);
	assert_int_equal(plan.n, 0);
}

static void test_nothing(void **state)
{
	add_known(1, 2);
	make(0, 0);
	assert_int_equal(plan.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_merged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gaps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_overlap, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_set_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_minutes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
