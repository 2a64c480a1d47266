/* SPDX-License-Identifier: GPL-2.0-or-later */
/* prog_lines: sleeps for an hour below functions that are inlined into each other. */

#include "prog.h"

static volatile int sink;

static inline __attribute__((always_inline)) int inner(int n)
{
	usleep(3600u * 1000000u); /* line: inner */
	return n + sink;
}

static inline __attribute__((always_inline)) int middle(int n)
{
	int r = inner(n + 1); /* line: middle */

	return r + sink;
}

NAMED int outer(int n)
{
	int r = middle(n + 1); /* line: outer */

	return r + sink;
}

int main(void)
{
	printf("ready\n");
	fflush(stdout);
	sink = outer(0); /* line: main */
	return 0;
}
