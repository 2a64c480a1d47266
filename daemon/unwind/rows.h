/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_ROWS_H
#define STACKD_DAEMON_UNWIND_ROWS_H

/*
 * Call frame information compiled for the walk in the kernel: in come functions, out comes a table
 * of parts, frames and rules as bpf/unwind_shared.h has them. Owned by the caller; one thread at a
 * time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/cfi.h"

/* What the table is for, and what is known of code that no function covers. */
struct unwind_extent {
	uint64_t base;	/* ELF virtual address that rows count from */
	uint64_t size;	/* bytes of code from there on */
	uint64_t entry; /* the thread's first instruction, which needs no information; 0: none */
	bool keeps_frame_pointers; /* code without information does: Go's, V8's */
	uint32_t kept_bytes_min;   /* if there is as much of it in one piece */
};

struct unwind_rows {
	/* n_parts of struct unwind_part; frames; rules, two words each; what the parts are at. */
	uint64_t *words;
	size_t n_words;
	uint32_t n_parts, n_rows, n_frames, n_rules;
};

/* Words before the frames. */
static inline size_t unwind_rows_frames(const struct unwind_rows *rows)
{
	return rows->n_parts;
}

/* Words before what the parts are at. */
static inline size_t unwind_rows_head(const struct unwind_rows *rows)
{
	return (size_t)rows->n_parts + rows->n_frames + 2 * (size_t)rows->n_rules;
}

/* Where a part's words are, and how many there are of them; a part begins with a word of its own.
 */
size_t unwind_rows_part(const struct unwind_rows *rows, uint32_t part, uint32_t *n_out);

struct unwind_compiler;
struct unwind_frame;

/* max_words bounds the table. -E2BIG when the extent alone needs more, -ENOMEM. */
int unwind_compiler_new(const struct unwind_extent *extent, size_t max_words,
			struct unwind_compiler **out);
struct unwind_compiler *unwind_compiler_free(struct unwind_compiler *compiler);
void unwind_compiler_freep(struct unwind_compiler **compiler);

/*
 * Adds the functions of a section. Where functions overlap the one that starts later counts, and
 * of equal ones the one that came first. -E2BIG when there are too many, -ENOMEM.
 */
int unwind_compiler_add(struct unwind_compiler *compiler, const struct cfi_section *section);

/*
 * Adds one function row by row: begin, where each row starts, end; or cancel, as if it had not
 * begun. begin: -ERANGE where it is no code of this file. Rows: addresses ascending, frames without
 * rules.
 */
int unwind_compiler_begin(struct unwind_compiler *compiler, uint64_t start, uint64_t end);
int unwind_compiler_row(struct unwind_compiler *compiler, uint64_t address,
			const struct unwind_frame *frame);
void unwind_compiler_end(struct unwind_compiler *compiler);
void unwind_compiler_cancel(struct unwind_compiler *compiler);

/* The table; words are owned by the caller. -ENODATA when no function was added, -E2BIG, -ENOMEM.
 */
int unwind_compiler_finish(struct unwind_compiler *compiler, struct unwind_rows *out);

void unwind_rows_fini(struct unwind_rows *rows);

#endif
