/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_RANGE_ALLOC_H
#define STACKD_DAEMON_UNWIND_RANGE_ALLOC_H

/*
 * Allocates ranges of the indices of an array, first fit. Does not access the array itself. The
 * caller owns the allocator and locks it.
 */

#include <stddef.h>
#include <stdint.h>

struct unwind_range {
	uint32_t first, n;
};

struct range_alloc {
	struct unwind_range *free; /* sorted by index; adjacent ranges are merged */
	size_t n_free, free_capacity;
	uint32_t used; /* number of indices that are allocated */
};

/*
 * Makes an allocator of the indices from `first` to `end` - 1, all of them free. Returns 0 or
 * -ENOMEM.
 */
int range_alloc_init(struct range_alloc *alloc, uint32_t first, uint32_t end);
void range_alloc_fini(struct range_alloc *alloc);

/* Allocates n adjacent indices; n must not be 0. Returns 0, or -ENOSPC if no n adjacent indices are
 * free. */
int range_alloc_take(struct range_alloc *alloc, uint32_t n, uint32_t *first_out);

/*
 * Frees n adjacent indices beginning with `first`, which must all be allocated. When out of memory,
 * they stay allocated for good.
 */
void range_alloc_give(struct range_alloc *alloc, uint32_t first, uint32_t n);

#endif
