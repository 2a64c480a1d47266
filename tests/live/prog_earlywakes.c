// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_earlywakes: makes wakeups that begin while the sleeper is still on its way off the CPU. A
 * thread on CPU 0 sleeps on a futex again and again, and shares that CPU with a thread that
 * computes. A third, on CPU 1, wakes it shortly after it announced its sleep, each time a little
 * later. After each wakeup the sleeper waits for its turn on the CPU. It ends on a line of stdin.
 */
#include <pthread.h>
#include <sched.h>

#include "prog.h"

enum { DELAYS = 64, DELAY_STEP_NS = 100 };

static int word;
static int turn;
static int stopped;
static pid_t sleeper_tid;

static int is_stopped(void)
{
	return __atomic_load_n(&stopped, __ATOMIC_RELAXED);
}

static void thread_pin(int on)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)on, &set);
	need(sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
}

static void *sleeper_main(void *arg)
{
	int before;

	thread_pin(0);
	__atomic_store_n(&sleeper_tid, gettid(), __ATOMIC_RELEASE);
	while (!is_stopped()) {
		before = __atomic_load_n(&word, __ATOMIC_ACQUIRE);
		__atomic_store_n(&turn, 1, __ATOMIC_RELEASE);
		raw_futex_wait(&word, before);
	}
	return arg;
}

static void *spinner_main(void *arg)
{
	thread_pin(0);
	while (!is_stopped())
		;
	return arg;
}

static void delay(int64_t ns)
{
	int64_t until = now_ns(CLOCK_MONOTONIC) + ns;

	while (now_ns(CLOCK_MONOTONIC) < until)
		;
}

static void *waker_main(void *arg)
{
	thread_pin(1);
	for (long i = 0; !is_stopped(); i++) {
		while (!__atomic_exchange_n(&turn, 0, __ATOMIC_ACQ_REL) && !is_stopped())
			;
		delay(i % DELAYS * DELAY_STEP_NS);
		__atomic_fetch_add(&word, 1, __ATOMIC_RELEASE);
		raw_futex_wake(&word, 1);
	}
	return arg;
}

int main(void)
{
	pthread_t sleeper, spinner, waker;

	/* Threads under an inherited real-time policy would not share the CPU. */
	need(sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){}) == 0,
	     "sched_setscheduler");
	need(pthread_create(&sleeper, NULL, sleeper_main, NULL) == 0, "pthread_create");
	need(pthread_create(&spinner, NULL, spinner_main, NULL) == 0, "pthread_create");
	need(pthread_create(&waker, NULL, waker_main, NULL) == 0, "pthread_create");
	while (!__atomic_load_n(&sleeper_tid, __ATOMIC_ACQUIRE))
		sched_yield();
	printf("sleeper tid=%d\n", sleeper_tid);
	wait_for_start();
	__atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
	raw_futex_wake(&word, 1);
	pthread_join(waker, NULL);
	__atomic_fetch_add(&word, 1, __ATOMIC_RELEASE);
	raw_futex_wake(&word, 1);
	pthread_join(sleeper, NULL);
	pthread_join(spinner, NULL);
	wait_for_end();
	return 0;
}
