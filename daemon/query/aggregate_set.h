/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_AGGREGATE_SET_H
#define STACKD_DAEMON_QUERY_AGGREGATE_SET_H

/*
 * Counts distinct threads or processes in bounded memory. The count is exact up to
 * AGGREGATE_SET_MAX. Above that, the set keeps only the members whose hash has certain bits 0: half
 * of all members, a fourth, and so on. The count is then an estimate within about 1 %. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AGGREGATE_SET_MAX = 1 << 17 };

struct aggregate_set {
	/*
	 * hash table of the members' hashes; bit 0 is 1 if the member is marked; 0: the slot is
	 * free
	 */
	uint64_t *slots;
	size_t n;
	size_t capacity;    /* number of slots, a power of two */
	unsigned int shift; /* one in 2^shift members is kept */
};

/*
 * Adds a member to the set; `id` and `start` together identify it. If is_marked is true, the member
 * counts in aggregate_set_marked() from now on. Returns 0 or -ENOMEM.
 */
int aggregate_set_add(struct aggregate_set *set, uint64_t id, uint64_t start, bool is_marked);

/* The first function returns the number of all members, the second the number of marked ones. */
uint64_t aggregate_set_count(const struct aggregate_set *set);
uint64_t aggregate_set_marked(const struct aggregate_set *set);

void aggregate_set_fini(struct aggregate_set *set);

#endif
