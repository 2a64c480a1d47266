/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/compat/compat.h"
#include "common/base.h"

enum { IO_ROWS = 9 };

#define T0 (INT64_C(1772334610) * NS_PER_S)

static const struct wire_frame kernel_frames[] = {
	{ .kind = "kernel", .name = "schedule", .offset = 3, .address = "0xffffffff81785085" },
	{ .kind = "kernel", .name = "do_nanosleep", .offset = 9 },
};
static const struct wire_frame user_frames[] = {
	{ .kind = "native", .name = "wait(int)", .offset = 1 },
	{ .kind = "native", .name = "main", .offset = 2 },
};
static const struct wire_frame waker_frames[] = {
	{ .kind = "kernel", .name = "wake_up", .offset = 3 },
	{ .kind = "kernel", .name = "vfs_write", .offset = 9 },
};
static const struct wire_frame waker_user_frames[] = {
	{ .kind = "native", .name = "write", .offset = 1 },
	{ .kind = "native", .name = "peer", .offset = 2 },
};
static const struct wire_frame why[] = { { .kind = "pseudo", .name = "[unreadable]" } };
static const char *const fault[] = { "fault" };
static const struct wire_stack kernel_stack = { "a1", { kernel_frames, 2 }, { 0 }, WIRE_ABSENT };
static const struct wire_stack user_stack = { "b1", { user_frames, 2 }, { 0 }, WIRE_ABSENT };
static const struct wire_stack waker_stack = { "d1", { waker_frames, 2 }, { 0 }, WIRE_ABSENT };
static const struct wire_stack waker_user_stack = {
	"e1", { waker_user_frames, 2 }, { 0 }, WIRE_ABSENT
};
static const struct wire_stack missed_stack = { "c1", { why, 1 }, { fault, 1 }, WIRE_ABSENT };

static struct wire_row row_of(const char *comm, const char *state, int64_t us)
{
	return (struct wire_row){
		.process = { .pid = 42, .start = T0, .comm = "db" },
		.tid = WIRE_ABSENT,
		.comm = comm,
		.state = state,
		.count = 2,
		.total_ns = us * NS_PER_US,
		.blocked_ns = us * NS_PER_US,
		.runnable_ns = 0,
		.open_ns = WIRE_ABSENT,
		.max_ns = us * NS_PER_US / 2,
		.max_end = T0 + us * NS_PER_US,
		.kernel = &kernel_stack,
		.user = &user_stack,
	};
}

/* Parses the words as a command line; getopt_long() may reorder argv. */
static int parse(struct compat_run *run, const struct compat_tool *tool, const char *line)
{
	static char words[256];
	char *argv[16], *at;
	int argc = 0;

	snprintf(words, sizeof words, "%s %s", tool->name, line);
	for (at = strtok(words, " "); at; at = strtok(NULL, " "))
		argv[argc++] = at;
	argv[argc] = NULL;
	*run = (struct compat_run){ .tool = tool };
	options_init(&run->options);
	return compat_parse(run, argc, argv);
}

static char *rendered(const struct compat_tool *tool, const char *line, const struct wire_row *rows,
		      size_t n)
{
	struct wire_snapshot_reply reply = { .rows = { rows, n } };
	struct compat_run run;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(parse(&run, tool, line), 0);
	compat_render(out, &run, &reply);
	fclose(out);
	return text;
}

static void check_rendered(const struct compat_tool *tool, const char *line,
			   const struct wire_row *rows, size_t n, const char *want)
{
	char *text = rendered(tool, line, rows, n);

	assert_string_equal(text, want);
	free(text);
}

static void check_header(const struct compat_tool *tool, const char *line, const char *want)
{
	struct compat_run run;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(parse(&run, tool, line), 0);
	tool->print_header(out, &run);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

static void test_headers(void **state)
{
	check_header(
		&compat_offcputime, "5",
		"Tracing off-CPU time (us) of all threads by user + kernel stack for 5 secs.\n");
	check_header(
		&compat_offcputime, "-Kp 7,8",
		"Tracing off-CPU time (us) of PID 7,8 by kernel stack... Hit Ctrl-C to end.\n");
	check_header(&compat_offcputime, "-t 7 -U 1",
		     "Tracing off-CPU time (us) of TID 7 by user stack for 1 secs.\n");
	check_header(&compat_offcputime, "-u",
		     "Tracing off-CPU time (us) of user threads by user + kernel stack"
		     "... Hit Ctrl-C to end.\n");
	check_header(&compat_profile, "-C 7 2",
		     "Sampling at 49 Hertz of all threads by user + kernel stack on CPU#7 "
		     "for 2 secs.\n");
	check_header(&compat_profile, "-c 1000 -L 3",
		     "Sampling at every 1000 events of TID 3 by user + kernel stack"
		     "... Hit Ctrl-C to end.\n");
	check_header(&compat_offwaketime, "5",
		     "Tracing blocked time (us) by user + kernel off-CPU and waker stack "
		     "for 5 secs.\n");
}

static void test_words(void **state)
{
	struct compat_run run;

	assert_int_equal(parse(&run, &compat_offcputime, "-Tfi 5 -m 1000 -p 3 60"), 0);
	assert_true(run.has_timestamps);
	assert_int_equal(run.interval_ns, 5 * NS_PER_S);
	assert_int_equal(run.options.duration_ns, 60 * NS_PER_S);
	assert_int_equal(run.options.min_block_ns, NS_PER_MS);
	assert_int_equal(run.options.pids.v[0], 3);
	assert_true(run.is_folded);
	assert_string_equal(run.options.argument, "offcpu");
	assert_int_equal(parse(&run, &compat_profile, "-adf -F 99 --stack-storage-size 9 5"), 0);
	assert_true(run.has_storage && run.options.annotations && run.options.delimited);
	assert_int_equal(run.options.frequency, 99);
	assert_int_equal(parse(&run, &compat_profile, "-I --ebpf"), 0);
	assert_true(run.options.idle && run.shows_programs);
}

static void check_refused(const struct compat_tool *tool, const char *line, const char *words)
{
	struct compat_run run;

	assert_int_equal(parse(&run, tool, line), -22);
	if (!strstr(run.options.message, words))
		fail_msg("%s: \"%s\" says nothing of \"%s\"", line, run.options.message, words);
}

static void test_refused(void **state)
{
	check_refused(&compat_offcputime, "-p 1 -t 1", "-p and -t exclude each other");
	check_refused(&compat_offcputime, "-u -p 1", "-u and -p exclude each other");
	check_refused(&compat_offcputime, "-UK", "-U and -K exclude each other");
	check_refused(&compat_offcputime, "-m", "offcputime: -m needs a value: US");
	check_refused(&compat_offcputime, "--min-block-time",
		      "offcputime: --min-block-time needs a value: US");
	check_refused(&compat_offcputime, "-p 1,x",
		      "offcputime: -p 1,x: \"x\" is no pid; numbers from 1 to 4194304, with commas "
		      "between");
	check_refused(&compat_offcputime, "-m 9 -M 5", "offcputime: -m is longer than -M");
	check_refused(&compat_offcputime, "--state Q", "offcputime: --state Q: \"Q\" is no state");
	check_refused(&compat_profile, "-F 0", "profile: -F 0: not a number from 1 on");
	check_refused(&compat_offcputime, "-m 2 -M 1", "longer than");
	check_refused(&compat_offcputime, "-x", "unknown option -x");
	check_refused(&compat_offcputime, "--nope", "unknown option --nope");
	check_refused(&compat_offcputime, "--folded=1", "takes no value");
	check_refused(&compat_offcputime, "1 2", "unexpected \"2\"");
	check_refused(&compat_offcputime, "5s", "whole number");
	check_refused(&compat_offcputime, "000", "whole number");
	check_refused(&compat_offcputime, "-i 0", "whole seconds");
	check_refused(&compat_offcputime, "--cgroupmap x", "--cgroup PATH");
	check_refused(&compat_profile, "-F 9 -c 9", "-F and -c exclude each other");
	check_refused(&compat_profile, "-F 0", "from 1 on");
	check_refused(&compat_topwaits, "-k", "unknown option -k");
}

static void test_text(void **state)
{
	struct wire_row rows[] = { row_of("db", "S", 900), row_of("io", "S", 20),
				   row_of("db", "D", 30), row_of("gone", "S", 5) };

	rows[3].count = 0; /* the wait has not ended */
	check_rendered(&compat_offcputime, "", rows, 4,
		       "    schedule\n"
		       "    do_nanosleep\n"
		       "    wait(int)\n"
		       "    main\n"
		       "    -                io (42)\n"
		       "        20\n"
		       "\n"
		       "    schedule\n"
		       "    do_nanosleep\n"
		       "    wait(int)\n"
		       "    main\n"
		       "    -                db (42)\n"
		       "        930\n"
		       "\n");
	rows[1].user = &missed_stack;
	check_rendered(&compat_offcputime, "-dv", &rows[1], 1,
		       "    0xffffffff81785085 schedule\n"
		       "    -                do_nanosleep\n"
		       "    [Missed User Stack]\n"
		       "    -                io (42)\n"
		       "        20\n"
		       "\n");
	check_rendered(&compat_offcputime, "-ds", &rows[2], 1,
		       "    schedule+0x3\n"
		       "    do_nanosleep+0x9\n"
		       "    --\n"
		       "    wait(int)+0x1\n"
		       "    main+0x2\n"
		       "    -                db (42)\n"
		       "        30\n"
		       "\n");
}

static void test_folded(void **state)
{
	struct wire_row rows[] = { row_of("d;b", "S", 900), row_of("io", "S", 20) };

	rows[1].kernel = &missed_stack;
	check_rendered(&compat_offcputime, "-df", rows, 2,
		       "io;main;wait(int);[Missed Kernel Stack] 20\n"
		       "d:b;main;wait(int);-;do_nanosleep;schedule 900\n");
	check_rendered(&compat_profile, "-adf", rows, 1,
		       "d:b;main;wait(int);-;do_nanosleep_[k];schedule_[k] 2\n");
}

/* A wait that has not ended is in the sum of the row, but not in that of the tool. */
static void test_open(void **state)
{
	struct wire_row row = row_of("db", "S", 900);

	row.open = 1;
	row.open_ns = 850 * NS_PER_US;
	check_rendered(&compat_offcputime, "-f", &row, 1,
		       "db;main;wait(int);do_nanosleep;schedule 50\n");
}

static void test_topwaits(void **state)
{
	struct wire_row rows[] = { row_of("db", "S", 900), row_of("io", "D", 100) };

	check_rendered(&compat_topwaits, "", rows, 2,
		       "    schedule\n"
		       "    do_nanosleep\n"
		       "    wait\n"
		       "    main\n"
		       "    -                db (42)\n"
		       "        1000 450 1772334610.000900\n"
		       "\n");
}

static void test_offwaketime(void **state)
{
	static const struct wire_link links[] = { { "task", 7, 8, "peer" },
						  { "timer", WIRE_ABSENT, WIRE_ABSENT, NULL } };
	const struct wire_waker task = { { links, 2 }, &waker_stack, &waker_user_stack };
	const struct wire_waker timer = { { &links[1], 1 }, &waker_stack, NULL };
	struct wire_row rows[] = { row_of("db", "S", 900), row_of("db", "S", 50),
				   row_of("db", "S", 7) };

	rows[0].waker = &task;
	rows[1].waker = &timer;
	rows[2].waker = &task;
	check_rendered(&compat_offwaketime, "", rows, 3,
		       "    waker:           timer -\n"
		       "    vfs_write\n"
		       "    wake_up\n"
		       "    --               --\n"
		       "    schedule\n"
		       "    do_nanosleep\n"
		       "    wait(int)\n"
		       "    main\n"
		       "    target:          db 42\n"
		       "        50\n"
		       "\n"
		       "    waker:           peer 7\n"
		       "    peer\n"
		       "    write\n"
		       "    vfs_write\n"
		       "    wake_up\n"
		       "    --               --\n"
		       "    schedule\n"
		       "    do_nanosleep\n"
		       "    wait(int)\n"
		       "    main\n"
		       "    target:          db 42\n"
		       "        907\n"
		       "\n");
	check_rendered(&compat_offwaketime, "-df", rows, 1,
		       "db;main;wait(int);-;do_nanosleep;schedule;--;"
		       "wake_up;vfs_write;-;write;peer;peer 900\n");
}

static struct wire_row row_of_io(const struct wire_io *io, const struct int_list *buckets,
				 int64_t total_ns)
{
	struct wire_row row = row_of("db", NULL, 0);

	row.io = io;
	row.buckets = *buckets;
	row.total_ns = total_ns;
	return row;
}

/* Checks that the output ends with these totals. */
static void check_totals(const char *line, const struct wire_row *rows, const char *want)
{
	char *text = rendered(&compat_iostack, line, rows, IO_ROWS), *end = strstr(text, "\n\n");

	while (end && strstr(end + 1, "\n\n"))
		end = strstr(end + 1, "\n\n");
	assert_non_null(end);
	assert_string_equal(end + 2, want);
	free(text);
}

/* The tool's operations are made of the right rows of each layer; the totals come smallest first.
 */
static void test_iostack(void **state)
{
	static const int64_t counts[] = { 0, 0, 0, 4, 2 }, slow[23] = { [20] = 1, [22] = 8 };
	const struct int_list few = { counts, ARRAY_SIZE(counts) },
			      many = { slow, ARRAY_SIZE(slow) };
	const struct wire_io ios[IO_ROWS] = {
		{ .layer = "syscall", .op = "pread64" },
		{ .layer = "syscall", .op = "read" },
		{ .layer = "syscall", .op = "fdatasync" },
		{ .layer = "syscall", .op = "openat" },
		{ .layer = "vfs", .op = "open" },
		{ .layer = "fs", .op = "write", .filesystem = "ext4" },
		{ .layer = "fs", .op = "write", .filesystem = "xfs" },
		{ .layer = "block", .op = "write" },
		{ .layer = "device", .op = "write" },
	};
	struct wire_row rows[IO_ROWS];

	for (size_t i = 0; i < IO_ROWS; i++)
		rows[i] = row_of_io(&ios[i], i < 7 ? &few : &many, 100 + (int64_t)i);
	check_rendered(
		&compat_iostack, "", rows, IO_ROWS,
		"\n"
		"operation = sysc_r\n"
		"     nsecs               : count     distribution\n"
		"         0 -> 1          : 0        |                                        |\n"
		"         2 -> 3          : 0        |                                        |\n"
		"         4 -> 7          : 0        |                                        |\n"
		"         8 -> 15         : 8        |****************************************|\n"
		"        16 -> 31         : 4        |********************                    |\n"
		"\n"
		"operation = sysc_s\n"
		"     nsecs               : count     distribution\n"
		"         0 -> 1          : 0        |                                        |\n"
		"         2 -> 3          : 0        |                                        |\n"
		"         4 -> 7          : 0        |                                        |\n"
		"         8 -> 15         : 4        |****************************************|\n"
		"        16 -> 31         : 2        |********************                    |\n"
		"\n"
		"sysc_s total: 102 ns\n"
		"sysc_r total: 201 ns\n");
	check_totals("-T vfs", rows, "vfs_o total: 104 ns\n");
	check_totals("-T ext4", rows, "extwrite total: 105 ns\n");
	check_totals("-T blk", rows, "bio_op total: 108 ns\n");
	check_totals("-T blk -Q", rows, "bio_op total: 107 ns\n");
	check_rendered(
		&compat_iostack, "-T blk -m -d vda", &rows[8], 1,
		"\n"
		"operation = bio_op\n"
		"     msecs               : count     distribution\n"
		"         0 -> 1          : 1        |*****                                   |\n"
		"         2 -> 3          : 0        |                                        |\n"
		"         4 -> 7          : 8        |****************************************|\n"
		"\n"
		"bio_op total: 108 ns\n");
	check_header(&compat_iostack, "", "Tracing I/O latency of syscall... Hit Ctrl-C to end.\n");
	check_header(&compat_iostack, "-T ext4 -p 7 5",
		     "Tracing I/O latency of ext4 of PID 7 for 5 secs.\n");
	check_refused(&compat_iostack, "-T roof", "syscall, vfs, ext4 or blk");
	check_refused(&compat_iostack, "-p x", "x");
}

static void test_iostack_filter(void **state)
{
	struct compat_run run;

	assert_int_equal(parse(&run, &compat_iostack, "-T blk -p 9 -d sda -Qm 5"), 0);
	assert_int_equal(run.options.pids.v[0], 9);
	assert_string_equal(run.options.disk, "sda");
	assert_true(run.options.queued && run.options.milliseconds);
	assert_int_equal(run.options.duration_ns, 5 * NS_PER_S);
	assert_string_equal(run.options.argument, "iolat");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers),	 cmocka_unit_test(test_words),
		cmocka_unit_test(test_refused),	 cmocka_unit_test(test_text),
		cmocka_unit_test(test_folded),	 cmocka_unit_test(test_open),
		cmocka_unit_test(test_topwaits), cmocka_unit_test(test_offwaketime),
		cmocka_unit_test(test_iostack),	 cmocka_unit_test(test_iostack_filter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
