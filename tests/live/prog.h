/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_PROG_H
#define STACKD_TESTS_PROG_H

/*
 * Code that the programs of known truth share: system calls made in the calling function itself, so
 * that the chain of frame pointers is whole, and the talk with the test on stdin and stdout. A
 * program prints "ready ...", waits for a line (or the end) of stdin, does its work, prints what it
 * measured, then "done", and waits for the end of stdin.
 */

#include <errno.h>
#include <linux/futex.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Marks a function that is found in stacks by its name: it is never inlined, cloned or merged. */
#ifdef __clang__
#define NAMED __attribute__((noinline))
#else
#define NAMED __attribute__((noipa))
#endif

static inline __attribute__((always_inline)) long raw_syscall(long nr, long a, long b, long c,
							      long d)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = 0;
	register long r9 __asm__("r9") = 0;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline __attribute__((always_inline)) long raw_nanosleep(int64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	return raw_syscall(SYS_nanosleep, (long)&ts, 0, 0, 0);
}

static inline __attribute__((always_inline)) long raw_futex_wait(int *word, int expected)
{
	return raw_syscall(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, 0);
}

static inline __attribute__((always_inline)) long raw_futex_wake(int *word, int n)
{
	return raw_syscall(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, n, 0);
}

static inline int64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Ends the program with a message unless the condition holds. */
static inline void need(int condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	exit(1);
}

/* Returns the argument at i as a number, or the fallback. */
static inline long arg_number(int argc, char **argv, int i, long fallback)
{
	return i < argc ? strtol(argv[i], NULL, 10) : fallback;
}

/* Prints the word, then waits for a line of stdin. */
static __attribute__((unused)) NAMED void wait_for_line(const char *word)
{
	char c = 0;

	printf("%s pid=%d\n", word, getpid());
	fflush(stdout);
	while (c != '\n' && raw_syscall(SYS_read, 0, (long)&c, 1, 0) == 1)
		;
}

static __attribute__((unused)) NAMED void wait_for_start(void)
{
	wait_for_line("ready");
}

static __attribute__((unused)) NAMED void wait_for_end(void)
{
	char c;

	printf("done\n");
	fflush(stdout);
	while (raw_syscall(SYS_read, 0, (long)&c, 1, 0) == 1)
		;
}

#endif
