/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "daemon/window/builder_ops.h"

/* If the rows of a window take more memory than this, in bytes, it is freed after the window. */
enum { ROWS_KEPT = 64 * 1024 };

int window_builder_new(const struct window_builder_ops *ops,
		       const struct window_builder_options *options, struct window_builder **out)
{
	struct window_builder *builder = calloc(1, ops->size);

	if (!builder)
		return -ENOMEM;
	builder->ops = ops;
	builder->options = *options;
	builder->images.processes = options->processes;
	*out = builder;
	return 0;
}

struct window_builder *window_builder_free(struct window_builder *builder)
{
	if (!builder)
		return NULL;
	if (builder->ops->fini)
		builder->ops->fini(builder);
	free(builder->rows);
	free(builder);
	return NULL;
}

size_t window_builder_key_size(const struct window_builder *builder)
{
	return builder->ops->key_size;
}

size_t window_builder_value_size(const struct window_builder *builder)
{
	return builder->ops->value_size;
}

void window_builder_add_record(struct window_builder *builder, const struct record_head *record)
{
	if (builder->ops->add_record)
		builder->ops->add_record(builder, record);
}

void window_builder_begin(struct window_builder *builder, int64_t start_ns, int64_t end_ns,
			  uint32_t epoch)
{
	builder->start_ns = start_ns;
	builder->end_ns = end_ns;
	builder->epoch = epoch;
}

void window_builder_add_thread(struct window_builder *builder, const struct thread *thread)
{
	if (builder->ops->add_thread)
		builder->ops->add_thread(builder, thread);
}

static size_t row_size(const struct window_builder *builder)
{
	return builder->ops->key_size + builder->ops->value_size;
}

/*
 * Copies an entry of the BPF map. window_builder_finish() puts the copy into the window later, when
 * all stacks that the entry refers to have arrived through the ring buffer.
 */
void window_builder_add(struct window_builder *builder, const void *key, const void *value)
{
	const size_t size = row_size(builder);
	char *row;

	if (array_grow((void **)&builder->rows, &builder->capacity, builder->n + 1, size)) {
		builder->dropped += builder->ops->count(value);
		return;
	}
	row = builder->rows + builder->n++ * size;
	memcpy(row, key, builder->ops->key_size);
	memcpy(row + builder->ops->key_size, value, builder->ops->value_size);
}

/*
 * Removes all rows. Frees their memory if it is large: few windows have many rows, and this memory
 * is used only for a moment at the end of each window.
 */
static void rows_clear(struct window_builder *builder)
{
	builder->n = 0;
	if (builder->capacity * row_size(builder) <= ROWS_KEPT)
		return;
	free(builder->rows);
	builder->rows = NULL;
	builder->capacity = 0;
}

struct window *window_builder_finish(struct window_builder *builder)
{
	const struct window_builder_ops *ops = builder->ops;
	struct window *window = window_new();
	const char *row;
	size_t i;

	if (!window)
		return NULL;
	builder->window = window;
	window->kind = builder->options.kind;
	window->start_ns = builder->start_ns;
	window->end_ns = builder->end_ns;
	if (ops->before_rows)
		ops->before_rows(builder);
	for (i = 0; i < builder->n; i++) {
		row = builder->rows + i * row_size(builder);
		if (ops->put_row(builder, row, row + ops->key_size))
			builder->dropped += ops->count(row + ops->key_size);
	}
	if (ops->after_rows)
		ops->after_rows(builder);
	image_cache_clear(&builder->images);
	window->lost[WINDOW_LOST_MEMORY] = builder->dropped;
	rows_clear(builder);
	builder->dropped = 0;
	builder->window = NULL;
	return window;
}
