/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_PRESSURE_SECTION_H
#define STACKD_DAEMON_STORE_PRESSURE_SECTION_H

/*
 * Encodes the pressure in a window as the payload of a section of window_blob.c, and decodes it. No
 * state; any thread.
 */

#include "daemon/store/bytes.h"
#include "daemon/window/window.h"

void store_pressure_encode(const struct window *window, struct bytes *out);

/*
 * Decodes into window->pressure, which must be empty. Returns 0, -EBADMSG or -ENOMEM; the caller
 * frees the window in any case.
 */
int store_pressure_decode(struct bytes_reader *in, struct window *window);

#endif
