/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/base/term.h"
#include "client/render/cell.h"
#include "client/render/lines.h"
#include "client/render/overview_lines.h"
#include "client/render/stuck_entries.h"
#include "common/base.h"

#define PATH "/var/lib/postgresql/15/main/postmaster.lock"

struct cut {
	const char *text;
	size_t columns;
	const char *expected;
};

static void check_cuts(char *(*fit)(const char *text, size_t columns), const struct cut *cuts,
		       size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *text = fit(cuts[i].text, cuts[i].columns);

		assert_string_equal(text, cuts[i].expected);
		assert_true(text_columns(text) <= cuts[i].columns);
		free(text);
	}
}

/* The reason stays, and of the object what tells it from others. */
static void test_reasons(void **state)
{
	static const struct cut cuts[] = {
		{ "S flock " PATH, 60, "S flock " PATH },
		{ "S flock " PATH, 44, "S flock /var/lib/.../postmaster.lock" },
		{ "S flock " PATH, 32, "S flock /var/.../postmaster.lock" },
		{ "S flock " PATH, 31, "S flock /.../postmaster.lock" },
		{ "S flock " PATH, 24, "S flock postmaster.lock" },
		{ "S flock " PATH, 20, "S flock postma...ock" },
		{ "S flock longest " PATH ", idle", 28, "S flock /.../postmaster.lock" },
		{ "S flock /run/x.lock (deleted)", 20, "S flock /run/x.lock" },
		{ "deadlock: S flock " PATH, 34, "deadlock: S flock postmaster.lock" },
		{ "S flock /var/lib/postgresql/", 20, "S flock /var/l...ql/" },
		{ "S tcp TCP 127.0.0.1:42815 to 10.0.0.5:5432, established, 0 bytes unread", 50,
		  "S tcp TCP 127.0.0.1:42815 to 10.0.0.5:5432" },
		{ "S tcp TCP 127.0.0.1:42815 to 10.0.0.5:5432, established", 30,
		  "S tcp to 10.0.0.5:5432" },
		{ "S tcp TCP 127.0.0.1:42815 to 10.0.0.5:5432, established", 20,
		  "S tcp 10.0.0.5:5432" },
		{ "S pipe-read pipe 235751", 20, "S pipe-read 235751" },
		{ "S pipe-read pipe 1023250", 18, "S pipe-read ..." },
		{ "S unix Unix socket /run/postgresql/.s.PGSQL.5432", 28,
		  "S unix /.../.s.PGSQL.5432" },
		/* The shares of several reasons are no objects. */
		{ "mutex 80 %, disk 20 %", 18, "mutex 80 %... 20 %" },
		{ "S sleeping", 8, "S s...ng" },
		{ "S flock /x/y", 9, "S fl.../y" },
	};

	check_cuts(cell_fit_why, cuts, ARRAY_SIZE(cuts));
}

/* The first one who holds it stays, with the id. */
static void test_holders(void **state)
{
	static const struct cut cuts[] = {
		{ "postgres(1234)", 14, "postgres(1234)" },
		{ "postgres(1234) and 12 more", 18, "postgres(1234) +12" },
		{ "bash(15653), root tail(16802)", 18, "bash(15653).." },
		{ "longest held by sh(8081)", 24, "longest held by sh(8081)" },
		{ "longest held by sh(8081)", 16, "held by sh(8081)" },
		{ "longest held by sh(8081)", 12, "by sh(8081)" },
		{ "longest held by sh(8081)", 9, "sh(8081)" },
		{ "longest behind cc1(13573)", 12, "cc1(13573)" },
		{ "longest held by backup-of-all(3531)", 16, "backup-o..(3531)" },
		{ "as of 12:30:01 postgres(1234) and 2 more", 22, "was postgres(1234) +2" },
		{ "as of 2026-03-01 12:30:01 longest held by 7z(12)", 10, "was 7z(12)" },
		{ "as of 12:30:01 held by backup-job(31040)", 17, "was back..(31040)" },
		{ "unknown", 7, "unknown" },
		{ "std::vector<int>::push_back", 16, "std::vec..._back" },
	};

	check_cuts(cell_fit_holder, cuts, ARRAY_SIZE(cuts));
}

static struct wire_holder holder = { .pid = 1234, .tid = WIRE_ABSENT, .comm = "postgres" };
static struct wire_frame frames[] = { { .kind = "native", .name = "take_the_lock_of_the_store" } };
static struct wire_stack user = { .frames = { frames, 1 } };

static struct wire_row waiting_row(void)
{
	return (struct wire_row){
		.process = { .pid = 4242, .comm = "checkpointer" },
		.comm = "checkpointer",
		.tid = 4242,
		.state = "S",
		.reason = "flock",
		.object = PATH,
		.holders = { &holder, 1 },
		.holders_more = WIRE_ABSENT,
		.user = &user,
		.total_ns = 41 * NS_PER_S,
		.blocked_ns = 41 * NS_PER_S,
		.max_ns = 41 * NS_PER_S,
		.max_end = WIRE_ABSENT,
		.count = 0,
		.open = 1,
	};
}

static char *stuck_text(const struct wire_rows *rows, size_t width)
{
	struct view view = { .page = { .width = width, .cuts_names = true } };
	struct stuck_entries entries;
	char *text = NULL;
	size_t size;

	view.page.out = open_memstream(&text, &size);
	assert_non_null(view.page.out);
	stuck_entries_init(&entries, &view, rows);
	render_stuck_lines(&view, &entries, 1, 0);
	stuck_entries_fini(&entries);
	assert_int_equal(fclose(view.page.out), 0);
	return text;
}

/* Whatever the width, `stuck` names the lock and who holds it; the function gives way to them. */
static void test_stuck_widths(void **state)
{
	static const struct {
		size_t width;
		const char *words[3];
	} cases[] = {
		{ 60, { "postm", "postgres(1234)" } },
		{ 80, { "S flock /.../postmaster.lock", "postgres(1234)" } },
		{ 100, { "S flock postmaster.lock", "postgres(1234)", "take_the" } },
		{ 132,
		  { "S flock /var/lib/postgresql/15/main/postmaster.lock", "postgres(1234)",
		    "take_the_lock_of_the_store" } },
	};
	struct wire_row row = waiting_row();
	const struct wire_rows rows = { &row, 1 };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *text = stuck_text(&rows, cases[i].width);

		for (size_t k = 0; k < ARRAY_SIZE(cases[i].words) && cases[i].words[k]; k++)
			if (!strstr(text, cases[i].words[k]))
				fail_msg("no \"%s\" in:\n%s", cases[i].words[k], text);
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			assert_true(text_columns(line) <= cases[i].width);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_holders),
		cmocka_unit_test(test_stuck_widths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
