/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/process/internal.h"

/*
 * Limit of the memory of all paths, enough for some 10,000 of them. When it is reached, the paths
 * that were sent longest ago are dropped. A process whose path is not known is read from /proc.
 */
#define NAMES_BYTES_MAX (1024 * 1024)

/* A path that a BPF program has sent. */
struct process_name {
	UT_hash_handle hh; /* links the path into the hash table process_table.names */
	uint64_t id;
	size_t bytes;
	char path[];
};

static struct process_name *name_find(const struct process_table *table, uint64_t id)
{
	struct process_name *name;

	HASH_FIND(hh, table->names, &id, sizeof(id), name);
	return name;
}

static void name_drop(struct process_table *table, struct process_name *name)
{
	HASH_DELETE(hh, table->names, name);
	table->names_bytes -= name->bytes;
	free(name);
}

/*
 * Joins the n bytes of components in `text` to a path that begins with "/". In `text`, the last
 * component comes first. `path` has room for n + 2 bytes.
 */
static void path_join(const char *text, size_t n, char *path)
{
	char *at = path;

	for (size_t end = n, begin; end; end = begin) {
		begin = end - 1; /* the NUL that ends the component */
		while (begin && text[begin - 1])
			begin--;
		if (text[begin] == '/')
			continue;
		*at++ = '/';
		memcpy(at, text + begin, end - 1 - begin);
		at += end - 1 - begin;
	}
	if (at == path)
		*at++ = '/';
	*at = '\0';
}

void process_table_note_name(struct process_table *table, uint64_t id, const char *text, size_t n)
{
	size_t bytes = sizeof(struct process_name) + n + 2;
	struct process_name *name, *old;

	if (n && text[n - 1])
		return; /* the text does not end with a NUL: the BPF programs send no such record */
	name = malloc(bytes);
	if (!name)
		return;
	name->id = id;
	name->bytes = bytes;
	path_join(text, n, name->path);
	pthread_mutex_lock(&table->lock);
	old = name_find(table, id);
	if (old)
		name_drop(table, old);
	/*
	 * The hash table lists its entries in the order in which they were added: the oldest is
	 * first.
	 */
	while (table->names && table->names_bytes + bytes > NAMES_BYTES_MAX)
		name_drop(table, table->names);
	HASH_ADD(hh, table->names, id, sizeof(id), name);
	if (HASH_HAS(name))
		table->names_bytes += bytes;
	else
		free(name);
	process_table_unlock(table);
}

const char *process_name_find(const struct process_table *table, uint64_t id)
{
	const struct process_name *name = name_find(table, id);

	return name ? name->path : NULL;
}

void process_names_free(struct process_table *table)
{
	while (table->names)
		name_drop(table, table->names);
}
