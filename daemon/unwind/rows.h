/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_ROWS_H
#define STACKD_DAEMON_UNWIND_ROWS_H

/*
 * Compiles call frame information to a table of parts, frames and rules, as the walk in the kernel
 * reads it (bpf/unwind_shared.h). Owned by the caller; one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/cfi.h"

/* The code that a table covers, and what is known of code that no function covers. */
struct unwind_extent {
	uint64_t base;		   /* ELF virtual address that rows count from */
	uint64_t size;		   /* bytes of code from there on */
	uint64_t entry;		   /* the program's first instruction, where walks end; 0: none */
	bool keeps_frame_pointers; /* code without information keeps frame pointers, as Go's and
				      V8's do */
	uint32_t kept_bytes_min;   /* but only pieces of at least this size */
};

struct unwind_rows {
	/*
	 * struct unwind_part for each part; the frames; the rules, two words each; then the
	 * contents of the parts.
	 */
	uint64_t *words;
	size_t n_words;
	uint32_t n_parts, n_rows, n_frames, n_rules;
};

/* Returns how many words are before the frames. */
static inline size_t unwind_rows_frames(const struct unwind_rows *rows)
{
	return rows->n_parts;
}

/* Returns how many words are before the contents of the parts. */
static inline size_t unwind_rows_head(const struct unwind_rows *rows)
{
	return (size_t)rows->n_parts + rows->n_frames + 2 * (size_t)rows->n_rules;
}

/*
 * Returns the first word of a part's contents and how many there are; each part begins at a whole
 * word.
 */
size_t unwind_rows_part(const struct unwind_rows *rows, uint32_t part, uint32_t *n_out);

struct unwind_compiler;
struct unwind_frame;

/*
 * Makes a compiler; the table will have max_words at most. -E2BIG when the extent alone needs more,
 * -ENOMEM.
 */
int unwind_compiler_new(const struct unwind_extent *extent, size_t max_words,
			struct unwind_compiler **out);
struct unwind_compiler *unwind_compiler_free(struct unwind_compiler *compiler);
void unwind_compiler_freep(struct unwind_compiler **compiler);

/*
 * Adds the functions of a section. Where functions overlap, the one that starts later counts from
 * its start on; of those with equal starts, the one added first. -E2BIG when there are too many,
 * -ENOMEM.
 */
int unwind_compiler_add(struct unwind_compiler *compiler, const struct cfi_section *section);

/*
 * Adds one function row by row: begin, a row for each change, end; or cancel, which discards the
 * function. begin returns -ERANGE where the addresses are not code of this file. Rows must have
 * ascending addresses, and frames without rules.
 */
int unwind_compiler_begin(struct unwind_compiler *compiler, uint64_t start, uint64_t end);
int unwind_compiler_row(struct unwind_compiler *compiler, uint64_t address,
			const struct unwind_frame *frame);
void unwind_compiler_end(struct unwind_compiler *compiler);
void unwind_compiler_cancel(struct unwind_compiler *compiler);

/*
 * Makes the table; its words are owned by the caller. -ENODATA when no function was added, -E2BIG,
 * -ENOMEM.
 */
int unwind_compiler_finish(struct unwind_compiler *compiler, struct unwind_rows *out);

void unwind_rows_fini(struct unwind_rows *rows);

#endif
