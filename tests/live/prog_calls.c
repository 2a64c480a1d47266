// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_calls COUNT [SECONDS [RATE]]: makes calls of the kernel and of a function of its own along
 * three paths, COUNT, 2 COUNT and 3 COUNT times. call_by_read reads, call_by_write writes, and
 * call_by_pread reads at an offset; each also calls called_here, which has the static probe
 * stackd_test:here, once for each of its calls. "probe counter=N" says how many tracers use that
 * probe. Then, for SECONDS, it makes system calls as fast as it can, or RATE a second, and prints
 * how many: "flood calls=N ns=N".
 */
#include <fcntl.h>

#include "prog.h"
#include "usdt.h"

static int zero_fd, null_fd;
static unsigned short here_counter USDT_COUNTER;

static NAMED void called_here(void)
{
	USDT_COUNTED(stackd_test, here, here_counter);
}

static NAMED void call_by_read(long n)
{
	char byte;

	for (; n > 0; n--) {
		raw_syscall(SYS_read, zero_fd, (long)&byte, 1, 0);
		called_here();
	}
}

static NAMED void call_by_write(long n)
{
	char byte = 0;

	for (; n > 0; n--) {
		raw_syscall(SYS_write, null_fd, (long)&byte, 1, 0);
		called_here();
	}
}

static NAMED void call_by_pread(long n)
{
	char byte;

	for (; n > 0; n--) {
		raw_syscall(SYS_pread64, zero_fd, (long)&byte, 1, 0);
		called_here();
	}
}

/* Makes calls at a rate, in fifty bursts a second. */
static NAMED void flood(long seconds, long rate)
{
	int64_t begin = now_ns(CLOCK_MONOTONIC), end = begin + seconds * 1000000000, now;
	long n = 0, i, burst = rate ? rate / 50 : 1000;

	do {
		for (i = 0; i < burst; i++)
			raw_syscall(SYS_getppid, 0, 0, 0, 0);
		n += burst;
		now = now_ns(CLOCK_MONOTONIC);
		if (rate && now < begin + n * 1000000000 / rate)
			raw_nanosleep(begin + n * 1000000000 / rate - now);
	} while (now < end);
	printf("flood calls=%ld ns=%lld\n", n, (long long)(now - begin));
}

int main(int argc, char **argv)
{
	long count = arg_number(argc, argv, 1, 0), seconds = arg_number(argc, argv, 2, 0);

	need(argc >= 2, "COUNT [SECONDS [RATE]]");
	zero_fd = open("/dev/zero", O_RDONLY);
	null_fd = open("/dev/null", O_WRONLY);
	need(zero_fd >= 0 && null_fd >= 0, "/dev/zero and /dev/null");
	wait_for_start();
	call_by_read(count);
	call_by_write(2 * count);
	call_by_pread(3 * count);
	printf("probe counter=%d\n", *(volatile unsigned short *)&here_counter);
	if (seconds > 0)
		flood(seconds, arg_number(argc, argv, 3, 0));
	wait_for_end();
	return 0;
}
