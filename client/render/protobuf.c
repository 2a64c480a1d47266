/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/protobuf.h"

#include <string.h>

/* How a value is encoded: the lowest three bits in front of it. */
enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

enum { VARINT_MAX = 10 };

/* Writes seven bits in each byte, the lowest first; the highest bit says that more bytes follow. */
static size_t varint_encode(uint64_t value, char out[static VARINT_MAX])
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		out[n++] = (char)(value | 0x80);
	out[n++] = (char)value;
	return n;
}

static void put_varint(struct text *message, uint64_t value)
{
	char bytes[VARINT_MAX];

	text_put(message, bytes, varint_encode(value, bytes));
}

void protobuf_put_int(struct text *message, uint32_t tag, int64_t value)
{
	if (value == 0)
		return;
	put_varint(message, (uint64_t)tag << 3 | WIRE_VARINT);
	put_varint(message, (uint64_t)value);
}

void protobuf_put_double(struct text *message, uint32_t tag, double value)
{
	uint64_t bits;
	char bytes[sizeof bits];

	memcpy(&bits, &value, sizeof bits);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(bits >> 8 * i);
	put_varint(message, (uint64_t)tag << 3 | WIRE_FIXED64);
	text_put(message, bytes, sizeof bytes);
}

void protobuf_put_bytes(struct text *message, uint32_t tag, const void *data, size_t n)
{
	put_varint(message, (uint64_t)tag << 3 | WIRE_BYTES);
	put_varint(message, n);
	text_put(message, data, n);
}

void protobuf_put_ints(struct text *message, uint32_t tag, const int64_t *values, size_t n)
{
	char bytes[VARINT_MAX];
	size_t size = 0;

	for (size_t i = 0; i < n; i++)
		size += varint_encode((uint64_t)values[i], bytes);
	put_varint(message, (uint64_t)tag << 3 | WIRE_BYTES);
	put_varint(message, size);
	for (size_t i = 0; i < n; i++)
		put_varint(message, (uint64_t)values[i]);
}
