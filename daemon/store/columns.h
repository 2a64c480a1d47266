/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_COLUMNS_H
#define STACKD_DAEMON_STORE_COLUMNS_H

/*
 * Encodes the arrays of a window column by column, because similar numbers next to each other
 * compress best. A table lists the columns of each array; one function writes any array, another
 * one reads any array. Used by window_blob.c only; one thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

/*
 * The stacks, or the processes, that the arrays of one window point to. In the encoded window a
 * pointer is its index in items + 1, and NULL is 0.
 */
struct store_table {
	struct store_table_entry *entries; /* hash table with the stack or process as key */
	void **items;
	size_t n;
	size_t capacity;
};

/*
 * Offsets in the encoded window at which a column ends. Each column is compressed as a block of its
 * own, but a column of fewer than STORE_CUT_BYTES bytes shares the block of the next column.
 */
enum { STORE_CUTS_MAX = 160, STORE_CUT_BYTES = 256 };

struct store_cuts {
	size_t at[STORE_CUTS_MAX];
	size_t n;
};

/* State of encoding or decoding one window, shared by all of its columns. */
struct store_column_context {
	struct window *window;
	struct store_table stacks;
	struct store_table processes;
	struct store_cuts cuts;
	int error;
};

/* Describes one array of struct window: how it is encoded, and where its members are. */
struct store_section {
	uint64_t tag;
	uint64_t version;
	size_t size;  /* bytes of one member of the array */
	size_t array; /* offset in struct window of the pointer to the array */
	size_t n;     /* offset in struct window of the number of members */
	const struct store_column *columns;
	size_t n_columns;
	size_t n_before; /* number of columns in version - 1; 0: there is no such version */
};

/*
 * All sections; the last one has size 0. The array of images comes first, because members of the
 * other arrays refer to images.
 */
extern const struct store_section store_sections[];

/*
 * Encodes the section and appends it to *out; adds the ends of its columns to context->cuts. On
 * failure sets context->error or out->is_failed.
 */
void store_columns_encode(struct store_column_context *context, const struct store_section *section,
			  struct bytes *out);

/*
 * Reads the first n_columns columns of the section into context->window. Returns 0, -EBADMSG or
 * -ENOMEM.
 */
int store_columns_decode(struct store_column_context *context, const struct store_section *section,
			 size_t n_columns, struct bytes_reader *in);

void store_table_fini(struct store_table *table);

#endif
