/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_INTERN_H
#define STACKD_DAEMON_STORE_INTERN_H

/*
 * Interning, the write side: writes each stack, frame, file and process to the database only once
 * and returns the number of its row, by which windows refer to it. Caches the numbers of recent
 * rows, up to a limit. Owned by the writer's thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/store/db.h"
#include "daemon/store/id_set.h"
#include "daemon/store/window_blob.h"

/*
 * The row numbers of the stacks, frames, files and processes to which windows refer, with the tiers
 * of these windows. All other rows may be deleted, see collect.h. While a collection runs, a
 * store_intern adds each row number that it returns.
 */
struct store_marks {
	struct id_set stacks;
	struct id_set frames;
	struct id_set files;
	struct id_set processes;
	bool is_failed; /* out of memory: numbers are missing */
};

void store_marks_clear(struct store_marks *marks);

struct store_intern;

/* Creates an interner that writes to `db`, which must outlive it. Returns 0 or -ENOMEM. */
int store_intern_new(struct store_db *db, struct store_intern **out);
struct store_intern *store_intern_free(struct store_intern *intern);

/*
 * Returns the functions that store_blob_encode() needs to get the row numbers of stacks and
 * processes of a window. `tier` is the tier in which the encoded window will be.
 */
struct store_names store_intern_names(struct store_intern *intern, const struct window *window,
				      size_t tier);

/*
 * Makes the interner add each row number that it returns to *marks, and for a stack the row numbers
 * of its frames and their files, too. If `marks` is NULL, the interner stops this.
 */
void store_intern_mark(struct store_intern *intern, struct store_marks *marks);

/*
 * Clears the cache. Called after a rollback, because rows in the cache may now be missing in the
 * database.
 */
void store_intern_forget(struct store_intern *intern);

/*
 * Removes from the cache the rows that are not in *marks (see store_intern_mark()). Called before
 * these rows are deleted.
 */
void store_intern_forget_unmarked(struct store_intern *intern);

/*
 * Reads the encoded row of a stack up to the row numbers of its frames, and returns the number of
 * frames. Each row number is encoded as the difference from the previous one.
 */
size_t store_stack_frames(struct bytes_reader *in);

/* Reads the encoded row of a frame. Returns the row number of its file; 0 if it has none. */
int64_t store_frame_file(struct bytes_reader *in);

/* Returns the checksum of a row's number and data, or of a window's number and blob. */
int64_t store_sum(int64_t number, const void *data, size_t size);

#endif
