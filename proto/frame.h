/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_PROTO_FRAME_H
#define STACKD_PROTO_FRAME_H

/*
 * Splits a stream of bytes into messages, each of which ends with a NUL byte. Owned and used by the
 * thread of its connection. Does no I/O.
 */

#include <stdbool.h>
#include <stddef.h>

struct frame {
	char *data;
	size_t start;	/* where the first message begins that was not taken */
	size_t scanned; /* there is no NUL in [start, scanned) */
	size_t len;
	size_t capacity;
	size_t max_message;
};

/* Sets the most bytes that a message may have without its NUL. Allocates nothing yet. */
void frame_init(struct frame *frame, size_t max_message);
void frame_fini(struct frame *frame);

/*
 * Appends n bytes of the stream. 0; -EMSGSIZE where the incomplete message is longer than
 * max_message already, after which the stream cannot be used; or -ENOMEM.
 */
int frame_feed(struct frame *frame, const void *data, size_t n);

/*
 * Takes the next message. Returns 1 with *message_out (NUL-ended, freed by the caller) and its
 * length without the NUL; 0 where no message is complete; -EMSGSIZE for one that is too long;
 * -ENOMEM.
 */
int frame_take(struct frame *frame, char **message_out, size_t *len_out);

/* Returns the number of bytes that were fed and not taken. */
size_t frame_pending(const struct frame *frame);

#endif
