/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

enum { SMALL_BUFFER = 4096 };

void frame_init(struct frame *frame, size_t max_message)
{
	*frame = (struct frame){ .max_message = max_message };
}

void frame_fini(struct frame *frame)
{
	free(frame->data);
	frame_init(frame, frame->max_message);
}

size_t frame_pending(const struct frame *frame)
{
	return frame->len - frame->start;
}

static int frame_reserve(struct frame *frame, size_t n)
{
	size_t need, capacity;
	char *data;

	if (frame->start > 0) {
		memmove(frame->data, frame->data + frame->start, frame_pending(frame));
		frame->len -= frame->start;
		frame->scanned -= frame->start;
		frame->start = 0;
	}
	if (__builtin_add_overflow(frame->len, n, &need))
		return -ENOMEM;
	if (need <= frame->capacity)
		return 0;
	capacity = frame->capacity ? frame->capacity : SMALL_BUFFER;
	while (capacity < need)
		if (__builtin_mul_overflow(capacity, (size_t)2, &capacity))
			return -ENOMEM;
	data = realloc(frame->data, capacity);
	if (!data)
		return -ENOMEM;
	frame->data = data;
	frame->capacity = capacity;
	return 0;
}

/* Returns the NUL that ends the first message, or NULL if that message is not complete. */
static const char *frame_end(struct frame *frame)
{
	const char *end;

	if (frame->scanned == frame->len)
		return NULL;
	end = memchr(frame->data + frame->scanned, '\0', frame->len - frame->scanned);
	frame->scanned = end ? (size_t)(end - frame->data) : frame->len;
	return end;
}

int frame_feed(struct frame *frame, const void *data, size_t n)
{
	int r;

	if (n == 0)
		return 0;
	r = frame_reserve(frame, n);
	if (r < 0)
		return r;
	memcpy(frame->data + frame->len, data, n);
	frame->len += n;
	if (!frame_end(frame) && frame_pending(frame) > frame->max_message)
		return -EMSGSIZE;
	return 0;
}

/*
 * Frees a large buffer once all of its messages were taken, since the connection may stay open for
 * long.
 */
static void frame_shrink(struct frame *frame)
{
	if (frame->start < frame->len)
		return;
	if (frame->capacity > SMALL_BUFFER) {
		frame_fini(frame);
		return;
	}
	frame->start = frame->scanned = frame->len = 0;
}

int frame_take(struct frame *frame, char **message_out, size_t *len_out)
{
	_cleanup_(freep) char *message = NULL;
	const char *end = frame_end(frame);
	size_t len;

	if (!end)
		return frame_pending(frame) > frame->max_message ? -EMSGSIZE : 0;
	len = (size_t)(end - frame->data) - frame->start;
	if (len > frame->max_message)
		return -EMSGSIZE;
	message = malloc(len + 1);
	if (!message)
		return -ENOMEM;
	memcpy(message, frame->data + frame->start, len + 1);
	frame->start += len + 1;
	frame->scanned = frame->start;
	frame_shrink(frame);
	*message_out = TAKE(message);
	*len_out = len;
	return 1;
}
