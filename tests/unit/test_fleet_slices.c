/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How the gateway divides the windows of a range into slices, and what an overview of the fleet
 * shows of each part of the time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base.h"
#include "fleet/serve/internal.h"
#include "fleet/serve/slices.h"

enum { HOSTS = 2, WINDOWS = SLICES_MAX + 1 };

/* Windows of 5 s of two hosts; those of the second one begin 2 s after those of the first one. */
struct windows {
	struct header v[HOSTS * WINDOWS];
	struct header_host hosts[HOSTS];
	struct headers headers;
	struct header_question range;
};

static void windows_make(struct windows *windows, size_t n_hosts, size_t n)
{
	*windows = (struct windows){
		.headers = { .v = windows->v, .hosts = windows->hosts, .n_hosts = n_hosts },
		.range = { .table = "rows", .until = (int64_t)n * 5 * NS_PER_S + 2 * NS_PER_S },
	};
	for (size_t host = 0; host < n_hosts; host++) {
		for (size_t i = 0; i < n; i++) {
			int64_t start = ((int64_t)i * 5 + (int64_t)host * 2) * NS_PER_S;

			windows->v[windows->headers.n++] = (struct header){
				.start = start,
				.end = start + 5 * NS_PER_S,
			};
			windows->hosts[host].last = start;
		}
	}
	windows->headers.n_windows = windows->headers.n;
}

/* Returns how many windows are in a slice. */
static size_t windows_of(const struct windows *windows, const struct fleet_slice *slice)
{
	size_t n = 0;

	for (size_t i = 0; i < windows->headers.n; i++) {
		int64_t middle = header_middle(&windows->v[i]);

		n += header_counts(&windows->v[i]) && middle >= slice->middles.since_ns &&
		     middle < slice->middles.until_ns;
	}
	return n;
}

/* Checks that there are so many slices, without time between them, with so many windows each. */
static void check_slices(struct windows *windows, int64_t each_ns, size_t n, size_t each)
{
	struct fleet_slices slices;

	assert_int_equal(fleet_slices_make(&windows->headers, &windows->range, each_ns, &slices),
			 0);
	assert_int_equal(slices.n, n);
	assert_int_equal(slices.v[0].range.until_ns, windows->range.until);
	assert_int_equal(slices.v[n - 1].range.since_ns, windows->range.since);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(windows_of(windows, &slices.v[i]), each);
		assert_true(slices.v[i].range.since_ns < slices.v[i].range.until_ns);
		if (i + 1 < n)
			assert_int_equal(slices.v[i].range.since_ns,
					 slices.v[i + 1].range.until_ns);
	}
	free(slices.v);
}

static void slices_of_one_host_are_its_windows(void **state)
{
	static struct windows windows;

	windows_make(&windows, 1, 12);
	check_slices(&windows, 0, 12, 1);
	/* As in the daemon, a slice that has no window is not there. */
	check_slices(&windows, NS_PER_S, 12, 1);
	check_slices(&windows, 20 * NS_PER_S, 3, 4);
	check_slices(&windows, 3600 * NS_PER_S, 1, 12);
}

static void slices_of_two_hosts_have_a_window_of_each(void **state)
{
	static struct windows windows;

	windows_make(&windows, 2, 12);
	check_slices(&windows, 0, 12, 2);
	check_slices(&windows, NS_PER_S, 12, 2);
	check_slices(&windows, 20 * NS_PER_S, 3, 8);
}

static void a_gap_is_in_the_slice_after_it(void **state)
{
	static struct windows windows;
	struct fleet_slices slices;

	windows_make(&windows, 1, 4);
	windows.v[1].is_gap = windows.v[2].is_gap = true;
	assert_int_equal(fleet_slices_make(&windows.headers, &windows.range, 0, &slices), 0);
	assert_int_equal(slices.n, 2);
	assert_int_equal(slices.v[0].range.since_ns, 5 * NS_PER_S);
	free(slices.v);
}

static void too_many_slices_are_refused(void **state)
{
	static struct windows windows;
	struct fleet_slices slices;

	windows_make(&windows, 1, SLICES_MAX);
	check_slices(&windows, 0, SLICES_MAX, 1);
	windows_make(&windows, 1, SLICES_MAX + 1);
	assert_int_equal(fleet_slices_make(&windows.headers, &windows.range, 0, &slices), -E2BIG);
	free(slices.v);
}

/* A question that is refused learns the limit and what to ask, and the status counts it. */
static void limits_are_named_and_counted(void **state)
{
	struct arena *arena = arena_new();
	struct fleet_limits limits = { .answers = 2 };
	struct wire_limits list;
	struct wire_error error;

	assert_int_equal(fleet_limit_refuse(&limits, FLEET_HEADERS, "range", &error), -E2BIG);
	assert_int_equal(error.code, ERROR_NOT_SUPPORTED);
	assert_string_equal(error.message, "more than 200000 windows of hosts for one answer: ask "
					   "for a shorter range or for fewer hosts");
	wire_error_clear(&error);
	assert_int_equal(fleet_limits_list(&limits, arena, &list), 0);
	assert_int_equal(list.n, FLEET_LIMITS);
	for (enum fleet_limit i = 0; i < FLEET_LIMITS; i++) {
		assert_true(list.v[i].value > 0);
		assert_int_equal(list.v[i].hits, i == FLEET_HEADERS);
		assert_int_equal(list.v[i].used, i == FLEET_ANSWERS ? 2 : 0);
	}
	arena_free(arena);
}

/* Rows of an overview by process, of which the last one is idle. */
static void the_first_of_each_part_are_marked(void **state)
{
	struct group busy = { .name = "",
			      .host = "",
			      .comm = "",
			      .total_ns = 9,
			      .runnable_ns = 9,
			      .throttled_ns = 2 };
	struct group stuck = { .name = "", .host = "", .comm = "", .total_ns = 8, .blocked_ns = 8 };
	struct group small = { .name = "", .host = "", .comm = "", .total_ns = 3, .blocked_ns = 3 };
	struct group idle = {
		.name = "", .host = "", .comm = "", .total_ns = 99, .blocked_ns = 99, .idle = true
	};
	struct group *groups[] = { &busy, &stuck, &small, &idle };
	const struct wire_snapshot_request request = { .top = 1 };
	const struct fleet_question asked = { .request = &request, .is_of_overview = true };
	struct fleet_answer answer = { .arena = arena_new() };
	struct snapshot snapshot = { .answer = &answer, .asked = &asked, .request = &request };
	const struct wire_parts *parts = &answer.reply.snapshot.parts;

	assert_int_equal(snapshot_parts_make(&snapshot, groups, ARRAY_SIZE(groups)), 0);
	assert_int_equal(parts->n, 3);
	assert_string_equal(parts->v[0].name, "runnable");
	assert_int_equal(parts->v[0].total_ns, 7);
	assert_string_equal(parts->v[1].name, "throttled");
	assert_int_equal(parts->v[1].total_ns, 2);
	assert_string_equal(parts->v[2].name, "blocked");
	assert_int_equal(parts->v[2].total_ns, 11);
	assert_int_equal(parts->v[2].rows, 2);
	assert_true(busy.is_first && stuck.is_first && !small.is_first && !idle.is_first);
	snapshot.with_idle = true;
	assert_int_equal(snapshot_parts_make(&snapshot, groups, ARRAY_SIZE(groups)), 0);
	assert_int_equal(parts->v[2].total_ns, 110);
	assert_true(idle.is_first);
	arena_free(answer.arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slices_of_one_host_are_its_windows),
		cmocka_unit_test(slices_of_two_hosts_have_a_window_of_each),
		cmocka_unit_test(a_gap_is_in_the_slice_after_it),
		cmocka_unit_test(too_many_slices_are_refused),
		cmocka_unit_test(limits_are_named_and_counted),
		cmocka_unit_test(the_first_of_each_part_are_marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
