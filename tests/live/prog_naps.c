// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_naps THREADS US: for each line read, all threads nap for US again and again, as long as the
 * line says, in seconds. Prints how often each thread was switched meanwhile, as the kernel counts
 * it, and "done". Between storms, the threads wait.
 */
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "prog.h"

enum { MAX_THREADS = 64 };

static pthread_barrier_t begin, end;
static int64_t nap_ns, until_ns;

static NAMED void nap(void)
{
	raw_nanosleep(nap_ns);
}

static void nap_until_end(void)
{
	while (now_ns(CLOCK_MONOTONIC) < until_ns)
		nap();
}

static void *thread_main(void *arg)
{
	struct rusage before, after;

	/* A timer may be late by 50 us otherwise. */
	prctl(PR_SET_TIMERSLACK, 1);
	for (;;) {
		pthread_barrier_wait(&begin);
		getrusage(RUSAGE_THREAD, &before);
		nap_until_end();
		getrusage(RUSAGE_THREAD, &after);
		printf("napped tid=%d switches=%ld\n", gettid(),
		       after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw);
		pthread_barrier_wait(&end);
	}
	return arg;
}

int main(int argc, char **argv)
{
	long threads = arg_number(argc, argv, 1, 1);
	char line[32];
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	nap_ns = arg_number(argc, argv, 2, 100) * 1000;
	need(threads > 0 && threads <= MAX_THREADS, "THREADS US");
	pthread_barrier_init(&begin, NULL, (unsigned int)threads + 1);
	pthread_barrier_init(&end, NULL, (unsigned int)threads + 1);
	for (long i = 0; i < threads; i++)
		need(!pthread_create(&thread, NULL, thread_main, NULL), "pthread_create");
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		until_ns = now_ns(CLOCK_MONOTONIC) + strtol(line, NULL, 10) * 1000000000;
		pthread_barrier_wait(&begin);
		pthread_barrier_wait(&end);
		printf("done\n");
	}
	return 0;
}
