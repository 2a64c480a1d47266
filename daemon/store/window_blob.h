/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_WINDOW_BLOB_H
#define STACKD_DAEMON_STORE_WINDOW_BLOB_H

/*
 * Encodes a window as a compressed list of sections, and decodes it. The encoded window has row
 * numbers of the database instead of stacks and processes; struct store_names translates them. A
 * section is a tag, a length and a payload. No state; any thread.
 *
 * A new kind of row needs a new tag and a table of columns in columns.c. Whatever changes the bytes
 * of a section raises STORE_SCHEMA.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

/*
 * The maximum size of a window in bytes before compression. A larger window is neither written nor
 * read.
 */
#define STORE_BLOB_MAX (16U << 20)

/*
 * Translates stacks and processes to the numbers of their rows in the database, and back.
 * stack_number() and process_number() return 0 or a negative errno.
 */
struct store_names {
	int (*stack_number)(void *userdata, struct stack *stack, int64_t *out);
	int (*process_number)(void *userdata, struct process *process, int64_t *out);
	/*
	 * stack() and process() take the number of a row in the database. If there is no such row,
	 * they return a substitute. NULL when out of memory.
	 */
	struct stack *(*stack)(void *userdata, int64_t number);
	struct process *(*process)(void *userdata, int64_t number);
	/* stack() and process() lend their results: the caller gets no reference of its own. */
	bool is_lending;
	/*
	 * windows are decoded for a query: window->images refer to window->owners, not to
	 * processes, and process() is not called
	 */
	bool is_query;
	/*
	 * NULL unless windows are decoded for a query. Returns true if the window has a thread for
	 * which the query asks. If not, the rest of the window is not decoded.
	 */
	bool (*wants)(const void *userdata, const struct window *window);
	const void *wants_userdata;
	bool skips_members; /* window->members are not decoded */
	void *userdata;
};

/*
 * Encodes the window and appends it to *out. `run` is the number of the run of stackd that recorded
 * the window. Returns 0; -ENOMEM; -E2BIG if the window is larger than STORE_BLOB_MAX; or the error
 * of a function of `names`.
 */
int store_blob_encode(const struct window *window, uint64_t run, const struct store_names *names,
		      struct bytes *out);

/*
 * Decodes a window. Returns 0 and *out, to which the caller owns a reference; -EBADMSG if the bytes
 * are not a window; or -ENOMEM.
 */
int store_blob_decode(const void *data, size_t size, const struct store_names *names,
		      struct window **out);

/*
 * Calls on_stack() for each stack to which an encoded window refers, and on_process() for each
 * process, with the number of its row in the database. Does not decode the rest of the window.
 * Returns 0, -ENOMEM, or -EBADMSG if the bytes are not a window.
 */
int store_blob_numbers(const void *data, size_t size,
		       int (*on_stack)(void *userdata, int64_t number),
		       int (*on_process)(void *userdata, int64_t number), void *userdata);

#endif
