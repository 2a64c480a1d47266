/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The reader of open waits, with a fake program that hangs while the test wants it to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/drain/openwait_reader.h"

#define LONG_NS	 (20 * NS_PER_S)
#define SHORT_NS (20 * NS_PER_MS)

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool hangs;
	bool is_freed;
	int open_result;
	int runs;
	struct openwait_pass pass;
} fake = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static int fake_open(void *userdata, char reason[static OPENWAIT_REASON])
{
	if (fake.open_result)
		snprintf(reason, OPENWAIT_REASON, "no such program");
	return fake.open_result;
}

static int64_t fake_run(void *userdata, const struct openwait_pass *pass)
{
	pthread_mutex_lock(&fake.lock);
	fake.runs++;
	fake.pass = *pass;
	pthread_cond_broadcast(&fake.changed);
	while (fake.hangs)
		pthread_cond_wait(&fake.changed, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
	return 7;
}

static void fake_counts(void *userdata, struct openwait_counts *out, uint64_t lost_out[LOST_N],
			uint32_t *reading_tgid_out)
{
	*out = (struct openwait_counts){ .looks = 7 };
	*reading_tgid_out = 4242;
}

static void fake_program(void *userdata, struct probe_program *out)
{
	*out = (struct probe_program){ .name = "fake" };
}

static void fake_free(void *userdata)
{
	pthread_mutex_lock(&fake.lock);
	fake.is_freed = true;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
}

static const struct openwait_ops ops = { fake_open, fake_run, fake_counts, fake_program,
					 fake_free };

static struct openwait_reader *reader_start(int open_result)
{
	struct openwait_reader *reader = NULL;

	fake.hangs = fake.is_freed = false;
	fake.runs = 0;
	fake.open_result = open_result;
	assert_int_equal(openwait_reader_start(&ops, NULL, &reader), 0);
	return reader;
}

static void hang(bool hangs)
{
	pthread_mutex_lock(&fake.lock);
	fake.hangs = hangs;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
}

/* Waits until the reader's thread hangs in its first pass. */
static void hanging_wait(void)
{
	pthread_mutex_lock(&fake.lock);
	while (!fake.runs)
		pthread_cond_wait(&fake.changed, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
}

static void test_a_pass_is_waited_for(void **state)
{
	const struct openwait_pass pass = { .epoch = 3, .min_ns = 4, .max_looks = 5 };
	struct openwait_reader *reader = reader_start(0);
	struct openwait_stats stats;

	assert_true(openwait_reader_pass(reader, &pass, LONG_NS));
	assert_int_equal(fake.runs, 1);
	assert_memory_equal(&fake.pass, &pass, sizeof(pass));
	openwait_reader_stats(reader, &stats);
	assert_int_equal(stats.state, OPENWAIT_ON);
	assert_int_equal(stats.passes, 1);
	assert_int_equal(stats.max_looks, 7);
	assert_int_equal(stats.counts.looks, 7);
	assert_int_equal(stats.held_up_by, 0);
	openwait_reader_stop(reader, LONG_NS);
	assert_true(fake.is_freed);
}

static void test_a_program_that_is_refused_holds_nobody_up(void **state)
{
	const struct openwait_pass pass = {};
	struct openwait_reader *reader = reader_start(-EINVAL);
	struct openwait_stats stats;

	assert_true(openwait_reader_pass(reader, &pass, LONG_NS));
	assert_int_equal(fake.runs, 0);
	openwait_reader_stats(reader, &stats);
	assert_int_equal(stats.state, OPENWAIT_FAILED);
	assert_string_equal(stats.reason, "no such program");
	openwait_reader_stop(reader, LONG_NS);
	assert_true(fake.is_freed);
}

static void test_one_that_hangs_is_not_waited_for(void **state)
{
	const struct openwait_pass pass = {};
	struct openwait_reader *reader = reader_start(0);
	struct openwait_stats stats;

	hang(true);
	assert_false(openwait_reader_pass(reader, &pass, SHORT_NS));
	/* A second request waits no longer; a request that does not wait is not late. */
	assert_false(openwait_reader_pass(reader, &pass, SHORT_NS));
	assert_false(openwait_reader_pass(reader, &pass, 0));
	do {
		openwait_reader_stats(reader, &stats);
	} while (!stats.held_up_by);
	assert_int_equal(stats.held_up_by, 4242);
	assert_int_equal(stats.late, 2);
	/* It has been hanging for long: the next request does not wait at all. */
	assert_false(openwait_reader_pass(reader, &pass, 1000 * LONG_NS));
	/* It goes on: all requests made meanwhile get one pass. */
	hang(false);
	do {
		openwait_reader_stats(reader, &stats);
	} while (stats.held_up_by);
	assert_true(openwait_reader_pass(reader, &pass, LONG_NS));
	assert_in_range(fake.runs, 2, 3);
	openwait_reader_stop(reader, LONG_NS);
	assert_true(fake.is_freed);
}

static void test_one_that_hangs_is_left_behind(void **state)
{
	const struct openwait_pass pass = {};
	struct openwait_reader *reader = reader_start(0);

	hang(true);
	assert_false(openwait_reader_pass(reader, &pass, SHORT_NS));
	/* A thread that has not begun the pass yet would end at once, without hanging. */
	hanging_wait();
	openwait_reader_stop(reader, SHORT_NS);
	assert_false(fake.is_freed);
	/* The thread frees what it owns once it goes on. */
	pthread_mutex_lock(&fake.lock);
	fake.hangs = false;
	pthread_cond_broadcast(&fake.changed);
	while (!fake.is_freed)
		pthread_cond_wait(&fake.changed, &fake.lock);
	pthread_mutex_unlock(&fake.lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pass_is_waited_for),
		cmocka_unit_test(test_a_program_that_is_refused_holds_nobody_up),
		cmocka_unit_test(test_one_that_hangs_is_not_waited_for),
		cmocka_unit_test(test_one_that_hangs_is_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
