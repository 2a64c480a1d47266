/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_PARTS_H
#define STACKD_CLIENT_RENDER_PARTS_H

/*
 * The parts into which the overview divides the time of threads: on a CPU, runnable, throttled,
 * blocked. Constant.
 */

#include <stdbool.h>
#include <stdint.h>

#include "proto/wire.h"

struct part {
	const char *name;
	/* Returns how much of a row's time belongs to this part of the overview, in ns. */
	int64_t (*time)(const struct wire_row *row);
	/*
	 * Text to print if an answer has no time in this part. NULL: nothing is printed for the
	 * part.
	 */
	const char *nothing;
	/*
	 * Text before the words for the state of a row whose thread was blocked first and was in
	 * this part afterwards. NULL: no text.
	 */
	const char *after;
	bool is_of_waits; /* true: this time is in rows of offcpu; false: in rows of oncpu */
};

enum { PARTS = 4 };

/* The parts, in the order in which they are printed. The first is the time on a CPU. */
extern const struct part parts[PARTS];

#define PART_RUNNABLE (&parts[1])
#define PART_BLOCKED  (&parts[PARTS - 1])

/* Returns the sums of a part, or of a layer of I/O, by name. NULL: the reply has none, or is NULL.
 */
const struct wire_part *part_find(const struct wire_snapshot_reply *reply, const char *name);

#endif
