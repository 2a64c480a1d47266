/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/base/gzip.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

#include "common/base.h"

enum { WINDOW_BITS = 15, GZIP_HEADER = 16, MEMORY_LEVEL = 8 };

int gzip_pack(const char *data, size_t len, char **out, size_t *len_out)
{
	_cleanup_(freep) char *packed = NULL;
	z_stream stream = { 0 };
	uLong bound;
	int r;

	if (len > INT_MAX ||
	    deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, WINDOW_BITS + GZIP_HEADER, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	bound = deflateBound(&stream, (uLong)len);
	packed = malloc(bound);
	if (!packed) {
		deflateEnd(&stream);
		return -ENOMEM;
	}
	stream.next_in = (z_const Bytef *)data;
	stream.avail_in = (uInt)len;
	stream.next_out = (Bytef *)packed;
	stream.avail_out = (uInt)bound;
	r = deflate(&stream, Z_FINISH);
	*len_out = stream.total_out;
	deflateEnd(&stream);
	if (r != Z_STREAM_END)
		return -ENOMEM;
	*out = TAKE(packed);
	return 0;
}
