/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_ID_SET_H
#define STACKD_DAEMON_STORE_ID_SET_H

/*
 * A set of row numbers, stored as bits in pages of 4096 bits each: a million consecutive numbers
 * take 128 KiB. Used by the writer's thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_page;

struct id_set {
	struct id_page *pages;
};

/* Adds a number. Returns 0 or -ENOMEM. */
int id_set_add(struct id_set *set, int64_t id);
bool id_set_has(const struct id_set *set, int64_t id);

/* Removes all numbers and frees their memory. */
void id_set_clear(struct id_set *set);

#endif
