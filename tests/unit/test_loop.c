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
#include <uv.h>

#include "common/base.h"
#include "daemon/service/loop.h"

struct seen {
	struct loop *loop;
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
	/* Less than a millisecond is rounded up: 0 would mean "never". */
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

static void work(uv_work_t *job)
{
	struct seen *seen = job->data;

	usleep(50000);
	seen->worker = pthread_self();
}

static void on_work_done(uv_work_t *job, int status)
{
	on_event(job->data);
}

static void test_work_is_waited_for(void **state)
{
	struct loop *loop = NULL;
	struct seen seen = { .stop_after = 1 };
	uv_work_t job = { .data = &seen };

	assert_int_equal(loop_new(&loop), 0);
	seen.loop = loop;
	assert_int_equal(uv_queue_work(loop_uv(loop), &job, work, on_work_done), 0);
	assert_int_equal(loop_run(loop), 0);
	assert_int_equal(seen.times, 1);
	assert_false(pthread_equal(seen.worker, pthread_self()));
	/* loop_free() waits for work that is under way. */
	assert_int_equal(uv_queue_work(loop_uv(loop), &job, work, on_work_done), 0);
	loop = loop_free(loop);
	assert_int_equal(seen.times, 2);
}

static void meet(uv_work_t *job)
{
	pthread_barrier_wait(job->data);
}

static void on_met(uv_work_t *job, int status)
{
}

/* Each job waits for all others: with fewer threads none would end. */
static void test_work_at_once(void **state)
{
	uv_work_t jobs[LOOP_WORKERS];
	pthread_barrier_t barrier;
	struct loop *loop = NULL;

	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, LOOP_WORKERS), 0);
	for (int i = 0; i < LOOP_WORKERS; i++) {
		jobs[i].data = &barrier;
		assert_int_equal(uv_queue_work(loop_uv(loop), &jobs[i], meet, on_met), 0);
	}
	loop = loop_free(loop);
	pthread_barrier_destroy(&barrier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_work_is_waited_for),
		cmocka_unit_test(test_work_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
