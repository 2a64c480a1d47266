/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_WINDOW_BLOB_H
#define STACKD_DAEMON_STORE_WINDOW_BLOB_H

/*
 * One window as bytes: in goes a window, out comes a compressed list of tagged sections; and back.
 * Stacks and processes are numbers in it, which the store gives and takes (struct store_names).
 * A section is a tag, a version, a length and a payload; one nobody knows is skipped, so a window
 * of a newer stackd can be read as far as it is understood. Pure; any thread.
 *
 * A new kind of row is a new tag and a table of columns in store_columns.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

/* A window of more bytes, unpacked, is neither written nor read. */
#define STORE_BLOB_MAX (16U << 20)

/* Numbers of stacks and processes. Those that give one return 0 or a negative errno. */
struct store_names {
	int (*stack_number)(void *userdata, struct stack *stack, int64_t *out);
	int (*process_number)(void *userdata, struct process *process, int64_t *out);
	/* NULL when out of memory. An unknown number has a stack that says so. */
	struct stack *(*stack)(void *userdata, int64_t number);
	struct process *(*process)(void *userdata, int64_t number);
	/* What these two give lives longer than the window; else they give references. */
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
 * 0 and *out, the caller's; -EBADMSG when the bytes are not a window, -ENOMEM. *is_partial_out:
 * there were sections that are not understood.
 */
int store_blob_decode(const void *data, size_t size, const struct store_names *names,
		      struct window **out, bool *is_partial_out);

#endif
