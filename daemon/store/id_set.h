/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_ID_SET_H
#define STACKD_DAEMON_STORE_ID_SET_H

/*
 * A set of row numbers. For each of them, the set says which tiers use the row: bit i stands for
 * tier i. The bits are stored in pages of 4096 numbers each: a million consecutive numbers take
 * 512 KiB. Used by the writer's thread only.
 */

#include <stdbool.h>
#include <stdint.h>

struct id_page;

struct id_set {
	struct id_page *pages;
};

/* The number of tiers that a set can tell apart. */
enum { ID_SET_TIERS = 4 };

/*
 * Adds a number, or adds tiers to a number that is in the set. `tiers` must not be 0. Returns 0 or
 * -ENOMEM.
 */
int id_set_add(struct id_set *set, int64_t id, unsigned int tiers);

/* Returns the tiers of a number; 0 if it is not in the set. */
unsigned int id_set_tiers(const struct id_set *set, int64_t id);
bool id_set_has(const struct id_set *set, int64_t id);

/* Removes all numbers and frees their memory. */
void id_set_clear(struct id_set *set);

#endif
