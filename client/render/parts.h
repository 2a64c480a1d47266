/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_PARTS_H
#define STACKD_CLIENT_RENDER_PARTS_H

/*
 * The parts that the overview divides a thread's time into: on a CPU, runnable, throttled, blocked.
 * Constant.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

struct part {
	const char *name;
	int64_t (*time)(const struct wire_row *row); /* returns the row's ns that are this part */
	const char *nothing; /* printed when no row has any; NULL: the part is left out then */
	bool is_of_waits;    /* time of the rows of offcpu, not of oncpu */
};

enum { PARTS = 4 };

/* In the order in which they are shown; the first is the time on a CPU. */
extern const struct part parts[PARTS];

#endif
