/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_ROWS_H
#define STACKD_DAEMON_UNWIND_ROWS_H

/*
 * Compiles call frame information to a table of unwind rows in the form that BPF programs read
 * (bpf/unwind_shared.h). The table has parts (the rows of 32 KiB of code each), frames and rules.
 * The caller owns it; one thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/cfi.h"

/*
 * The range of code for which a table has unwind rows, and facts about code in this range that
 * belongs to no known function.
 */
struct unwind_extent {
	uint64_t base;	/* ELF virtual address of the first byte of the code; the addresses of
			   rows are relative to it */
	uint64_t size;	/* number of bytes of code */
	uint64_t entry; /* address of the program's first instruction, at which stack walks end; 0:
			   none */
	bool keeps_frame_pointers; /* True: code without call frame information keeps frame
				      pointers, as that of Go and V8 does */
	/*
	 * used if keeps_frame_pointers is true: code without call frame information counts as code
	 * with frame pointers only if it has at least this many bytes in a row
	 */
	uint32_t kept_bytes_min;
};

struct unwind_rows {
	/*
	 * Array of 8-byte words with, in this order: a struct unwind_part for each part (32 KiB) of
	 * the code; the frames, one word each; the rules, two words each; the rows of the first
	 * part, the rows of the second part, and so on.
	 */
	uint64_t *words;
	size_t n_words;
	uint32_t n_parts, n_rows, n_frames, n_rules;
};

/* Returns the index in words of the first frame. */
static inline size_t unwind_rows_frames(const struct unwind_rows *rows)
{
	return rows->n_parts;
}

/* Returns the number of words of the head: all words before the rows of the first part. */
static inline size_t unwind_rows_head(const struct unwind_rows *rows)
{
	return (size_t)rows->n_parts + rows->n_frames + 2 * (size_t)rows->n_rules;
}

/*
 * Returns the index of the word at which the rows of part number `part` begin. Stores in *n_out how
 * many words these rows take.
 */
size_t unwind_rows_part(const struct unwind_rows *rows, uint32_t part, uint32_t *n_out);

/*
 * Says which parts of a table to compile, where the whole table was compiled before. It has the
 * frames and rules of that earlier table, so that the rows of the parts can refer to them by the
 * same numbers.
 */
struct unwind_wanted {
	uint32_t *parts; /* array of the numbers of the parts */
	size_t n;
	uint64_t *frames; /* the n_frames frames of the table, then its rules */
	uint32_t n_frames, n_rules;
	uint64_t hash; /* identifies the table among all tables of the file */
};

void unwind_wanted_fini(struct unwind_wanted *wanted);

struct unwind_compiler;
struct unwind_frame;

/*
 * Makes a compiler of unwind rows for the code in the range `extent`. The table that it makes will
 * have max_words words at most. Returns -E2BIG when the table would be larger even without any
 * function, or -ENOMEM.
 */
int unwind_compiler_new(const struct unwind_extent *extent, size_t max_words,
			struct unwind_compiler **out);
struct unwind_compiler *unwind_compiler_free(struct unwind_compiler *compiler);
void unwind_compiler_freep(struct unwind_compiler **compiler);

/*
 * Makes the compiler leave out all functions that do not matter for the rows of the wanted parts.
 * The parts of the resulting table that are not wanted have no meaning. Must be called before any
 * function is added. Returns -EBADMSG if `wanted` has parts or frames that no table can have, or
 * -ENOMEM.
 */
int unwind_compiler_limit(struct unwind_compiler *compiler, const struct unwind_wanted *wanted);

/*
 * Copies n bytes of the file's code at an ELF virtual address. Returns false if they cannot be
 * read.
 */
typedef bool unwind_code_reader(void *userdata, uint64_t address, void *out, size_t n);

/*
 * Lets the compiler read the file's code, so that it finds out where code without call frame
 * information keeps frame pointers. Such code gets the frame UNWIND_FRAME_PROVED. Without this
 * call, nothing is known of such code. Must be called before any function is added.
 */
int unwind_compiler_survey(struct unwind_compiler *compiler, unwind_code_reader *read,
			   void *userdata);

/*
 * Adds the functions of a section of call frame information. If functions overlap, their common
 * code belongs to the one that starts later; if they start at the same address, it belongs to the
 * one that was added first. Returns -E2BIG when there are too many functions or rows, or -ENOMEM.
 */
int unwind_compiler_add(struct unwind_compiler *compiler, const struct cfi_section *section);

/*
 * These four functions add one function of the file row by row. Call unwind_compiler_begin() first,
 * then unwind_compiler_row() for each address at which the frame changes, then
 * unwind_compiler_end(), or unwind_compiler_cancel() to discard the rows. unwind_compiler_begin()
 * returns -ERANGE if the addresses are not code of this file, or if the function is not wanted.
 * Rows must have ascending addresses, and their frames must not need a rule.
 */
int unwind_compiler_begin(struct unwind_compiler *compiler, uint64_t start, uint64_t end);
int unwind_compiler_row(struct unwind_compiler *compiler, uint64_t address,
			const struct unwind_frame *frame);
void unwind_compiler_end(struct unwind_compiler *compiler);
void unwind_compiler_cancel(struct unwind_compiler *compiler);

/*
 * Makes the table of all functions that were added. The caller owns the words of the table. Returns
 * -ENODATA when no function was added and no code without call frame information is known to keep
 * frame pointers; -E2BIG when the table exceeds max_words; -ESTALE when wanted parts have other
 * frames than the earlier table; or -ENOMEM.
 */
int unwind_compiler_finish(struct unwind_compiler *compiler, struct unwind_rows *out);

void unwind_rows_fini(struct unwind_rows *rows);

#endif
