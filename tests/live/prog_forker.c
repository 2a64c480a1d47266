// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_forker COUNT MS: forks COUNT children, four at a time; each waits MS milliseconds once and
 * exits. Prints the sum of what the children measured, and how many of them the kernel switched out
 * for the wait: a child that got no CPU for that long does not have to wait any more.
 */
#include <sys/mman.h>
#include <sys/resource.h>

#include "prog.h"

enum { BATCH = 4 };

static NAMED void child_wait(int64_t ns)
{
	raw_nanosleep(ns);
}

static NAMED void parent_wait(void)
{
	need(raw_syscall(SYS_wait4, -1, 0, 0, 0) > 0, "wait4");
}

struct sums {
	int64_t ns;
	int64_t switches;
};

static int64_t voluntary_switches(void)
{
	struct rusage usage;

	need(getrusage(RUSAGE_THREAD, &usage) == 0, "getrusage");
	return usage.ru_nvcsw;
}

static void child_main(int64_t ns, struct sums *sums)
{
	int64_t switches = voluntary_switches(), start = now_ns(CLOCK_MONOTONIC);

	child_wait(ns);
	__atomic_add_fetch(&sums->ns, now_ns(CLOCK_MONOTONIC) - start, __ATOMIC_RELAXED);
	__atomic_add_fetch(&sums->switches, voluntary_switches() - switches, __ATOMIC_RELAXED);
	_exit(0);
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 1, 100);
	int64_t ns = arg_number(argc, argv, 2, 5) * 1000000;
	struct sums *sums;
	pid_t pid;

	sums = mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(sums != MAP_FAILED, "mmap");
	wait_for_start();
	for (long done = 0; done < count; done += BATCH) {
		for (int i = 0; i < BATCH; i++) {
			pid = fork();
			need(pid >= 0, "fork");
			if (pid == 0)
				child_main(ns, sums);
		}
		for (int i = 0; i < BATCH; i++)
			parent_wait();
	}
	printf("child_wait count=%ld ns=%lld switches=%lld\n", count, (long long)sums->ns,
	       (long long)sums->switches);
	wait_for_end();
	return 0;
}
