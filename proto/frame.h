/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_FRAME_H
#define STACKD_PROTO_FRAME_H

/*
 * Bytes of a stream in, whole messages out: a message ends with one NUL byte. Owned by the
 * connection it belongs to, whose thread alone uses it. No I/O.
 */

#include <stdbool.h>
#include <stddef.h>

struct frame {
	char *data;
	size_t start;	/* of the first message not taken */
	size_t scanned; /* no NUL in [start, scanned) */
	size_t len;
	size_t capacity;
	size_t max_message;
};

/* max_message: bytes of one message without its NUL. Allocates nothing yet. */
void frame_init(struct frame *frame, size_t max_message);
void frame_fini(struct frame *frame);

/*
 * Appends n bytes. -EMSGSIZE when the message that is being received is longer than
 * max_message: the stream cannot be used any more. -ENOMEM.
 */
int frame_feed(struct frame *frame, const void *data, size_t n);

/*
 * Takes the next whole message: 1 with *message_out (NUL-ended, malloc'ed, the caller's) and its
 * length without the NUL; 0 when none is complete; -EMSGSIZE when it is too long, -ENOMEM.
 */
int frame_take(struct frame *frame, char **message_out, size_t *len_out);

/* Bytes that were fed and not taken. */
size_t frame_pending(const struct frame *frame);

#endif
