// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_execs COUNT OTHER: waits 5 ms, then execs OTHER, another copy of itself, which does the
 * same, COUNT times in all. A copy whose name ends in "odd" waits in wait_as_odd, other copies in
 * wait_as_even.
 */
#include <string.h>

#include "prog.h"

enum { WAIT_NS = 5000000 };

static NAMED void wait_as_odd(void)
{
	raw_nanosleep(WAIT_NS);
}

static NAMED void wait_as_even(void)
{
	raw_nanosleep(WAIT_NS);
}

int main(int argc, char **argv)
{
	size_t length = strlen(argv[0]);
	long count = arg_number(argc, argv, 1, 0);
	char left[24];

	need(argc == 3, "COUNT OTHER");
	if (length > 3 && !strcmp(argv[0] + length - 3, "odd"))
		wait_as_odd();
	else
		wait_as_even();
	if (count <= 1)
		return 0;
	snprintf(left, sizeof(left), "%ld", count - 1);
	execv(argv[2], (char *[]){ argv[2], left, argv[0], NULL });
	need(0, argv[2]);
	return 1;
}
