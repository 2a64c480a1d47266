/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/base/gzip.h"

#include <stdlib.h>
#include <sys/types.h>
#include <zlib.h>

#include "client/base/term.h"
#include "common/base.h"

/* 15 is the largest window of deflate; 16 asks for the header of gzip, without name and time. */
enum { WINDOW_BITS = 15 + 16, MEMORY_LEVEL = 8 };

struct gzip {
	FILE *out;
	z_stream z;
};

/* Compresses what is in z.next_in; with Z_FINISH, writes the end of the data, too. */
static void compress_input(struct gzip *gzip, int flush)
{
	Bytef buffer[16384];

	do {
		gzip->z.next_out = buffer;
		gzip->z.avail_out = sizeof buffer;
		deflate(&gzip->z, flush);
		fwrite(buffer, 1, sizeof buffer - gzip->z.avail_out, gzip->out);
	} while (gzip->z.avail_out == 0);
}

static ssize_t on_write(void *cookie, const char *data, size_t n)
{
	struct gzip *gzip = cookie;

	/* zlib does not write to its input, but its type is not const. The size fits stdio's
	 * buffer. */
	gzip->z.next_in = (Bytef *)(uintptr_t)data;
	gzip->z.avail_in = (uInt)n;
	compress_input(gzip, Z_NO_FLUSH);
	return (ssize_t)n;
}

static int on_close(void *cookie)
{
	struct gzip *gzip = cookie;

	gzip->z.avail_in = 0;
	compress_input(gzip, Z_FINISH);
	deflateEnd(&gzip->z);
	free(gzip);
	return 0;
}

FILE *gzip_open(FILE *out)
{
	const cookie_io_functions_t functions = { .write = on_write, .close = on_close };
	struct gzip *gzip = must(calloc(1, sizeof(*gzip)));

	gzip->out = out;
	if (deflateInit2(&gzip->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		must(NULL);
	return must(fopencookie(gzip, "w", functions));
}
