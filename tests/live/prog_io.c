// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_io FILE COUNT [KIND [FACTOR]]: makes exactly COUNT operations of each kind, or of that one,
 * and prints the time of each kind as the program measures it. It makes FACTOR times as many reads
 * from the cache (8 by default).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "prog.h"

enum { BLOCK = 4096, CACHED = 8 };

static char *block;
static long count;
static const char *only;

static NAMED void say(const char *word, long n, int64_t ns)
{
	printf("%s count=%ld ns=%lld\n", word, n, (long long)ns);
}

static NAMED void run(const char *word, long nr, int fd, long n)
{
	int64_t start = now_ns(CLOCK_MONOTONIC);

	if (only && strcmp(only, word) != 0)
		return;
	for (long i = 0; i < n; i++)
		need(raw_syscall(nr, fd, (long)block, BLOCK, i % count * BLOCK) >= 0, word);
	say(word, n, now_ns(CLOCK_MONOTONIC) - start);
}

int main(int argc, char **argv)
{
	int flags[] = { O_RDWR | O_CREAT | O_TRUNC, O_RDWR | O_DIRECT, O_RDWR | O_SYNC }, fds[3];
	void *memory;
	long factor;

	need(argc > 1, "a file");
	count = arg_number(argc, argv, 2, 100);
	need(posix_memalign(&memory, BLOCK, BLOCK) == 0, "memory");
	block = memory;
	memset(block, 1, BLOCK);
	for (int i = 0; i < 3; i++) {
		fds[i] = open(argv[1], flags[i] | O_CLOEXEC, 0600);
		need(fds[i] >= 0, argv[1]);
	}
	run("fill", SYS_pwrite64, fds[0], count);
	only = argc > 3 ? argv[3] : NULL;
	factor = arg_number(argc, argv, 4, CACHED);
	need(fsync(fds[0]) == 0, "fsync");
	wait_for_start();
	run("direct_read", SYS_pread64, fds[1], count);
	run("direct_write", SYS_pwrite64, fds[1], count);
	for (int i = 0; i < 2; i++)
		run(i ? "cached_read" : "warm", SYS_pread64, fds[0], i ? factor * count : count);
	run("sync_write", SYS_pwrite64, fds[2], count);
	run("fdatasync", SYS_fdatasync, fds[0], count);
	wait_for_end();
	return 0;
}
