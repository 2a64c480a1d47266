// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_fsync FILE COUNT: writes and syncs a block COUNT times; its waits for the disk are in state
 * D.
 */
#include <fcntl.h>
#include <string.h>

#include "prog.h"

static NAMED void wait_in_fsync(int fd)
{
	need(raw_syscall(SYS_fsync, fd, 0, 0, 0) == 0, "fsync");
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 2, 100);
	int64_t start, sum = 0;
	char block[4096];
	int fd;

	need(argc > 1, "a file");
	fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	need(fd >= 0, argv[1]);
	wait_for_start();
	for (long i = 0; i < count; i++) {
		memset(block, (int)i, sizeof(block));
		need(write(fd, block, sizeof(block)) == sizeof(block), "write");
		start = now_ns(CLOCK_MONOTONIC);
		wait_in_fsync(fd);
		sum += now_ns(CLOCK_MONOTONIC) - start;
	}
	printf("wait_in_fsync count=%ld ns=%lld\n", count, (long long)sum);
	wait_for_end();
	return 0;
}
