/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Estimates the time of programs of which only some runs were timed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/drain/cost_meter.h"

enum { ENTRY_NS = 45 /* as in cost_meter.c */ };

static void test_scale(void **state)
{
	const struct cpu_counts before = { .runs = 1000, .timed = 100, .timed_ns = 1000000 };
	struct cpu_counts now = before;

	assert_int_equal(cost_of_programs(&now, &before), 0);
	now.runs += 6400;
	now.timed += 100;
	now.timed_ns += 20000;
	assert_int_equal(cost_of_programs(&now, &before), 6400 * (200 + ENTRY_NS));
	now.walk_ns += 7;
	now.call_ns += 5;
	assert_int_equal(cost_of_programs(&now, &before), 6400 * (200 + ENTRY_NS) + 12);
}

/* If few or no runs were timed, the average since the start stands for them. */
static void test_few(void **state)
{
	const struct cpu_counts before = { .runs = 10000, .timed = 100, .timed_ns = 30000 };
	const struct cpu_counts none = {};
	struct cpu_counts now = before;

	now.runs += 50;
	assert_int_equal(cost_of_programs(&now, &before), 50 * (300 + ENTRY_NS));
	now.timed += 1;
	now.timed_ns += 10000000; /* one run that was interrupted for long */
	assert_true(cost_of_programs(&now, &before) < 50 * UINT64_C(110000));
	now = (struct cpu_counts){ .runs = 7 };
	assert_int_equal(cost_of_programs(&now, &none), 7 * ENTRY_NS);
}

static void test_totals(void **state)
{
	struct cost_meter meter = {};
	struct cost_totals first, second;

	cost_meter_read(&meter, &first);
	cost_meter_add(&meter, &(struct cost_programs){ .ns = 12, .session_ns = 12 });
	cost_meter_add(&meter, &(struct cost_programs){
				       .ns = 30, .walk_ns = 20, .waits = 3, .sampled = 2 });
	cost_meter_read(&meter, &second);
	assert_int_equal(first.bpf.ns, 0);
	assert_int_equal(second.bpf.ns, 42);
	assert_int_equal(second.bpf.session_ns, 12);
	assert_int_equal(second.bpf.walk_ns, 20);
	assert_int_equal(second.bpf.waits, 3);
	assert_int_equal(second.bpf.sampled, 2);
	assert_true(second.cpu_ns >= first.cpu_ns && second.at_ns >= first.at_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scale),
		cmocka_unit_test(test_few),
		cmocka_unit_test(test_totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
