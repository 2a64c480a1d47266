/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_AGGREGATE_SET_H
#define STACKD_DAEMON_QUERY_AGGREGATE_SET_H

/*
 * Counts distinct threads or processes in bounded memory. The count is exact up to
 * AGGREGATE_SET_MAX. Beyond that, the set keeps every second, fourth, ... of them, chosen by the
 * hash, and the count is an estimate within about 1 %. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { AGGREGATE_SET_MAX = 1 << 17 };

struct aggregate_set {
	uint64_t *slots; /* hashes, with the mark in bit 0; 0: the slot is free */
	size_t n;
	size_t capacity;    /* a power of two */
	unsigned int shift; /* one in 2^shift members is kept */
};

/* Adds a member, given by two numbers that identify it. Returns 0 or -ENOMEM. */
int aggregate_set_add(struct aggregate_set *set, uint64_t id, uint64_t start, bool is_marked);

/* Returns the number of members, and of those among them that were ever added as marked. */
uint64_t aggregate_set_count(const struct aggregate_set *set);
uint64_t aggregate_set_marked(const struct aggregate_set *set);

void aggregate_set_fini(struct aggregate_set *set);

#endif
