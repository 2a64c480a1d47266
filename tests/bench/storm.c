// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * storm RATE SECONDS PROGRAM...: starts RATE processes a second for SECONDS, each of which executes
 * the next of the programs. A start that is late is made up for, unless it is more than a second
 * late. Prints how many were started.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void sleep_until(int64_t ns)
{
	const struct timespec until = { ns / NS_PER_S, ns % NS_PER_S };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

int main(int argc, char **argv)
{
	int64_t every, due, end;
	long n = 0, failed = 0;

	if (argc < 4) {
		fprintf(stderr, "storm RATE SECONDS PROGRAM...\n");
		return 2;
	}
	signal(SIGCHLD, SIG_IGN); /* the kernel reaps the children */
	every = NS_PER_S / atol(argv[1]);
	due = now_ns();
	end = due + atol(argv[2]) * NS_PER_S;
	for (; due < end && now_ns() < end; due += every) {
		char *child[] = { argv[3 + n % (argc - 3)], NULL };
		char *environment[] = { NULL };
		pid_t pid;

		if (now_ns() - due > NS_PER_S)
			due = now_ns();
		sleep_until(due);
		failed += posix_spawn(&pid, child[0], NULL, NULL, child, environment) != 0;
		n++;
	}
	printf("%ld\n", n - failed);
	return 0;
}
