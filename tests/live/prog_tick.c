// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * prog_tick: waits a millisecond in the function TICK and exits. It is built under several names,
 * with as many names of this function.
 */
#include "prog.h"

static NAMED void TICK(void)
{
	raw_nanosleep(1000000);
}

int main(void)
{
	TICK();
	return 0;
}
