/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/range_alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

int range_alloc_init(struct range_alloc *alloc, uint32_t first, uint32_t end)
{
	*alloc = (struct range_alloc){ 0 };
	if (array_reserve(alloc->free, alloc->free_capacity, 1))
		return -ENOMEM;
	alloc->free[0] = (struct unwind_range){ first, end - first };
	alloc->n_free = end > first;
	return 0;
}

void range_alloc_fini(struct range_alloc *alloc)
{
	free(alloc->free);
	*alloc = (struct range_alloc){ 0 };
}

static void range_remove(struct range_alloc *alloc, size_t i)
{
	alloc->n_free--;
	memmove(&alloc->free[i], &alloc->free[i + 1], (alloc->n_free - i) * sizeof(alloc->free[0]));
}

int range_alloc_take(struct range_alloc *alloc, uint32_t n, uint32_t *first_out)
{
	for (size_t i = 0; i < alloc->n_free; i++) {
		struct unwind_range *range = &alloc->free[i];

		if (range->n < n)
			continue;
		*first_out = range->first;
		range->first += n;
		range->n -= n;
		if (!range->n)
			range_remove(alloc, i);
		alloc->used += n;
		return 0;
	}
	return -ENOSPC;
}

static int range_insert(struct range_alloc *alloc, size_t i, struct unwind_range range)
{
	if (array_reserve(alloc->free, alloc->free_capacity, alloc->n_free + 1))
		return -ENOMEM;
	memmove(&alloc->free[i + 1], &alloc->free[i], (alloc->n_free - i) * sizeof(alloc->free[0]));
	alloc->free[i] = range;
	alloc->n_free++;
	return 0;
}

void range_alloc_give(struct range_alloc *alloc, uint32_t first, uint32_t n)
{
	struct unwind_range *range;
	size_t i = 0;

	while (i < alloc->n_free && alloc->free[i].first < first)
		i++;
	range = &alloc->free[i];
	if (i && range[-1].first + range[-1].n == first) {
		range[-1].n += n;
		if (i < alloc->n_free && first + n == range->first) {
			range[-1].n += range->n;
			range_remove(alloc, i);
		}
	} else if (i < alloc->n_free && first + n == range->first) {
		range->first = first;
		range->n += n;
	} else if (range_insert(alloc, i, (struct unwind_range){ first, n })) {
		return;
	}
	alloc->used -= n;
}
