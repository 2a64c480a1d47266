/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_FRAME_H
#define STACKD_PROTO_FRAME_H

/*
 * Splits a stream of bytes into messages, each of which ends with a NUL byte. Each connection has
 * its own frame, which is used by one thread at a time. Does no I/O.
 */

#include <stddef.h>

struct frame {
	char *data;
	size_t start;	/* offset of the first message that was not taken */
	size_t scanned; /* all bytes from offset `start` up to this offset are not NUL */
	size_t len;
	size_t capacity;
	size_t max_message;
};

/*
 * Empties *frame. A message may have at most max_message bytes without its NUL. Allocates nothing.
 */
void frame_init(struct frame *frame, size_t max_message);
void frame_fini(struct frame *frame);

/*
 * Appends n bytes of the stream. Returns 0; -EMSGSIZE if more than max_message bytes have come
 * without a NUL, after which the stream cannot be used any more; or -ENOMEM.
 */
int frame_feed(struct frame *frame, const void *data, size_t n);

/*
 * Takes the next message. Returns 1 with the message (NUL-ended, freed by the caller) in
 * *message_out and its length without the NUL in *len_out; 0 if no message is complete; -EMSGSIZE
 * if the message is too long; or -ENOMEM.
 */
int frame_take(struct frame *frame, char **message_out, size_t *len_out);

/* Returns the number of bytes that were fed and are not taken yet. */
size_t frame_pending(const struct frame *frame);

#endif
