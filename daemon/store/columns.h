/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_COLUMNS_H
#define STACKD_DAEMON_STORE_COLUMNS_H

/*
 * Encodes the arrays of struct window column by column, because similar numbers next to each other
 * compress best. A table lists the columns of each array, so that one function writes any array and
 * one function reads any array. Used by window_blob.c only; one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

/*
 * All stacks, or all processes, to which the arrays of one window point. The encoded window has
 * numbers instead of pointers: 1 plus the index in `items`, or 0 for NULL.
 */
struct store_table {
	struct store_table_entry *entries; /* hash table; the key is the pointer to the item */
	void **items;
	size_t n;
	size_t capacity;
};

/*
 * A cut is an offset in the encoded window, at the end of a column, at which compression begins a
 * new block. A window has at most STORE_CUTS_MAX cuts, with at least STORE_CUT_BYTES between two of
 * them.
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
	/* when decoding for a query: window->images refer to window->owners, not to processes */
	bool has_owners;
	/*
	 * when decoding for a query: all members of the entries of window->owners are set, see
	 * images_decoded()
	 */
	bool is_settled;
	bool has_members; /* window->members are decoded */
	/*
	 * when decoding for a query: the row numbers of the window's stacks in the database, still
	 * encoded. They are decoded, and the stacks loaded, only if the query uses the window
	 */
	struct bytes_reader numbers;
	int64_t last; /* the previous number of a column of kind COLUMN_DELTA */
	int error;
};

/* Describes one array of struct window: how it is encoded, and where its members are. */
struct store_section {
	uint64_t tag;
	size_t size;  /* size of one member of the array, in bytes */
	size_t array; /* offset in struct window of the pointer to the array */
	size_t n;     /* offset in struct window of the member that has the length of the array */
	const struct store_column *columns;
	size_t n_columns;
};

/*
 * All sections; a section of size 0 ends the list. The array `images` (the threads of a window)
 * comes first, because the other arrays have indexes into it.
 */
extern const struct store_section store_sections[];

/*
 * Encodes a section and appends them to *out. Appends to
 * context->cuts the offsets at which the columns end. On failure sets context->error or
 * out->is_failed.
 */
void store_columns_encode(struct store_column_context *context, const struct store_section *section,
			  struct bytes *out);

/*
 * Decodes a section into context->window. Returns 0, -EBADMSG (the
 * data is not valid) or -ENOMEM.
 */
int store_columns_decode(struct store_column_context *context, const struct store_section *section,
			 struct bytes_reader *in);

/*
 * Called when window->images are decoded: sets the uid of folded entries, which is not written
 * because it follows from their other members.
 */
void store_images_complete(struct window *window);

void store_table_fini(struct store_table *table);

#endif
