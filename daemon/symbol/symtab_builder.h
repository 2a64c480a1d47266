/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_BUILDER_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_BUILDER_H

/*
 * Collects functions while files are read: symtab_read.c adds them as they are listed, in any
 * order, some twice, some without an end, and symtab_build.c makes a table of them. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/handle.h"
#include "daemon/symbol/symtab_build.h"

struct symtab_candidate {
	uint64_t start, end; /* equal: the file gives no size */
	const char *name;    /* in the memory of the open files; NULL: only its extent is known */
	uint16_t name_size;  /* without '@version' */
	bool is_global;
	bool is_signal; /* a signal handler returns to it: the next frame was interrupted */
};

struct symtab_builder {
	Elf *files[3]; /* kept open because names point into them */
	size_t n_files;
	void *unpacked;
	struct symtab_range *code; /* executable sections, sorted */
	size_t n_code;
	struct symtab_candidate *items;
	size_t n, items_capacity;
	size_t n_nameless;
	bool has_symtab; /* a full symbol table was found, which lists static functions, too */
};

void symtab_builder_fini(struct symtab_builder *builder);

/* Returns the executable section that an address lies in, NULL where none does. */
const struct symtab_range *symtab_builder_code(const struct symtab_builder *builder,
					       uint64_t address);

/* Adds a copy of the function. -ENOMEM. */
int symtab_builder_add(struct symtab_builder *builder, const struct symtab_candidate *item);

/*
 * Adds the functions from all sources of the file. Returns the errors of symtab_load(), for the
 * file itself only: other sources may be broken.
 */
int symtab_builder_read(struct symtab_builder *builder, const struct elf_source *source,
			const struct symtab_aids *aids);

#endif
