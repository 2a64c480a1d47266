/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_PROTOBUF_H
#define STACKD_CLIENT_RENDER_PROTOBUF_H

/*
 * Writes messages in the encoding of protocol buffers: each member is a number (the tag) and a
 * value. Members that are 0 are left out, as in proto3. An error is kept in the text, see text.h.
 * Any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/text.h"

/* Appends a member that is an integer. Negative numbers take ten bytes. */
void protobuf_put_int(struct text *message, uint32_t tag, int64_t value);

/* Appends a member that is a double, also of 0. */
void protobuf_put_double(struct text *message, uint32_t tag, double value);

/* Appends a member that is a string, bytes or a message, also an empty one. */
void protobuf_put_bytes(struct text *message, uint32_t tag, const void *data, size_t n);

/* Appends a repeated member of integers, also of 0, in the packed form. */
void protobuf_put_ints(struct text *message, uint32_t tag, const int64_t *values, size_t n);

#endif
