// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_shares [CPU]: spends three quarters of its CPU time in one function and one quarter in
 * another, by its own CPU clock, pinned on CPU if given. After "ready" it computes until its input
 * ends; at last it prints the CPU time spent in each.
 */
#include <poll.h>
#include <sched.h>

#include "prog.h"

#define SLICE_NS 5000000

static NAMED void spin_until(int64_t end)
{
	while (now_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static NAMED int64_t three_quarters(int64_t from)
{
	spin_until(from + 3 * SLICE_NS);
	return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

static NAMED int64_t one_quarter(int64_t from)
{
	spin_until(from + SLICE_NS);
	return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

int main(int argc, char **argv)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	int64_t large = 0, small = 0, at, next;
	cpu_set_t set;

	if (argc > 1) {
		CPU_ZERO(&set);
		CPU_SET((size_t)atoi(argv[1]), &set);
		need(sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
	}
	puts("ready");
	fflush(stdout);
	at = now_ns(CLOCK_THREAD_CPUTIME_ID);
	while (poll(&in, 1, 0) == 0) {
		next = three_quarters(at);
		large += next - at;
		at = one_quarter(next);
		small += at - next;
	}
	printf("done large=%lld small=%lld\n", (long long)large, (long long)small);
	return 0;
}
