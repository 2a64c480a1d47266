/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/key_table.h"

#include <stdlib.h>
#include <string.h>

#include "common/array.h"

void *key_table_find(const struct key_table *table, const void *key)
{
	return key_index_find(&table->index, key, key_index_hash(key, table->index.key_size));
}

/* Returns memory for one more item, which is in `items` already; NULL when out of memory. */
static void *item_new(struct key_table *table)
{
	if (!table->arena)
		table->arena = arena_new();
	if (!table->arena || array_reserve(table->items, table->capacity, table->n + 1))
		return NULL;
	table->items[table->n] = arena_alloc(table->arena, table->item_size);
	return table->items[table->n];
}

void *key_table_get(struct key_table *table, const void *key, bool *is_new_out)
{
	const size_t size = table->index.key_size;
	const uint64_t hash = key_index_hash(key, size);
	void *item = key_index_find(&table->index, key, hash);

	*is_new_out = !item;
	if (item)
		return item;
	item = item_new(table);
	if (!item)
		return NULL;
	memcpy(item, key, size);
	if (key_index_add(&table->index, item, hash))
		return NULL;
	table->n++;
	return item;
}

void key_table_fini(struct key_table *table)
{
	key_index_fini(&table->index);
	arena_free(table->arena);
	free(table->items);
	*table = (struct key_table){ .index.key_size = table->index.key_size,
				     .item_size = table->item_size };
}
