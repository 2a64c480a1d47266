/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERN_READ_H
#define STACKD_DAEMON_STORE_INTERN_READ_H

/*
 * Interning, the read side: loads from the database the stacks, frames and processes to which
 * windows refer by number, each of them only once. Owned by a store_reader; one thread.
 */

#include <stdint.h>

#include "daemon/store/db.h"
#include "daemon/store/window_blob.h"

struct store_intern_reader;
struct store_query;

/*
 * Creates a reader that adds 1 to *damaged for each row that is missing or damaged. The pointer
 * `damaged` must stay valid as long as the reader lives. Returns 0 or -ENOMEM.
 */
int store_intern_reader_new(struct store_db *db, uint64_t *damaged,
			    struct store_intern_reader **out);
struct store_intern_reader *store_intern_reader_free(struct store_intern_reader *interned);

/*
 * Returns the functions that translate row numbers to stacks and processes for store_blob_decode().
 * The stacks and processes live as long as `interned`. Stacks that are loaded without frames have a
 * functions_id only if with_functions is true.
 */
struct store_names store_intern_reader_names(struct store_intern_reader *interned,
					     bool with_functions);

/* Makes the reader load stacks without frames; their ids are enough to compare them. */
void store_intern_reader_skip_frames(struct store_intern_reader *interned);

/*
 * Returns the functions that give a query the stacks and processes of the next window that it
 * decodes. The stacks have what `query` asks for. If a stack has more frames, its is_partial is
 * true, and n_raw is the number of loaded frames. Also frees the stacks of earlier windows to which
 * nothing refers any more.
 */
struct store_names store_intern_reader_query_names(struct store_intern_reader *interned,
						   const struct store_query *query);

/*
 * Loads the frames that a stack lacks because it was loaded for a query. Returns 0 or a negative
 * errno.
 */
int store_intern_reader_fill(struct store_intern_reader *interned, struct stack *stack);

/* Returns the process with this row number, borrowed; NULL when out of memory. */
struct process *store_intern_reader_process(struct store_intern_reader *interned, int64_t number);

#endif
