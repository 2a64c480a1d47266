/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BASE_KEY_TABLE_H
#define STACKD_DAEMON_BASE_KEY_TABLE_H

/*
 * A table of structs of one kind, each of which begins with its key and is made when its key is
 * asked for. The table owns them. They stay in the order in which they were made, and where they
 * are. One thread.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/arena.h"
#include "daemon/base/key_index.h"

struct key_table {
	struct key_index index; /* the caller sets key_size, which is not 0 */
	size_t item_size;	/* set by the caller */
	void **items;		/* all items, in the order in which they were made */
	size_t n, capacity;
	struct arena *arena;
};

/* A table of structs of this type, whose key is its member `key`. */
#define KEY_TABLE(type)                                                               \
	{                                                                             \
		.index.key_size = sizeof(((type *)0)->key), .item_size = sizeof(type) \
	}

/* Returns the item with this key; NULL if there is none. */
void *key_table_find(const struct key_table *table, const void *key);

/*
 * Returns the item with this key. Makes it if there is none: then all members but the key are 0,
 * and *is_new_out is true. NULL when out of memory.
 */
void *key_table_get(struct key_table *table, const void *key, bool *is_new_out);

/* Frees all items. */
void key_table_fini(struct key_table *table);

#endif
