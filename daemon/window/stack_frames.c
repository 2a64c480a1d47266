/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/window/stack_internal.h"

/* Returns the size of a string with its NUL, 0 for NULL. */
static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static size_t frame_bytes(const struct frame *frame)
{
	return sizeof(struct frame_entry) + text_size(frame->name) + text_size(frame->module);
}

void stack_frame_release(struct stack_table *table, struct frame *frame)
{
	struct frame_entry *entry = (struct frame_entry *)frame;

	if (--frame->refs > 0)
		return;
	HASH_DEL(table->frames, entry);
	table->bytes -= frame_bytes(frame);
	table->frame_bytes -= frame_bytes(frame);
	code_file_unref(frame->code);
	free(entry);
}

/*
 * Makes an entry for a frame with this symbol. The strings follow it in the same block of memory,
 * because there are tens of thousands of frames, and each block takes some bytes more.
 */
static struct frame_entry *frame_entry_new(const struct frame_key *key, const struct symbol *symbol)
{
	size_t name_size = text_size(symbol->name), module_size = text_size(symbol->module);
	struct frame_entry *entry = calloc(1, sizeof(*entry) + name_size + module_size);
	char *text = (char *)(entry + 1);

	if (!entry)
		return NULL;
	entry->key = *key;
	entry->frame.kind = symbol->kind;
	entry->frame.file_id = symbol->file_id;
	entry->frame.file_offset = symbol->file_offset;
	entry->frame.name_offset = symbol->name_offset;
	entry->frame.code = code_file_ref(symbol->code);
	if (symbol->name)
		entry->frame.name = memcpy(text, symbol->name, name_size);
	if (symbol->module)
		entry->frame.module = memcpy(text + name_size, symbol->module, module_size);
	return entry;
}

static struct frame_entry *frame_add(struct stack_table *table, const struct frame_key *key,
				     const struct symbol *symbol)
{
	struct frame_entry *entry = frame_entry_new(key, symbol);

	if (!entry)
		return NULL;
	HASH_ADD(hh, table->frames, key, sizeof(*key), entry);
	if (!HASH_HAS(entry)) {
		code_file_unref(entry->frame.code);
		free(entry);
		return NULL;
	}
	table->bytes += frame_bytes(&entry->frame);
	table->frame_bytes += frame_bytes(&entry->frame);
	return entry;
}

struct frame *stack_table_frame(struct stack_table *table, const struct symbol *symbol)
{
	struct frame_key key = {
		.file_id = symbol->file_id ^ (symbol->code ? symbol->code->hash : 0),
		.file_offset = symbol->file_offset,
		.kind = symbol->kind,
		.name = symbol->name ? hash64_string(HASH64_SEED, symbol->name) : 0,
		.module = symbol->module ? hash64_string(HASH64_SEED, symbol->module) : 0,
	};
	struct frame_entry *entry;

	pthread_mutex_lock(&table->lock);
	HASH_FIND(hh, table->frames, &key, sizeof(key), entry);
	if (!entry)
		entry = frame_add(table, &key, symbol);
	if (entry)
		entry->frame.refs++;
	pthread_mutex_unlock(&table->lock);
	return entry ? &entry->frame : NULL;
}

void stack_table_ref_frame(struct stack_table *table, struct frame *frame)
{
	pthread_mutex_lock(&table->lock);
	frame->refs++;
	pthread_mutex_unlock(&table->lock);
}

void stack_table_drop_frame(struct stack_table *table, struct frame *frame)
{
	pthread_mutex_lock(&table->lock);
	stack_frame_release(table, frame);
	pthread_mutex_unlock(&table->lock);
}
