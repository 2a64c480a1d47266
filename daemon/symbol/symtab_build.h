/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_BUILD_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_BUILD_H

/*
 * From what an ELF file says of its functions to arrays that can be searched: in goes the file, out
 * come functions with true ends. Owned by the caller; no state. For symtab.c only.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/symtab.h"

#define SYMTAB_NO_OUTER UINT32_MAX
#define SYMTAB_NAMELESS UINT32_MAX

struct symtab_range {
	uint64_t start, end;
};

/* All of length n, sorted by start, then the longest first; no two with equal start and size. */
struct symtab_arrays {
	size_t n;
	uint64_t base; /* what starts count from */
	uint32_t *starts;
	uint32_t *sizes; /* never 0 */
	uint32_t *names; /* into text, or SYMTAB_NAMELESS */
	uint32_t *outer; /* the nearest one before it that ends later, or SYMTAB_NO_OUTER */
	char *text;
	size_t text_size;
	struct symtab_range signals[4]; /* where signal handlers return to */
	size_t n_signals;
};

/* Errors as symtab_load(). */
int symtab_build(const struct elf_source *source, const struct symtab_aids *aids,
		 struct symtab_arrays *out);

void symtab_arrays_fini(struct symtab_arrays *arrays);

#endif
