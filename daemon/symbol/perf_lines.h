/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_PERF_LINES_H
#define STACKD_DAEMON_SYMBOL_PERF_LINES_H

/*
 * Reads the lines of a perf map: a file to which a program that makes code at run time writes the
 * addresses and names of its functions. A hostile program may have written it. No state; any
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PERF_LINE_BYTES = 4096 }; /* longer lines are truncated; real ones have some hundred bytes */

/* Maximum number of bytes of a file that are read; all that follows is left out. */
#define PERF_MAP_BYTES_MAX (32 * 1024 * 1024)

struct perf_function {
	uint64_t start;
	uint32_t size;
	uint32_t name; /* offset of the name in the text; the later a function was written to the
			  file, the higher this offset */
};

/* Says how far a file was read. */
struct perf_mark {
	uint64_t read;	 /* number of bytes that were read, up to the end of the last whole line */
	uint64_t last_n; /* length of the last line; 0: it was too long and was truncated */
	uint64_t last_hash; /* hash of the last line; 0: not known */
};

/* The functions that lines have, in the order of the file. Zeroed: none. */
struct perf_lines {
	struct perf_function *functions;
	size_t n, functions_capacity;
	char *text; /* the names, each with a NUL */
	size_t text_size, text_capacity;
	void *block; /* if it is not NULL, the functions and the text are part of it */
	struct perf_mark mark;
	bool is_continued; /* these are only the lines that follow the earlier mark */
	bool is_truncated; /* further lines were left out */
};

/*
 * Reads the lines of a file. If the last line before the mark `after`, which may be NULL, is still
 * in its place, the file has only grown, and only the new lines are read. Leaves out a last line
 * without a newline, which is still being written, and what exceeds max_bytes of memory. Returns 0;
 * -E2BIG if nothing fits; -ENOMEM; or the error of reading. The caller calls perf_lines_fini().
 */
int perf_lines_read(int fd, const struct perf_mark *after, size_t max_bytes,
		    struct perf_lines *out);

void perf_lines_fini(struct perf_lines *lines);

#endif
