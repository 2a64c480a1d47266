/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/aggregate_lacks.h"

#include <errno.h>
#include <stdlib.h>

enum { CELLS_MIN = 1 << 12, CELLS_MAX = 1 << 17, MEMORY_PARTS = 8 };

void aggregate_lacks_init(struct aggregate_lacks *lacks, size_t max_memory)
{
	size_t room = max_memory / MEMORY_PARTS;

	*lacks = (struct aggregate_lacks){ .n = CELLS_MIN };
	while (lacks->n < CELLS_MAX && 2 * aggregate_lacks_bytes(lacks) <= room)
		lacks->n *= 2;
}

size_t aggregate_lacks_bytes(const struct aggregate_lacks *lacks)
{
	return lacks->n * sizeof(*lacks->cells);
}

int aggregate_lacks_give_up(struct aggregate_lacks *lacks, uint64_t rank)
{
	if (!lacks->cells)
		lacks->cells = calloc(lacks->n, sizeof(*lacks->cells));
	if (!lacks->cells)
		return -ENOMEM;
	if (rank > lacks->rank)
		lacks->rank = rank;
	return 0;
}

/* Returns the cell of a hash. Tables of groups use the low bits of the hash, cells the high ones.
 */
static struct aggregate_lacks_cell *cell_of(const struct aggregate_lacks *lacks, uint64_t hash)
{
	return &lacks->cells[hash >> 40 & (lacks->n - 1)];
}

void aggregate_lacks_fetch(const struct aggregate_lacks *lacks, uint64_t hash)
{
	if (lacks->cells)
		__builtin_prefetch(cell_of(lacks, hash), 1);
}

bool aggregate_lacks_is_low(const struct aggregate_lacks *lacks, uint64_t hash,
			    enum aggregate_rank rank, const struct aggregate_sums *sums)
{
	if (!lacks->cells)
		return false;
	switch (rank) {
	case AGGREGATE_BY_MAX:
		return sums->max_ns <= lacks->rank;
	case AGGREGATE_BY_COUNT:
		return cell_of(lacks, hash)->count + sums->count <= lacks->rank;
	default:
		return cell_of(lacks, hash)->ns + sums->ns <= lacks->rank;
	}
}

void aggregate_lacks_add(struct aggregate_lacks *lacks, uint64_t hash,
			 const struct aggregate_sums *sums)
{
	struct aggregate_lacks_cell *cell = cell_of(lacks, hash);

	cell->ns += sums->ns;
	cell->count += sums->count;
	if (cell->ns > lacks->bound_ns)
		lacks->bound_ns = cell->ns;
	if (cell->count > lacks->bound_count)
		lacks->bound_count = cell->count;
}

void aggregate_lacks_fini(struct aggregate_lacks *lacks)
{
	free(lacks->cells);
	*lacks = (struct aggregate_lacks){};
}
