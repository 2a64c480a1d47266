/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_BYTES_H
#define STACKD_DAEMON_STORE_BYTES_H

/*
 * Numbers and strings as bytes and back: in go values, out comes a growing buffer; or in come
 * bytes from outside, out come values, each checked against the end. A failure is remembered, so
 * it may be looked for once at the end. Used by the store's files; one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *data;
	size_t n;
	size_t capacity;
	bool is_failed; /* out of memory */
};

void bytes_put(struct bytes *bytes, const void *data, size_t n);
void bytes_put_u64(struct bytes *bytes, uint64_t value);	/* small ones are short */
void bytes_put_i64(struct bytes *bytes, int64_t value);		/* likewise, of either sign */
void bytes_put_string(struct bytes *bytes, const char *string); /* may be NULL */
void bytes_fini(struct bytes *bytes);

struct bytes_reader {
	const uint8_t *at;
	const uint8_t *end;
	bool is_failed; /* ended early, or a number was too long */
};

uint64_t bytes_get_long(struct bytes_reader *reader);

/* Most numbers are small. */
static inline uint64_t bytes_get_u64(struct bytes_reader *reader)
{
	if (reader->at < reader->end && *reader->at < 0x80)
		return *reader->at++;
	return bytes_get_long(reader);
}

int64_t bytes_get_i64(struct bytes_reader *reader);

/* A number that must not be above max. */
uint64_t bytes_get_max(struct bytes_reader *reader, uint64_t max);

/* The next n bytes, borrowed; NULL and a failure when there are fewer. */
const uint8_t *bytes_get(struct bytes_reader *reader, size_t n);

/* A copy, to be freed; NULL for none, and when it failed. With NUL inside it is no string. */
char *bytes_get_string(struct bytes_reader *reader);

size_t bytes_left(const struct bytes_reader *reader);

#endif
