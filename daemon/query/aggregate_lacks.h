/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_AGGREGATE_LACKS_H
#define STACKD_DAEMON_QUERY_AGGREGATE_LACKS_H

/*
 * Knows for each group of an aggregate how much its sums may lack, because waits or samples of the
 * group were added to the group of others when memory was full. Keeps sums in a fixed number of
 * cells, not one for each group: a group's cell is found by the hash of its key, and groups whose
 * hashes collide share a cell. So the sums of a cell are never less than what a group lacks, but
 * may be more. This is the filter of "Filtered Space-Saving" (Homem and Carvalho, 2010).
 *
 * As long as the cell of a group says that the group cannot be among the groups to keep, there is
 * no need to make this group. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/query/aggregate.h"

struct aggregate_lacks_cell {
	uint64_t ns;
	uint64_t count;
};

struct aggregate_lacks {
	struct aggregate_lacks_cell *cells; /* NULL as long as no group lacks anything */
	size_t n;			    /* number of cells, a power of two */
	/* the highest rank with which a group was given up */
	uint64_t rank;
	uint64_t bound_ns; /* the greatest ns of a cell; bound_count is the greatest count */
	uint64_t bound_count;
};

/* The sums of waits or samples that belong to one group. */
struct aggregate_sums {
	uint64_t ns;
	uint64_t count;
	uint64_t max_ns;
};

/* Sets the number of cells to what takes an eighth of max_memory bytes, within limits. */
void aggregate_lacks_init(struct aggregate_lacks *lacks, size_t max_memory);

/* Returns the number of bytes that the cells take once a group lacks something. */
size_t aggregate_lacks_bytes(const struct aggregate_lacks *lacks);

/*
 * Called when a group with this hash is given up, before aggregate_lacks_add(). rank is the value
 * by which groups are ranked. Returns 0 or -ENOMEM.
 */
int aggregate_lacks_give_up(struct aggregate_lacks *lacks, uint64_t rank);

/*
 * True if a group that does not exist, and to which `sums` is to be added, would have at most the
 * rank of groups that were given up already.
 */
bool aggregate_lacks_is_low(const struct aggregate_lacks *lacks, uint64_t hash,
			    enum aggregate_rank rank, const struct aggregate_sums *sums);

/* Makes the CPU load the cell of a hash into its cache, for a call that follows soon. */
void aggregate_lacks_fetch(const struct aggregate_lacks *lacks, uint64_t hash);

/* Notes that the group with this hash lacks `sums`, too. Some group must have been given up. */
void aggregate_lacks_add(struct aggregate_lacks *lacks, uint64_t hash,
			 const struct aggregate_sums *sums);

void aggregate_lacks_fini(struct aggregate_lacks *lacks);

#endif
