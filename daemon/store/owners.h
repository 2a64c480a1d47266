/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_OWNERS_H
#define STACKD_DAEMON_STORE_OWNERS_H

/*
 * Encodes and decodes a section of a window with the facts about each process that queries need
 * (struct window_owner): pid, start time, name and cgroup. With these facts, a query can test its
 * filter and tell processes apart without reading the table of processes. Used by window_blob.c
 * only; one thread.
 */

#include "daemon/store/bytes.h"
#include "daemon/store/columns.h"
#include "daemon/store/window_blob.h"

/*
 * Appends the payload of the section to *out. The processes are in the order of the table
 * `processes`.
 */
void store_owners_encode(const struct store_table *processes, const struct window *window,
			 struct bytes *out);

/*
 * Makes window->owners, and sets in it the number of each process: that of the process's row in the
 * database. The other members of struct window_owner are set by store_owners_decode(). Returns 0,
 * -EBADMSG or -ENOMEM.
 */
int store_owners_number(struct bytes_reader *in, struct window *window);

/* Decodes the payload of the section into window->owners. Returns 0, -EBADMSG or -ENOMEM. */
int store_owners_decode(struct bytes_reader *in, struct window *window);

/*
 * Called when window->images are decoded. The section has the start time of a process as the
 * difference from the start time of its first thread; this function adds the two.
 */
void store_owners_settle(struct window *window);

#endif
