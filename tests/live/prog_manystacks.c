// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_manystacks COUNT ROUNDS SLEEP_US [COMPUTE_US]: walks COUNT (at most 16384) distinct call
 * paths, with a wait of SLEEP_US and COMPUTE_US of CPU time at the end of each, and all that ROUNDS
 * times. Path i takes branch_b at depth d where bit d of i is set, branch_a elsewhere.
 */
#include <sys/prctl.h>
#include <sys/resource.h>

#include "prog.h"

enum { DEPTH = 14 };

static int64_t sleep_ns;
static int64_t compute_ns;
static volatile int sink;

static void branch_a(unsigned int path, int depth);
static void branch_b(unsigned int path, int depth);

static long sleeps_so_far(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void compute(void)
{
	int64_t start;

	if (compute_ns == 0)
		return;
	start = now_ns(CLOCK_THREAD_CPUTIME_ID);
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) - start < compute_ns)
		;
}

/* Waits. A timer this short may expire before the thread is off the CPU; then it did not wait. */
static NAMED void path_end(void)
{
	long before = sleeps_so_far();

	do {
		raw_nanosleep(sleep_ns);
	} while (sleeps_so_far() == before);
	compute();
	sink++;
}

static NAMED void branch_a(unsigned int path, int depth)
{
	if (depth == DEPTH)
		path_end();
	else if (path & (1U << depth))
		branch_b(path, depth + 1);
	else
		branch_a(path, depth + 1);
	sink++;
}

static NAMED void branch_b(unsigned int path, int depth)
{
	if (depth == DEPTH)
		path_end();
	else if (path & (1U << depth))
		branch_b(path, depth + 1);
	else
		branch_a(path, depth + 1);
	sink++;
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 1, 1 << DEPTH);
	long rounds = arg_number(argc, argv, 2, 1);
	int64_t start;
	long sleeps;

	sleep_ns = arg_number(argc, argv, 3, 20) * 1000;
	compute_ns = arg_number(argc, argv, 4, 0) * 1000;
	need(count > 0 && count <= 1 << DEPTH, "count");
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	wait_for_start();
	start = now_ns(CLOCK_MONOTONIC);
	sleeps = sleeps_so_far();
	for (long r = 0; r < rounds; r++)
		for (long i = 0; i < count; i++)
			branch_a((unsigned int)i, 0);
	printf("walked count=%ld sleeps=%ld ns=%lld\n", count * rounds, sleeps_so_far() - sleeps,
	       (long long)(now_ns(CLOCK_MONOTONIC) - start));
	wait_for_end();
	return 0;
}
