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

/* The code that a table of rows covers, and facts about code that belongs to no known function. */
struct unwind_extent {
	uint64_t base;		   /* ELF virtual address of the code; rows are relative to it */
	uint64_t size;		   /* number of bytes of code */
	uint64_t entry;		   /* address of the program's first instruction, where walks end;
				      0: none */
	bool keeps_frame_pointers; /* code without call frame information keeps frame pointers, as
				      that of Go and of V8 does */
	uint32_t kept_bytes_min;   /* size of the smallest piece of code to which
				      keeps_frame_pointers applies */
};

struct unwind_rows {
	/*
	 * Array of 8-byte words that holds, in this order: a struct unwind_part for each part; the
	 * frames; the rules, two words each; the contents of the parts.
	 */
	uint64_t *words;
	size_t n_words;
	uint32_t n_parts, n_rows, n_frames, n_rules;
};

/* Returns the index of the first word of the frames. */
static inline size_t unwind_rows_frames(const struct unwind_rows *rows)
{
	return rows->n_parts;
}

/* Returns the number of words of the head, which is everything before the contents of the parts. */
static inline size_t unwind_rows_head(const struct unwind_rows *rows)
{
	return (size_t)rows->n_parts + rows->n_frames + 2 * (size_t)rows->n_rules;
}

/*
 * Returns the index of the first word of a part's contents, and stores the number of words in
 * *n_out.
 */
size_t unwind_rows_part(const struct unwind_rows *rows, uint32_t part, uint32_t *n_out);

struct unwind_compiler;
struct unwind_frame;

/*
 * Makes a compiler of rows for the code of the extent. The table will have max_words at most.
 * Returns -E2BIG when the extent needs more words even without any function, or -ENOMEM.
 */
int unwind_compiler_new(const struct unwind_extent *extent, size_t max_words,
			struct unwind_compiler **out);
struct unwind_compiler *unwind_compiler_free(struct unwind_compiler *compiler);
void unwind_compiler_freep(struct unwind_compiler **compiler);

/*
 * Adds the functions of a section of call frame information. Where functions overlap, the code
 * belongs to the function that starts later; if they start at the same address, to the one that was
 * added first. Returns -E2BIG when there are too many functions or rows, or -ENOMEM.
 */
int unwind_compiler_add(struct unwind_compiler *compiler, const struct cfi_section *section);

/*
 * Adds one function row by row: call begin, then row for each address at which the frame changes,
 * then end; or instead of end call cancel, which discards the rows. begin returns -ERANGE if the
 * addresses are not code of this file. Rows must have ascending addresses, and their frames must
 * not need a rule.
 */
int unwind_compiler_begin(struct unwind_compiler *compiler, uint64_t start, uint64_t end);
int unwind_compiler_row(struct unwind_compiler *compiler, uint64_t address,
			const struct unwind_frame *frame);
void unwind_compiler_end(struct unwind_compiler *compiler);
void unwind_compiler_cancel(struct unwind_compiler *compiler);

/*
 * Makes the table of all functions that were added; the caller owns its words. Returns -ENODATA
 * when no function was added and code without information keeps no frame pointers, -E2BIG, or
 * -ENOMEM.
 */
int unwind_compiler_finish(struct unwind_compiler *compiler, struct unwind_rows *out);

void unwind_rows_fini(struct unwind_rows *rows);

#endif
