/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_WINDOW_BLOB_H
#define STACKD_DAEMON_STORE_WINDOW_BLOB_H

/*
 * Encodes a window as a compressed list of sections, and decodes it. Stacks and processes are
 * numbers in it, which struct store_names translates. A section is a tag, a version, a length and a
 * payload; an unknown one is skipped, so that this version reads as much as it understands of a
 * window that a newer stackd wrote. No state; any thread.
 *
 * A new kind of row needs a new tag and a table of columns in columns.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

/* A window that is larger than this before compression is neither written nor read. */
#define STORE_BLOB_MAX (16U << 20)

/* Translates stacks and processes to their numbers in the store (0 or a negative errno) and back.
 */
struct store_names {
	int (*stack_number)(void *userdata, struct stack *stack, int64_t *out);
	int (*process_number)(void *userdata, struct process *process, int64_t *out);
	/* Return NULL only when out of memory: an unknown number becomes "[lost on disk]". */
	struct stack *(*stack)(void *userdata, int64_t number);
	struct process *(*process)(void *userdata, int64_t number);
	/* True if these two return objects that outlive the window; else they return references. */
	bool is_lending;
	void *userdata;
};

/*
 * Appends the window to *out, as one of this run of stackd, which only the store numbers. Returns
 * 0, -ENOMEM, -E2BIG over STORE_BLOB_MAX, or the error of a function of names.
 */
int store_blob_encode(const struct window *window, uint64_t run, const struct store_names *names,
		      struct bytes *out);

/*
 * Returns 0 and *out, which is the caller's; -EBADMSG if the bytes are not a window; -ENOMEM.
 * *is_partial_out: unknown sections were skipped.
 */
int store_blob_decode(const void *data, size_t size, const struct store_names *names,
		      struct window **out, bool *is_partial_out);

#endif
