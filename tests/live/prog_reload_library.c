/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A library that prog_reload loads: its functions are in_NAME and, exported, library_call. */
#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)
#define IN	    JOIN(in_, NAME)

int library_call(int (*callback)(int), int n);
int IN(int (*callback)(int), int n);

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
