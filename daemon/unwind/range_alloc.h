/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_RANGE_ALLOC_H
#define STACKD_DAEMON_UNWIND_RANGE_ALLOC_H

/*
 * Gives out ranges of the members of an array, first fit. It knows indices only, not the array. The
 * caller owns it and locks.
 */

#include <stddef.h>
#include <stdint.h>

struct unwind_range {
	uint32_t first, n;
};

struct range_alloc {
	struct unwind_range *free; /* sorted; neighbours are merged */
	size_t n_free, free_capacity;
	uint32_t used;
};

/* Makes the members [first, end) free. -ENOMEM. */
int range_alloc_init(struct range_alloc *alloc, uint32_t first, uint32_t end);
void range_alloc_fini(struct range_alloc *alloc);

/* Takes n members in a row; n must not be 0. -ENOSPC where no n in a row are free. */
int range_alloc_take(struct range_alloc *alloc, uint32_t n, uint32_t *first_out);

/* Frees a range as it was taken. Without memory to record it, the range stays taken for good. */
void range_alloc_give(struct range_alloc *alloc, uint32_t first, uint32_t n);

#endif
