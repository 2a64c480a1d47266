/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_BUILDER_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_BUILDER_H

/*
 * What symtab_read.c finds in files and symtab_build.c makes a table of: functions as they are
 * listed, in any order, some twice, some without an end. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/handle.h"
#include "daemon/symbol/symtab_build.h"

struct symtab_candidate {
	uint64_t start, end; /* equal: the file gives no size */
	const char *name;    /* in the files' memory; NULL: only its extent is known */
	uint16_t name_size;  /* without '@version' */
	bool is_global;
	bool is_signal; /* its caller was interrupted, and called nothing */
};

struct symtab_builder {
	Elf *files[3]; /* open as long as their names are of use */
	size_t n_files;
	void *unpacked;
	struct symtab_range *code; /* executable sections, sorted */
	size_t n_code;
	struct symtab_candidate *items;
	size_t n, items_capacity;
	size_t n_nameless;
	bool has_symtab; /* one gave functions: then static ones are listed too */
};

void symtab_builder_fini(struct symtab_builder *builder);

/* The executable section an address lies in; NULL where none does. */
const struct symtab_range *symtab_builder_code(const struct symtab_builder *builder,
					       uint64_t address);

/* -ENOMEM. */
int symtab_builder_add(struct symtab_builder *builder, const struct symtab_candidate *item);

/* Reads all there is. Errors as symtab_load(), for the file itself only. */
int symtab_builder_read(struct symtab_builder *builder, const struct elf_source *source,
			const struct symtab_aids *aids);

#endif
