/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_BASE_INTERN_H
#define STACKD_CLIENT_BASE_INTERN_H

/*
 * A set of keys, which are sequences of bytes. Each key is stored once and has a number: 0 for the
 * first one, 1 for the second, and so on. The program ends when memory runs out. Used by one thread
 * at a time.
 */

#include <stdbool.h>
#include <stddef.h>

struct intern;

struct intern *intern_new(void);
void intern_free(struct intern *set);

/*
 * Adds a copy of the key unless the set has it. Returns the number of the key. Sets *is_new_out,
 * unless it is NULL, to whether the key was added.
 */
size_t intern_add(struct intern *set, const void *key, size_t size, bool *is_new_out);

/* Stores the number of the key in *number_out. Returns false if the set does not have the key. */
bool intern_find(const struct intern *set, const void *key, size_t size, size_t *number_out);

/* Returns how many keys the set has. */
size_t intern_count(const struct intern *set);

/*
 * Returns the key with a number, and stores its size in *size_out unless that is NULL. A NUL, which
 * is not part of the key, is behind it. The key stays where it is until intern_free().
 */
const char *intern_key(const struct intern *set, size_t number, size_t *size_out);

/* Returns how many bytes of memory all keys take, without the tables of the set. */
size_t intern_bytes(const struct intern *set);

#endif
