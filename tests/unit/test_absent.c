/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/absent.h"
#include "daemon/query/moment.h"

/* Above any pid_max. */
enum { PID = 0x3f000000, THREAD = PID + 1, NOBODY = PID + 2 };

/* Ranges of which everything was recorded. */
static const struct absent_range waits = { .kind = PROBE_OFFCPU, .is_live = true };
static const struct absent_range samples = { .kind = PROBE_ONCPU, .is_live = true };

static struct process_table *processes;
static struct window *window;
static struct arena *arena;

static void add_image(uint64_t uid, int32_t tid)
{
	struct window_image *image = window_add_image(window);
	struct process_id id = { .pid = PID, .start_boot_ns = 1 };

	image->uid = uid;
	image->tid = tid;
	image->process = process_table_see(processes, &id, false, "shopd");
	memcpy(image->comm, "worker", 7);
}

static int set_up(void **state)
{
	arena = arena_new();
	window = window_new();
	assert_int_equal(process_table_new(1 << 20, &processes), 0);
	add_image(1, PID);
	add_image(2, THREAD);
	return 0;
}

static int tear_down(void **state)
{
	window_unref(window);
	process_table_free(processes);
	arena_free(arena);
	return 0;
}

static struct aggregate *aggregate_of(const struct wire_filter *wire)
{
	struct timeline_list list = { .windows = &window, .n = 1 }, later = {};
	struct aggregate_options options = {};
	struct filter filter = { .wire = wire, .max_ns = INT64_MAX };
	struct aggregate *aggregate;

	assert_int_equal(aggregate_new(&list, &later, &filter, &options, NULL, &aggregate), 0);
	return aggregate;
}

static void assert_note(const struct wire_filter *wire, const char *text)
{
	struct aggregate *aggregate = aggregate_of(wire);
	const char *note;

	assert_int_equal(absent_note(arena, aggregate, wire, &waits, &note), 0);
	if (text)
		assert_string_equal(note, text);
	else
		assert_null(note);
	aggregate_free(aggregate);
}

static void assert_error(const struct wire_filter *wire, const char *text)
{
	struct aggregate *aggregate = aggregate_of(wire);
	struct wire_error error;

	assert_int_equal(absent_error(aggregate, wire, &waits, &error), -ENODATA);
	assert_string_equal(error.message, text);
	free((char *)error.what);
	free((char *)error.message);
	aggregate_free(aggregate);
}

static void test_all_were_seen(void **state)
{
	static const int64_t pids[] = { PID }, tids[] = { THREAD, PID };
	struct wire_filter filter = { .pids = { pids, 1 } };

	assert_note(&filter, NULL);
	filter = (struct wire_filter){ .tids = { tids, 2 } };
	assert_note(&filter, NULL);
	filter = (struct wire_filter){ .comm = "nobody" };
	assert_note(&filter, NULL);
}

/* Asked for by pid, a folded process is found in the image that it is a part of. */
static void test_a_folded_process(void **state)
{
	static const int64_t pids[] = { NOBODY, NOBODY + 1 }, tids[] = { NOBODY };
	const struct process_info shared = { .comm = "cc1", .exe = "/bin/cc1" };
	struct wire_filter filter = { .pids = { pids, 2 } };
	struct window_image *image = window_add_image(window);
	struct aggregate *aggregate;

	image->process = process_see_folded(window->images[0].process, &shared);
	memcpy(image->comm, "cc1", 4);
	image->folded = 3;
	image->started = 37;
	*window_add_member(window) = (struct window_member){ .image = 2, .pid = NOBODY };
	window->folded = (struct window_folded){ .rows = 9, .started = 37, .unlisted = 4 };

	assert_note(
		&filter,
		"process 1056964610 was folded: rows and totals are the sums of 37 processes "
		"named cc1, of which it is one; process 1056964611 may be one of 4 folded processes whose "
		"pids are not kept");
	aggregate = aggregate_of(&filter);
	assert_int_equal(aggregate_totals(aggregate)->processes, 37);
	aggregate_free(aggregate);
	filter.comm = "ld";
	aggregate = aggregate_of(&filter);
	assert_int_equal(aggregate_totals(aggregate)->processes, 0);
	aggregate_free(aggregate);
	filter = (struct wire_filter){ .tids = { tids, 1 } };
	assert_note(&filter, "no thread 1056964610 was seen in the range, but 37 processes were "
			     "folded, whose threads are not listed");
}

/* Some rows of the process are in the sums of a folded entry: the answer says that it lacks them.
 */
static void test_a_partly_folded_process(void **state)
{
	static const int64_t pids[] = { PID };
	const struct process_info shared = { .comm = "cc1", .exe = "/bin/cc1" };
	struct wire_filter filter = { .pids = { pids, 1 } };
	struct window_image *image = window_add_image(window);

	image->process = process_see_folded(window->images[0].process, &shared);
	memcpy(image->comm, "cc1", 4);
	image->folded = 2;
	*window_add_member(window) = (struct window_member){ .image = 2, .pid = NOBODY };
	assert_note(&filter, NULL);
	window->members[0].pid = PID;
	assert_note(&filter,
		    "in 1 window some rows of process 1056964608 were folded with those of "
		    "others, and are not in this answer");
}

static void test_some_were_not(void **state)
{
	static const int64_t pids[] = { PID, NOBODY, THREAD }, tids[] = { NOBODY, THREAD };
	struct wire_filter filter = { .pids = { pids, 3 } };

	assert_note(&filter, "no process 1056964610 was seen in the range; 1056964609 is a thread "
			     "of shopd (pid 1056964608): use -t 1056964609");
	filter = (struct wire_filter){ .tids = { tids, 2 } };
	assert_note(&filter, "no thread 1056964610 was seen in the range");
}

/* A process that exists, but did nothing that was recorded, is not called unknown. */
static void test_an_existing_process(void **state)
{
	const struct absent_range elsewhere = { .kind = PROBE_ONCPU };
	const int64_t self = getpid();
	struct wire_filter filter = { .pids = { &self, 1 } };
	struct aggregate *aggregate = aggregate_of(&filter);
	struct wire_error error;

	assert_int_equal(absent_error(aggregate, &filter, &samples, &error), -ENODATA);
	assert_non_null(strstr(error.message, " exists, but was in no sample of the range"));
	free((char *)error.what);
	free((char *)error.message);
	/* A recording of another host or boot says nothing about processes that exist here. */
	assert_int_equal(absent_error(aggregate, &filter, &elsewhere, &error), -ENODATA);
	assert_null(strstr(error.message, " exists"));
	free((char *)error.what);
	free((char *)error.message);
	aggregate_free(aggregate);
	/* It may have been folded, with others whose pids are not kept: nobody can say that it was
	 * not seen. */
	window->folded = (struct window_folded){ .rows = 9, .started = 37, .unlisted = 4 };
	aggregate = aggregate_of(&filter);
	assert_int_equal(absent_error(aggregate, &filter, &samples, &error), -ENODATA);
	assert_non_null(strstr(error.message, " exists, and may be one of 4 folded processes"));
	free((char *)error.what);
	free((char *)error.message);
	aggregate_free(aggregate);
}

/* Asserts what is said of this process, which no window has, or without a pid of a name. */
static void assert_denial(const struct absent_range *range, const char *comm, const char *text)
{
	const int64_t self = getpid();
	struct wire_filter filter = { .pids = { &self, !comm }, .comm = comm };
	struct aggregate *aggregate = aggregate_of(&filter);
	struct wire_error error;
	char expected[512], pid[16];
	const char *at = strchr(text, '#');

	assert_int_equal(absent_error(aggregate, &filter, range, &error), -ENODATA);
	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(expected, sizeof(expected), "%s%s%.*s%s", comm ? "" : "process ", comm ? "" : pid,
		 (int)(at ? at - text : (long)strlen(text)), text, at ? pid : "");
	assert_string_equal(error.message, expected);
	free((char *)error.what);
	free((char *)error.message);
	aggregate_free(aggregate);
}

/* Where all was recorded, a process did nothing. */
static void test_complete_ranges(void **state)
{
	struct absent_range range = { .kind = PROBE_IOLAT, .is_live = true };

	assert_denial(&range, NULL, " exists, but ended no I/O in the range");
	range.kind = PROBE_OFFWAKE;
	assert_denial(&range, NULL,
		      " exists, but ended no wait in the range; stackctl stuck shows who waits");
	range.kind = PROBE_ONCPU;
	assert_denial(&range, NULL,
		      " exists, but was in no sample of the range: it used next to no CPU");
	/* The budget does not hold for the session of a client. */
	window->cost.shed_ns[WINDOW_SHED_CALLS] = 2 * NS_PER_S;
	window->cost.shed_ns[WINDOW_SHED_SAMPLES] = 3 * NS_PER_S;
	assert_denial(&range, NULL,
		      " exists, but was in no sample of the range: it used next to no CPU");
	/* What is shed of another probe does not matter. */
	range.kind = PROBE_OFFCPU;
	range.is_always = true;
	assert_denial(&range, NULL, " exists, but was not seen in the range");
}

/* What the budget cut off is named, with its length and the command that records it. */
static void test_shed_details(void **state)
{
	struct absent_range range = { .kind = PROBE_IOLAT, .is_live = true, .is_always = true };

	window->cost.shed_ns[WINDOW_SHED_CALLS] = 2 * NS_PER_S;
	window->cost.shed_ns[WINDOW_SHED_SAMPLES] = 3 * NS_PER_S;
	assert_denial(&range, NULL,
		      " exists, but has no recorded I/O in the range; not recorded: I/O other than "
		      "requests to disks for 2 s (more than [budget] cpu allows); all is "
		      "recorded by: stackctl record iolat -p #");
	assert_denial(&range, "shopd",
		      "no thread of comm shopd was seen in the range; not recorded: I/O other than "
		      "requests to disks for 2 s (more than [budget] cpu allows); all is "
		      "recorded by: stackctl record iolat --comm shopd");
	/* Nobody pastes the words of a name into a shell. */
	assert_denial(&range, "$(reboot)",
		      "no thread of comm $(reboot) was seen in the range; not recorded: I/O other "
		      "than requests to disks for 2 s (more than [budget] cpu allows); all is "
		      "recorded by: stackctl record iolat");
	range.above = "I/O above block (fentry is refused)";
	assert_denial(
		&range, NULL,
		" exists, but has no recorded I/O in the range; not recorded: I/O above block "
		"(fentry is refused); all is recorded by: stackctl record iolat -p #");
	range.above = NULL;
	range.kind = PROBE_ONCPU;
	assert_denial(&range, NULL,
		      " exists, but was in no sample of the range; not recorded: most samples for "
		      "3 s (more than [budget] cpu allows); all is recorded by: stackctl record "
		      "oncpu -p #");
}

/* Each reason for which something may be missing is named. */
static void test_other_reasons(void **state)
{
	struct absent_range range = { .kind = PROBE_IOLAT, .is_live = true, .is_always = true };

	range.above = "I/O above fs ([probe.iolat] top)";
	assert_denial(&range, NULL,
		      " exists, but has no recorded I/O in the range; not recorded: I/O above "
		      "fs ([probe.iolat] top); all is recorded by: stackctl record iolat -p #");
	range.above = NULL;
	range.shared = 5;
	assert_denial(
		&range, NULL,
		" exists, but has no recorded I/O in the range; not recorded: the processes of "
		"5 operations ([probe.iolat] max_keys)");
	range = (struct absent_range){ .kind = PROBE_OFFWAKE, .is_live = true };
	range.all_from_ns = 1000000;
	assert_denial(&range, NULL,
		      " exists, but has no recorded wait that ended in the range; stackctl stuck "
		      "shows who waits; not recorded: some waits under 1 ms");
	range = (struct absent_range){ .kind = PROBE_STACKCOUNT, .is_live = true, .lost = 7 };
	range.gaps_ns = 12 * NS_PER_S;
	assert_denial(&range, NULL,
		      " exists, but has no recorded call in the range; not recorded: 12 s of the "
		      "range (gaps), 7 lost events");
	/* Each of them is enough. */
	range.lost = 0;
	assert_denial(&range, NULL,
		      " exists, but has no recorded call in the range; not recorded: 12 s of the "
		      "range (gaps)");
	range.lost = 7;
	range.gaps_ns = 0;
	assert_denial(
		&range, NULL,
		" exists, but has no recorded call in the range; not recorded: 7 lost events");
	range = (struct absent_range){ .kind = PROBE_STACKCOUNT, .is_live = true, .is_late = true };
	assert_denial(&range, NULL,
		      " exists, but has no recorded call in the range; not recorded: the newest "
		      "data as stackd is too busy to end its open window");
	range.late_ns = 112 * NS_PER_S;
	assert_denial(&range, NULL,
		      " exists, but has no recorded call in the range; not recorded: the newest "
		      "data, that of the last 112 s, as stackd is too busy to end its open window");
}

/* A process that the answer has is no reason to say what was not recorded. */
static void test_no_denial(void **state)
{
	static const int64_t thread[] = { THREAD };
	const struct absent_range range = { .kind = PROBE_OFFCPU, .is_live = true, .lost = 7 };
	struct wire_filter filter = { .pids = { thread, 1 } };
	struct aggregate *aggregate = aggregate_of(&filter);
	const char *note;

	assert_int_equal(absent_note(arena, aggregate, &filter, &range, &note), 0);
	assert_string_equal(note, "1056964609 is a thread of shopd (pid 1056964608): use -t "
				  "1056964609");
	aggregate_free(aggregate);
}

/* However many folded processes are asked for, none of them is called not seen. */
static void test_many_folded_processes(void **state)
{
	const struct process_info shared = { .comm = "cc1", .exe = "/bin/cc1" };
	int64_t pids[200];
	struct wire_filter filter = { .pids = { pids, ARRAY_SIZE(pids) } };
	struct window_image *image = window_add_image(window);
	struct aggregate *aggregate;
	const char *note;
	size_t i;

	image->process = process_see_folded(window->images[0].process, &shared);
	memcpy(image->comm, "cc1", 4);
	image->folded = ARRAY_SIZE(pids);
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = NOBODY + (int64_t)i;
		*window_add_member(window) =
			(struct window_member){ .image = 2, .pid = NOBODY + (int32_t)i };
	}
	window->folded = (struct window_folded){ .rows = 9, .processes = ARRAY_SIZE(pids) };
	aggregate = aggregate_of(&filter);
	assert_int_equal(absent_note(arena, aggregate, &filter, &waits, &note), 0);
	assert_non_null(strstr(note, "; and 192 more were not seen, or were folded"));
	assert_null(strstr(note, "no process"));
	aggregate_free(aggregate);
}

/* A process that has ended waits for nothing but its parent. */
static void test_a_zombie(void **state)
{
	pid_t child = fork();
	const int64_t pid = child;
	struct wire_filter filter = { .pids = { &pid, 1 } };
	siginfo_t info;
	char text[128];

	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	snprintf(text, sizeof(text),
		 "process %d has ended, and its parent has not waited for it (a zombie)", child);
	assert_error(&filter, text);
	assert_int_equal(waitpid(child, NULL, 0), child);
	snprintf(text, sizeof(text), "no process %d was seen in the range", child);
	assert_error(&filter, text);
}

static void test_many_were_not(void **state)
{
	int64_t tids[20];
	struct wire_filter filter = { .tids = { tids, 20 } };
	struct aggregate *aggregate;
	const char *note;

	for (size_t i = 0; i < 20; i++)
		tids[i] = NOBODY + (int64_t)i;
	aggregate = aggregate_of(&filter);
	assert_int_equal(absent_note(arena, aggregate, &filter, &waits, &note), 0);
	assert_non_null(strstr(note, "1056964617"));
	assert_null(strstr(note, "1056964618"));
	assert_non_null(strstr(note, "; and 12 more were not seen, or were folded"));
	aggregate_free(aggregate);
}

static void test_nobody_was_seen(void **state)
{
	static const int64_t thread[] = { THREAD }, process[] = { PID };
	struct wire_filter filter = { .pids = { thread, 1 } };

	assert_error(&filter,
		     "1056964609 is a thread of shopd (pid 1056964608): use -t 1056964609");
	filter = (struct wire_filter){ .comm = "ghost", .unit = "x" };
	assert_error(&filter, "no thread of comm ghost of unit x was seen in the range");
	/* The process was seen, under another name. */
	filter = (struct wire_filter){ .pids = { process, 1 }, .comm = "ghost" };
	assert_error(&filter, "no thread of these ids of comm ghost was seen in the range");
}

/* Other messages of the daemon have times of day, too: in UTC, whatever the daemon's zone is. */
static void test_moments(void **state)
{
	char text[MOMENT_TEXT];

	setenv("TZ", "Asia/Tokyo", 1);
	tzset();
	moment_text(INT64_C(1784118600) * NS_PER_S, text);
	assert_string_equal(text, "2026-07-15T12:30:00+00:00");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_all_were_seen),
		TEST(test_a_folded_process),
		TEST(test_a_partly_folded_process),
		TEST(test_all_were_seen),
		TEST(test_some_were_not),
		TEST(test_many_were_not),
		TEST(test_nobody_was_seen),
		TEST(test_an_existing_process),
		TEST(test_complete_ranges),
		TEST(test_shed_details),
		TEST(test_other_reasons),
		TEST(test_no_denial),
		TEST(test_many_folded_processes),
		TEST(test_a_zombie),
		TEST(test_moments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
