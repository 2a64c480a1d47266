/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/reach.h"

#define NOW  (1704110400 * NS_PER_S)
#define HOUR (3600 * NS_PER_S)

static struct arena *arena;
static const char *problems[1 + STORE_TIERS_MAX];

static int set_up(void **state)
{
	arena = arena_new();
	return arena == NULL;
}

static int tear_down(void **state)
{
	arena_free(arena);
	return 0;
}

/* An hour at 5 s, of which a tier has the last 30 min, and nothing yet at 60 s. */
static struct store_stats stats_make(void)
{
	return (struct store_stats){
		.n_tiers = 2,
		.tiers = {
			{
				.tier = { 5 * NS_PER_S, HOUR, 25 },
				.windows = 1080,
				.bytes = 30 << 20,
				.max_bytes = 100 << 20,
				.oldest_ns = NOW - HOUR / 2,
				.newest_ns = NOW,
				.early_ns = INT64_MIN,
			},
			{
				.tier = { 60 * NS_PER_S, 24 * HOUR, 75 },
				.max_bytes = 300 << 20,
				.oldest_ns = INT64_MIN,
				.newest_ns = INT64_MIN,
				.early_ns = INT64_MIN,
			},
		},
	};
}

static struct wire_tiers tiers_of(const struct store_stats *stats)
{
	struct wire_tiers tiers;

	assert_int_equal(reach_tiers(arena, stats, NOW, &tiers), 0);
	assert_int_equal(tiers.n, stats->n_tiers);
	return tiers;
}

static size_t problems_on(const struct history_stats *history, const struct store_stats *stats,
			  bool is_on_disk)
{
	const struct config config = { .window_keep_ns = 600 * NS_PER_S,
				       .window_max_memory = 24 << 20,
				       .window_length_ns = 5 * NS_PER_S };
	struct wire_tiers tiers = tiers_of(stats);
	size_t n = 0;

	assert_int_equal(
		reach_problems(arena, history, &config, &tiers, NOW, is_on_disk, problems, &n), 0);
	return n;
}

static size_t problems_of(const struct history_stats *history, const struct store_stats *stats)
{
	return problems_on(history, stats, false);
}

static void test_reach(void **state)
{
	struct store_stats stats = stats_make();
	struct wire_tiers tiers = tiers_of(&stats);

	assert_int_equal(tiers.v[0].length_ns, 5 * NS_PER_S);
	assert_int_equal(tiers.v[0].reach_ns, HOUR / 2);
	/* 30 MiB in half an hour: 100 MiB are 100 minutes. */
	assert_int_equal(tiers.v[0].rate_reach_ns / NS_PER_S, 6000);
	assert_int_equal(tiers.v[0].early, WIRE_ABSENT);
	/* Where there are no longer windows yet, the shorter ones serve. */
	assert_int_equal(tiers.v[1].reach_ns, HOUR / 2);
	assert_int_equal(tiers.v[1].rate_reach_ns, WIRE_ABSENT);
	stats.tiers[1].oldest_ns = NOW - 20 * HOUR;
	stats.tiers[1].newest_ns = NOW - HOUR / 2;
	tiers = tiers_of(&stats);
	assert_int_equal(tiers.v[0].reach_ns, HOUR / 2);
	assert_int_equal(tiers.v[1].reach_ns, 20 * HOUR);
	/* Too little is known to tell a rate. */
	stats.tiers[0].oldest_ns = NOW - 60 * NS_PER_S;
	assert_int_equal(tiers_of(&stats).v[0].rate_reach_ns, WIRE_ABSENT);
	stats.tiers[0].oldest_ns = stats.tiers[1].oldest_ns = INT64_MIN;
	assert_int_equal(tiers_of(&stats).v[1].reach_ns, WIRE_ABSENT);
}

static void test_memory_problem(void **state)
{
	const struct store_stats none = {};
	struct history_stats history = { .most_bytes = 24 << 20 };

	assert_int_equal(problems_of(&history, &none), 0);
	history.evicted_real_ns = NOW - 34 * NS_PER_S;
	assert_int_equal(problems_of(&history, &none), 1);
	assert_string_equal(problems[0],
			    "windows in memory reach back 34 s, not 10 min as [window] keep says: "
			    "raise [window] max_memory");
	/* What the disk has is not missing. */
	assert_int_equal(problems_on(&history, &none, true), 0);
	history.most_bytes = 20 << 20;
	assert_int_equal(problems_of(&history, &none), 1);
	assert_string_equal(problems[0],
			    "windows in memory reach back 34 s, not 10 min as [window] keep says: "
			    "raise [budget] memory");
	/* Windows are evicted for their age when the next one comes. */
	history.evicted_real_ns = NOW - 595 * NS_PER_S;
	assert_int_equal(problems_of(&history, &none), 0);
	/* The clock was set back: nothing is known. */
	history.evicted_real_ns = NOW + HOUR;
	assert_int_equal(problems_of(&history, &none), 0);
}

static void test_tier_problems(void **state)
{
	const struct history_stats history = {};
	struct store_stats stats = stats_make();

	assert_int_equal(problems_of(&history, &stats), 0);
	stats.tiers[0].early_ns = NOW - HOUR / 2;
	stats.tiers[1].early_ns = NOW - 11 * HOUR;
	assert_int_equal(problems_of(&history, &stats), 2);
	assert_string_equal(problems[0],
			    "windows of 5 s on disk reach back 30 min, not 60 min as [store] tiers "
			    "says; older ones were merged early: raise [store] max_size");
	assert_string_equal(problems[1], "windows of 60 s on disk reach back 11 h, not 24 h as "
					 "[store] tiers says: raise [store] max_size");
	/* What was merged early long ago would have been merged by now in any case. */
	stats.tiers[0].early_ns = NOW - HOUR;
	stats.tiers[1].early_ns = NOW - 25 * HOUR;
	assert_int_equal(problems_of(&history, &stats), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_reach, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_memory_problem, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_tier_problems, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
