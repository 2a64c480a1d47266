/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PARSE_ANSWERS_H
#define STACKD_DAEMON_PARSE_ANSWERS_H

/*
 * Encodes what workers find in files as bytes, and decodes these bytes in the daemon. The functions
 * that decode check all bytes in one pass, because a hostile file may have taken over the worker:
 * what they accept is in bounds, sorted and of a plausible size, so that the daemon can use it like
 * a result of its own. No state; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/file.h"
#include "daemon/symbol/perf_lines.h"
#include "daemon/symbol/symtab_build.h"
#include "daemon/unwind/rows.h"

/* Allocates the encoded form of an ELF file's facts; the caller frees it. Returns 0 or -ENOMEM. */
int answer_elf_encode(const struct elf_file *file, void **out, size_t *size_out);

/*
 * Returns 0; -EPROTO if the bytes are not what answer_elf_encode() makes; or -ENOMEM. The caller
 * calls elf_file_fini().
 */
int answer_elf_decode(const void *data, size_t size, struct elf_file *out);

/*
 * The beginning of an encoded symbol table. Three arrays of n numbers follow, each of 32 bits: the
 * starts of the functions, relative to base; their sizes; the offsets of their names in the text,
 * or ANSWER_NAMELESS. Then comes the text, in which each name has a NUL.
 */
struct answer_symbols {
	uint64_t n, base, text_size, n_signals;
	struct symtab_range signals[4];
};

#define ANSWER_NAMELESS UINT32_MAX

/* One of the pieces that make an answer, one after the other. */
struct answer_part {
	const void *data;
	size_t size;
};

/*
 * Allocates the encoded form of the functions in the builder; the caller frees it. `arrays` has
 * only the signals. Returns 0; -E2BIG if it would take more than max_bytes; or -ENOMEM.
 */
int answer_symbols_encode(const struct symtab_builder *builder, const struct symtab_arrays *arrays,
			  uint64_t max_bytes, void **out, size_t *size_out);

/*
 * Decodes a symbol table. Returns 0, -EPROTO, -E2BIG or -ENOMEM. The caller calls
 * symtab_arrays_fini().
 */
int answer_symbols_decode(const void *data, size_t size, struct symtab_arrays *out);

/* A list of functions or static probes (USDT), made by a worker. Zeroed but for max_bytes: empty.
 */
struct answer_functions {
	struct place *places;
	char *text;
	size_t n, places_capacity, text_size, text_capacity;
	uint64_t max_bytes; /* maximum size of the encoded list */
};

/*
 * Adds a function. Returns 0; -E2BIG if the encoded list would have more than list->max_bytes; or
 * -ENOMEM.
 */
int answer_functions_add(struct answer_functions *list, const char *name, uint64_t offset,
			 uint32_t counter);

/* Allocates the encoded list; the caller frees it. Returns 0 or -ENOMEM. */
int answer_functions_encode(const struct answer_functions *list, void **out, size_t *size_out);
void answer_functions_fini(struct answer_functions *list);

/*
 * Checks an encoded list. If has_provider, it is one of static probes, with names like
 * "provider:name". Returns 0 or -EPROTO.
 */
int answer_functions_check(const void *data, size_t size, bool has_provider);

/* Called for each function; any result but 0 ends the listing. `name` is valid only then. */
typedef int (*answer_function_fn)(void *context, const char *name, uint64_t offset,
				  uint32_t counter);

/* Calls `visit` for each function of a checked list. Returns 0, or what `visit` returned. */
int answer_functions_visit(const void *data, answer_function_fn visit, void *context);

/* The beginning of an encoded part of a perf map. The n functions follow, and then the text. */
struct answer_perf {
	struct perf_mark mark;
	uint64_t n, text_size;
	uint32_t is_continued, is_truncated;
};

enum { ANSWER_PERF_PARTS = 3 };

void answer_perf_encode(const struct perf_lines *lines, struct answer_perf *head,
			struct answer_part parts[static ANSWER_PERF_PARTS]);

/*
 * Decodes a part of a perf map in place. On success, *data is set to NULL, and `out` owns the
 * bytes. Returns 0 or -EPROTO.
 */
int answer_perf_decode(void **data, size_t size, struct perf_lines *out);

/* The end of an encoded table of unwind rows; the words come before it. */
struct answer_rows {
	uint32_t n_parts, n_rows, n_frames, n_rules;
};

enum { ANSWER_ROWS_PARTS = 2 };

void answer_rows_encode(const struct unwind_rows *rows, struct answer_rows *tail,
			struct answer_part parts[static ANSWER_ROWS_PARTS]);

/*
 * Decodes unwind rows in place. On success, *data is set to NULL, and `out` owns the bytes.
 * code_bytes: size of the code that the rows are for. Returns 0 or -EPROTO.
 */
int answer_rows_decode(void **data, size_t size, uint64_t code_bytes, struct unwind_rows *out);

#endif
