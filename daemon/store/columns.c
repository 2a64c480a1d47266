/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "common/hash_table.h"

enum column_kind {
	COLUMN_U64,
	COLUMN_UID, /* window_image.uid; 0 for a folded entry, see store_images_complete() */
	COLUMN_U32,
	COLUMN_DELTA, /* an int32_t, written as the difference from the previous member of the array
		       */
	COLUMN_I32,
	COLUMN_TIME, /* an int64_t, in ns of CLOCK_MONOTONIC; INT64_MAX stands for never */
	COLUMN_COMM,
	COLUMN_IMAGE, /* a uint32_t: an index into window->images */
	COLUMN_STACK,
	COLUMN_PROCESS,
};

struct store_column {
	enum column_kind kind;
	size_t offset;
};

struct store_table_entry {
	const void *item;
	size_t place; /* 1 plus the index of the item in store_table.items */
	UT_hash_handle hh;
};

#define COLUMN(type, kind, member)                    \
	{                                             \
		COLUMN_##kind, offsetof(type, member) \
	}

static const struct store_column image_columns[] = {
	COLUMN(struct window_image, UID, uid),
	COLUMN(struct window_image, U64, start_boot_ns),
	COLUMN(struct window_image, PROCESS, process),
	COLUMN(struct window_image, I32, tid),
	COLUMN(struct window_image, U32, exec_gen),
	COLUMN(struct window_image, COMM, comm),
	COLUMN(struct window_image, U64, sums.on_ns),
	COLUMN(struct window_image, U64, sums.blocked_ns),
	COLUMN(struct window_image, U64, sums.runnable_ns),
	COLUMN(struct window_image, U64, sums.switches),
	COLUMN(struct window_image, U64, sums.short_count),
	COLUMN(struct window_image, U64, sums.short_blocked_ns),
	COLUMN(struct window_image, U64, sums.short_runnable_ns),
	COLUMN(struct window_image, U64, sums.throttled_ns),
	COLUMN(struct window_image, U32, folded),
	COLUMN(struct window_image, U32, started),
	COLUMN(struct window_image, U64, estimate.count),
	COLUMN(struct window_image, U64, estimate.blocked_ns),
	COLUMN(struct window_image, U64, estimate.runnable_ns),
};

#define CULPRIT_COLUMNS(type, culprit)                                  \
	COLUMN(type, U64, culprit.ns), COLUMN(type, U32, culprit.tgid), \
		COLUMN(type, U32, culprit.tid), COLUMN(type, COMM, culprit.comm)

#define MEASURE_COLUMN(member) COLUMN(struct window_row, U64, member),

static const struct store_column row_columns[] = {
	COLUMN(struct window_row, IMAGE, image),
	COLUMN(struct window_row, STACK, kernel),
	COLUMN(struct window_row, STACK, user),
	COLUMN(struct window_row, U32, state),
	COLUMN(struct window_row, U64, max_ns),
	COLUMN(struct window_row, TIME, max_end_ns),
	COLUMN(struct window_row, U32, bucket_mask),
	COLUMN(struct window_row, U32, processes),
	COLUMN(struct window_row, U32, started),
	WAIT_MEASURES(MEASURE_COLUMN) CULPRIT_COLUMNS(struct window_row, culprits.ran_before),
	CULPRIT_COLUMNS(struct window_row, culprits.held_up_by),
};

static const struct store_column span_columns[] = {
	COLUMN(struct window_span, IMAGE, image),
	COLUMN(struct window_span, STACK, kernel),
	COLUMN(struct window_span, STACK, user),
	COLUMN(struct window_span, U32, state),
	COLUMN(struct window_span, TIME, start_ns),
	COLUMN(struct window_span, TIME, wake_ns),
	COLUMN(struct window_span, TIME, end_ns),
	COLUMN(struct window_span, U64, throttled_ns),
	CULPRIT_COLUMNS(struct window_span, culprits.ran_before),
	CULPRIT_COLUMNS(struct window_span, culprits.held_up_by),
};

static const struct store_column open_columns[] = {
	COLUMN(struct window_open, IMAGE, image),
	COLUMN(struct window_open, STACK, kernel),
	COLUMN(struct window_open, STACK, user),
	COLUMN(struct window_open, U32, state),
	COLUMN(struct window_open, TIME, start_ns),
	COLUMN(struct window_open, TIME, wake_ns),
	COLUMN(struct window_open, U64, throttled_ns),
	COLUMN(struct window_open, U64, whole_ns),
	COLUMN(struct window_open, U64, whole_runnable_ns),
	COLUMN(struct window_open, U32, count),
	COLUMN(struct window_open, U32, processes),
	COLUMN(struct window_open, U32, started),
};

static const struct store_column sample_columns[] = {
	COLUMN(struct window_sample, IMAGE, image), COLUMN(struct window_sample, STACK, kernel),
	COLUMN(struct window_sample, STACK, user),  COLUMN(struct window_sample, U64, count),
	COLUMN(struct window_sample, U64, on_ns),   COLUMN(struct window_sample, U32, processes),
	COLUMN(struct window_sample, U32, started),
};

#define LINK_COLUMNS(i)                                         \
	COLUMN(struct window_waker, U32, links[i].context),     \
		COLUMN(struct window_waker, I32, links[i].pid), \
		COLUMN(struct window_waker, I32, links[i].tid), \
		COLUMN(struct window_waker, COMM, links[i].comm)

_Static_assert(WAKE_LINKS == 5, "each link has its columns");

static const struct store_column waker_columns[] = {
	COLUMN(struct window_waker, STACK, kernel),
	COLUMN(struct window_waker, STACK, user),
	LINK_COLUMNS(0),
	LINK_COLUMNS(1),
	LINK_COLUMNS(2),
	LINK_COLUMNS(3),
	LINK_COLUMNS(4),
};

static const struct store_column io_columns[] = {
	COLUMN(struct window_io, IMAGE, image),	    COLUMN(struct window_io, STACK, kernel),
	COLUMN(struct window_io, STACK, user),	    COLUMN(struct window_io, U32, layer),
	COLUMN(struct window_io, U32, op),	    COLUMN(struct window_io, U32, call),
	COLUMN(struct window_io, U32, dev),	    COLUMN(struct window_io, U32, magic),
	COLUMN(struct window_io, COMM, device),	    COLUMN(struct window_io, U32, is_slow),
	COLUMN(struct window_io, U64, count),	    COLUMN(struct window_io, U64, total_ns),
	COLUMN(struct window_io, U64, own_ns),	    COLUMN(struct window_io, U64, runnable_ns),
	COLUMN(struct window_io, U64, asleep_ns),   COLUMN(struct window_io, U64, device_ns),
	COLUMN(struct window_io, U64, queue_ns),    COLUMN(struct window_io, U64, throttled_ns),
	COLUMN(struct window_io, U64, async),	    COLUMN(struct window_io, U64, errors),
	COLUMN(struct window_io, U64, bytes),	    COLUMN(struct window_io, U64, merges),
	COLUMN(struct window_io, U64, requeues),    COLUMN(struct window_io, U64, max_ns),
	COLUMN(struct window_io, TIME, max_end_ns), COLUMN(struct window_io, I32, max_tid),
	COLUMN(struct window_io, U64, bucket_mask), COLUMN(struct window_io, U64, open),
	COLUMN(struct window_io, U64, oldest_ns),   COLUMN(struct window_io, I32, oldest_tid),
	COLUMN(struct window_io, U32, processes),   COLUMN(struct window_io, U32, started),
};

_Static_assert(WINDOW_DEVICE_LEN == COMM_LEN, "a device's name has the columns of a comm");

static const struct store_column io_bucket_columns[] = { { COLUMN_U64, 0 } };

static const struct store_column bucket_columns[] = { { COLUMN_U32, 0 } };

static const struct store_column member_columns[] = {
	COLUMN(struct window_member, IMAGE, image),
	COLUMN(struct window_member, DELTA, pid),
};

/* Makes one member of store_sections. */
#define SECTION(tag, array, columns)                                                       \
	{                                                                                  \
		tag, sizeof(*((struct window *)0)->array), offsetof(struct window, array), \
			offsetof(struct window, n_##array), columns, ARRAY_SIZE(columns),  \
	}

/* All sections, each with its tag. The other tags are in window_blob.c. */
const struct store_section store_sections[] = {
	SECTION(4, images, image_columns),
	SECTION(5, rows, row_columns),
	SECTION(6, buckets, bucket_columns),
	SECTION(7, spans, span_columns),
	SECTION(8, opens, open_columns),
	SECTION(9, samples, sample_columns),
	SECTION(10, wakers, waker_columns), /* there is a waker for each row, or none at all */
	SECTION(11, members, member_columns),
	SECTION(20, ios, io_columns),
	SECTION(21, io_buckets, io_bucket_columns),
	{},
};

void store_table_fini(struct store_table *table)
{
	struct store_table_entry *entry, *next;

	HASH_ITER (hh, table->entries, entry, next) {
		HASH_DEL(table->entries, entry);
		free(entry);
	}
	free(table->items);
	*table = (struct store_table){};
}

static struct store_table_entry *table_add(struct store_table *table, void *item)
{
	struct store_table_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	if (array_reserve(table->items, table->capacity, table->n + 1)) {
		free(entry);
		return NULL;
	}
	entry->item = item;
	entry->place = table->n + 1;
	HASH_ADD_PTR(table->entries, item, entry);
	if (!HASH_HAS(entry)) {
		free(entry);
		return NULL;
	}
	table->items[table->n++] = item;
	return entry;
}

/*
 * Returns 1 plus the index of `item` in the table; adds the item if it is new. Returns 0 if `item`
 * is NULL.
 */
static uint64_t table_place(struct store_column_context *context, struct store_table *table,
			    void *item)
{
	struct store_table_entry *entry;

	if (!item)
		return 0;
	HASH_FIND_PTR(table->entries, &item, entry);
	if (!entry)
		entry = table_add(table, item);
	if (!entry)
		context->error = -ENOMEM;
	return entry ? entry->place : 0;
}

/*
 * Writes a time. For INT64_MAX (never), writes the number 0. For any other time, writes two
 * numbers: 1, then the time since the window's start, which is usually small and takes few bytes.
 */
static void time_encode(const struct window *window, int64_t time, struct bytes *out)
{
	uint64_t delta = (uint64_t)time - (uint64_t)window->start_ns;

	bytes_put_u64(out, time != INT64_MAX);
	if (time != INT64_MAX)
		bytes_put_i64(out, (int64_t)delta);
}

/*
 * Returns the number to write for a window_image.uid; `member` points to it. The uid of a folded
 * entry is a hash, of which each byte would take space.
 */
static uint64_t uid_number(const void *member)
{
	const struct window_image *image =
		(const void *)((const char *)member - offsetof(struct window_image, uid));

	return image->folded && image->uid == window_folded_uid(image) ? 0 : image->uid;
}

void store_images_complete(struct window *window)
{
	size_t i;

	for (i = 0; i < window->n_images; i++)
		if (!window->images[i].uid && window->images[i].folded)
			window->images[i].uid = window_folded_uid(&window->images[i]);
}

static void member_encode(struct store_column_context *context, enum column_kind kind,
			  const void *member, struct bytes *out)
{
	char comm[COMM_LEN + 1] = "";

	switch (kind) {
	case COLUMN_U64:
		bytes_put_u64(out, *(const uint64_t *)member);
		break;
	case COLUMN_UID:
		bytes_put_u64(out, uid_number(member));
		break;
	case COLUMN_U32:
	case COLUMN_IMAGE:
		bytes_put_u64(out, *(const uint32_t *)member);
		break;
	case COLUMN_I32:
		bytes_put_i64(out, *(const int32_t *)member);
		break;
	case COLUMN_DELTA:
		bytes_put_i64(out, *(const int32_t *)member - context->last);
		context->last = *(const int32_t *)member;
		break;
	case COLUMN_TIME:
		time_encode(context->window, *(const int64_t *)member, out);
		break;
	case COLUMN_COMM:
		memcpy(comm, member, COMM_LEN);
		bytes_put_string(out, comm);
		break;
	case COLUMN_STACK:
		bytes_put_u64(out, table_place(context, &context->stacks,
					       *(struct stack *const *)member));
		break;
	case COLUMN_PROCESS:
		bytes_put_u64(out, table_place(context, &context->processes,
					       *(struct process *const *)member));
		break;
	}
}

static void cut_add(struct store_cuts *cuts, size_t at, size_t *last)
{
	if (cuts->n == STORE_CUTS_MAX || at - *last < STORE_CUT_BYTES)
		return;
	cuts->at[cuts->n++] = *last = at;
}

void store_columns_encode(struct store_column_context *context, const struct store_section *section,
			  struct bytes *out)
{
	const char *base = (const char *)context->window;
	const char *members = *(char *const *)(base + section->array);
	size_t n = *(const size_t *)(base + section->n), i, column, last = out->n;

	bytes_put_u64(out, n);
	for (column = 0; column < section->n_columns; column++) {
		context->last = 0;
		for (i = 0; i < n; i++)
			member_encode(context, section->columns[column].kind,
				      members + i * section->size + section->columns[column].offset,
				      out);
		cut_add(&context->cuts, out->n, &last);
	}
}

static void comm_decode(struct bytes_reader *in, char *comm)
{
	uint64_t n = bytes_get_max(in, COMM_LEN);
	const uint8_t *at = n ? bytes_get(in, (size_t)n - 1) : NULL;

	if (at)
		memcpy(comm, at, (size_t)n - 1);
}

static void *table_item(const struct store_table *table, struct bytes_reader *in)
{
	uint64_t place = bytes_get_max(in, table->n);

	return place ? table->items[place - 1] : NULL;
}

static void stack_decode(struct store_column_context *context, struct bytes_reader *in,
			 struct stack **member)
{
	struct stack *stack = table_item(&context->stacks, in);

	*member = context->window->is_borrowing ? stack : stack_ref(stack);
}

/*
 * Reads the index in window->owners of a thread's process, and stores it in the struct
 * window_image. `member` points to the member `process` of this struct.
 */
static void owner_decode(struct store_column_context *context, struct bytes_reader *in,
			 struct process **member)
{
	char *image = (char *)member - offsetof(struct window_image, process);
	uint64_t place = bytes_get_max(in, context->window->n_owners);

	in->is_failed |= place == 0;
	((struct window_image *)image)->owner = place ? (uint32_t)place - 1 : 0;
}

static void process_decode(struct store_column_context *context, struct bytes_reader *in,
			   struct process **member)
{
	struct process *process = table_item(&context->processes, in);

	/* Each member of window->images must have a process: without one, the data is damaged. */
	if (!process)
		in->is_failed = true;
	else
		*member = context->window->is_borrowing ? process : process_ref(process);
}

/* Decodes an int32_t, which is written as the difference from `last`. Returns its value. */
static int32_t i32_decode(struct bytes_reader *in, int32_t last)
{
	int64_t value = (int64_t)((uint64_t)(int64_t)last + (uint64_t)bytes_get_i64(in));

	in->is_failed |= value != (int32_t)value;
	return (int32_t)value;
}

static int64_t time_decode(const struct window *window, struct bytes_reader *in)
{
	if (!bytes_get_max(in, 1))
		return INT64_MAX;
	return (int64_t)((uint64_t)window->start_ns + (uint64_t)bytes_get_i64(in));
}

/* Runs the statement for each of the n members of a column, until one cannot be decoded. */
#define EACH_MEMBER(statement)                                      \
	for (i = 0; i < n && !in->is_failed; i++, member += size) { \
		statement;                                          \
	}

/*
 * Decodes a column: one member of each of n structs that are `size` bytes apart. `member` points to
 * that of the first. Most of the time that it takes to load a window is spent here, so each kind
 * has a loop of its own.
 */
static void column_decode(struct store_column_context *context, enum column_kind kind,
			  struct bytes_reader *in, char *member, size_t size, size_t n)
{
	const struct window *window = context->window;
	uint64_t max = window->n_images ? window->n_images - 1 : 0;
	int32_t last = 0;
	size_t i;

	switch (kind) {
	case COLUMN_U64:
	case COLUMN_UID:
		EACH_MEMBER(*(uint64_t *)member = bytes_get_u64(in))
		break;
	case COLUMN_U32:
		EACH_MEMBER(*(uint32_t *)member = (uint32_t)bytes_get_max(in, UINT32_MAX))
		break;
	case COLUMN_IMAGE:
		/* An index into window->images: without images, the data is damaged. */
		in->is_failed |= n && !window->n_images;
		EACH_MEMBER(*(uint32_t *)member = (uint32_t)bytes_get_max(in, max))
		break;
	case COLUMN_DELTA:
		EACH_MEMBER(*(int32_t *)member = last = i32_decode(in, last))
		break;
	case COLUMN_I32:
		EACH_MEMBER(*(int32_t *)member = i32_decode(in, 0))
		break;
	case COLUMN_TIME:
		EACH_MEMBER(*(int64_t *)member = time_decode(window, in))
		break;
	case COLUMN_COMM:
		EACH_MEMBER(comm_decode(in, member))
		break;
	case COLUMN_STACK:
		EACH_MEMBER(stack_decode(context, in, (struct stack **)member))
		break;
	case COLUMN_PROCESS:
		EACH_MEMBER(if (context->has_owners)
				    owner_decode(context, in, (struct process **)member);
			    else process_decode(context, in, (struct process **)member))
		break;
	}
}

int store_columns_decode(struct store_column_context *context, const struct store_section *section,
			 struct bytes_reader *in)
{
	char *base = (char *)context->window, *members;
	/*
	 * Each number takes at least one byte: if there are more numbers than bytes left, the data
	 * is damaged.
	 */
	size_t n = (size_t)bytes_get_max(in, bytes_left(in) / section->n_columns), column;

	if (in->is_failed || *(char **)(base + section->array))
		return -EBADMSG;
	members = calloc(n ? n : 1, section->size);
	if (!members)
		return -ENOMEM;
	*(char **)(base + section->array) = members;
	*(size_t *)(base + section->n) = n;
	for (column = 0; column < section->n_columns && !in->is_failed; column++)
		column_decode(context, section->columns[column].kind, in,
			      members + section->columns[column].offset, section->size, n);
	return in->is_failed ? -EBADMSG : 0;
}
