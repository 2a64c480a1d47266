/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_STORE_BYTES_H
#define STACKD_DAEMON_STORE_BYTES_H

/*
 * Encodes numbers and strings into a growing buffer, and decodes them. The decoder does not trust
 * its input: before each read it checks that the bytes are there. A failure sets is_failed: it is
 * enough to check this once, after the last value. Used by the files of the store; one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	uint8_t *data;
	size_t n;
	size_t capacity;
	bool is_failed; /* true after an allocation failed: `data` is incomplete */
};

void bytes_put(struct bytes *bytes, const void *data, size_t n);
/* Appends a number as a varint: 1 to 10 bytes, with 7 bits of the number in each. */
void bytes_put_u64(struct bytes *bytes, uint64_t value);
/* Appends a number as a varint in zigzag code, so that -1 is short, too. */
void bytes_put_i64(struct bytes *bytes, int64_t value);
void bytes_put_string(struct bytes *bytes, const char *string); /* `string` may be NULL */
void bytes_fini(struct bytes *bytes);

struct bytes_reader {
	const uint8_t *at;
	const uint8_t *end;
	bool is_failed;	       /* true after the bytes ended early or a value was not valid */
	bool is_out_of_memory; /* true after a copy of a string could not be allocated */
};

/*
 * Reads a varint of any length, for bytes_get_u64(), which itself reads only varints of one or two
 * bytes.
 */
uint64_t bytes_get_long(struct bytes_reader *reader);

/* Reads a number that bytes_put_u64() wrote. Returns 0 and sets is_failed on failure. */
static inline uint64_t bytes_get_u64(struct bytes_reader *reader)
{
	const uint8_t *at = reader->at;

	if (at < reader->end && *at < 0x80) {
		reader->at++;
		return *at;
	}
	if (reader->end - at >= 2 && at[1] < 0x80) {
		reader->at += 2;
		return (at[0] & 0x7fU) | (unsigned int)at[1] << 7;
	}
	return bytes_get_long(reader);
}

static inline int64_t bytes_get_i64(struct bytes_reader *reader)
{
	uint64_t value = bytes_get_u64(reader);

	return (int64_t)(value >> 1 ^ (value & 1 ? UINT64_MAX : 0));
}

/* Reads a number. If it is greater than `max`, returns 0 and sets is_failed. */
static inline uint64_t bytes_get_max(struct bytes_reader *reader, uint64_t max)
{
	uint64_t value = bytes_get_u64(reader);

	if (value <= max)
		return value;
	reader->is_failed = true;
	return 0;
}

/*
 * Returns a pointer to the next n bytes of the input, and skips them. If fewer are left, returns
 * NULL and sets is_failed.
 */
const uint8_t *bytes_get(struct bytes_reader *reader, size_t n);

/*
 * Returns a copy of the next string, which the caller frees. Returns NULL if bytes_put_string()
 * wrote NULL, or on failure. A string that contains a NUL byte is a failure. A lack of memory is a
 * failure, too, and also sets is_out_of_memory.
 */
char *bytes_get_string(struct bytes_reader *reader);

/* Returns 0; -ENOMEM if memory ran out; or -EBADMSG if the bytes are not what was expected. */
int bytes_error(const struct bytes_reader *reader);

/* Returns how many bytes have not been read yet. */
size_t bytes_left(const struct bytes_reader *reader);

#endif
