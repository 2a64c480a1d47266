/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_BUILD_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_BUILD_H

/*
 * Makes sorted arrays of the functions of an ELF file, and estimates the sizes of functions for
 * which the file gives none. The caller owns the result. No state; any thread. For symtab.c and
 * daemon/parse/.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/symtab.h"
#include "daemon/symbol/symtab_text.h"

#define SYMTAB_NO_OUTER UINT32_MAX

struct symtab_range {
	uint64_t start, end;
};

/*
 * The functions of a file: each property has an array with n entries. The functions are sorted by
 * start. If several have the same start, the longest comes first. No two functions have both the
 * same start and the same size.
 */
struct symtab_arrays {
	size_t n;
	uint64_t base;	  /* address of the first function */
	uint32_t *starts; /* start addresses of the functions, relative to base */
	uint32_t *sizes;  /* sizes of the functions in bytes, never 0 */
	/*
	 * outer[i] is the index of the nearest function before function i whose end is higher than
	 * that of function i, or SYMTAB_NO_OUTER. NULL: no function has such a one, as in most
	 * files
	 */
	uint32_t *outer;
	struct symtab_text names;
	struct symtab_range signals[4]; /* address ranges to which signal handlers return */
	size_t n_signals;
};

/*
 * Makes the arrays of the symbol table for symtab_load(). Returns the same errors as symtab_load().
 */
int symtab_build(const struct elf_source *source, const struct symtab_aids *aids,
		 struct symtab_arrays *out);

struct symtab_builder;
struct symtab_candidate;

/*
 * Does the first half of symtab_build(), in which files are parsed: collects the functions of a
 * file in the builder, sorted as struct symtab_arrays says, and stores the members signals and
 * n_signals of *out. Returns the same errors; the caller calls symtab_builder_fini().
 */
int symtab_collect(const struct elf_source *source, const struct symtab_aids *aids,
		   struct symtab_builder *builder, struct symtab_arrays *out);

/*
 * Does the second half: makes the arrays of n sorted functions. All starts are less than 4 GiB
 * above the first. Returns 0, -E2BIG or -ENOMEM; the caller calls symtab_arrays_fini() in any case.
 */
int symtab_arrays_fill(const struct symtab_candidate *items, size_t n, struct symtab_arrays *out);

void symtab_arrays_fini(struct symtab_arrays *arrays);

#endif
