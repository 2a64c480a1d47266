// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_spinners THREADS SECONDS [CPU]: threads that only compute, all pinned on CPU if given
 * (-1: not). Each prints its tid at the start, and the CPU time it got at the end.
 */
#include <pthread.h>
#include <sched.h>

#include "prog.h"

enum { THREADS_MAX = 256 };

struct spinner {
	pthread_t thread;
	int64_t cpu_ns;
	int64_t wall_ns;
	pid_t tid;
	int ready;
};

static struct spinner spinners[THREADS_MAX];
static int64_t spin_ns;
static int cpu = -1;
static int started;

static NAMED void spin(int64_t until)
{
	while (now_ns(CLOCK_MONOTONIC) < until)
		;
}

static NAMED void wait_for_others(void)
{
	while (!__atomic_load_n(&started, __ATOMIC_ACQUIRE))
		raw_futex_wait(&started, 0);
}

static void *spinner_main(void *arg)
{
	struct spinner *s = arg;
	int64_t start, start_cpu;

	s->tid = gettid();
	__atomic_store_n(&s->ready, 1, __ATOMIC_RELEASE);
	wait_for_others();
	start = now_ns(CLOCK_MONOTONIC);
	start_cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	spin(start + spin_ns);
	s->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu;
	s->wall_ns = now_ns(CLOCK_MONOTONIC) - start;
	return NULL;
}

static void spinner_start(struct spinner *s)
{
	cpu_set_t set;

	need(pthread_create(&s->thread, NULL, spinner_main, s) == 0, "pthread_create");
	while (!__atomic_load_n(&s->ready, __ATOMIC_ACQUIRE))
		sched_yield();
	if (cpu >= 0) {
		CPU_ZERO(&set);
		CPU_SET((size_t)cpu, &set);
		need(sched_setaffinity(s->tid, sizeof(set), &set) == 0, "sched_setaffinity");
	}
	printf("spinner tid=%d\n", s->tid);
}

int main(int argc, char **argv)
{
	long threads = arg_number(argc, argv, 1, 2);

	spin_ns = arg_number(argc, argv, 2, 5) * 1000000000;
	cpu = (int)arg_number(argc, argv, 3, -1);
	need(threads > 0 && threads <= THREADS_MAX, "threads");
	for (long i = 0; i < threads; i++)
		spinner_start(&spinners[i]);
	wait_for_start();
	__atomic_store_n(&started, 1, __ATOMIC_RELEASE);
	raw_futex_wake(&started, THREADS_MAX);
	for (long i = 0; i < threads; i++) {
		pthread_join(spinners[i].thread, NULL);
		printf("spun tid=%d cpu_ns=%lld wall_ns=%lld\n", spinners[i].tid,
		       (long long)spinners[i].cpu_ns, (long long)spinners[i].wall_ns);
	}
	wait_for_end();
	return 0;
}
