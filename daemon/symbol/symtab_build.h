/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_BUILD_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_BUILD_H

/*
 * Makes sorted arrays of the functions of an ELF file, each with its true end. The caller owns the
 * result; no state. For symtab.c only.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/symtab.h"

#define SYMTAB_NO_OUTER UINT32_MAX
#define SYMTAB_NAMELESS UINT32_MAX

struct symtab_range {
	uint64_t start, end;
};

/*
 * The arrays have n members each, sorted by start and, for equal starts, the longest first. No two
 * functions have both equal start and size.
 */
struct symtab_arrays {
	size_t n;
	uint64_t base; /* the address that starts count from */
	uint32_t *starts;
	uint32_t *sizes; /* never 0 */
	uint32_t *names; /* offset into text, or SYMTAB_NAMELESS */
	uint32_t *outer; /* index of the nearest function before it that ends later, or
			    SYMTAB_NO_OUTER */
	char *text;
	size_t text_size;
	struct symtab_range signals[4]; /* code that signal handlers return to */
	size_t n_signals;
};

/* Returns the errors of symtab_load(). */
int symtab_build(const struct elf_source *source, const struct symtab_aids *aids,
		 struct symtab_arrays *out);

void symtab_arrays_fini(struct symtab_arrays *arrays);

#endif
