// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_spinners THREADS [CPU]: runs threads that only compute, all pinned on CPU if given. Prints
 * their tids, "spinning" when all compute, and after a second line of input the CPU time that each
 * thread got in its life.
 */
#include <pthread.h>
#include <sched.h>

#include "prog.h"

enum { THREADS_MAX = 256 };

struct spinner {
	pthread_t thread;
	int64_t cpu_ns;
	pid_t tid;
	int ready;
	int spins;
};

static struct spinner spinners[THREADS_MAX];
static int cpu = -1;
static int started;
static int stopped;

static NAMED void spin(void)
{
	while (!__atomic_load_n(&stopped, __ATOMIC_RELAXED))
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

	s->tid = gettid();
	__atomic_store_n(&s->ready, 1, __ATOMIC_RELEASE);
	wait_for_others();
	__atomic_store_n(&s->spins, 1, __ATOMIC_RELEASE);
	spin();
	s->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
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

	cpu = (int)arg_number(argc, argv, 2, -1);
	need(threads > 0 && threads <= THREADS_MAX, "threads");
	for (long i = 0; i < threads; i++)
		spinner_start(&spinners[i]);
	wait_for_start();
	__atomic_store_n(&started, 1, __ATOMIC_RELEASE);
	raw_futex_wake(&started, THREADS_MAX);
	for (long i = 0; i < threads; i++)
		while (!__atomic_load_n(&spinners[i].spins, __ATOMIC_ACQUIRE))
			sched_yield();
	wait_for_line("spinning");
	__atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
	for (long i = 0; i < threads; i++) {
		pthread_join(spinners[i].thread, NULL);
		printf("spun tid=%d cpu_ns=%lld\n", spinners[i].tid, (long long)spinners[i].cpu_ns);
	}
	wait_for_end();
	return 0;
}
