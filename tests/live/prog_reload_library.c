/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library that prog_reload loads: its functions are in_NAME and leaf_NAME, and, exported,
 * library_call and library_nap, which call them.
 */
#include <sys/syscall.h>
#include <time.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define IN	    JOIN(in_, NAME)
#define LEAF	    JOIN(leaf_, NAME)

int library_call(int (*callback)(int), int n);
int IN(int (*callback)(int), int n);
long library_nap(long us);
long LEAF(long us);

__attribute__((noinline)) int IN(int (*callback)(int), int n)
{
	volatile int local[8] = { n };

	return callback(n) + local[0];
}

int library_call(int (*callback)(int), int n)
{
	volatile int local[4] = { n };

	return IN(callback, n + 1) + local[0];
}

/* Sleeps in this function itself, so that it is the leaf of the stack. */
__attribute__((noinline)) long LEAF(long us)
{
	struct timespec ts = { .tv_nsec = us * 1000 };
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(SYS_nanosleep), "D"(&ts), "S"(0)
			 : "rcx", "r11", "memory");
	return result + 1;
}

long library_nap(long us)
{
	return LEAF(us) + 1;
}
