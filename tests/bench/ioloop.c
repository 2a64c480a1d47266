// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ioloop cached|direct|getppid COUNT FILE: makes COUNT reads of 4 KiB, from the cache or the disk,
 * or COUNT system calls that iolat does not record; prints the ns that each took.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, BLOCKS = 256 };

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	long count = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	int fd, is_call = argc > 1 && strcmp(argv[1], "getppid") == 0;
	int64_t start;
	void *block;

	if (argc < 4 || count < 1 || posix_memalign(&block, BLOCK, BLOCK))
		return 2;
	memset(block, 1, BLOCK);
	fd = open(argv[3], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	for (long i = 0; fd >= 0 && i < BLOCKS; i++)
		if (pwrite(fd, block, BLOCK, i * BLOCK) != BLOCK)
			return 1;
	if (fd >= 0 && strcmp(argv[1], "direct") == 0) {
		fsync(fd);
		close(fd);
		fd = open(argv[3], O_RDONLY | O_DIRECT | O_CLOEXEC);
	}
	if (fd < 0)
		return 1;
	start = now_ns();
	for (long i = 0; i < count; i++)
		if (is_call)
			syscall(SYS_getppid);
		else if (pread(fd, block, BLOCK, i % BLOCKS * BLOCK) != BLOCK)
			return 1;
	printf("%.1f\n", (double)(now_ns() - start) / (double)count);
	return 0;
}
