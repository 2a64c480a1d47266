// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_storm RATE COUNT PROGRAM...: starts COUNT processes, RATE a second, each of which executes
 * the next of the programs. Prints the pid and the program of each, and waits for all of them.
 */
#include <spawn.h>
#include <sys/wait.h>

#include "prog.h"

int main(int argc, char **argv)
{
	long rate = arg_number(argc, argv, 1, 0), count = arg_number(argc, argv, 2, 0);
	int64_t begun = now_ns(CLOCK_MONOTONIC), due;
	char *environment[] = { NULL };

	need(argc > 3 && rate > 0, "RATE COUNT PROGRAM...");
	for (long i = 0; i < count; i++) {
		char *child[] = { argv[3 + i % (argc - 3)], NULL };
		pid_t pid;

		due = begun + i * 1000000000 / rate - now_ns(CLOCK_MONOTONIC);
		if (due > 0)
			raw_nanosleep(due);
		need(posix_spawn(&pid, child[0], NULL, NULL, child, environment) == 0, child[0]);
		printf("%d %s\n", pid, child[0]);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}
