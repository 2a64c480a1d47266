/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/symbol/perf_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/base/hash.h"

#define READ_BYTES ((size_t)64 * 1024)

/* A file that is read byte by byte. Uses pread() only, because a worker may do nothing else. */
struct reader {
	int fd, error;
	uint64_t at; /* offset in the file behind the bytes in the buffer */
	size_t n, next;
	char *buffer;
};

/* Returns the next byte; EOF at the end of the file and on errors. */
static int byte_next(struct reader *reader)
{
	ssize_t n;

	if (reader->next == reader->n) {
		n = pread(reader->fd, reader->buffer, READ_BYTES, (off_t)reader->at);
		if (n < 0)
			reader->error = -errno;
		if (n <= 0)
			return EOF;
		reader->at += (uint64_t)n;
		reader->n = (size_t)n;
		reader->next = 0;
	}
	return (unsigned char)reader->buffer[reader->next++];
}

/*
 * Reads a line, with a NUL instead of its newline. Truncates it if it is too long. Returns its
 * length in the file; 0 if there is none that ends, or none that ends within max_bytes.
 */
static size_t line_next(struct reader *reader, uint64_t max_bytes,
			char line[static PERF_LINE_BYTES])
{
	size_t n = 0;
	int c;

	while (n < max_bytes && (c = byte_next(reader)) != EOF) {
		if (c == '\n') {
			line[n < PERF_LINE_BYTES ? n : PERF_LINE_BYTES - 1] = '\0';
			return n + 1;
		}
		if (n < PERF_LINE_BYTES - 1)
			line[n] = (char)c;
		n++;
	}
	return 0;
}

/*
 * Enlarges the arrays: to text_size bytes for names, and to n functions. Returns 0; -E2BIG if they
 * would then take more than max_bytes; or -ENOMEM.
 */
static int reserve(struct perf_lines *lines, size_t max_bytes, size_t text_size, size_t n)
{
	size_t text = array_capacity(lines->text_capacity, text_size);
	size_t functions = array_capacity(lines->functions_capacity, n);

	if (text + functions * sizeof(*lines->functions) > max_bytes)
		return -E2BIG;
	if (array_reserve(lines->text, lines->text_capacity, text_size) ||
	    array_reserve(lines->functions, lines->functions_capacity, n))
		return -ENOMEM;
	return 0;
}

/*
 * Parses a line "START SIZE NAME" and adds the function. START and SIZE are hexadecimal, with or
 * without 0x. Ignores other lines.
 */
static int line_add(struct perf_lines *lines, size_t max_bytes, const char *line)
{
	char *at, *end;
	uint64_t start = strtoull(line, &at, 16), size;
	size_t n;
	int r;

	if (at == line || *at != ' ')
		return 0;
	size = strtoull(at, &end, 16);
	if (end == at || *end != ' ' || !size || size > UINT32_MAX || start > UINT64_MAX - size)
		return 0;
	n = strlen(++end) + 1;
	if (n == 1)
		return 0;
	r = reserve(lines, max_bytes, lines->text_size + n, lines->n + 1);
	if (r < 0)
		return r;
	memcpy(lines->text + lines->text_size, end, n);
	lines->functions[lines->n++] =
		(struct perf_function){ start, (uint32_t)size, (uint32_t)lines->text_size };
	lines->text_size += n;
	return 0;
}

static int lines_add(struct reader *reader, size_t max_bytes, struct perf_lines *lines)
{
	char line[PERF_LINE_BYTES];
	size_t n;
	int r;

	while ((n = line_next(reader, PERF_MAP_BYTES_MAX - lines->mark.read, line)) > 0) {
		r = line_add(lines, max_bytes, line);
		if (r == -E2BIG && (lines->n || lines->is_continued)) {
			lines->is_truncated = true;
			return 0;
		}
		if (r < 0)
			return r;
		lines->mark.read += n;
		lines->mark.last_n = n <= PERF_LINE_BYTES ? n : 0;
	}
	lines->is_truncated = reader->at >= PERF_MAP_BYTES_MAX;
	return reader->error;
}

/* Reads the last line before the mark again. Returns its hash; 0 if it cannot be read. */
static uint64_t last_line_hash(int fd, const struct perf_mark *mark)
{
	char line[PERF_LINE_BYTES];

	if (!mark->last_n || mark->last_n > sizeof(line) || mark->last_n > mark->read ||
	    pread(fd, line, mark->last_n, (off_t)(mark->read - mark->last_n)) !=
		    (ssize_t)mark->last_n)
		return 0;
	return hash64(HASH64_SEED, line, mark->last_n);
}

int perf_lines_read(int fd, const struct perf_mark *after, size_t max_bytes, struct perf_lines *out)
{
	_cleanup_(freep) char *buffer = malloc(READ_BYTES);
	struct reader reader = { .fd = fd, .buffer = buffer };
	int r;

	if (!buffer)
		return -ENOMEM;
	if (after && after->last_hash && after->read <= PERF_MAP_BYTES_MAX &&
	    after->last_hash == last_line_hash(fd, after)) {
		out->is_continued = true;
		out->mark = *after;
		reader.at = after->read;
	}
	r = lines_add(&reader, max_bytes, out);
	out->mark.last_hash = last_line_hash(fd, &out->mark);
	return r;
}

void perf_lines_fini(struct perf_lines *lines)
{
	if (!lines->block) {
		free(lines->functions);
		free(lines->text);
	}
	free(lines->block);
	*lines = (struct perf_lines){ 0 };
}
