// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_mixture SEED COUNT CPU LIMIT [NAME]: waits COUNT times, in a function for each length,
 * chosen at random from 5 us to 20 ms; with NAME, always in that function. short_ns and squares_us2
 * are the sums of the lengths of the waits that took less than LIMIT us, and of their squares.
 * foreseen_us2 is the variance of an estimate of short_ns where stacks are taken before the waits,
 * see bpf/sample.h. A peer on the same CPU lets each wait last: it computes for as long, and then
 * ends the wait. So no timer and no other CPU has a part in the lengths.
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "bpf/sample.h"
#include "prog.h"

struct kind {
	const char *name;
	void (*wait)(int64_t ns);
	int64_t ns;
	int share; /* in 1000 */
	long count;
	int64_t off_ns;	  /* time off the CPU */
	int64_t short_ns; /* of the waits below the limit */
	double squares;	  /* of these, us * us */
	double foreseen;  /* us * us */
};

static int request_word, answer_word;
static int64_t peer_ns;

/* The peer's own waits must not look like those of main. */
static NAMED void peer_wait(void)
{
	while (__atomic_exchange_n(&request_word, 0, __ATOMIC_ACQ_REL) == 0)
		raw_futex_wait(&request_word, 0);
}

static void *peer_main(void *arg)
{
	int64_t until;

	for (;;) {
		peer_wait();
		until = now_ns(CLOCK_MONOTONIC) + peer_ns;
		while (now_ns(CLOCK_MONOTONIC) < until)
			;
		__atomic_store_n(&answer_word, 1, __ATOMIC_RELEASE);
		raw_futex_wake(&answer_word, 1);
	}
	return arg;
}

static inline __attribute__((always_inline)) void wait_here(int64_t ns)
{
	peer_ns = ns;
	__atomic_store_n(&request_word, 1, __ATOMIC_RELEASE);
	raw_futex_wake(&request_word, 1);
	while (!__atomic_load_n(&answer_word, __ATOMIC_ACQUIRE))
		raw_futex_wait(&answer_word, 0);
	__atomic_store_n(&answer_word, 0, __ATOMIC_RELAXED);
}

#define WAIT(name)                         \
	static NAMED void name(int64_t ns) \
	{                                  \
		wait_here(ns);             \
	}

WAIT(wait_5us)
WAIT(wait_20us)
WAIT(wait_50us)
WAIT(wait_100us)
WAIT(wait_500us)
WAIT(wait_2ms)
WAIT(wait_20ms)

static struct kind kinds[] = {
	{ .name = "wait_5us", .wait = wait_5us, .ns = 5000, .share = 250 },
	{ .name = "wait_20us", .wait = wait_20us, .ns = 20000, .share = 250 },
	{ .name = "wait_50us", .wait = wait_50us, .ns = 50000, .share = 350 },
	{ .name = "wait_100us", .wait = wait_100us, .ns = 100000, .share = 100 },
	{ .name = "wait_500us", .wait = wait_500us, .ns = 500000, .share = 40 },
	{ .name = "wait_2ms", .wait = wait_2ms, .ns = 2000000, .share = 9 },
	{ .name = "wait_20ms", .wait = wait_20ms, .ns = 20000000, .share = 1 },
};

static struct kind *kind_choose(uint64_t random, const char *name)
{
	struct kind *kind = kinds;
	int at;

	if (name) {
		while (strcmp(kind->name, name) != 0)
			kind++;
		return kind;
	}
	for (at = (int)((random >> 33) % 1000); at >= kind->share; kind++)
		at -= kind->share;
	return kind;
}

/*
 * Returns how long the call was off the CPU. The time of the CPU clock covers a bit more of the
 * program than the other clock's, as it is read first and last.
 */
static inline __attribute__((always_inline)) int64_t off_cpu_ns(void (*wait)(int64_t ns),
								int64_t ns)
{
	int64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID), start = now_ns(CLOCK_MONOTONIC), off;

	wait(ns);
	off = now_ns(CLOCK_MONOTONIC) - start;
	return off - (now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
}

static NAMED void wait_not(int64_t ns)
{
}

/* Returns what off_cpu_ns() returns for no wait: less than 0. */
static NAMED int64_t calibrate(void)
{
	int64_t sum = 0, off, n = 0;

	while (n < 1000) {
		off = off_cpu_ns(wait_not, 0);
		if (off > 0)
			continue; /* disturbed */
		sum += off;
		n++;
	}
	return sum / n;
}

/* Adds a short wait. `odds` is 0, or the probability that its stacks were taken before it. */
static void kind_add_short(struct kind *kind, int64_t off, uint32_t odds)
{
	double square = (double)off * (double)off / 1e6;

	kind->short_ns += off;
	kind->squares += square;
	if (odds)
		kind->foreseen += square * (4294967296.0 / odds - 1);
}

static NAMED void run_mixture(uint64_t seed, long count, int64_t limit_ns, const char *name)
{
	int64_t none = calibrate();
	uint32_t average = 0;

	for (long i = 0; i < count; i++) {
		struct kind *kind;
		int64_t off;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		kind = kind_choose(seed, name);
		off = off_cpu_ns(kind->wait, kind->ns) - none;
		kind->count++;
		kind->off_ns += off;
		if (off >= 0 && off < limit_ns)
			kind_add_short(kind, off, sample_odds(average, (uint64_t)limit_ns));
		average = sample_average(average, off < 0 ? 0 : (uint64_t)off);
	}
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;
	pthread_t peer;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)arg_number(argc, argv, 3, 0), &cpus);
	need(sched_setaffinity(0, sizeof(cpus), &cpus) == 0, "sched_setaffinity");
	need(pthread_create(&peer, NULL, peer_main, NULL) == 0, "pthread_create");
	wait_for_start();
	run_mixture((uint64_t)arg_number(argc, argv, 1, 1), arg_number(argc, argv, 2, 10000),
		    arg_number(argc, argv, 4, 200) * 1000, argc > 5 ? argv[5] : NULL);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		printf("%s count=%ld ns=%lld short_ns=%lld squares_us2=%lld foreseen_us2=%lld\n",
		       kinds[i].name, kinds[i].count, (long long)kinds[i].off_ns,
		       (long long)kinds[i].short_ns, (long long)kinds[i].squares,
		       (long long)kinds[i].foreseen);
	wait_for_end();
	return 0;
}
