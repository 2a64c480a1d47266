// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_forker COUNT MS: forks COUNT children, four at a time; each waits MS milliseconds once and
 * exits. Prints the sum of what the children measured.
 */
#include <sys/mman.h>

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

static void child_main(int64_t ns, int64_t *sum)
{
	int64_t start = now_ns(CLOCK_MONOTONIC);

	child_wait(ns);
	__atomic_add_fetch(sum, now_ns(CLOCK_MONOTONIC) - start, __ATOMIC_RELAXED);
	_exit(0);
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 1, 100);
	int64_t ns = arg_number(argc, argv, 2, 5) * 1000000;
	int64_t *sum;
	pid_t pid;

	sum = mmap(NULL, sizeof(*sum), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(sum != MAP_FAILED, "mmap");
	wait_for_start();
	for (long done = 0; done < count; done += BATCH) {
		for (int i = 0; i < BATCH; i++) {
			pid = fork();
			need(pid >= 0, "fork");
			if (pid == 0)
				child_main(ns, sum);
		}
		for (int i = 0; i < BATCH; i++)
			parent_wait();
	}
	printf("child_wait count=%ld ns=%lld\n", count, (long long)*sum);
	wait_for_end();
	return 0;
}
