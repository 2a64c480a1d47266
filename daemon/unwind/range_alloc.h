/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_RANGE_ALLOC_H
#define STACKD_DAEMON_UNWIND_RANGE_ALLOC_H

/*
 * Room in an array: in goes how many members are wanted, out comes where they are. Owned by the
 * caller, who locks.
 */

#include <stddef.h>
#include <stdint.h>

struct unwind_range {
	uint32_t first, n;
};

struct unwind_space {
	struct unwind_range *free; /* sorted, never touching */
	size_t n_free, allocated;
	uint32_t used;
};

/* Members [first, end) are free. -ENOMEM. */
int unwind_space_init(struct unwind_space *space, uint32_t first, uint32_t end);
void unwind_space_fini(struct unwind_space *space);

/* -ENOSPC when no n in a row are free. n must not be 0. */
int unwind_space_take(struct unwind_space *space, uint32_t n, uint32_t *first_out);

/* Gives back what was taken, whole. Without memory to note it they stay taken. */
void unwind_space_give(struct unwind_space *space, uint32_t first, uint32_t n);

#endif
