/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/notes.h"

#define US NS_PER_US

static struct arena *arena;
static struct filter filter;
static struct notes_facts facts;

static int set_up(void **state)
{
	arena = arena_new();
	filter = (struct filter){ .max_ns = INT64_MAX };
	facts = (struct notes_facts){ .min_wait_ns = 100 * US, .short_waits = 5 };
	return arena == NULL;
}

static int tear_down(void **state)
{
	arena_free(arena);
	return 0;
}

/* Checks that there are exactly these notes, each by a part of its text. */
static void assert_notes(const char *first, const char *second)
{
	size_t n = first ? second ? 2 : 1 : 0;
	struct wire_strs notes;

	assert_int_equal(notes_make(arena, &filter, &facts, &notes), 0);
	assert_int_equal(notes.n, n);
	if (n > 0 && !strstr(notes.v[0], first))
		fail_msg("'%s' is not in: %s", first, notes.v[0]);
	if (n > 1 && !strstr(notes.v[1], second))
		fail_msg("'%s' is not in: %s", second, notes.v[1]);
}

static void test_nothing_to_say(void **state)
{
	assert_notes(NULL, NULL);
	/* All rows are that long, and leaving out shorter waits is what was asked for. */
	filter.min_ns = 100 * US;
	assert_notes(NULL, NULL);
}

/* What the rows lack of the threads asked for; a thousandth part is not worth a note. */
static void test_folded_rows(void **state)
{
	struct wire_filter wire = { .comm = (char *)"worker-*" };

	facts = (struct notes_facts){ .waits_ns = 2000 * US, .missing_ns = 2 * US };
	assert_notes(NULL, NULL);
	facts.missing_ns = 1500 * US;
	assert_notes(
		"1.500 ms of the 2 ms that these threads waited is in no row of this answer: small rows",
		NULL);
	facts.has_others = true;
	assert_notes("1.500 ms of the 2 ms", NULL);
	filter.wire = &wire;
	assert_notes("1.500 ms of the 2 ms", "into (others), which has no names");
	facts.has_lost = true;
	assert_notes("waits were lost, or small rows were folded",
		     "into (others), which has no names");
	/* Estimates need not add up. */
	facts.sample_below_ns = 100 * US;
	facts.missing_ns = 900 * US;
	assert_notes("into (others), which has no names", "are estimates");
	facts.sample_below_ns = 0;
	facts.absent = "in 3 windows some rows";
	assert_notes("in 3 windows some rows", "into (others), which has no names");
	facts.absent = NULL;
	facts.missing_ns = 0;
	assert_notes("into (others), which has no names", NULL);
}

static void test_edges(void **state)
{
	filter.min_ns = 300 * US;
	assert_notes("those from 262.1 us are shown", NULL);
	filter.max_ns = 1000 * US;
	assert_notes("those from 262.1 us to below 1.048 ms are shown", NULL);
	filter.min_ns = 110 * US; /* its bucket begins below the minimum */
	assert_notes("those from 100 us to below 1.048 ms are shown", NULL);
	/* In the last bucket no length is too long. */
	filter.min_ns = 0;
	filter.max_ns = INT64_MAX - 1;
	assert_notes(NULL, NULL);
}

static void test_estimates(void **state)
{
	filter.min_ns = 300 * US;
	facts.has_estimates = true;
	assert_notes("from 262.1 us", "an estimate");
}

static void test_a_remark_about_the_session(void **state)
{
	facts.is_late = true;
	facts.open_only = true;
	facts.session = "7 functions are not recorded";
	assert_notes("7 functions are not recorded", "the newest data is missing");
}

static void test_a_late_window(void **state)
{
	facts.is_late = true;
	facts.open_only = true;
	assert_notes("the newest data is missing", NULL);
	facts.late_ns = 25 * NS_PER_S + 3;
	assert_notes("the newest data is missing, that of the last 25 s", NULL);
}

static void test_open_waits_are_exact(void **state)
{
	filter.min_ns = 300 * US;
	filter.wanted.has_states = true;
	facts.open_only = true;
	assert_notes(NULL, NULL);
}

static void test_short_waits_by_length(void **state)
{
	filter.min_ns = 50 * US;
	assert_notes("under 100 us are left out, also those from 50 us", NULL);
	facts.short_waits = 0;
	assert_notes(NULL, NULL);
	facts.short_waits = 5;
	filter.min_ns = 0;
	filter.max_ns = 50 * US;
	assert_notes("all waits under 100 us are shown, also those over 50 us", NULL);
	filter.max_ns = 70 * US; /* in the bucket of the minimum */
	assert_notes("from 100 us to below 131.0 us", "all waits under 100 us are shown, also");
}

static void test_short_waits_have_no_state(void **state)
{
	filter.wanted.has_states = true;
	assert_notes("under 100 us are left out: their state", NULL);
	filter.min_ns = 300 * US;
	assert_notes("from 262.1 us", "left out: their state");
}

/* Sampled waits have lengths and states, so that notes about these do not apply. */
static void test_sampled(void **state)
{
	facts.min_wait_ns = 0;
	facts.short_waits = 0;
	facts.sample_below_ns = 180 * US;
	assert_notes("of the waits under 180 us, only some", NULL);
	assert_notes("those by thread, and all totals, are exact", NULL);
	filter.wanted.has_states = true;
	facts.kind = PROBE_OFFWAKE;
	assert_notes("and the totals, are estimates", NULL);
	facts.kind = PROBE_IOLAT;
	assert_notes("of the operations under 180 us", NULL);
	facts.open_only = true;
	assert_notes(NULL, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* The probe offwake has no sum of short waits, unlike offcpu. */
static void test_waits_that_offwake_leaves_out(void **state)
{
	facts.kind = PROBE_OFFWAKE;
	assert_notes("blocked for less than 100 us are in no row and no sum", NULL);
	facts.min_wait_ns = 0;
	assert_notes(NULL, NULL);
}

static void test_summaries(void **state)
{
	facts.short_waits = 0;
	facts.summaries = (struct timeline_summaries){ .n = 3, .windows = 72 };
	assert_notes(NULL, NULL);
	facts.summaries.lacks_ns = 1500 * US;
	assert_notes("72 of the windows were read as 3 summaries: rows of one program and stack "
		     "may lack up to 1.500 ms",
		     NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_to_say),
		TEST(test_folded_rows),
		TEST(test_edges),
		TEST(test_a_remark_about_the_session),
		TEST(test_a_late_window),
		TEST(test_estimates),
		TEST(test_open_waits_are_exact),
		TEST(test_short_waits_by_length),
		TEST(test_short_waits_have_no_state),
		TEST(test_sampled),
		TEST(test_summaries),
		TEST(test_waits_that_offwake_leaves_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
