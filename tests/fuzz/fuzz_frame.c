/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the framing of messages. The first byte is the limit, the second says into which pieces
 * the rest is split. The messages must be the bytes between the NULs; one above the limit ends it.
 */
#include <errno.h>
#include <string.h>

#include "proto/frame.h"
#include "tests/fuzz/fuzz.h"

struct stream {
	struct frame frame;
	const uint8_t *data;
	size_t taken; /* bytes of data that came back as messages */
};

/* Takes all complete messages. 0 or -EMSGSIZE. */
static int take_all(struct stream *stream)
{
	char *message;
	size_t len;
	int r;

	while ((r = frame_take(&stream->frame, &message, &len)) > 0) {
		REQUIRE(len <= stream->frame.max_message);
		REQUIRE(memcmp(message, stream->data + stream->taken, len) == 0);
		REQUIRE(memchr(message, '\0', len + 1) == message + len);
		REQUIRE(stream->data[stream->taken + len] == '\0');
		stream->taken += len + 1;
		free(message);
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream stream = { .data = data + 2 };
	size_t fed = 0, piece;
	int r = 0;

	if (size < 2)
		return 0;
	size -= 2;
	piece = data[1] % 61 + 1U;
	frame_init(&stream.frame, data[0]);
	while (fed < size && r == 0) {
		size_t n = size - fed < piece ? size - fed : piece;

		r = frame_feed(&stream.frame, stream.data + fed, n);
		fed += n;
		if (r == 0 && (fed / piece) % 3 != 0)
			r = take_all(&stream);
		REQUIRE(frame_pending(&stream.frame) == fed - stream.taken);
	}
	if (r == 0)
		r = take_all(&stream);
	REQUIRE(r == 0 || r == -EMSGSIZE);
	if (r == 0)
		REQUIRE(memchr(stream.data + stream.taken, 0, fed - stream.taken) == NULL);
	else
		REQUIRE(fed - stream.taken > data[0]);
	frame_fini(&stream.frame);
	return 0;
}
