/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_PATH_H
#define STACKD_CLIENT_RENDER_PATH_H

/*
 * The frames of a row as one list, for formats that draw flame graphs: the name of the process, the
 * user frames, the kernel frames, and so on, each with its name as text. Borrows rows. The program
 * ends when memory runs out. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/render/render.h"
#include "proto/wire.h"

struct path_frame {
	char *name;	      /* escaped, valid UTF-8, not empty */
	const char *module;   /* the file that has the function; NULL: not known */
	const char *file;     /* source file; NULL: not known */
	int64_t line;	      /* line of the source; WIRE_ABSENT: not known */
	const char *build_id; /* of the module; NULL: not known */
	int64_t file_offset;  /* position in the module; WIRE_ABSENT: not known */
	bool is_kernel;
};

/* Initialised with zeroes. */
struct path {
	struct path_frame *v; /* the outermost function first */
	size_t n, capacity;
};

/* The parts of a path besides the user frames and the kernel frames. */
enum path_parts {
	PATH_COMM = 1 << 0,  /* first, the name of the process or what else the row stands for */
	PATH_WAKER = 1 << 1, /* at the end, what woke the thread, as in folded stacks */
	PATH_IDS = 1 << 2,   /* with PATH_COMM: the id of the thread, or of the process */
	/* with PATH_COMM: one name for threads whose names differ in digits only, but with ids */
	PATH_POOL = 1 << 3,
	/*
	 * A stack that is missing has one name, whatever the reason is, and so have short waits,
	 * up to whichever length that was.
	 */
	PATH_NO_REASONS = 1 << 4,
	/*
	 * Kernel stacks without the functions of the scheduler at the leaf, which a wait has only
	 * once it has ended: for comparing ranges.
	 */
	PATH_NO_SCHEDULER = 1 << 6,
	/* Not the stacks, but what rows by line have instead; the name only with PATH_COMM. */
	PATH_LINE = 1 << 5,
};

/*
 * Fills the path of a row, in place of what it held. A row of iolat has its layer, its operation
 * and its device first. If there is no frame at all, the path is the name of the row.
 *
 * With PATH_LINE, it is the name first, then what the threads wait for, then the program's function
 * or who woke them; of iolat, the name, the operation and the device. What a row has none of is
 * left out.
 */
void path_fill(struct path *path, const struct view *view, const struct wire_row *row,
	       unsigned parts);

void path_fini(struct path *path);

#endif
