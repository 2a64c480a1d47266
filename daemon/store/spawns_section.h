/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_SPAWNS_SECTION_H
#define STACKD_DAEMON_STORE_SPAWNS_SECTION_H

/*
 * Encodes the processes that began and ended in a window as the payload of a section of
 * window_blob.c, and decodes them. No state; any thread.
 */

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

void store_spawns_encode(const struct window *window, struct bytes *out);

/*
 * Decodes into window->spawns, which must be empty. Returns 0, -EBADMSG or -ENOMEM; the caller
 * frees the window in any case.
 */
int store_spawns_decode(struct bytes_reader *in, struct window *window);

#endif
