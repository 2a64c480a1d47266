// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_yielders SECONDS CPU: two threads on one CPU that hand it to each other by sched_yield();
 * neither ever sleeps. Prints how often each was switched, as the kernel counts it.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include "prog.h"

static int64_t end_ns;

static NAMED void yield_turn(void)
{
	raw_syscall(SYS_sched_yield, 0, 0, 0, 0);
}

static void yield_until_end(void)
{
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	while (now_ns(CLOCK_MONOTONIC) < end_ns)
		yield_turn();
	getrusage(RUSAGE_THREAD, &after);
	printf("yielded tid=%d voluntary=%ld involuntary=%ld\n", gettid(),
	       after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw);
}

static void *thread_main(void *arg)
{
	yield_until_end();
	return arg;
}

int main(int argc, char **argv)
{
	int64_t spin_ns = arg_number(argc, argv, 1, 2) * 1000000000;
	pthread_t thread;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)arg_number(argc, argv, 2, 0), &set);
	need(sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
	wait_for_start();
	end_ns = now_ns(CLOCK_MONOTONIC) + spin_ns;
	need(pthread_create(&thread, NULL, thread_main, NULL) == 0, "pthread_create");
	yield_until_end();
	pthread_join(thread, NULL);
	wait_for_end();
	return 0;
}
