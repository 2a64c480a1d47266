// SPDX-License-Identifier: GPL-2.0-or-later
/* prog_shortlived MS [PROGRAM ARGS...]: waits MS milliseconds, then execs PROGRAM or exits. */
#include "prog.h"

static NAMED void short_wait(int64_t ns)
{
	raw_nanosleep(ns);
}

int main(int argc, char **argv)
{
	short_wait(arg_number(argc, argv, 1, 50) * 1000000);
	if (argc > 2) {
		execv(argv[2], argv + 2);
		need(0, argv[2]);
	}
	return 0;
}
