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

struct range_alloc {
	struct unwind_range *free; /* sorted, never touching */
	size_t n_free, allocated;
	uint32_t used;
};

/* Members [first, end) are free. -ENOMEM. */
int range_alloc_init(struct range_alloc *space, uint32_t first, uint32_t end);
void range_alloc_fini(struct range_alloc *space);

/* -ENOSPC when no n in a row are free. n must not be 0. */
int range_alloc_take(struct range_alloc *space, uint32_t n, uint32_t *first_out);

/* Gives back what was taken, whole. Without memory to note it they stay taken. */
void range_alloc_give(struct range_alloc *space, uint32_t first, uint32_t n);

#endif
