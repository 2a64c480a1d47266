// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_crowd COUNT: has COUNT children at the same time, each of which waits 2 ms, reports that,
 * and then waits until the parent ends.
 */
#include "prog.h"

static NAMED void crowd_wait(void)
{
	raw_nanosleep(2000000);
}

static void child_main(int said, int end)
{
	char c = 0;

	crowd_wait();
	need(write(said, &c, 1) == 1, "write");
	while (read(end, &c, 1) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 1, 100);
	int said[2], end[2];
	char c;

	need(!pipe(said) && !pipe(end), "pipe");
	wait_for_start();
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		need(pid >= 0, "fork");
		if (!pid) {
			close(end[1]);
			child_main(said[1], end[0]);
		}
	}
	for (long i = 0; i < count; i++)
		need(read(said[0], &c, 1) == 1, "read");
	wait_for_end();
	close(end[1]);
	return 0;
}
