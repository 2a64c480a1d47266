/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "daemon/query/health.h"

enum { WINDOWS = 8 };

_Static_assert((int)WINDOWS >= (int)PROBE_KIND_N, "one of each probe");

/* Start of the first window, 2024-01-01 12:00:00 UTC; each is 5 s long. */
#define FIRST (1704110400 * NS_PER_S)

static struct arena *arena;
static struct window *windows[WINDOWS];
static struct history_list list = { .windows = windows, .n = WINDOWS };
static const char *problems[HEALTH_MAX_PROBLEMS];

static int set_up(void **state)
{
	size_t i;

	setenv("TZ", "UTC", 1);
	tzset();
	arena = arena_new();
	for (i = 0; i < WINDOWS; i++) {
		windows[i] = window_new();
		windows[i]->seq = 70 + i;
		windows[i]->start_ns = (int64_t)i * 5 * NS_PER_S;
		windows[i]->end_ns = windows[i]->start_ns + 5 * NS_PER_S;
		windows[i]->real_offset_ns = FIRST;
	}
	return arena == NULL;
}

static int tear_down(void **state)
{
	size_t i;

	for (i = 0; i < WINDOWS; i++)
		window_unref(windows[i]);
	arena_free(arena);
	return 0;
}

static size_t losses_where(bool is_unseen_usual)
{
	size_t n = 0;

	assert_int_equal(health_losses(arena, &list, is_unseen_usual, problems, &n), 0);
	return n;
}

static size_t losses(void)
{
	return losses_where(false);
}

static void test_nothing_lost(void **state)
{
	assert_int_equal(losses(), 0);
}

static void test_which_and_when(void **state)
{
	windows[0]->lost[LOST_WAIT_KEYS] = 2;
	windows[2]->lost[LOST_WAIT_KEYS] = 5;
	windows[1]->lost[WINDOW_LOST_MEMORY] = 1;
	assert_int_equal(losses(), 2);
	assert_string_equal(
		problems[0],
		"offcpu: 7 lost in 2 windows of the last 10 minutes, the "
		"newest from 2024-01-01T12:00:10+00:00: waits: the window's map was full");
	assert_string_equal(problems[1],
			    "offcpu: 1 lost in 1 window of the last 10 minutes, the "
			    "newest from 2024-01-01T12:00:05+00:00: records: the daemon had no "
			    "memory, or no room for processes");
}

/* On a host that hides threads, requests end without being seen all the time: no problem. */
static void test_hidden_ends(void **state)
{
	windows[0]->lost[LOST_IO_UNSEEN] = 3;
	assert_int_equal(losses(), 1);
	assert_int_equal(losses_where(true), 0);
	windows[0]->lost[LOST_IO_KEYS] = 1;
	assert_int_equal(losses_where(true), 1);
}

/* There, it is a problem if the part of requests that are not seen is large. */
static void test_unseen_part(void **state)
{
	assert_false(health_unseen_is_much(0, 0));
	assert_false(health_unseen_is_much(0, 99));
	assert_true(health_unseen_is_much(0, 100));
	assert_false(health_unseen_is_much(1900, 100));
	assert_true(health_unseen_is_much(1800, 110));
	assert_false(health_unseen_is_much(2801578, 5684));
	assert_true(health_unseen_is_much(UINT64_MAX / 2, UINT64_MAX / 20));
}

/* There is room for all reasons of all probes at once; losses of clients' sessions are left out. */
static void test_all_reasons(void **state)
{
	enum { REASONS = WINDOW_LOST_N - 1 }; /* all but LOST_IO_PROCESS, which is no loss */
	unsigned int kind, i;

	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		windows[kind]->kind = kind;
		for (i = 0; i < WINDOW_LOST_N; i++)
			windows[kind]->lost[i] = 1;
	}
	assert_int_equal(losses(), PROBE_KIND_N * REASONS);
	assert_non_null(strstr(problems[REASONS], "oncpu: "));
	windows[PROBE_OFFCPU]->session = 100;
	assert_int_equal(losses(), (PROBE_KIND_N - 1) * REASONS);
}

/* Adds a row, or one that stands for several processes, of a program in this control group. */
static void row_add(struct process_table *table, struct window *window, const char *cgroup,
		    uint32_t processes)
{
	const struct process_info info = { .id = { .pid = 1 + (int32_t)window->n_images },
					   .comm = "x",
					   .cgroup = cgroup };
	struct window_image *image = window_add_image(window);
	struct window_row *row = window_add_row(window);

	image->process = process_table_add_stored(table, &info);
	assert_non_null(image->process);
	row->image = (uint32_t)window->n_images - 1;
	row->processes = processes;
}

static void problem_ends(const char *end)
{
	size_t n;

	assert_int_equal(losses(), 1);
	n = strlen(problems[0]);
	assert_true(n >= strlen(end));
	assert_string_equal(problems[0] + n - strlen(end), end);
}

/* A loss names the user, or the control group, that fills the window. */
static void test_who_floods(void **state)
{
	struct window *window = windows[0];
	struct process_table *table;

	assert_int_equal(process_table_new_stored(&table), 0);
	window->lost[LOST_WAIT_KEYS] = 1;
	row_add(table, window, "/system.slice/a.service", 0);
	row_add(table, window, "/user.slice/user-1000.slice/session-1.scope", 0);
	row_add(table, window, NULL, 0);
	problem_ends(": waits: the window's map was full");
	row_add(table, window, "/user.slice/user-1000.slice/user@1000.service/x", 2);
	problem_ends("; 60 % of that window's rows are of /user.slice/user-1000.slice");
	/* Another user whose number begins with the same digits is another one. */
	row_add(table, window, "/user.slice/user-10001.slice/session-2.scope", 2);
	problem_ends(": waits: the window's map was full");
	row_add(table, window, "/system.slice/a.service", 12);
	problem_ends("; 68 % of that window's rows are of /system.slice/a.service");
	/* What has no known group is nobody's. */
	row_add(table, window, NULL, 100);
	problem_ends(": waits: the window's map was full");
	for (size_t i = 0; i < WINDOWS; i++)
		windows[i] = window_unref(windows[i]);
	process_table_free(table);
}

/* Each word about the database follows from its fact, and goes with it. */
static void test_store(void **state)
{
	struct store_stats store = {
		.notices = { [STORE_NOTICE_MOVED] = { "moved", FIRST },
			     [STORE_NOTICE_DROPPED] = { "dropped", FIRST - 1 } },
		.damaged_ns = FIRST,
	};
	const int64_t late = FIRST + HEALTH_LOSS_NS;
	size_t n = 0;

	health_store(arena, &store, late, problems, &n);
	assert_int_equal(n, 0);
	health_store(arena, &store, late - 1, problems, &n);
	assert_int_equal(n, 1);
	assert_string_equal(problems[0], "moved");
	/* Neither of two problems, nor of two notices, hides the other. */
	strcpy(store.problems[STORE_PROBLEM_LOG], "read for long");
	n = 0;
	health_store(arena, &store, late - 2, problems, &n);
	assert_int_equal(n, 3);
	assert_string_equal(problems[2], "dropped");
	store.problems[STORE_PROBLEM_LOG][0] = '\0';
	strcpy(store.problems[STORE_PROBLEM_FILE], "full");
	store.dropped_queue = 1;
	store.damaged = 7;
	n = 0;
	health_store(arena, &store, late - 1, problems, &n);
	/* That windows are missing follows from the first. */
	assert_int_equal(n, 3);
	assert_string_equal(problems[0], "full");
	assert_non_null(strstr(problems[2], "7 rows of the database could not be read"));
	store.problems[STORE_PROBLEM_FILE][0] = '\0';
	store.dropped_queue = 0;
	store.dropped_write = 1;
	n = 0;
	health_store(arena, &store, late, problems, &n);
	assert_int_equal(n, 1);
	assert_string_equal(problems[0], "1 window was not written to disk");
	store.dropped_queue = 630;
	n = 0;
	health_store(arena, &store, late, problems, &n);
	assert_string_equal(problems[0], "631 windows were not written to disk");
}

/* A minute that broke the budget is a problem that names what costs most, and a setting. */
static void test_budget(void **state)
{
	struct budget_state budget = { .limit_ppm = 40000,
				       .minute = { 11000, 25000, 15000 },
				       .has_minute = true };
	size_t n = 0;

	health_budget(arena, &budget, FIRST, problems, &n);
	assert_int_equal(n, 0);
	budget.beyond_since_ns = FIRST;
	health_budget(arena, &budget, FIRST + 75 * NS_PER_S, problems, &n);
	assert_int_equal(n, 1);
	assert_string_equal(problems[0],
			    "over [budget] cpu for 75 s: stackd took 5.1 % of a CPU in the last "
			    "minute, 4 % are allowed, and counters in the kernel took 2.5 %; raise "
			    "[budget] cpu or set a [probe.NAME] enabled = no");
	budget.minute.user_ppm = 26000;
	health_budget(arena, &budget, FIRST, problems, &n);
	assert_non_null(strstr(problems[1], "its threads took 2.6 %"));
	assert_non_null(strstr(problems[1], "[window] length"));
	budget.minute.walk_ppm = 27000;
	health_budget(arena, &budget, FIRST, problems, &n);
	assert_non_null(strstr(problems[2], "stacks of waits took 2.7 %"));
	assert_non_null(strstr(problems[2], "[probe.offcpu] min_wait"));
}

static void test_openings(void **state)
{
	struct opener_stats opening = { .hung = 3, .place = "/mnt/nfs" };
	size_t n = 0;

	health_openings(arena, &opening, problems, &n);
	assert_int_equal(n, 0);
	opening.hanging = 2;
	health_openings(arena, &opening, problems, &n);
	assert_int_equal(n, 1);
	assert_string_equal(problems[0],
			    "a file system does not answer: 2 processes hang that opened "
			    "files, the last at /mnt/nfs");
}

static void test_reads(void **state)
{
	struct process_stats processes = { .last_hanging = 7 };
	size_t n = 0;

	health_reads(arena, &processes, problems, &n);
	assert_int_equal(n, 0);
	processes.hanging = 1;
	health_reads(arena, &processes, problems, &n);
	assert_int_equal(n, 1);
	assert_non_null(strstr(problems[0], "pid 7,"));
}

static void test_parser(void **state)
{
	struct parser_stats parser = { .postponed = 3 };
	size_t n = 0;

	health_parser(arena, &parser, problems, &n);
	assert_int_equal(n, 0);
	parser.start_error = -EAGAIN;
	health_parser(arena, &parser, problems, &n);
	assert_int_equal(n, 1);
	assert_non_null(strstr(problems[0], strerror(EAGAIN)));
}

static void test_kernel_names(void **state)
{
	size_t n = 0;

	health_kernel_names(arena, 0, problems, &n);
	assert_int_equal(n, 0);
	health_kernel_names(arena, -EPERM, problems, &n);
	assert_int_equal(n, 1);
	assert_string_equal(problems[0], "no names of kernel functions: /proc/kallsyms: "
					 "Operation not permitted");
}

/* A probe that is off because nobody wants it is no problem. */
static void test_probes(void **state)
{
	struct wire_probe v[] = { { .name = "oncpu", .state = "on" },
				  { .name = "offwake", .state = "off", .reason = "disabled" },
				  { .name = "iolat", .state = "failed", .reason = "no BTF" },
				  { .name = "offcpu", .state = "failed" } };
	size_t n = 0;

	health_probes(arena, &(struct wire_probes){ .v = v, .n = 2 }, problems, &n);
	assert_int_equal(n, 0);
	health_probes(arena, &(struct wire_probes){ .v = v, .n = ARRAY_SIZE(v) }, problems, &n);
	assert_int_equal(n, 2);
	assert_string_equal(problems[0], "the probe iolat could not attach: no BTF");
	assert_string_equal(problems[1], "the probe offcpu could not attach: unknown");
}

static void test_stuck(void **state)
{
	const struct activity_stuck stuck = { .thread = "store",
					      .work = "writing to disk",
					      .ns = 17 * NS_PER_S };
	size_t n = 0;

	health_stuck(arena, &stuck, 0, problems, &n);
	assert_int_equal(n, 0);
	health_stuck(arena, &stuck, 1, problems, &n);
	assert_int_equal(n, 1);
	assert_string_equal(problems[0], "the thread store (writing to disk) has not come on for "
					 "17 s");
}

static const char *windows_problem(const struct health_windows *of)
{
	size_t n = 0;

	health_windows(arena, of, problems, &n);
	assert_true(n <= 1);
	return n ? problems[0] : "";
}

/* Windows are late at the cut, or for their names, or have never come. */
static void test_windows(void **state)
{
	struct health_windows of = { .kind = PROBE_OFFCPU,
				     .now_ns = 100 * NS_PER_S,
				     .length_ns = 5 * NS_PER_S,
				     .since_ns = 10 * NS_PER_S,
				     .cut_ns = 85 * NS_PER_S,
				     .newest_ns = 85 * NS_PER_S };

	assert_string_equal(windows_problem(&of), "");
	of.newest_ns--;
	assert_string_equal(windows_problem(&of),
			    "the newest window of offcpu ended 15 s ago: names "
			    "are looked up too slowly");
	of.newest_ns = 0;
	assert_string_equal(windows_problem(&of),
			    "no window of offcpu is in memory, which has been "
			    "on for 90 s");
	of.since_ns = 85 * NS_PER_S;
	assert_string_equal(windows_problem(&of), "");
	of.cut_ns--;
	assert_string_equal(windows_problem(&of),
			    "the open window of offcpu is overdue: stackd does "
			    "not keep up with its events");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_nothing_lost, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_which_and_when, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hidden_ends, set_up, tear_down),
		cmocka_unit_test(test_unseen_part),
		cmocka_unit_test_setup_teardown(test_all_reasons, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_floods, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_store, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_budget, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_openings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reads, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_parser, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kernel_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_probes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stuck, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_windows, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
