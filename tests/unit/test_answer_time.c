/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds up the CPU time of threads and processes that work for answers, and of nothing else. */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/base/answer_time.h"
#include "daemon/drain/cost_meter.h"

#define BURN_NS (30 * NS_PER_MS)

/* Times of the same work by two calls are not quite the same. */
#define SLACK_NS (5 * NS_PER_MS)

static void burn(void)
{
	const int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + BURN_NS;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

/* A thread at work, until it is to end. */
struct worker {
	pthread_t thread;
	atomic_bool has_burnt;
	sem_t is_over; /* to wait for it takes no CPU time */
	int64_t took_ns;
};

static void *worker_run(void *data)
{
	struct worker *worker = data;
	struct answer_time time;
	int64_t begun;

	burn(); /* not for an answer */
	begun = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	answer_time_begin(&time);
	burn();
	worker->took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
	worker->has_burnt = true;
	while (sem_wait(&worker->is_over) < 0)
		;
	answer_time_end(&time);
	burn();
	return NULL;
}

/* Several threads: their time counts while they are at work, and after that. */
static void test_threads(void **state)
{
	const uint64_t before = answer_time_ns();
	struct worker workers[3] = {};
	uint64_t sum = 0, at_work;
	size_t i;

	burn();
	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		assert_int_equal(sem_init(&workers[i].is_over, 0, 0), 0);
		assert_int_equal(pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]),
				 0);
	}
	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		while (!workers[i].has_burnt)
			usleep(1000);
		sum += (uint64_t)workers[i].took_ns;
	}
	at_work = answer_time_ns() - before;
	assert_in_range(at_work, sum - SLACK_NS, sum + 3 * SLACK_NS);
	/* The one in the middle of the list ends first. */
	for (i = 0; i < ARRAY_SIZE(workers); i++) {
		struct worker *worker = &workers[(i + 1) % ARRAY_SIZE(workers)];

		sem_post(&worker->is_over);
		assert_int_equal(pthread_join(worker->thread, NULL), 0);
		assert_true(answer_time_ns() - before >= at_work);
	}
	sum = answer_time_ns() - before;
	assert_in_range(sum, at_work, at_work + 3 * SLACK_NS);
	burn();
	assert_int_equal(answer_time_ns() - before, sum);
}

/* A child counts when it has ended, and once. */
static void test_child(void **state)
{
	const uint64_t before = answer_time_ns();
	struct rusage usage;
	uint64_t children;
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		burn();
		_exit(7);
	}
	while (answer_time_wait(pid, &status, WNOHANG) == 0)
		usleep(1000);
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_int_equal(answer_time_wait(pid, NULL, 0), -1);
	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	children = (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
	assert_true(children >= BURN_NS / 2);
	assert_int_equal(answer_time_ns() - before, children);
}

/* Returns the CPU time that is not for answers. */
static int64_t rest_of(const struct cost_totals *totals)
{
	return (int64_t)(totals->cpu_ns - totals->answers_ns);
}

/* What is recorded costs what is left without answers, whatever these take. */
static void test_meter(void **state)
{
	struct cost_meter meter = {};
	struct cost_totals first, second, third;
	struct answer_time time;

	cost_meter_read(&meter, &first);
	answer_time_begin(&time);
	burn();
	cost_meter_read(&meter, &second);
	burn();
	answer_time_end(&time);
	burn();
	cost_meter_read(&meter, &third);
	assert_in_range(second.answers_ns - first.answers_ns, BURN_NS, BURN_NS + SLACK_NS);
	assert_in_range(third.answers_ns - first.answers_ns, 2 * BURN_NS, 2 * BURN_NS + SLACK_NS);
	assert_true(llabs(rest_of(&second) - rest_of(&first)) <= SLACK_NS);
	assert_true(llabs(rest_of(&third) - rest_of(&first) - BURN_NS) <= SLACK_NS);
	/* All that this thread takes from now on is for clients; what it took before is not. */
	cost_meter_answers(&meter);
	burn();
	cost_meter_read(&meter, &first);
	assert_in_range(first.answers_ns - third.answers_ns, BURN_NS, BURN_NS + SLACK_NS);
	assert_true(llabs(rest_of(&first) - rest_of(&third)) <= SLACK_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_meter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
