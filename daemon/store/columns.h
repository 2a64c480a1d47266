/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_COLUMNS_H
#define STACKD_DAEMON_STORE_COLUMNS_H

/*
 * Encodes the arrays of a window column by column, because similar numbers next to each other
 * compress best. A table lists the columns of each array; one function writes any array, one reads
 * it. Used by window_blob.c only; one thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

/* The stacks or processes that members point to; a member is encoded as its index + 1. */
struct store_table {
	struct store_table_entry *entries; /* by pointer */
	void **items;
	size_t n;
	size_t capacity;
};

/*
 * Offsets at which a column ends, so that each is compressed by itself; a column of less than
 * STORE_CUT_BYTES goes with the next.
 */
enum { STORE_CUTS_MAX = 160, STORE_CUT_BYTES = 256 };

struct store_cuts {
	size_t at[STORE_CUTS_MAX];
	size_t n;
};

/* State that all columns of one window share. */
struct store_column_context {
	struct window *window;
	struct store_table stacks;
	struct store_table processes;
	struct store_cuts cuts;
	int error;
};

/* One array of struct window. */
struct store_section {
	uint64_t tag;
	uint64_t version;
	size_t size;  /* of a member */
	size_t array; /* offset in struct window of the pointer */
	size_t n;     /* offset of the number of members */
	const struct store_column *columns;
	size_t n_columns;
	size_t n_before; /* columns that version - 1 had; 0: there is no such version */
};

/* All sections, ended by one of size 0. Images come first, because the others refer to them. */
extern const struct store_section store_sections[];

/*
 * Appends the section to *out, and the ends of its columns to context->cuts. A failure sets
 * context->error or out->is_failed.
 */
void store_columns_encode(struct store_column_context *context, const struct store_section *section,
			  struct bytes *out);

/* Reads the first n_columns columns of the section into the window. 0, -EBADMSG or -ENOMEM. */
int store_columns_decode(struct store_column_context *context, const struct store_section *section,
			 size_t n_columns, struct bytes_reader *in);

void store_table_fini(struct store_table *table);

#endif
