/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_HELD_SECTION_H
#define STACKD_DAEMON_STORE_HELD_SECTION_H

/*
 * Encodes the long waits of a window and their holders as the payload of a section of
 * window_blob.c, and decodes them. No state; any thread.
 */

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

void store_held_encode(const struct window *window, struct bytes *out);

/*
 * Decodes into window->held, which must be empty. Returns 0, -EBADMSG or -ENOMEM; the caller frees
 * the window in any case.
 */
int store_held_decode(struct bytes_reader *in, struct window *window);

#endif
