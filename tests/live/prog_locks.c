// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_locks chain|ring|rwlock N: N threads. Each locks a mutex of its own, and then the mutex of
 * the next thread. In a chain, the last thread sleeps instead; in a ring, it waits for the first
 * one. With rwlock, the last thread writes under a read-write lock, and the others wait to read.
 * Prints "tids" with the ids of the threads in this order.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "prog.h"

enum { THREADS_MAX = 16 };

static pthread_mutex_t mutexes[THREADS_MAX];
static pid_t tids[THREADS_MAX];
static pthread_barrier_t barrier;
static long n_threads;
static bool is_ring, is_rwlock;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;

static NAMED void take_next(long i)
{
	if (is_rwlock) {
		pthread_rwlock_rdlock(&rwlock);
		return;
	}
	pthread_mutex_lock(&mutexes[(i + 1) % n_threads]);
}

static void *thread_main(void *arg)
{
	long i = (long)arg;

	tids[i] = (pid_t)syscall(SYS_gettid);
	pthread_mutex_lock(&mutexes[i]);
	if (is_rwlock && i + 1 == n_threads)
		pthread_rwlock_wrlock(&rwlock);
	pthread_barrier_wait(&barrier);
	if (is_ring || i + 1 < n_threads)
		take_next(i);
	for (;;)
		raw_nanosleep(3600LL * 1000000000);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	is_ring = argc > 1 && strcmp(argv[1], "ring") == 0;
	is_rwlock = argc > 1 && strcmp(argv[1], "rwlock") == 0;
	n_threads = arg_number(argc, argv, 2, 2);
	need(n_threads >= 1 && n_threads <= THREADS_MAX, "number of threads");
	pthread_barrier_init(&barrier, NULL, (unsigned int)n_threads + 1);
	for (long i = 0; i < n_threads; i++) {
		pthread_mutex_init(&mutexes[i], NULL);
		need(pthread_create(&thread, NULL, thread_main, (void *)i) == 0, "pthread_create");
	}
	pthread_barrier_wait(&barrier);
	printf("tids");
	for (long i = 0; i < n_threads; i++)
		printf(" %d", (int)tids[i]);
	printf("\n");
	wait_for_start();
	wait_for_end();
	return 0;
}
