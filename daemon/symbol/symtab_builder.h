/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_BUILDER_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_BUILDER_H

/*
 * Collects the functions of a file while its symbols are read. symtab_read.c adds them in the order
 * in which the file lists them; some are added twice, some without a size. symtab_build.c makes a
 * sorted table of them. For one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/handle.h"
#include "daemon/symbol/symtab_build.h"

struct symtab_candidate {
	uint64_t start, end; /* addresses; both are equal if the file gives no size */
	const char *name;    /* borrowed from an ELF file in symtab_builder.files; NULL: unknown */
	uint16_t name_size;  /* length of the name in bytes, without a suffix '@version' */
	bool is_global;
	bool is_signal; /* a signal handler returns to this code */
};

struct symtab_builder {
	Elf *files[3]; /* ELF files, kept open because the names of functions point into them */
	size_t n_files;
	void *unpacked;
	struct symtab_range *code; /* executable sections, sorted by address */
	size_t n_code;
	struct symtab_candidate *items;
	size_t n, items_capacity;
	size_t n_nameless;
	bool has_symtab; /* the file has a full symbol table, with static functions, too */
};

void symtab_builder_fini(struct symtab_builder *builder);

/* Returns the executable section that contains the address, NULL if there is none. */
const struct symtab_range *symtab_builder_code(const struct symtab_builder *builder,
					       uint64_t address);

/* Adds a copy of the function to the builder. Returns 0 or -ENOMEM. */
int symtab_builder_add(struct symtab_builder *builder, const struct symtab_candidate *item);

/*
 * Adds the functions from the sources that symtab_load() lists, and returns the same errors as it.
 * A broken separate debug file, .gnu_debugdata or Go table is no error.
 */
int symtab_builder_read(struct symtab_builder *builder, const struct elf_source *source,
			const struct symtab_aids *aids);

#endif
