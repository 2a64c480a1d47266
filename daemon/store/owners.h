/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_OWNERS_H
#define STACKD_DAEMON_STORE_OWNERS_H

/*
 * The section of an encoded window with what queries need to know of each process: pid, start,
 * name, cgroup. With it, a query can test its filter, and tell processes apart, without reading
 * the processes of the window from their table. Used by window_blob.c only; one thread.
 */

#include "daemon/store/bytes.h"
#include "daemon/store/columns.h"
#include "daemon/store/window_blob.h"

/* Appends the section's payload for the processes of a window, in the order of the table. */
void store_owners_encode(const struct store_table *processes, const struct window *window,
			 struct bytes *out);

/*
 * Sets window->owners from the numbers of the window's processes in the database. What the owners
 * are besides is read by store_owners_decode() or store_owners_read(). 0, -EBADMSG or -ENOMEM.
 */
int store_owners_number(struct bytes_reader *in, struct window *window);

/* Reads the section. Returns 0, -EBADMSG or -ENOMEM. */
int store_owners_decode(struct bytes_reader *in, struct window *window);

/*
 * Finishes the owners once the images are decoded: the section has each start as a difference from
 * that of the process's first image.
 */
void store_owners_settle(struct window *window);

/*
 * Asks names->owner() for all owners, because the window has no such section. Returns 0 or -ENOMEM.
 */
int store_owners_read(const struct store_names *names, struct window *window);

#endif
