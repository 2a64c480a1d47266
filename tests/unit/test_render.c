/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/term.h"
#include "client/render/folded.h"
#include "client/render/render.h"
#include "client/render/status.h"
#include "common/base.h"

#define T0 (INT64_C(1772334610) * NS_PER_S) /* 2026-03-01 03:10:10 UTC */

#define FRAME(k, n, o, m)                                      \
	{                                                      \
		.kind = k, .name = n, .offset = o, .module = m \
	}

#define FRAMES(a)                \
	{                        \
		a, ARRAY_SIZE(a) \
	}

static const struct wire_frame kernel_frames[] = {
	FRAME("kernel", "schedule", 3, NULL),
	FRAME("kernel", "io_schedule", 0x1c, NULL),
	FRAME("kernel", "ext4_readpage", 9, "ext4"),
};

static const struct wire_frame user_frames[] = {
	FRAME("native", "read_page", 0x40, "/usr/sbin/db"),
	FRAME("native", NULL, 0x1234, "/usr/sbin/db"),
	FRAME("native", NULL, WIRE_ABSENT, NULL),
	FRAME("native", "main", 0x10, "/usr/sbin/db"),
};

static const struct wire_frame short_frames[] = {
	FRAME("pseudo", "[waits under 100us]", WIRE_ABSENT, NULL),
};

static const char *const no_frame_pointers[] = { "frame_pointers" };
static const char *const fault[] = { "fault" };

static const struct wire_stack kernel_stack = { "a1", FRAMES(kernel_frames), { 0 }, WIRE_ABSENT };
static const struct wire_stack user_stack = {
	"b1", FRAMES(user_frames), { no_frame_pointers, 1 }, WIRE_ABSENT
};
static const struct wire_stack short_stack = { "c1", FRAMES(short_frames), { 0 }, WIRE_ABSENT };
static const struct wire_stack fault_stack = { "d1", { 0 }, { fault, 1 }, WIRE_ABSENT };
static const struct wire_stack no_stack = { "e1", { 0 }, { 0 }, WIRE_ABSENT };

static struct wire_row row_of_db(void)
{
	return (struct wire_row){
		.process = { .pid = 4242, .start = T0, .comm = "db" },
		.tid = WIRE_ABSENT,
		.comm = "db",
		.state = "D",
		.state_bits = 2,
		.reason = "disk",
		.count = 10,
		.total_ns = 3 * NS_PER_S,
		.blocked_ns = 3 * NS_PER_S,
		.max_ns = 2 * NS_PER_S,
		.max_end = T0 + 124 * NS_PER_S + 5 * NS_PER_MS,
		.max_tid = 4250,
		.max_comm = "io",
		.kernel = &kernel_stack,
		.user = &user_stack,
	};
}

static struct wire_row row_open(void)
{
	struct wire_row row = row_of_db();

	row.state = "S";
	row.count = 0;
	row.total_ns = row.blocked_ns = row.open_ns = NS_PER_S;
	row.open = 1;
	row.tid = row.max_tid = 4251;
	row.comm = row.max_comm = "log";
	row.max_ns = 754 * NS_PER_S;
	row.max_end = WIRE_ABSENT;
	row.user = &fault_stack;
	return row;
}

static struct wire_snapshot_reply reply_of(const struct wire_row *rows, size_t n)
{
	return (struct wire_snapshot_reply){
		.probe = "offcpu",
		.hook = "tp_btf/sched_exit_tp",
		.min_wait_ns = 100 * NS_PER_US,
		.coverage = {
			.asked = { T0, T0 + 240 * NS_PER_S },
			.used = { T0, T0 + 240 * NS_PER_S },
			.used_ns = WIRE_ABSENT,
			.asked_ns = 240 * NS_PER_S,
			.covered_ns = 240 * NS_PER_S,
			.windows = 48,
			.complete = true,
		},
		.totals = {
			.samples = WIRE_ABSENT,
			.calls = WIRE_ABSENT,
			.processes = 1,
			.threads = 3,
			.on_cpu_ns = NS_PER_S,
			.runnable_ns = NS_PER_S,
			.blocked_ns = 4 * NS_PER_S,
			.waits = 11,
			.short_waits = 5,
			.short_ns = 90 * NS_PER_US,
			.open_waits = 1,
			.cpus = 2,
		},
		.shown = { (int64_t)n, 2, 4 * NS_PER_S },
		.rest = { 7, 7, NS_PER_S },
		.idle = { 9, 412, 100 * NS_PER_S },
		.rows = { rows, n },
	};
}

typedef void (*render_fn)(const struct view *view, const struct wire_snapshot_reply *reply);

__attribute__((noinline)) static char *rendered(render_fn render, struct view view,
						const struct wire_snapshot_reply *reply)
{
	char *text = NULL;
	size_t size;

	view.page.out = open_memstream(&text, &size);
	assert_non_null(view.page.out);
	if (view.page.width == 0)
		view.page.width = 80;
	render(&view, reply);
	fclose(view.page.out);
	return text;
}

static void assert_rendered(render_fn render, struct view view,
			    const struct wire_snapshot_reply *reply, const char *want)
{
	char *text = rendered(render, view, reply);

	assert_string_equal(text, want);
	free(text);
}

static void test_text(void **state)
{
	struct wire_row rows[] = { row_of_db(), row_open() };
	struct wire_snapshot_reply reply = reply_of(rows, 2);

	assert_rendered(
		render_text, (struct view){ 0 }, &reply,
		"time       2026-03-01 03:10:10 to 03:14:10 UTC: 4 min covered, lost nothing\n"
		"totals     3 threads: on CPU 1.00s, runnable 1.00s, blocked 4.00s\n"
		"CPUs       <0.01 of 2 busy, <0.01 ready; pressure not known\n"
		"rows       % of 5 s, the waits that are not idle\n"
		"\n"
		"db (pid 4242)                                                         3 s   60 %\n"
		"  D waits for disk I/O, uninterruptible\n"
		"  10 waits, 3 s in all, average 300 ms; longest 2 s, ended 03:12:14.005, thread\n"
		"  4250 (io)\n"
		"      io_schedule\n"
		"      ext4_readpage  (ext4)\n"
		"      -- kernel above, program below --\n"
		"      read_page  (db)\n"
		"      db+0x1234\n"
		"      [unknown]\n"
		"      main  (db)\n"
		"      ! user stack may have gaps: followed by frame pointers in parts\n"
		"\n"
		"log (thread 4251 of db, pid 4242)                                     1 s   20 %\n"
		"  S waits for disk I/O\n"
		"  1 wait: 12 min 34 s, still waiting since 03:01:36.000, thread 4251 (log)\n"
		"  1 s of it in this range\n"
		"      io_schedule\n"
		"      ext4_readpage  (ext4)\n"
		"      ! user stack truncated: its memory was swapped out or unmapped\n"
		"\n"
		"7 more, 20 %: -n 0 shows all\n"
		"idle: 412 threads, --idle shows\n");
}

/* Gaps that follow one another and have one reason are one line. */
static void test_gaps_in_a_row(void **state)
{
	static const struct wire_gap gaps[] = {
		{ T0 + 60 * NS_PER_S, T0 + 80 * NS_PER_S, "unreadable", NULL },
		{ T0 + 90 * NS_PER_S, T0 + 95 * NS_PER_S, "unreadable", NULL },
		{ T0 + 100 * NS_PER_S, T0 + 105 * NS_PER_S, "unreadable", NULL },
		{ T0 + 110 * NS_PER_S, T0 + 111 * NS_PER_S, "stopped", NULL },
	};
	struct wire_snapshot_reply reply = reply_of(NULL, 0);
	_cleanup_(freep) char *text = NULL;

	reply.coverage.gaps = (struct wire_gaps){ gaps, 4 };
	text = rendered(render_text, (struct view){ .verbose = true }, &reply);
	assert_non_null(strstr(text,
			       "gap        03:11:10 to 03:11:55 (30 s in 3 gaps): unreadable\n"
			       "gap        03:12:00 to 03:12:01 (1 s): stopped\n"));
}

/* Gaps, losses and notes are printed before the rows. */
static void test_coverage(void **state)
{
	static const struct wire_gap gaps[] = { { T0 + 60 * NS_PER_S, T0 + 80 * NS_PER_S,
						  "not running", NULL } };
	static const struct wire_lost lost[] = { { "stacks: the ring was full", 1234 },
						 { "waits: the map was full", 0 } };
	static const char *const notes[] = { "edges were rounded" };
	struct wire_snapshot_reply reply = reply_of(NULL, 0);

	reply.coverage.covered_ns = 220 * NS_PER_S;
	reply.coverage.complete = false;
	reply.coverage.gaps = (struct wire_gaps){ gaps, 1 };
	reply.lost = (struct wire_losts){ lost, 2 };
	reply.notes = (struct wire_strs){ notes, 1 };
	reply.idle = reply.rest = (struct wire_rest){ 0 };
	assert_rendered(
		render_text, (struct view){ .verbose = true }, &reply,
		"time       2026-03-01 03:10:10 to 03:14:10 UTC\n"
		"asked      4 min, of which 220 s (92 %) are covered by 48 windows\n"
		"gap        03:11:10 to 03:11:30 (20 s): not running\n"
		"lost       stacks: the ring was full: 1,234\n"
		"note       edges were rounded\n"
		"seen       3 threads of 1 process, together for 6 s:\n"
		"on CPU     1 s           17 %  running: <0.01 of 2 CPUs busy\n"
		"runnable   1 s           17 %  ready: <0.01 threads waited for a CPU, on average\n"
		"blocked    4 s           67 %  waiting for something: disk, lock, timer, peer\n"
		"waits      11, not ended yet: 1\n"
		"           5 more under 100 us, 90 us together, are counted without a stack\n"
		"\n"
		"no waits\n");
}

/* row.count has the waits that ended; the text adds those that have not. */
static void test_open(void **state)
{
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	rows[0].open = 2;
	rows[0].open_ns = NS_PER_S;
	rows[0].max_end = WIRE_ABSENT;
	text = rendered(render_text, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text,
			       "  12 waits, 3 s in all, average 250 ms; longest 2 s, still waiting "
			       "since\n  03:14:08.000, thread 4250 (io)\n"
			       "  2 of them still waiting, 1 s of that in this range\n"));
	free(text);
}

/* A process that has exited is not said to be waiting still. */
static void test_open_and_exited(void **state)
{
	struct wire_row rows[] = { row_open(), row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 2);
	char *text;

	rows[0].process.exited = rows[1].process.exited = true;
	rows[1].open = 2;
	rows[1].open_ns = NS_PER_S;
	text = rendered(render_text, (struct view){ 0 }, &reply);
	assert_null(strstr(text, "still waiting"));
	assert_non_null(strstr(text, "34 s, beyond this range, since 03:01:36.000"));
	assert_non_null(strstr(text, "  2 of them went on beyond this range, 1 s of that in it\n"));
	assert_non_null(strstr(text, ", exited)"));
	free(text);
	/* The process goes on, but its program from before waits no more. */
	rows[0].process.exited = rows[1].process.exited = false;
	rows[0].process.replaced = rows[1].process.replaced = 1;
	text = rendered(render_text, (struct view){ 0 }, &reply);
	assert_null(strstr(text, "still waiting"));
	assert_null(strstr(text, "exited"));
	assert_non_null(strstr(text, ", before exec)"));
	free(text);
}

/* A filter by state or length selects rows; the totals remain those of the threads. */
static void test_picked_waits(void **state)
{
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text = rendered(render_text, (struct view){ .verbose = true, .picks_waits = true },
			      &reply);

	assert_non_null(strstr(text, "of all waits of these threads; only the rows are picked\n"));
	free(text);
}

/* An entry says what the thread waits for, even if one of its stacks is hidden. */
static void test_stuck_hides_a_stack(void **state)
{
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text = rendered(render_stuck, (struct view){ .hides_kernel = true }, &reply);

	assert_non_null(strstr(text, "D waits for disk I/O"));
	assert_null(strstr(text, "ext4_readpage"));
	assert_non_null(strstr(text, "read_page  (db)"));
	free(text);
	text = rendered(render_stuck, (struct view){ .hides_user = true }, &reply);
	assert_non_null(strstr(text, "ext4_readpage"));
	assert_null(strstr(text, "read_page  (db)"));
	free(text);
}

/* Rows of waits without a stack, and a stack whose only frame says why it is missing. */
static void test_pseudo(void **state)
{
	static const struct wire_frame unread_frames[] = {
		FRAME("pseudo", "[user stack not read]", WIRE_ABSENT, NULL),
	};
	static const char *const unread[] = { "unread" };
	static const struct wire_stack stack = {
		"9", FRAMES(unread_frames), { unread, 1 }, WIRE_ABSENT
	};
	struct wire_row rows[] = { row_of_db(), row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 2);
	char *text;

	rows[0].kernel = &short_stack;
	rows[0].user = NULL;
	rows[0].state = "-";
	rows[0].count = 1;
	rows[0].max_ns = 0;
	rows[0].max_end = rows[0].max_tid = WIRE_ABSENT;
	rows[0].max_comm = NULL;
	rows[1].user = &stack;
	text = rendered(render_text, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "  waits too short for a stack of their own\n"
				     "  1 wait, 3 s in all, average 3 s\n"
				     "      [waits under 100us]\n"));
	assert_non_null(strstr(
		text,
		"      ext4_readpage  (ext4)\n"
		"      ! user stack not read then: this happens when a window or the wait ends\n"));
	free(text);
}

/* Source lines and inlined functions are printed if they were asked for. */
static void test_lines(void **state)
{
	static const struct wire_source inlined = { "/src/lib/a.h", 7, true };
	static const struct wire_source plain = { "/src/main.c", 12, false };
	static const struct wire_source lineless = { "/src/main.c", WIRE_ABSENT, false };
	struct wire_frame frames[] = {
		FRAME("native", "get", WIRE_ABSENT, "/bin/x"),
		FRAME("native", "work", 4, "/bin/x"),
		FRAME("native", "main", 9, "/bin/x"),
	};
	struct wire_stack stack = { "9", FRAMES(frames), { NULL, 0 }, WIRE_ABSENT };
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	frames[0].source = &inlined;
	frames[1].source = &plain;
	frames[2].source = &lineless;
	rows[0].user = &stack;
	text = rendered(render_text, (struct view){ .lines = true }, &reply);
	assert_non_null(strstr(text, "      get a.h:7  (inlined)\n"
				     "      work main.c:12  (x)\n"
				     "      main main.c  (x)\n"));
	free(text);
	text = rendered(render_folded, (struct view){ .lines = true, .annotations = true }, &reply);
	assert_non_null(strstr(text, ";main main.c;work main.c:12;get_[i] a.h:7"));
	free(text);
	text = rendered(render_folded, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, ";main;work;get"));
	free(text);
}

static void test_sort_max(void **state)
{
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text = rendered(render_text, (struct view){ .by_max = true }, &reply);

	assert_non_null(strstr(text, "2 s longest\n  D waits for disk I/O, uninterruptible\n"
				     "  longest: 2 s, ended 03:12:14.005, thread 4250 (io)\n"));
	free(text);
}

/* Waits in D of 5 s or more come first, then the oldest; idle and doubtful waits come last. */
static void test_stuck(void **state)
{
	struct wire_row rows[] = { row_open(),	row_of_db(), row_open(),
				   row_of_db(), row_open(),  row_open() };
	struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));
	static const char *const order[] = {
		"\ndb (pid 4242)", "\nold (thread",  "\nyoung (thread",
		"\ndisk (thread",  "\npool (thread", "\nhidden (thread"
	};
	char *text, *at;

	rows[0].comm = "young";
	rows[0].max_ns = 7 * NS_PER_S;
	rows[0].user = NULL;
	rows[1].tid = 4242;
	rows[1].max_ns = 6 * NS_PER_S;
	rows[2].comm = "old";
	rows[3].tid = 4243;
	rows[3].comm = "disk";
	rows[3].user = NULL;
	rows[4].comm = "hidden";
	rows[4].unseen = 1;
	rows[5].comm = "pool";
	rows[5].idle = true;
	text = rendered(render_stuck, (struct view){ .top = 20 }, &reply);
	at = text;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		char *next = strstr(text, order[i]);

		if (!next || next < at)
			fail_msg("%s is not where it should be: %s", order[i], text);
		at = next;
	}
	assert_non_null(strstr(text, "time       2026-03-01 03:14:10 UTC, lost nothing\n"
				     "waiting    6 threads\n"));
	assert_non_null(strstr(text, "1 uninterruptible (D) for 5 s or more"));
	assert_non_null(
		strstr(text, "for 12 min 34 s\n  S waits for disk I/O, since 03:01:36.000\n"));
	assert_non_null(strstr(text, "  in doubt: "));
	free(text);

	/* With reverse, the same entries in the other order. */
	text = rendered(render_stuck, (struct view){ .top = 2, .reverse = true }, &reply);
	assert_null(strstr(text, "young"));
	assert_true(strstr(text, "\nold (thread") < strstr(text, "\ndb (pid 4242)"));
	free(text);

	text = rendered(render_stuck, (struct view){ .top = 1 }, &reply);
	assert_non_null(strstr(text, "5 more: -n 0 shows all"));
	assert_null(strstr(text, "young"));
	free(text);
}

/* A row of several waits counts as so many, among the urgent ones, too. */
static void test_stuck_counts_waits(void **state)
{
	struct wire_row row = row_of_db();
	struct wire_snapshot_reply reply = reply_of(&row, 1);
	char *text;

	row.max_ns = 6 * NS_PER_S;
	row.open = 3;
	text = rendered(render_stuck, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "waiting    3 threads\n"));
	assert_non_null(strstr(text, "3 uninterruptible (D) for 5 s or more"));
	free(text);
}

static void assert_title(const struct wire_row *row, const char *expected)
{
	const struct view view = { .top = 0 };
	char *title = row_title(&view, row);

	assert_string_equal(title, expected);
	free(title);
}

/* A row of several processes has their number in place of a pid. */
static void test_titles_of_folded_rows(void **state)
{
	struct wire_row row = row_of_db();

	row.process.pid = 0;
	row.folded = 1;
	assert_title(&row, "db (1 process)");
	row.folded = 1234;
	assert_title(&row, "db (1,234 processes)");
	row.comm = "worker";
	assert_title(&row, "worker (1,234 processes, threads of db)");
	/* So has one by line; one of threads of the kernel has no number. */
	row.folded = WIRE_ABSENT;
	row.processes = 3;
	assert_title(&row, "worker (3 processes, threads of db)");
	row.processes = WIRE_ABSENT;
	row.comm = "kworker/*";
	assert_title(&row, "kworker/*");
}

/* What was folded is one line, or none. */
static void test_what_was_folded(void **state)
{
	struct wire_folded folded = { .rows = 1500, .processes = 300, .total_ns = 2 * NS_PER_S };
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text = rendered(render_text, (struct view){ .verbose = true, .top = 1 }, &reply);

	assert_null(strstr(text, "folded"));
	free(text);
	reply.folded = &folded;
	text = rendered(render_text, (struct view){ .verbose = true, .top = 1 }, &reply);
	assert_non_null(strstr(text, "\nfolded     1,500 rows and threads of 300 processes, "));
	free(text);
}

/* Some hosts hide the process init, but not its threads. */
static void test_titles_without_a_process_name(void **state)
{
	struct wire_row row = row_of_db();

	row.comm = "worker";
	assert_title(&row, "worker (pid 4242, of db)");
	row.process.comm = "";
	assert_title(&row, "worker (pid 4242)");
	row.tid = 4251;
	assert_title(&row, "worker (thread 4251, pid 4242)");
	row.process.comm = "db";
	assert_title(&row, "worker (thread 4251 of db, pid 4242)");
}

/* What a thread waits for, who holds it, and what the holder waits for. */
static void test_stuck_holders(void **state)
{
	static const struct wire_holder holders[] = {
		{ .pid = 77, .tid = WIRE_ABSENT, .comm = "back\nup", .for_ns = WIRE_ABSENT },
		{ .pid = 80, .tid = 81, .comm = "io", .for_ns = WIRE_ABSENT },
	};
	static const struct wire_holder chain[] = {
		{ .pid = 80, .tid = 81, .comm = "io", .reason = "tcp", .for_ns = 9 * NS_PER_S },
	};
	struct wire_row rows[] = { row_open(), row_open() };
	struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));
	char *text;

	rows[1].tid = 4252;
	text = rendered(render_stuck, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "2 threads  "));
	assert_null(strstr(text, "holder"));
	free(text);

	/* At the same stack, for another object: that is another entry. */
	rows[0].reason = "flock";
	rows[0].object = "/run/lock";
	rows[0].holders = (struct wire_holders)FRAMES(holders);
	rows[0].holders_more = 3;
	rows[1].object = "0x7f00";
	rows[1].holders = (struct wire_holders){ &holders[1], 1 };
	rows[1].chain = (struct wire_holders)FRAMES(chain);
	rows[1].deadlock = 1;
	text = rendered(render_stuck, (struct view){ 0 }, &reply);
	assert_null(strstr(text, "2 threads  "));
	assert_non_null(strstr(text,
			       "  file /run/lock, held by back\\nup (pid 77), io (thread 81) and "
			       "3 more\n"));
	assert_non_null(strstr(text, "  lock at 0x7f00, held by io (thread 81)\n"
				     "  io (thread 81) waits for data from a TCP socket, for 9 s\n"
				     "  deadlock: the last of these waits for this thread\n"));
	free(text);

	/* What was looked up when the wait was recorded may be otherwise now. */
	rows[1].holders_at = 1000 * NS_PER_S;
	text = rendered(render_stuck, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "  lock at 0x7f00, held by io (thread 81), as of "));
	free(text);
	text = rendered(render_waits, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "  file /run/lock, held by back\\nup (pid 77), io (thread 81) "
				     "and 3 more\n"));
	free(text);
	rows[1].holders_at = 0;

	/* The other end of a connection holds nothing. */
	rows[1].reason = "tcp";
	rows[1].object = "TCP 127.0.0.1:5 to 127.0.0.1:6, established";
	rows[0].holders.n = 0;
	rows[0].holders_unknown = "the search took too long";
	text = rendered(render_stuck, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "  file /run/lock\n"
				     "  holder unknown: the search took too long\n"));
	free(text);
	rows[0].holders_missed = 1;
	text = rendered(render_stuck, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "  holder not looked up: the search took too long\n"));
	assert_non_null(strstr(text, "  TCP 127.0.0.1:5 to 127.0.0.1:6, established, other end: io "
				     "(thread 81)\n"));
	free(text);
	/* On a terminal, its words wrap, where a path is cut. */
	rows[1].object = "TCP 10.20.30.40:42815 to 10.20.30.41:5432, established, 0 bytes unread, "
			 "0 unacked";
	text = rendered(render_stuck, (struct view){ .page.cuts_names = true }, &reply);
	assert_non_null(strstr(text, ", established, 0 bytes unread,"));
	assert_non_null(strstr(text, "unacked, other end: io"));
	assert_null(strstr(text, "..."));
	free(text);
}

/* A wait of 3 s for a mutex of the process that the thread `holder` has; 0: it is not known. */
static struct wire_row row_for_mutex(int64_t tid, struct wire_holder *holder)
{
	struct wire_row row = row_open();

	row.tid = tid;
	row.reason = "mutex";
	row.max_ns = 3 * NS_PER_S;
	row.idle = false;
	if (holder->tid)
		row.holders = (struct wire_holders){ holder, 1 };
	return row;
}

/* Who holds others up: at the end of the rows of holders, or of the chain of those that are idle.
 */
static void test_stuck_roots(void **state)
{
	struct wire_holder to[] = {
		{ .pid = 4242, .tid = 2, .comm = "two", .for_ns = WIRE_ABSENT },
		{ .pid = 4242, .tid = 3, .comm = "three", .for_ns = WIRE_ABSENT },
		{ .pid = 90, .tid = WIRE_ABSENT, .comm = "nine\n", .for_ns = WIRE_ABSENT },
		{ 0 },
	};
	struct wire_holder asleep[] = {
		{ .pid = 4242,
		  .tid = 3,
		  .comm = "three",
		  .reason = "sleep",
		  .for_ns = 60 * NS_PER_S },
	};
	struct wire_row rows[] = { row_for_mutex(1, &to[0]), row_for_mutex(2, &to[1]),
				   row_for_mutex(5, &to[2]), row_for_mutex(6, &to[3]) };
	struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));
	const struct view lines = { .has_lines = true };
	char *text;

	/* The wait of the thread 6 was not looked up: more may wait. */
	rows[3].holders_unknown = "stackd looks up at most 64 waits at once";
	rows[3].holders_missed = 1;
	text = rendered(render_stuck, lines, &reply);
	assert_non_null(strstr(text, "S mutex    not looked up "));
	free(text);
	text = rendered(render_stuck, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "\nroot       three(3) holds up at least 2 threads\n"
				     "holder     nine\\n(90) holds up at least 1 thread\n"));
	free(text);
	rows[3].holders_unknown = "the lock names no owner";
	rows[3].holders_missed = WIRE_BOOL_ABSENT;
	rows[1].chain = (struct wire_holders)FRAMES(asleep);
	text = rendered(render_stuck, lines, &reply);
	assert_non_null(strstr(text, " cannot be known "));
	assert_non_null(strstr(text, "\nroot       three(3) holds up 2 threads; waits 60.0s itself "
				     "(sleep)\n"));
	free(text);

	/* One that waits for a lock is held up by another one, who is not known. */
	asleep[0].reason = "flock";
	text = rendered(render_stuck, lines, &reply);
	assert_non_null(strstr(text, "\nholder     three(3) holds up 2 threads; waits 60.0s itself "
				     "(flock)\n"));
	free(text);
	asleep[0].reason = "sleep";

	/* A holder with a wait that is shown, and is for no lock. */
	rows[3] = row_open();
	rows[3].tid = 3;
	rows[3].reason = "tcp";
	rows[3].object = "TCP 10.0.0.1:5";
	rows[3].max_ns = 2 * NS_PER_S;
	rows[1].chain.n = 0;
	text = rendered(render_stuck, lines, &reply);
	assert_non_null(strstr(text, "\nroot       three(3) holds up 2 threads; waits 2.00s itself "
				     "(tcp TCP 10.0.0.1:5)\n"));
	free(text);

	/* Of several holders, the one that the chain goes on with. */
	rows[2].holders = (struct wire_holders){ to, 3 };
	rows[2].chain = (struct wire_holders)FRAMES(asleep);
	text = rendered(render_stuck, lines, &reply);
	assert_non_null(strstr(text, "\nroot       three(3) holds up 3 threads; "));
	free(text);
	rows[2].holders = (struct wire_holders){ &to[2], 1 };
	rows[2].chain.n = 0;

	/* A deadlock has none, nor has who waits behind it, also where its other threads are not
	 * shown. */
	rows[1].deadlock = 1;
	rows[2].holders.n = 0;
	text = rendered(render_stuck, lines, &reply);
	assert_null(strstr(text, "root "));
	free(text);
	rows[1].deadlock = 0;
	rows[2].holders.n = 1;

	/* A ring has no root; nor has a wait that is short, or whose holder is one of several. */
	rows[1].holders = (struct wire_holders){ &to[0], 1 };
	rows[2].holders_more = 1;
	text = rendered(render_stuck, lines, &reply);
	assert_null(strstr(text, "root "));
	free(text);
	rows[2].holders_more = WIRE_ABSENT;
	rows[2].max_ns = NS_PER_S - 1;
	text = rendered(render_stuck, lines, &reply);
	assert_null(strstr(text, "root "));
	free(text);
}

/* Three lines at most, the one with the most threads first; idle waits are for nobody in the way.
 */
static void test_stuck_roots_are_few(void **state)
{
	struct wire_holder to[] = {
		{ .pid = 1, .tid = 1, .comm = "a", .for_ns = WIRE_ABSENT },
		{ .pid = 2, .tid = 2, .comm = "b", .for_ns = WIRE_ABSENT },
		{ .pid = 3, .tid = 3, .comm = "c", .for_ns = WIRE_ABSENT },
		{ .pid = 4, .tid = 4, .comm = "d", .for_ns = WIRE_ABSENT },
	};
	struct wire_row rows[] = { row_for_mutex(11, &to[0]), row_for_mutex(12, &to[1]),
				   row_for_mutex(13, &to[2]), row_for_mutex(14, &to[3]),
				   row_for_mutex(15, &to[3]), row_for_mutex(16, &to[0]),
				   row_for_mutex(17, &to[0]) };
	struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));
	char *text;

	rows[5].idle = true;
	rows[6].own = 1;
	rows[1].max_ns *= 2;
	rows[2].max_ns *= 3;
	rows[2].reason = "fuse";
	text = rendered(render_stuck, (struct view){ .has_lines = true }, &reply);
	assert_non_null(strstr(text, "\nroot       d(4) holds up 2 threads\n"
				     "root       c(3) holds up 1 thread\n"
				     "root       b(2) holds up 1 thread\nwaiting"));
	free(text);
}

/* Holders that were looked up earlier may have let go before they began to wait. */
static void test_stuck_roots_of_the_past(void **state)
{
	struct wire_holder to[] = {
		{ .pid = 4242, .tid = 2, .comm = "two", .for_ns = WIRE_ABSENT },
		{ .pid = 4242, .tid = 3, .comm = "three", .for_ns = WIRE_ABSENT },
	};
	struct wire_row rows[] = { row_for_mutex(1, &to[0]), row_for_mutex(2, &to[1]) };
	struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));
	const struct view lines = { .has_lines = true };
	char *text;

	/* The thread 2 has waited for 3 s. */
	rows[0].holders_at = reply.coverage.used.end - 2 * NS_PER_S;
	text = rendered(render_stuck, lines, &reply);
	assert_non_null(strstr(text, "three(3) holds up 2 threads\n"));
	free(text);
	rows[0].holders_at = reply.coverage.used.end - 4 * NS_PER_S;
	text = rendered(render_stuck, lines, &reply);
	assert_non_null(strstr(text, "\nroot       as of "));
	assert_non_null(strstr(text, " two(2) holds up 1 thread\n"));
	assert_non_null(strstr(text, "\nroot       three(3) holds up 1 thread\n"));
	free(text);
	/* A low screen has room for one. */
	text = rendered(render_stuck, (struct view){ .has_lines = true, .height = 9 }, &reply);
	assert_non_null(strstr(text, " holds up "));
	assert_null(strstr(strstr(text, " holds up ") + 1, " holds up "));
	free(text);
}

/* A killable wait is in D, but does not count as uninterruptible: kill -9 ends it. */
static void test_stuck_killable(void **state)
{
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	rows[0].tid = 4242;
	rows[0].max_ns = 60 * NS_PER_S;
	rows[0].state_bits = 0x102;
	text = rendered(render_stuck, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "none is uninterruptible (D) for 5 s or more"));
	assert_non_null(strstr(text, "  D waits for disk I/O, killable (kill -9 ends it), since "));
	free(text);
}

/* Threads of one process at one stack are one entry; those of another process are another. */
static void test_stuck_groups(void **state)
{
	struct wire_row rows[] = { row_open(), row_open(), row_open(), row_open(), row_open() };
	struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));
	char *text;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rows[i].tid = 21087 + (int64_t)i;
		rows[i].comm = "db";
	}
	rows[1].comm = "io";
	rows[2].max_ns = 20 * NS_PER_S;
	rows[3].state = "D";
	rows[3].max_ns = NS_PER_S;
	rows[4].process.start++;
	rows[4].max_ns = 2 * NS_PER_S;
	text = rendered(render_stuck, (struct view){ .top = 2 }, &reply);
	assert_non_null(strstr(text, "\ndb (pid 4242): 3 threads "));
	assert_non_null(strstr(text, "\n  threads 21087 21088 (io) 21089, the same stack, for 20 s "
				     "to 12 min 34 s\n"));
	assert_non_null(strstr(text, "\ndb (thread 21091, pid 4242)"));
	assert_non_null(strstr(text, "1 more: -n 0 shows all"));
	free(text);
}

/* A young wait is not counted as urgent because an old one has the same stack. */
static void test_stuck_counts_threads(void **state)
{
	struct wire_row rows[] = { row_open(), row_open(), row_open() };
	struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));
	char *text;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rows[i].state = "D";
		rows[i].tid = 21087 + (int64_t)i;
		rows[i].max_ns = 200 * NS_PER_MS;
	}
	rows[1].max_ns = 6 * NS_PER_S;
	text = rendered(render_stuck, (struct view){ .top = 20 }, &reply);
	assert_non_null(strstr(text, "waiting    3 threads\n"
				     "           1 uninterruptible (D) for 5 s or more: "));
	assert_non_null(strstr(text, "\n  threads 21088 "));
	free(text);
}

static void test_stuck_nobody(void **state)
{
	struct wire_snapshot_reply reply = reply_of(NULL, 0);
	char *text;

	reply.idle = (struct wire_rest){ 0 };
	text = rendered(render_stuck, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "waiting    nobody matches\n"));
	assert_null(strstr(text, "oldest"));
	free(text);
}

/* Rows of samples have no waits, and show frames of the scheduler. */
static void test_samples(void **state)
{
	static const struct wire_gap gaps[] = { { T0 + 60 * NS_PER_S, T0 + 180 * NS_PER_S,
						  "not running", NULL } };
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	reply.coverage.gaps = (struct wire_gaps){ gaps, 1 };
	reply.totals.on_cpu_ns = 60 * NS_PER_S;
	reply.totals.samples = 3000;
	reply.period_ns = 20 * NS_PER_MS;
	reply.idle = reply.rest = (struct wire_rest){ 0 };
	text = rendered(render_text, (struct view){ .verbose = true }, &reply);
	assert_non_null(strstr(text, "on CPU     60 s: 0.5 of 2 CPUs busy\n"));
	assert_non_null(strstr(text, "samples    3,000, one each 20 ms by tp_btf/sched_exit_tp\n"));
	free(text);
	text = rendered(render_text, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "\n  10 samples\n      schedule\n      io_schedule\n"));
	assert_null(strstr(text, "wait"));
	free(text);
}

/* A row with waits in several states says how its time divides. */
static void test_mixed(void **state)
{
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	rows[0].state = "mixed";
	rows[0].blocked_ns = 2 * NS_PER_S;
	rows[0].runnable_ns = NS_PER_S;
	text = rendered(render_text, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "\n  mixed: 2 s blocked, 1 s ready\n"));
	assert_null(strstr(text, "blocked, then"));
	free(text);
}

/* Time without CPU quota is printed apart from other time ready without a CPU. */
static void test_throttled(void **state)
{
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	text = rendered(render_text, (struct view){ .verbose = true }, &reply);
	assert_null(strstr(text, "throttled"));
	free(text);
	rows[0].state = "R";
	rows[0].blocked_ns = 0;
	rows[0].runnable_ns = 3 * NS_PER_S;
	rows[0].throttled_ns = 2 * NS_PER_S;
	reply.totals.throttled_ns = 2 * NS_PER_S;
	text = rendered(render_text, (struct view){ .verbose = true }, &reply);
	assert_non_null(strstr(text, "\nthrottled  2 s "));
	assert_non_null(strstr(text, "\n  R throttled: its cgroup's CPU quota is used up\n"));
	assert_non_null(strstr(text, "\n  2 s throttled: no CPU quota left in its cgroup\n"));
	free(text);
	rows[0].throttled_ns = NS_PER_S;
	text = rendered(render_text, (struct view){ .verbose = true }, &reply);
	assert_non_null(strstr(text, "\n  R ready, waiting for a CPU\n"));
	assert_non_null(strstr(text, "\n  1 s throttled"));
	free(text);
	/* It left its CPU because of the quota, and waited longer for a CPU than for quota. */
	rows[0].reason = "throttled";
	text = rendered(render_text, (struct view){ .verbose = true }, &reply);
	assert_non_null(strstr(text, "\n  R throttled: its cgroup's CPU quota is used up\n"));
	free(text);
}

/* After a filter by length, the length of the longest wait may be known to be "or more" only. */
static void test_longest_is_not_known(void **state)
{
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	rows[0].max_end = rows[0].max_tid = WIRE_ABSENT;
	rows[0].max_comm = NULL;
	text = rendered(render_text, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "average 300 ms; longest 2 s or more\n"));
	free(text);
}

static void test_late_windows(void **state)
{
	struct wire_status_reply reply = {
		.version = "1",
		.kernel = "6.1",
		.healthy = true,
		.started = T0,
		.oldest = T0,
		.newest = T0 + 60 * NS_PER_S,
		.window_ns = 5 * NS_PER_S,
	};
	struct page page = { .width = 80 };
	char *text = NULL;
	size_t size;

	page.out = open_memstream(&text, &size);
	render_status(&page, &reply, T0 + 65 * NS_PER_S);
	fclose(page.out);
	assert_non_null(strstr(text, "stackd     healthy\n"));
	free(text);
	page.out = open_memstream(&text, &size);
	render_status(&page, &reply, T0 + 69 * NS_PER_S);
	fclose(page.out);
	assert_non_null(strstr(text, "stackd     healthy, newest window 9 s old\n"));
	free(text);
}

static const struct wire_probe probe_on = { .name = "offcpu", .state = "on" };

/* Returns the text of the status, and below it the line of --check; the caller frees it. */
static char *status_text(const struct wire_status_reply *reply)
{
	struct page page = { .width = 200 };
	char *text = NULL;
	size_t size;

	page.out = open_memstream(&text, &size);
	render_status(&page, reply, T0 + 65 * NS_PER_S);
	render_check(&page, reply);
	fclose(page.out);
	return text;
}

/* A daemon is only said to be recording if a probe is on. */
static void test_check_names_what_is_on(void **state)
{
	struct wire_probe probes[] = { { .name = "offcpu", .state = "off" },
				       { .name = "oncpu", .state = "off" } };
	struct wire_status_reply reply = {
		.version = "1",
		.kernel = "6.1",
		.healthy = true,
		.started = T0,
		.oldest = WIRE_ABSENT,
		.newest = WIRE_ABSENT,
		.probes = { probes, ARRAY_SIZE(probes) },
	};
	char *text = status_text(&reply);

	assert_non_null(strstr(text, "\nOK: all probes are off, so that nothing is recorded; 0 "));
	free(text);
	probes[1].state = "on";
	text = status_text(&reply);
	assert_non_null(strstr(text, "\nOK: recording; 0 "));
	free(text);
}

/* A limit that was reached says what is missing; sizes and times have units. */
static void test_limits(void **state)
{
	static const struct wire_limit limits[] = {
		{ "unwind.max_memory", 16 << 20, 15 << 20, 228, "bytes", "stacks\x1b end early" },
		{ "reply_time_ns", 10 * NS_PER_S, 0, 1, "ns", "clients were disconnected" },
		{ "store.queue", 128, 5, 0, NULL, "windows were not written" },
		{ "symbols.remote", 0, 0, 3, NULL, NULL },
	};
	struct wire_status_reply reply = {
		.version = "1",
		.kernel = "6.1",
		.healthy = true,
		.started = T0,
		.oldest = T0,
		.newest = T0 + 60 * NS_PER_S,
		.windows = 1,
		.window_ns = 5 * NS_PER_S,
		.limits = { limits, 1 },
		.probes = { &probe_on, 1 },
	};
	char *text = status_text(&reply);

	assert_non_null(strstr(text,
			       "\nlimits     unwind.max_memory of 16.0 MiB: reached 228 times, in "
			       "use 15.0 MiB: stacks\\x1b end early\n"));
	assert_non_null(strstr(text, "OK: recording; 1 window, 0 lost, 1 limit reached\n"));
	free(text);
	reply.limits.n = ARRAY_SIZE(limits);
	text = status_text(&reply);
	assert_non_null(
		strstr(text, "reply_time_ns of 10 s: reached 1 time: clients were disconnected\n"));
	assert_non_null(strstr(text, "symbols.remote: reached 3 times\n"));
	assert_null(strstr(text, "store.queue"));
	assert_non_null(strstr(text, "1 window, 0 lost, 3 limits reached\n"));
	free(text);
}

/* The gateway of a fleet records nothing, so that it has neither programs nor their maps. */
static void test_fleet_records_nothing(void **state)
{
	const struct wire_fleet fleet = { .hosts = 2 };
	struct wire_status_reply reply = wire_status_reply_absent();
	struct page page = { .width = 200 };
	char *text, *brief = NULL;
	size_t size;

	reply.version = "1";
	reply.kernel = "6.1";
	reply.healthy = true;
	reply.started = T0;
	reply.oldest = T0;
	reply.newest = T0 + 60 * NS_PER_S;
	reply.windows = 3;
	reply.window_ns = 60 * NS_PER_S;
	reply.probes = (struct wire_probes){ &probe_on, 1 };
	reply.fleet = &fleet;
	reply.user_ns = 2 * NS_PER_S;
	text = status_text(&reply);
	page.out = open_memstream(&brief, &size);
	render_status_brief(&page, &reply, T0 + 65 * NS_PER_S);
	fclose(page.out);
	assert_non_null(
		strstr(text, "\nOK: all hosts of the last hour send windows; 3 windows, 0 lost,"));
	assert_non_null(
		strstr(text, "\ncost       the gateway took 2 s user, 0 s system; at most "));
	assert_non_null(strstr(brief, "\ncost       the gateway took 2 s user, "));
	assert_non_null(strstr(brief, ", in windows of 60 s or shorter\n"));
	for (const char *const *word =
		     (const char *const[]){ "BPF", "programs", "budget", "reading a window",
					    "recording", NULL };
	     *word; word++) {
		assert_null(strstr(text, *word));
		assert_null(strstr(brief, *word));
	}
	free(text);
	free(brief);
}

/* A daemon that only serves a database says what it has, not that there are no windows yet. */
static void test_serving(void **state)
{
	struct wire_store store = {
		.path = "/db",
		.state = "serving",
		.windows = 548,
		.oldest = T0,
		.newest = T0 + 60 * NS_PER_S,
	};
	struct wire_status_reply reply = {
		.version = "1",
		.kernel = "6.1",
		.healthy = true,
		.started = T0,
		.oldest = WIRE_ABSENT,
		.newest = WIRE_ABSENT,
		.window_ns = 5 * NS_PER_S,
		.store = &store,
		.probes = { &probe_on, 1 },
	};
	char *text = status_text(&reply);

	assert_non_null(strstr(text,
			       "\nwindows    548 on disk, none in memory, nothing is recorded: "
			       "2026-03-01 03:10:10 UTC to 03:11:10\n"));
	assert_non_null(strstr(text, "OK: serving what is on disk; 548 windows, 0 lost,"));
	free(text);
	store.state = "writing";
	text = status_text(&reply);
	assert_non_null(strstr(text, "\nwindows    none in memory\n"));
	assert_non_null(strstr(text, "OK: recording; 0 windows, 0 lost,"));
	free(text);
}

static void test_doubt(void **state)
{
	struct wire_row rows[] = { row_open() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	rows[0].unseen = 1;
	reply.totals.unseen = 2;
	reply.totals.unseen_ns = NS_PER_S / 2;
	reply.totals.runnable_ns = 480 * NS_PER_S;
	text = rendered(render_text, (struct view){ .verbose = true }, &reply);
	assert_non_null(strstr(text, "lost       nothing\n           2 waits may be over: "));
	assert_non_null(
		strstr(text, "\nrunnable   479.5 s       99 %  ready: 2.0 threads waited for"));
	assert_non_null(strstr(text, "\nin doubt   500 ms              maybe ready, maybe over"));
	assert_non_null(strstr(text, "\n  in doubt: it may be over"));
	free(text);
}

/* A failed stack walk may repeat one frame many times; it is printed once. */
static void test_repeated_frames(void **state)
{
	struct wire_frame frames[122];
	struct wire_stack stack = { "1", FRAMES(frames), { 0 }, WIRE_ABSENT };
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	frames[0] = user_frames[0];
	for (size_t i = 1; i < 121; i++)
		frames[i] = user_frames[2];
	frames[121] = user_frames[3];
	rows[0].user = &stack;
	text = rendered(render_text, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, "      read_page  (db)\n      [unknown] x 120\n"
				     "      main  (db)\n"));
	free(text);
	text = rendered(render_text, (struct view){ .verbose = true }, &reply);
	assert_null(strstr(text, " x 120"));
	free(text);
}

static void test_stuck_cuts_stacks(void **state)
{
	static char names[40][8];
	struct wire_frame frames[40];
	struct wire_stack deep = { "f1", FRAMES(frames), { 0 }, WIRE_ABSENT };
	struct wire_row rows[] = { row_open() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		snprintf(names[i], sizeof names[i], "f%zu", i);
		frames[i] = (struct wire_frame)FRAME("kernel", names[i], WIRE_ABSENT, NULL);
	}
	rows[0].kernel = &deep;
	text = rendered(render_stuck, (struct view){ .top = 1 }, &reply);
	assert_non_null(strstr(text, "... 32 more, -v shows all"));
	free(text);
	text = rendered(render_stuck, (struct view){ .top = 1, .verbose = true }, &reply);
	assert_null(strstr(text, "more, -v"));
	free(text);
}

static void test_folded(void **state)
{
	struct wire_row rows[] = { row_of_db(), row_open(), row_of_db(), row_of_db(), row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));

	/* The second and the third row of db differ only in the state, and become one line. */
	rows[2].state = "S";
	rows[3].kernel = &short_stack;
	rows[3].user = NULL;
	rows[3].total_ns = 90 * NS_PER_US;
	rows[4].kernel = &kernel_stack;
	rows[4].user = &no_stack;
	rows[4].comm = "kworker";
	rows[4].total_ns = NS_PER_MS;
	assert_rendered(
		render_folded, (struct view){ 0 }, &reply,
		"db;main;[unknown];db+0x1234;read_page;ext4_readpage;io_schedule;schedule 6000000\n"
		"log;[no user stack];ext4_readpage;io_schedule;schedule 1000000\n"
		"db;[waits under 100us] 90\n"
		"kworker;ext4_readpage;io_schedule;schedule 1000\n");
	reply.rows.n = 1;
	assert_rendered(render_folded,
			(struct view){ .delimited = true, .annotations = true, .offset = true },
			&reply,
			"db;main+0x10;[unknown];db+0x1234;read_page+0x40;-;ext4_readpage+0x9_[k];"
			"io_schedule+0x1c_[k];schedule+0x3_[k] 3000000\n");
}

/* No character of a name may look like a frame, a line or a value. */
static void test_folded_hostile(void **state)
{
	static const struct wire_frame frames[] = {
		FRAME("native", "a;b\nc 5 ", WIRE_ABSENT, NULL),
		FRAME("native", "", WIRE_ABSENT, NULL),
		FRAME("native", "\xff\x1b[0m\xe2\x80\xae", WIRE_ABSENT, NULL),
	};
	static const struct wire_stack stack = { "1", FRAMES(frames), { 0 }, WIRE_ABSENT };
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);

	rows[0].comm = "x; 7";
	rows[0].kernel = NULL;
	rows[0].user = &stack;
	assert_rendered(render_folded, (struct view){ 0 }, &reply,
			"x: 7;\\xff\\x1b[0m\\u202e;[unknown];a:b\\nc 5_ 3000000\n");
	rows[0].comm = "";
	rows[0].user = NULL;
	assert_rendered(render_folded, (struct view){ 0 }, &reply, "[unknown] 3000000\n");
}

/* Rounding errors are carried over, so that the lines add up to the sum of the rows. */
static void test_folded_sum(void **state)
{
	enum { N = 1000 };
	static char comms[N][16];
	static struct wire_row rows[N];
	struct wire_snapshot_reply reply = reply_of(rows, N);
	int64_t want = 0, got = 0;
	char *text, *at;

	for (size_t i = 0; i < N; i++) {
		rows[i] = row_of_db();
		snprintf(comms[i], sizeof comms[i], "c%zu", i);
		rows[i].comm = comms[i];
		rows[i].total_ns = (int64_t)(i * i % 7919);
		want += rows[i].total_ns;
	}
	text = rendered(render_folded, (struct view){ 0 }, &reply);
	for (at = strtok(text, "\n"); at; at = strtok(NULL, "\n")) {
		assert_non_null(strrchr(at, ' '));
		assert_true(atoll(strrchr(at, ' ')) > 0);
		got += atoll(strrchr(at, ' '));
	}
	assert_int_equal(got, want / NS_PER_US);
	free(text);
}

static void assert_narrow(const char *text, size_t width)
{
	_cleanup_(freep) char *copy = strdup(text);

	for (char *line = strtok(copy, "\n"); line; line = strtok(NULL, "\n")) {
		if (text_columns(line) > width)
			fail_msg("%zu columns of %zu: %s", text_columns(line), width, line);
		for (const char *c = line; *c != '\0'; c++)
			assert_true((unsigned char)*c >= 0x20 && *c != 0x7f);
	}
}

/* Whatever is in a name, no line is wider than the terminal and no control character is printed. */
static void test_width(void **state)
{
	static char wide[600];
	static const struct wire_gap gaps[] = { { T0, T0 + 1, wide, wide } };
	static const struct wire_lost lost[] = { { wide, INT64_MAX } };
	static const char *const words[] = { wide };
	struct wire_frame frames[] = {
		FRAME("native", wide, INT64_MAX, wide),
		FRAME("native", NULL, INT64_MAX, wide),
	};
	struct wire_stack stack = { "1", FRAMES(frames), { words, 1 }, WIRE_ABSENT };
	struct wire_row rows[] = { row_of_db(), row_open() };
	struct wire_snapshot_reply reply = reply_of(rows, 2);
	static const char *const fillings[] = { "x", "\x1b[2J", "\xe6\xbc\xa2", "a b\n", "\xff" };

	for (size_t f = 0; f < ARRAY_SIZE(fillings); f++) {
		wide[0] = '\0';
		while (strlen(wide) + 8 < sizeof wide)
			strcat(wide, fillings[f]);
		for (size_t i = 0; i < 2; i++) {
			rows[i].comm = rows[i].process.comm = rows[i].max_comm = rows[i].state =
				wide;
			rows[i].kernel = rows[i].user = &stack;
		}
		reply.coverage.gaps = (struct wire_gaps){ gaps, 1 };
		reply.lost = (struct wire_losts){ lost, 1 };
		reply.notes = (struct wire_strs){ words, 1 };
		for (size_t width = TERM_WIDTH_MIN; width <= 132; width += 23) {
			for (int verbose = 0; verbose <= 1; verbose++) {
				struct view view = { .page = { .width = width, .cuts_names = true },
						     .verbose = verbose == 1 };
				char *text = rendered(render_text, view, &reply);

				assert_narrow(text, width);
				free(text);
				text = rendered(render_stuck, view, &reply);
				assert_narrow(text, width);
				free(text);
			}
		}
	}
}

/* If the output is no terminal, names are never truncated. */
static void test_names_whole(void **state)
{
	static char name[301];
	struct wire_frame frames[] = { FRAME("native", name, 1, NULL) };
	struct wire_stack stack = { "1", FRAMES(frames), { 0 }, WIRE_ABSENT };
	struct wire_row rows[] = { row_of_db() };
	struct wire_snapshot_reply reply = reply_of(rows, 1);
	char *text;

	memset(name, 'n', 300);
	rows[0].user = &stack;
	text = rendered(render_text, (struct view){ 0 }, &reply);
	assert_non_null(strstr(text, name));
	free(text);
}

static void assert_string(char *got, const char *want)
{
	assert_string_equal(got, want);
	free(got);
}

static void test_names(void **state)
{
	assert_string(name_escape("plain \\x2d \xc3\xa4\xe2\x82\xac"), "plain \\x2d "
								       "\xc3\xa4\xe2\x82\xac");
	assert_string(name_escape("\x1b]0;x\a\r\n\t\x7f"), "\\x1b]0;x\\x07\\x0d\\n\\t\\x7f");
	assert_string(name_escape("\xc2\x9b"), "\\u009b");
	assert_string(name_escape("\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80"),
		      "\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
	assert_string(name_escape("a\xe2\x80\xae"
				  "b\xf3\xa0\x80\x81"),
		      "a\\u202eb\\U000e0001");
	assert_string(name_escape("\xe2\x82"), "\\xe2\\x82");

	assert_string(name_shorten("ns::f(int, char)"), "ns::f");
	assert_string(name_shorten("std::vector<std::pair<int, A> >::push_back(A&&)"),
		      "std::vector::push_back");
	assert_string(name_shorten("(anonymous namespace)::f(int)"), "(anonymous namespace)::f");
	assert_string(name_shorten("A::operator()(int) const"), "A::operator()");
	assert_string(name_shorten("core::ptr::drop::h0123456789abcdef"), "core::ptr::drop");
	assert_string(name_shorten("plain"), "plain");

	assert_string(text_fit("abcdefghij", 10), "abcdefghij");
	assert_string(text_fit("abcdefghijk", 10), "abcd...ijk");
	assert_string(text_fit("abcdefghijk", 5), "abcde");
	/* The id of a process stays. */
	assert_string(text_fit_tail("abcdefgh(42)", 12), "abcdefgh(42)");
	assert_string(text_fit_tail("abcdefghi(42)", 12), "abcdef..(42)");
	assert_string(text_fit_tail("abcdefghi(42)", 8), "abc...2)");
	assert_string(text_fit_tail("mysqld(9524)/connection(9609)", 18), "mysqld..(9609)");
	assert_string(text_fit_tail("mysqld(9524)/connection(9609)", 28),
		      "mys..(9524)/connection(9609)");
	assert_string(text_fit_tail("mysqld(9524)/connection", 22), "mys..(9524)/connection");
	assert_string(text_fit_tail("mysqld(9524)/connection", 21), "mysqld(9524)/..ection");
	assert_string(text_fit_tail("mysqld(9524)/connection", 18), "mysqld(9524)/..ion");
	assert_string(text_fit_tail("mysqld(9524)/connection", 17), "mysqld(95...ction");
	assert_string(text_fit_tail("mysqld(9524)/connection(9609)", 21), "mysqld(9524)/..(9609)");
	assert_string(text_fit_tail("(42)abcdefghi", 9), "(42)...hi");
	assert_int_equal(text_columns("\xe6\xbc\xa2x"), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_gaps_in_a_row),
		cmocka_unit_test(test_coverage),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_sort_max),
		cmocka_unit_test(test_stuck),
		cmocka_unit_test(test_stuck_counts_waits),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_stuck_cuts_stacks),
		cmocka_unit_test(test_titles_of_folded_rows),
		cmocka_unit_test(test_what_was_folded),
		cmocka_unit_test(test_titles_without_a_process_name),
		cmocka_unit_test(test_folded_sum),
		cmocka_unit_test(test_folded_hostile),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_names_whole),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_pseudo),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_open_and_exited),
		cmocka_unit_test(test_picked_waits),
		cmocka_unit_test(test_stuck_hides_a_stack),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_throttled),
		cmocka_unit_test(test_doubt),
		cmocka_unit_test(test_samples),
		cmocka_unit_test(test_longest_is_not_known),
		cmocka_unit_test(test_late_windows),
		cmocka_unit_test(test_stuck_holders),
		cmocka_unit_test(test_check_names_what_is_on),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_fleet_records_nothing),
		cmocka_unit_test(test_serving),
		cmocka_unit_test(test_stuck_roots),
		cmocka_unit_test(test_stuck_roots_are_few),
		cmocka_unit_test(test_stuck_roots_of_the_past),
		cmocka_unit_test(test_stuck_killable),
		cmocka_unit_test(test_stuck_groups),
		cmocka_unit_test(test_stuck_nobody),
		cmocka_unit_test(test_stuck_counts_threads),
		cmocka_unit_test(test_repeated_frames),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
