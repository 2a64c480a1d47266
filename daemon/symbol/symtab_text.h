/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_TEXT_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_TEXT_H

/*
 * The names of all functions of a file, compressed in blocks of a few functions: a compiler has
 * megabytes of names, few of which are ever looked up. Does not change after symtab_text_make();
 * any thread. For the symbol table only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symtab_candidate;

/* The names of SYMTAB_TEXT_BLOCK functions that follow one another. */
struct symtab_text_block {
	uint64_t named; /* bit i is set if function i of the block has a name */
	uint32_t at;	/* offset of the compressed names in symtab_text.packed */
	uint32_t size;	/* size of the names before compression, each with its NUL */
};

enum { SYMTAB_TEXT_BLOCK = 64 };

struct symtab_text {
	struct symtab_text_block *blocks;
	size_t n_blocks;
	uint8_t *packed;
	size_t packed_size;
};

/*
 * Compresses the names of n functions. Returns 0, -E2BIG if the names together are too long, or
 * -ENOMEM. The caller frees *out by symtab_text_fini().
 */
int symtab_text_make(const struct symtab_candidate *items, size_t n, struct symtab_text *out);
void symtab_text_fini(struct symtab_text *text);

/* True if the function with index i has a name. */
bool symtab_text_has(const struct symtab_text *text, size_t i);

/*
 * Copies the name of function i, which must have one, to a buffer of ELF_NAME_BYTES_MAX bytes.
 * Returns false when out of memory.
 */
bool symtab_text_get(const struct symtab_text *text, size_t i, char *buffer);

bool symtab_text_equal(const struct symtab_text *a, const struct symtab_text *b);

/* Returns the memory that the names take, in bytes. */
size_t symtab_text_bytes(const struct symtab_text *text);

#endif
