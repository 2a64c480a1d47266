// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_change COUNT STEADY_MS CHANGED_MS [LOCK]: sleeps COUNT times STEADY_MS milliseconds in one
 * function and COUNT times CHANGED_MS in another one. With the fourth argument, it also waits COUNT
 * times for a futex until the time CHANGED_MS is over, in a third function.
 */
#include <linux/futex.h>

#include "prog.h"

static int word;

static NAMED void steady_sleep(int64_t ns)
{
	raw_nanosleep(ns);
}

static NAMED void changed_sleep(int64_t ns)
{
	raw_nanosleep(ns);
}

static NAMED void added_lock(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	raw_syscall(SYS_futex, (long)&word, FUTEX_WAIT_PRIVATE, 0, (long)&ts);
}

/* Prints how long the calls took, and how much of that the thread was on a CPU. */
static NAMED void run(const char *name, void (*function)(int64_t), long count, int64_t ns)
{
	int64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID), start = now_ns(CLOCK_MONOTONIC);

	for (long i = 0; i < count; i++)
		function(ns);
	start = now_ns(CLOCK_MONOTONIC) - start;
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("%s ns=%lld cpu_ns=%lld\n", name, (long long)start, (long long)cpu);
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 1, 10);
	int64_t steady = arg_number(argc, argv, 2, 50) * 1000000;
	int64_t changed = arg_number(argc, argv, 3, 50) * 1000000;

	wait_for_start();
	run("steady_sleep", steady_sleep, count, steady);
	run("changed_sleep", changed_sleep, count, changed);
	if (argc > 4)
		run("added_lock", added_lock, count, changed / 2);
	wait_for_end();
	return 0;
}
