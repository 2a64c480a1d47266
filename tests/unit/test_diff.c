/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/render/diff.h"
#include "common/base.h"

#define T0 (INT64_C(1772334610) * NS_PER_S) /* 2026-03-01 03:10:10 UTC */

enum { ROWS_MAX = 64 };

struct answer {
	struct wire_row rows[ROWS_MAX];
	struct wire_snapshot_reply reply;
};

/* An answer about a range that begins at T0 + start_s and that windows cover for seconds. */
static void answer_init(struct answer *answer, int64_t start_s, int64_t seconds)
{
	const int64_t start = T0 + start_s * NS_PER_S, length = seconds * NS_PER_S;

	*answer = (struct answer){
		.reply = {
			.probe = "offcpu",
			.hook = "h",
			.min_wait_ns = 100 * NS_PER_US,
			.sample_below_ns = WIRE_ABSENT,
			.coverage = {
				.asked = { start, start + length },
				.used = { start, start + length },
				.used_ns = length,
				.asked_ns = length,
				.covered_ns = length,
				.windows = 1,
				.complete = true,
			},
			.totals = { .samples = WIRE_ABSENT, .calls = WIRE_ABSENT },
		},
	};
	answer->reply.rows.v = answer->rows;
}

static void answer_add(struct answer *answer, const char *comm, int64_t ns)
{
	answer->rows[answer->reply.rows.n++] = (struct wire_row){
		.process = { .pid = 7, .comm = comm },
		.tid = WIRE_ABSENT,
		.comm = comm,
		.state = "S",
		.count = 2,
		.total_ns = ns,
	};
}

/* True if compare() compares lines, see diff->has_lines. */
static bool is_by_line;

/* Compares two answers. The caller calls diff_fini(). */
static void compare(struct diff *diff, const struct view *view, const struct answer *base,
		    const struct answer *new)
{
	diff_init(diff, view);
	diff->has_lines = is_by_line;
	diff_add(diff, DIFF_BASE, &base->reply, true);
	diff_add(diff, DIFF_NEW, &new->reply, true);
	diff_finish(diff);
}

static char *printed(void (*print)(const struct diff *diff), struct view view,
		     const struct answer *base, const struct answer *new)
{
	char *text = NULL;
	struct diff diff;
	size_t size;

	view.page.out = open_memstream(&text, &size);
	view.page.width = 80;
	compare(&diff, &view, base, new);
	print(&diff);
	diff_fini(&diff);
	assert_int_equal(fclose(view.page.out), 0);
	return text;
}

/* Checks that base + change = new for each row and for the sums. */
static void check_sums(const struct diff *diff)
{
	int64_t scaled = 0, change = 0, base = 0, new = 0;

	for (size_t i = 0; i < diff->n; i++) {
		const struct diff_row *row = &diff->rows[i];

		assert_int_equal(row->scaled + row->change, row->value[DIFF_NEW]);
		assert_true(row->scaled >= 0);
		scaled += row->scaled;
		change += row->change;
		base += row->value[DIFF_BASE];
		new += row->value[DIFF_NEW];
	}
	assert_int_equal(scaled, diff->scaled_total);
	assert_int_equal(base, diff->total[DIFF_BASE]);
	assert_int_equal(new, diff->total[DIFF_NEW]);
	assert_int_equal(scaled + change, new);
}

/* Ranges that are covered alike are not scaled. Rows of one stack are added up. */
static void test_change(void **state)
{
	const struct view view = { 0 };
	struct answer base, new;
	struct diff diff;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	answer_add(&base, "same", 500);
	answer_add(&base, "gone", 400);
	answer_add(&base, "grew", 100);
	answer_add(&base, "grew", 101);
	answer_add(&new, "new", 300);
	answer_add(&new, "grew", 1001);
	answer_add(&new, "same", 500);
	compare(&diff, &view, &base, &new);
	check_sums(&diff);
	assert_int_equal(diff.n, 4);
	assert_int_equal(diff.rows[0].change, 800);
	assert_int_equal(diff.rows[0].count[DIFF_BASE], 4);
	assert_int_equal(diff.rows[1].change, -400);
	assert_int_equal(diff.rows[1].value[DIFF_NEW], 0);
	assert_int_equal(diff.rows[2].change, 300);
	assert_int_equal(diff.rows[3].change, 0);
	assert_int_equal(diff_overlap(&diff), 0);
	diff_fini(&diff);
}

/* The base is scaled to what the new range covers; what rounding leaves is in another row. */
static void test_scale(void **state)
{
	const struct view view = { 0 };
	struct answer base, new;
	struct diff diff;

	answer_init(&base, 0, 30);
	answer_init(&new, 25, 10);
	for (int i = 0; i < 50; i++) {
		char *name = NULL;

		assert_true(asprintf(&name, "row %d", i) > 0);
		answer_add(&base, name, 3 * i + 1);
		answer_add(&new, name, i);
	}
	compare(&diff, &view, &base, &new);
	check_sums(&diff);
	/* The sum of 3i + 1 for i below 50 is 3725, a third of which is 1241. */
	assert_int_equal(diff.scaled_total, 1241);
	for (size_t i = 0; i < diff.n; i++)
		assert_in_range(diff.rows[i].scaled * 3 - diff.rows[i].value[DIFF_BASE] + 3, 0, 6);
	assert_int_equal(diff_overlap(&diff), 5 * NS_PER_S);
	diff_fini(&diff);
	for (int i = 0; i < 50; i++)
		free((char *)(uintptr_t)base.rows[i].comm);
}

/* The product of a month of a thousand threads and the time covered does not fit 64 bits. */
static void test_large(void **state)
{
	const int64_t month = INT64_C(30) * 86400 * NS_PER_S;
	const struct view view = { 0 };
	struct answer base, new;
	struct diff diff;

	answer_init(&base, 0, 30 * 86400);
	answer_init(&new, 30 * 86400, 86400);
	answer_add(&base, "a", 1000 * month);
	answer_add(&new, "a", 1000 * month);
	compare(&diff, &view, &base, &new);
	check_sums(&diff);
	assert_int_equal(diff.scaled_total, 1000 * month / 30);
	diff_fini(&diff);
}

/* Beyond the limit, what is not known yet becomes one row; the sums stay exact. */
static void test_limit(void **state)
{
	static const char others[] = "[others]";
	const struct view view = { 0 };
	struct answer base, new;
	struct diff diff;
	bool found = false;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	answer_add(&base, "a", 10);
	answer_add(&new, "b", 20);
	answer_add(&new, "c", 30);
	answer_add(&new, "a", 40);
	diff_init(&diff, &view);
	diff.bytes_max = 1;
	diff_add(&diff, DIFF_BASE, &base.reply, true);
	diff_add(&diff, DIFF_NEW, &new.reply, true);
	diff_finish(&diff);
	check_sums(&diff);
	assert_int_equal(diff.n, 2);
	assert_int_equal(diff.n_others, 2);
	for (size_t i = 0; i < diff.n; i++) {
		char *path = diff_path(&diff, &diff.rows[i], 0);

		found |= strcmp(path, others) == 0 && diff.rows[i].change == 50;
		free(path);
	}
	assert_true(found);
	diff_fini(&diff);
}

static void test_text(void **state)
{
	static const struct wire_gap gaps[] = { { T0, T0 + NS_PER_S, "stackd was killed\n",
						  NULL } };
	static const struct wire_lost lost[] = { { "stacks", 3 } };
	struct answer base, new;
	char *text;

	answer_init(&base, 0, 61);
	answer_init(&new, 61, 30);
	base.reply.coverage.gaps = (struct wire_gaps){ gaps, 1 };
	base.reply.coverage.used_ns = WIRE_ABSENT; /* as an older stackd answers */
	new.reply.lost = (struct wire_losts){ lost, 1 };
	answer_add(&base, "db\x1b", 2 * NS_PER_S);
	answer_add(&base, "gone", NS_PER_S);
	answer_add(&new, "db\x1b", 3 * NS_PER_S);
	answer_add(&new, "new", 250 * NS_PER_MS);
	new.rows[1].estimated = 1;
	text = printed(diff_print_text, (struct view){ .top = 2 }, &base, &new);
	assert_non_null(strstr(text, "base       2026-03-01 03:10:10 to 03:11:11 UTC: "));
	assert_non_null(strstr(text, "(1 s): stackd was killed"));
	assert_non_null(strstr(text, "new        lost 3: stacks"));
	assert_non_null(strstr(text, "before: as if 30 s were covered"));
	assert_non_null(strstr(text, "1.500 s before, 3.250 s after: +1.750 s, x2.17"));
	assert_non_null(strstr(text, " +2 s                1 s         3 s    x3.00  db\\x1b\n"));
	assert_non_null(strstr(text, " -500 ms          500 ms         0 s     gone  gone\n"));
	assert_non_null(strstr(text, "rows       2 of 3; the rest +250 ms; all: -n 0\n"));
	/* The losses are in a line of their own, and not in the one before, too. */
	assert_null(strstr(text, "covered, lost 3"));
	free(text);
	text = printed(diff_print_text, (struct view){ 0 }, &base, &new);
	assert_non_null(strstr(text, "~+250 ms             0 s      250 ms      new  new\n"));
	free(text);
	/* Lengths that are printed alike need no line that says that they differ. */
	base.reply.coverage.gaps.n = 0;
	base.reply.coverage.used_ns = 30 * NS_PER_S + 1;
	text = printed(diff_print_text, (struct view){ 0 }, &base, &new);
	assert_null(strstr(text, "scaled"));
	free(text);
}

/* The columns are those of difffolded.pl: stack, before, after. Parts of a us are carried on. */
static void test_folded(void **state)
{
	struct answer base, new;
	char *text;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	answer_add(&base, "a;b", 1500);
	answer_add(&base, "c ", 1600);
	answer_add(&new, "a;b", 9900);
	answer_add(&new, "c ", 100);
	text = printed(diff_print_folded, (struct view){ 0 }, &base, &new);
	assert_string_equal(text, "a:b 1 9\nc_ 2 1\n");
	free(text);
}

static void test_json(void **state)
{
	struct answer base, new;
	char *text;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	answer_add(&base, "a\"</script>\n", 1500);
	answer_add(&new, "a\"</script>\n", 9900);
	text = printed(diff_print_json, (struct view){ 0 }, &base, &new);
	assert_non_null(strstr(text, "{\"stack\":[\"a\\\"\\u003c/script>\\\\n\"],\"change\":8400,"
				     "\"base\":1500,\"scaled_base\":1500,\"new\":9900,"
				     "\"base_count\":2,\"new_count\":2,\"base_bytes\":0,"
				     "\"new_bytes\":0,\"error\":0,\"estimated\":false}"));
	free(text);
}

/*
 * A change that may be chance comes after all that are certain. The error is that of both ranges,
 * the base's scaled: here 2 * sqrt(4^2 + 3^2) ms for `doubtful`, of which 16 ms and 9 ms stand for
 * waits of less than 1 ms; 2 * sqrt(n) samples of 10 ms each for CPU time.
 */
static void test_errors(void **state)
{
	struct answer base, new;
	struct diff diff;
	char *text;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	base.reply.sample_below_ns = new.reply.sample_below_ns = NS_PER_MS;
	answer_add(&base, "doubtful", 16 * NS_PER_MS);
	answer_add(&base, "exact", NS_PER_MS);
	answer_add(&base, "sampled", NS_PER_MS);
	answer_add(&new, "doubtful", 9 * NS_PER_MS);
	answer_add(&new, "exact", 4 * NS_PER_MS);
	answer_add(&new, "sampled", 31 * NS_PER_MS);
	base.rows[0].estimated = new.rows[0].estimated = new.rows[2].estimated = 1;
	base.rows[0].sampled_ns = 16 * NS_PER_MS;
	new.rows[0].sampled_ns = 9 * NS_PER_MS;
	new.rows[2].sampled_ns = 25 * NS_PER_MS;
	compare(&diff, &(struct view){ 0 }, &base, &new);
	assert_string_equal(diff_frame(&diff, &diff.rows[0], 0), "sampled");
	assert_int_equal(diff.rows[0].error, 10 * NS_PER_MS);
	assert_string_equal(diff_frame(&diff, &diff.rows[1], 0), "exact");
	assert_int_equal(diff.rows[1].error, 0);
	assert_string_equal(diff_frame(&diff, &diff.rows[2], 0), "doubtful");
	assert_int_equal(diff.rows[2].change, -7 * NS_PER_MS);
	assert_int_equal(diff.rows[2].error, 10 * NS_PER_MS);
	diff_fini(&diff);

	is_by_line = true;
	text = printed(diff_print_text, (struct view){ 0 }, &base, &new);
	is_by_line = false;
	assert_non_null(strstr(text, "accuracy   error of a change: 2 sigma; waits under 1 ms "));
	assert_non_null(strstr(text, "~+30.0ms 10.0ms "));
	free(text);

	/* A base of three times the length has a third of the weight. */
	base.reply.coverage.used_ns *= 3;
	compare(&diff, &(struct view){ 0 }, &base, &new);
	for (size_t i = 0; i < diff.n; i++)
		if (strcmp(diff_frame(&diff, &diff.rows[i], 0), "doubtful") == 0)
			assert_true(diff.rows[i].error / 1000 == 6565);
	diff_fini(&diff);
}

/* CPU time is as exact as the number of its samples. */
static void test_errors_of_samples(void **state)
{
	struct answer base, new;
	struct diff diff;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	base.reply.totals.samples = new.reply.totals.samples = 100;
	answer_add(&base, "db", 90 * NS_PER_MS);
	answer_add(&new, "db", 160 * NS_PER_MS);
	base.rows[0].count = 9;
	new.rows[0].count = 16;
	compare(&diff, &(struct view){ 0 }, &base, &new);
	assert_int_equal(diff.rows[0].error, 100 * NS_PER_MS);
	diff_fini(&diff);

	/* Most samples were left out: those that are left stand for eight each. */
	base.rows[0].estimated = new.rows[0].estimated = 1;
	compare(&diff, &(struct view){ 0 }, &base, &new);
	assert_int_equal(diff.rows[0].error / NS_PER_MS, 282);
	diff_fini(&diff);
}

/* Threads of a pool are one row, as in rows by thread name: most of them live in one range only. */
static void test_pools(void **state)
{
	struct answer base, new;
	char *text;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	answer_add(&base, "kworker/0:1", 4000);
	answer_add(&base, "kworker/1:12", 3000);
	answer_add(&new, "kworker/7:3", 9000);
	text = printed(diff_print_folded, (struct view){ 0 }, &base, &new);
	assert_string_equal(text, "kworker/*:* 7 9\n");
	free(text);
}

/* Waits whose stack is missing for different reasons are one row: the reason is no change. */
static void test_missing_stacks(void **state)
{
	static struct wire_frame frame = { .kind = "pseudo", .name = "[missed user stack]" };
	const char *lost[] = { "lost" }, *fault[] = { "fault" }, *new_thread[] = { "not_run" };
	struct wire_stack stacks[] = {
		{ .frames = { &frame, 1 }, .flags = { lost, 1 } },
		{ .frames = { &frame, 1 }, .flags = { fault, 1 } },
		{ .flags = { lost, 1 } },
		{ .frames = { &frame, 1 }, .flags = { new_thread, 1 } },
	};
	struct answer base, new;
	char *text;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		answer_add(i % 2 ? &base : &new, "a", 1000);
		(i % 2 ? &base : &new)->rows[i / 2].user = &stacks[i];
	}
	text = printed(diff_print_folded, (struct view){ 0 }, &base, &new);
	assert_string_equal(text, "a;[no user stack] 1 2\na;[missed user stack] 1 0\n");
	free(text);
}

/* So are rows by function of such waits, and short waits, whatever the limit was. */
static void test_missing_functions(void **state)
{
	const char *const names[][DIFF_SIDES] = {
		{ "[stack not taken]", "[user stack not read]" },
		{ "[waits under 100us]", "[waits under 102.4ms]" },
	};
	struct wire_frame frame = { .kind = "pseudo", .name = names[1][DIFF_BASE] },
			  other = { .kind = "pseudo", .name = names[1][DIFF_NEW] };
	struct wire_stack before = { .frames = { &frame, 1 } }, after = { .frames = { &other, 1 } };
	struct answer base, new;
	char *text;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		answer_add(&base, "a", 1000);
		answer_add(&new, "b", 2000);
		base.rows[i].key = names[i][DIFF_BASE];
		new.rows[i].key = names[i][DIFF_NEW];
	}
	answer_add(&base, "a", 1000);
	answer_add(&new, "a", 2000);
	base.rows[2].kernel = &before;
	new.rows[2].kernel = &after;
	text = printed(diff_print_folded, (struct view){ 0 }, &base, &new);
	assert_string_equal(text, "[no user stack] 1 2\n[short waits] 1 2\na;[short waits] 1 2\n");
	free(text);
}

/* Makes a row one of an operation in a layer, on the disk vda. */
static void make_io(struct wire_row *row, struct wire_io *io, const char *layer)
{
	*io = (struct wire_io){ .layer = layer, .op = "write", .device = "vda" };
	io->own_ns = row->total_ns;
	io->bytes = row->total_ns / 10;
	row->io = io;
}

/*
 * Lines have each request once, without its parts, unless these were asked for. Operations of all
 * processes are one row, whichever process a row of the answer names.
 */
static void test_io(void **state)
{
	const char *const layers[] = { "block", "queue", "device" };
	struct wire_io io[2 * ARRAY_SIZE(layers)];
	struct answer base, new;
	char *text;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	base.reply.totals.ios = new.reply.totals.ios = 3;
	base.reply.probe = new.reply.probe = "iolat";
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++) {
		answer_add(&base, "stress", i == 0 ? 3 * NS_PER_S : (int64_t)i * NS_PER_S);
		answer_add(&new, "kworker", i == 0 ? 6 * NS_PER_S : 2 * (int64_t)i * NS_PER_S);
		make_io(&base.rows[i], &io[2 * i], layers[i]);
		make_io(&new.rows[i], &io[2 * i + 1], layers[i]);
	}
	is_by_line = true;
	text = printed(diff_print_text, (struct view){ .by = "operation" }, &base, &new);
	assert_non_null(strstr(text, "3 s before, 6 s after: +3 s, x2.00; calls and requests\n"));
	assert_non_null(strstr(text, "+3.00s  3.00s 6.00s x2.00 10.0  20.0  disk write  vda\n"));
	free(text);
	text = printed(diff_print_text, (struct view){ .by = "process", .layer = "queue" }, &base,
		       &new);
	assert_non_null(strstr(text, "queue write   vda\n"));
	free(text);
	is_by_line = false;
	text = printed(diff_print_text, (struct view){ 0 }, &base, &new);
	assert_non_null(strstr(text, "3 s before, 6 s after: +3 s, x2.00; each layer's own\n"));
	free(text);
	text = printed(diff_print_folded, (struct view){ 0 }, &base, &new);
	assert_non_null(strstr(text, "queue;write;vda 1000000 2000000\n"));
	free(text);
}

/* The values of calls are how many there were. */
static void test_calls(void **state)
{
	struct answer base, new;
	char *text;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	base.reply.totals.calls = new.reply.totals.calls = 2;
	answer_add(&base, "a", 0);
	answer_add(&new, "a", 0);
	answer_add(&new, "a", 0);
	text = printed(diff_print_folded, (struct view){ 0 }, &base, &new);
	assert_string_equal(text, "a 2 4\n");
	free(text);
}

/* Adds a row of idle waits. */
static void add_idle(struct answer *answer, const char *comm, const char *reason,
		     const char *function, int64_t ns)
{
	struct wire_row *row = &answer->rows[answer->reply.rows.n];

	answer_add(answer, comm, ns);
	row->idle = 1;
	row->reason = reason;
	row->function = function;
}

/*
 * Of idle rows, only sleeps are compared, unless it is not known where: a thread that began or
 * ended has all of its sleep in one range.
 */
static void test_sleeps(void **state)
{
	static const struct wire_reason_time times[] = { { "poll", 40 }, { "sleep", 60 } };
	const struct view view = { 0 };
	struct answer base, new;
	struct diff diff;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	add_idle(&base, "server", "epoll", "loop", 1000);
	add_idle(&new, "web", "sleep", "audit_check", 500);
	add_idle(&new, "began", "sleep", NULL, 300);
	add_idle(&base, "steady", "sleep", NULL, 200);
	add_idle(&new, "steady", "sleep", NULL, 202);
	add_idle(&new, "both", NULL, "wait", 100);
	new.rows[3].reasons = (struct wire_reason_times){ times, 2 };
	answer_add(&new, "began", 7);
	diff_init(&diff, &view);
	diff.hides_idle = true;
	diff_add(&diff, DIFF_BASE, &base.reply, true);
	diff_add(&diff, DIFF_NEW, &new.reply, true);
	diff_finish(&diff);
	check_sums(&diff);
	assert_int_equal(diff.n, 4);
	assert_int_equal(diff.rows[0].change, 500);
	assert_int_equal(diff.rows[1].change, 60);
	assert_int_equal(diff.rows[2].change, 7);
	assert_int_equal(diff.rows[3].change, 2);
	assert_int_equal(diff.idle[DIFF_BASE], 1000);
	assert_int_equal(diff.idle[DIFF_NEW], 300 + 40);
	diff_fini(&diff);
}

/* A wait that had one state in one range, and several in the other, is one line. */
static void test_states(void **state)
{
	struct answer base, new;
	struct diff diff;

	answer_init(&base, 0, 30);
	answer_init(&new, 30, 30);
	answer_add(&base, "db", 1000);
	answer_add(&new, "db", 1700);
	base.rows[0].reason = new.rows[0].reason = "lock";
	new.rows[0].state = "mixed";
	is_by_line = true;
	compare(&diff, &(struct view){ 0 }, &base, &new);
	is_by_line = false;
	check_sums(&diff);
	assert_int_equal(diff.n, 1);
	assert_int_equal(diff.rows[0].change, 700);
	diff_fini(&diff);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change), cmocka_unit_test(test_scale),
		cmocka_unit_test(test_large),  cmocka_unit_test(test_limit),
		cmocka_unit_test(test_text),   cmocka_unit_test(test_folded),
		cmocka_unit_test(test_json),   cmocka_unit_test(test_pools),
		cmocka_unit_test(test_errors), cmocka_unit_test(test_errors_of_samples),
		cmocka_unit_test(test_calls),  cmocka_unit_test(test_missing_stacks),
		cmocka_unit_test(test_io),     cmocka_unit_test(test_missing_functions),
		cmocka_unit_test(test_sleeps), cmocka_unit_test(test_states),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
