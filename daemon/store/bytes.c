/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"

enum { BYTES_LEAST = 256 };

/*
 * Makes room for n more bytes and returns the address at which to put them. When out of memory,
 * returns NULL and sets is_failed.
 */
static uint8_t *bytes_reserve(struct bytes *bytes, size_t n)
{
	size_t wanted = bytes->n + n < BYTES_LEAST ? BYTES_LEAST : bytes->n + n;

	if (array_reserve(bytes->data, bytes->capacity, wanted)) {
		bytes->is_failed = true;
		return NULL;
	}
	return bytes->data + bytes->n;
}

void bytes_put(struct bytes *bytes, const void *data, size_t n)
{
	uint8_t *at = bytes_reserve(bytes, n);

	if (!at || !n)
		return;
	memcpy(at, data, n);
	bytes->n += n;
}

void bytes_put_u64(struct bytes *bytes, uint64_t value)
{
	uint8_t *at = bytes_reserve(bytes, 10);

	if (!at)
		return;
	while (value >= 0x80) {
		*at++ = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	*at++ = (uint8_t)value;
	bytes->n = (size_t)(at - bytes->data);
}

void bytes_put_i64(struct bytes *bytes, int64_t value)
{
	bytes_put_u64(bytes, (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0));
}

void bytes_put_string(struct bytes *bytes, const char *string)
{
	size_t n = string ? strlen(string) : 0;

	bytes_put_u64(bytes, string ? n + 1 : 0);
	bytes_put(bytes, string, n);
}

void bytes_fini(struct bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct bytes){};
}

uint64_t bytes_get_long(struct bytes_reader *reader)
{
	const uint8_t *at = reader->at;
	uint64_t value = 0;
	unsigned int shift;

	/* The longest varint has 10 bytes: if as many are left, no byte needs a check of its own.
	 */
	if (reader->end - at >= 10) {
		for (shift = 0; shift < 64; shift += 7) {
			value |= (uint64_t)(*at & 0x7f) << shift;
			if (*at++ & 0x80)
				continue;
			reader->at = at;
			return value;
		}
		reader->at = at;
		reader->is_failed = true;
		return 0;
	}
	for (shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
		uint8_t byte = *reader->at++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	reader->is_failed = true;
	return 0;
}

size_t bytes_left(const struct bytes_reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

const uint8_t *bytes_get(struct bytes_reader *reader, size_t n)
{
	const uint8_t *at = reader->at;

	if (reader->is_failed || n > bytes_left(reader)) {
		reader->is_failed = true;
		return NULL;
	}
	reader->at += n;
	return at;
}

char *bytes_get_string(struct bytes_reader *reader)
{
	uint64_t n = bytes_get_u64(reader);
	const uint8_t *at;
	char *string;

	if (n == 0)
		return NULL;
	at = bytes_get(reader, (size_t)n - 1);
	if (!at || memchr(at, 0, (size_t)n - 1)) {
		reader->is_failed = true;
		return NULL;
	}
	string = strndup((const char *)at, (size_t)n - 1);
	reader->is_failed = reader->is_out_of_memory = !string;
	return string;
}

int bytes_error(const struct bytes_reader *reader)
{
	if (reader->is_out_of_memory)
		return -ENOMEM;
	return reader->is_failed ? -EBADMSG : 0;
}
