/* SPDX-License-Identifier: GPL-2.0-or-later */
/* prog_lines: sleeps for an hour below functions that are inlined into each other. */

#include "prog.h"

struct mark {
	const char *name;
	int line;
};

extern const struct mark __start_marks[], __stop_marks[];

/* Records the number of the line below it. */
#define MARK(function)                           \
	static const struct mark mark_##function \
		__attribute__((used, section("marks"))) = { #function, __LINE__ + 1 }

static volatile int sink;

static inline __attribute__((always_inline)) int inner(int n)
{
	MARK(inner);
	usleep(3600u * 1000000u);
	return n + sink;
}

static inline __attribute__((always_inline)) int middle(int n)
{
	MARK(middle);
	int r = inner(n + 1);

	return r + sink;
}

NAMED int outer(int n)
{
	MARK(outer);
	int r = middle(n + 1);

	return r + sink;
}

int main(void)
{
	printf("ready");
	for (const struct mark *mark = __start_marks; mark < __stop_marks; mark++)
		printf(" %s=%d", mark->name, mark->line);
	printf("\n");
	fflush(stdout);
	MARK(main);
	sink = outer(0);
	return 0;
}
