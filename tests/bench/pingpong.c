// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pingpong futex|pipe ROUNDS CPU_A CPU_B: two pinned threads wake each other in turn. Prints the
 * median and the mean of a round trip in ns; each round trip holds two wakeups.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MAX = 10000000, WARM_UP = 1000 };

struct channel {
	int word;
	int fds[2];
};

static struct channel to_b, to_a;
static int use_futex;
static long rounds;
static int cpu_b;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fail("sched_setaffinity");
}

static void channel_wake(struct channel *c)
{
	if (!use_futex) {
		if (write(c->fds[1], "x", 1) != 1)
			fail("write");
		return;
	}
	__atomic_store_n(&c->word, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &c->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void channel_wait(struct channel *c)
{
	char byte;

	if (!use_futex) {
		if (read(c->fds[0], &byte, 1) != 1)
			fail("read");
		return;
	}
	while (!__atomic_exchange_n(&c->word, 0, __ATOMIC_ACQ_REL))
		syscall(SYS_futex, &c->word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void *peer_main(void *arg)
{
	pin(cpu_b);
	for (long i = 0; i < rounds + WARM_UP; i++) {
		channel_wait(&to_b);
		channel_wake(&to_a);
	}
	return arg;
}

static int compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int64_t round_trip(void)
{
	int64_t start = now_ns();

	channel_wake(&to_b);
	channel_wait(&to_a);
	return now_ns() - start;
}

int main(int argc, char **argv)
{
	int64_t *times, sum = 0;
	pthread_t peer;

	if (argc != 5) {
		fprintf(stderr, "usage: pingpong futex|pipe ROUNDS CPU_A CPU_B\n");
		return 1;
	}
	use_futex = strcmp(argv[1], "futex") == 0;
	rounds = strtol(argv[2], NULL, 10);
	cpu_b = atoi(argv[4]);
	if (rounds < 1 || rounds > ROUNDS_MAX)
		return 1;
	if (pipe(to_b.fds) < 0 || pipe(to_a.fds) < 0)
		fail("pipe");
	times = calloc((size_t)rounds, sizeof(*times));
	if (!times)
		fail("calloc");
	pin(atoi(argv[3]));
	if (pthread_create(&peer, NULL, peer_main, NULL) != 0)
		fail("pthread_create");
	for (int i = 0; i < WARM_UP; i++)
		round_trip();
	for (long i = 0; i < rounds; i++) {
		times[i] = round_trip();
		sum += times[i];
	}
	pthread_join(peer, NULL);
	qsort(times, (size_t)rounds, sizeof(*times), compare);
	printf("median_ns=%lld mean_ns=%lld p99_ns=%lld\n", (long long)times[rounds / 2],
	       (long long)(sum / rounds), (long long)times[rounds / 100 * 99]);
	free(times);
	return 0;
}
