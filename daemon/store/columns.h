/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_COLUMNS_H
#define STACKD_DAEMON_STORE_COLUMNS_H

/*
 * Arrays of a window as columns of numbers, for like numbers side by side compress best: a table
 * says what the columns are, one function writes any table, one reads it. Used by store_blob.c
 * only; one thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

/* Things that members point to, each once; members say the place in here plus one. */
struct store_table {
	struct store_table_entry *entries; /* by pointer */
	void **items;
	size_t n;
	size_t capacity;
};

/* Where numbers of one kind end and others begin; few go with the next. */
enum { STORE_CUTS_MAX = 160, STORE_CUT_BYTES = 256 };

struct store_cuts {
	size_t at[STORE_CUTS_MAX];
	size_t n;
};

/* What the columns of one window share. */
struct store_column_context {
	struct window *window;
	struct store_table stacks;
	struct store_table processes;
	struct store_cuts cuts;
	int error;
};

struct store_section {
	uint64_t tag;
	uint64_t version;
	size_t size;  /* of a member */
	size_t array; /* offset in struct window of the pointer */
	size_t n;     /* and of the number of members */
	const struct store_column *columns;
	size_t n_columns;
	size_t n_before; /* columns of the version before; 0: there is none */
};

/* Ended by one of size 0. Images are first: the others refer to them. */
extern const struct store_section store_sections[];

/* Failures are in context->error and bytes->is_failed. Adds the ends of columns to context->cuts.
 */
void store_columns_encode(struct store_column_context *context, const struct store_section *section,
			  struct bytes *out);

/* 0, -EBADMSG or -ENOMEM. */
int store_columns_decode(struct store_column_context *context, const struct store_section *section,
			 size_t n_columns, struct bytes_reader *in);

void store_table_fini(struct store_table *table);

#endif
