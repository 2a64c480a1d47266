/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/session/memory_budget.h"

#define MIB ((size_t)1 << 20)

enum { FOLLOW_S = 10 }; /* so long after a change of the limit, windows keep within it */

/* A made-up stackd whose windows take all that they may. */
struct host {
	struct memory_budget budget;
	struct memory_reading reading;
	size_t rest;   /* what stackd takes without its windows */
	size_t answer; /* what an answer to a client takes now */
	size_t limits[FOLLOW_S];
};

static struct host host_new(size_t rest)
{
	struct host host = { .rest = rest, .reading = { .budget = 64 * MIB, .most = 24 * MIB } };

	host.reading.windows = 24 * MIB;
	for (size_t i = 0; i < FOLLOW_S; i++)
		host.limits[i] = 24 * MIB;
	return host;
}

/* Lets `seconds` pass. Returns what stackd takes then. */
static size_t run(struct host *host, unsigned int seconds)
{
	for (unsigned int i = 0; i < seconds; i++) {
		host->reading.windows = host->limits[i % FOLLOW_S];
		host->reading.rss = host->rest + host->reading.windows + host->answer;
		host->limits[i % FOLLOW_S] = memory_budget_update(&host->budget, &host->reading);
	}
	return host->reading.rss;
}

static void nothing_is_lowered_that_fits(void **state)
{
	struct host host = host_new(39 * MIB);

	(void)state;
	assert_int_equal(run(&host, 600), 63 * MIB);
	assert_int_equal(host.budget.lowered, 0);
}

/* The rest grows by 8 MiB: windows make room for it, no more than needed, and then it is quiet. */
static void windows_make_room(void **state)
{
	struct host host = host_new(40 * MIB);
	uint64_t lowered;
	size_t taken;

	(void)state;
	run(&host, 100);
	host.rest += 8 * MIB;
	taken = run(&host, 300);
	assert_true(taken <= 64 * MIB && taken > 58 * MIB);
	lowered = host.budget.lowered;
	assert_in_range(lowered, 1, 10);
	run(&host, 3600);
	assert_int_equal(host.budget.lowered, lowered);
}

static void room_is_given_back(void **state)
{
	struct host host = host_new(50 * MIB);

	(void)state;
	assert_in_range(run(&host, 300), 58 * MIB, 64 * MIB);
	host.rest = 30 * MIB;
	assert_int_equal(run(&host, 1200), (30 + 24) * MIB);
}

/* Where even the rest is too much, a quarter of max_memory is left to windows. */
static void a_quarter_is_kept(void **state)
{
	struct host host = host_new(90 * MIB);

	(void)state;
	assert_int_equal(run(&host, 600), 96 * MIB);
	assert_int_equal(host.budget.limit, 6 * MIB);
}

/* An answer takes 40 MiB for ten seconds of every 15, and windows need not make room for it. */
static void answers_do_not_count(void **state)
{
	struct host host = host_new(38 * MIB);

	(void)state;
	for (int i = 0; i < 100; i++) {
		host.answer = 40 * MIB;
		run(&host, 10);
		host.answer = 0;
		run(&host, 5);
	}
	assert_int_equal(host.budget.lowered, 0);
}

/* A reload may set other limits, below what windows may take now. */
static void settings_may_change(void **state)
{
	struct host host = host_new(30 * MIB);

	(void)state;
	run(&host, 100);
	host.reading.most = 8 * MIB;
	assert_int_equal(run(&host, 60), 38 * MIB);
	host.reading.most = 200 * MIB;
	run(&host, 600);
	assert_in_range(host.reading.rss, 50 * MIB, 64 * MIB + 200 * MIB / 4);
	host.reading.budget = 1024 * MIB;
	assert_int_equal(run(&host, 1200), 230 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lowered_that_fits),
		cmocka_unit_test(windows_make_room),
		cmocka_unit_test(room_is_given_back),
		cmocka_unit_test(a_quarter_is_kept),
		cmocka_unit_test(answers_do_not_count),
		cmocka_unit_test(settings_may_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
