/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/service/loop.h"

struct seen {
	struct loop *loop;
	struct loop_wake *wake;
	pthread_t worker;
	int times;
	int signo;
	int stop_after;
};

static void on_event(void *userdata)
{
	struct seen *seen = userdata;

	seen->times++;
	if (seen->times == seen->stop_after)
		loop_stop(seen->loop);
}

static void on_signal(int signo, void *userdata)
{
	struct seen *seen = userdata;

	seen->signo = signo;
	loop_stop(seen->loop);
}

static void test_timers(void **state)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct loop_timer *once, *often;
	struct seen one = { 0 }, many = { .stop_after = 5 };
	int64_t start = clock_ns(CLOCK_MONOTONIC);

	assert_int_equal(loop_new(&loop), 0);
	one.loop = many.loop = loop;
	assert_int_equal(loop_timer_new(loop, 0, 0, on_event, &one, &once), 0);
	/* less than a millisecond is rounded up, not to "never" */
	assert_int_equal(loop_timer_new(loop, 20 * NS_PER_MS, 1, on_event, &many, &often), 0);
	assert_int_equal(loop_timer_new(loop, -1, 0, on_event, &many, &often), -EINVAL);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(one.times, 1);
	assert_int_equal(many.times, 5);
	assert_true(clock_ns(CLOCK_MONOTONIC) - start >= 20 * NS_PER_MS);
	assert_null(loop_timer_free(once));
	assert_null(loop_timer_free(often));
	assert_null(loop_timer_free(NULL));
}

static void test_signals(void **state)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct seen seen = { 0 };

	assert_int_equal(loop_new(&loop), 0);
	seen.loop = loop;
	assert_int_equal(loop_signal_add(loop, SIGHUP, on_signal, &seen), 0);
	assert_int_equal(loop_signal_add(loop, SIGTERM, on_signal, &seen), 0);
	assert_true(loop_signal_add(loop, SIGKILL, on_signal, &seen) < 0);
	kill(getpid(), SIGHUP);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.signo, SIGHUP);
	kill(getpid(), SIGTERM);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.signo, SIGTERM);
	kill(getpid(), SIGPIPE); /* ignored since loop_new() */
}

static void *wake(void *userdata)
{
	loop_wake_send(userdata);
	return NULL;
}

static void test_wake_from_a_thread(void **state)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct seen seen = { .stop_after = 1 };
	pthread_t thread;

	assert_int_equal(loop_new(&loop), 0);
	seen.loop = loop;
	assert_int_equal(loop_wake_new(loop, on_event, &seen, &seen.wake), 0);
	assert_int_equal(pthread_create(&thread, NULL, wake, seen.wake), 0);
	assert_int_equal(loop_run(loop), 0);
	pthread_join(thread, NULL);
	assert_int_equal(seen.times, 1);
	loop_wake_free(seen.wake);
}

static void work(void *userdata)
{
	struct seen *seen = userdata;

	usleep(50000);
	seen->worker = pthread_self();
}

static void test_work(void **state)
{
	_cleanup_(loop_freep) struct loop *loop = NULL;
	struct seen seen = { .stop_after = 1 };

	assert_int_equal(loop_new(&loop), 0);
	seen.loop = loop;
	assert_int_equal(loop_work(loop, work, on_event, &seen), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.times, 1);
	assert_false(pthread_equal(seen.worker, pthread_self()));
	/* and what is under way when the loop goes is waited for */
	assert_int_equal(loop_work(loop, work, on_event, &seen), 0);
	loop = loop_free(loop);
	assert_int_equal(seen.times, 2);
}

static void meet(void *userdata)
{
	pthread_barrier_wait(userdata);
}

/* Each waits for all: with fewer threads none would end. */
static void test_work_at_once(void **state)
{
	pthread_barrier_t barrier;
	struct loop *loop = NULL;

	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, LOOP_WORKERS), 0);
	for (int i = 0; i < LOOP_WORKERS; i++)
		assert_int_equal(loop_work(loop, meet, NULL, &barrier), 0);
	loop = loop_free(loop);
	pthread_barrier_destroy(&barrier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_wake_from_a_thread),
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_work_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
