/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_H

/*
 * The functions of one ELF file: in goes the file, out come names for its virtual addresses.
 * Immutable once loaded but for the readable names it remembers, so any thread may look up.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/file.h"

struct symtab;

/* What is known of a file besides its bytes. */
struct symtab_aids {
	int debug_fd; /* its separate debug file, proved to be of it; -1: none. Borrowed */
};

/*
 * Reads .symtab, or else that of the debug file or of .gnu_debugdata, or what Go's runtime has;
 * .dynsym; and for what these leave out the extents in .eh_frame: functions that have no name. A
 * file without functions gives an empty table. -ENOEXEC when it is no ELF file, -E2BIG when it is
 * larger than any limit allows, -EBADMSG when it is broken, -ENOMEM.
 */
int symtab_load(const struct elf_source *source, const struct symtab_aids *aids,
		struct symtab **out);

/*
 * Names the function that holds the address, the innermost if several do. *start_out is its
 * first address. False where none does: the nearest one is never offered. The name lives as long
 * as the table; NULL where the file has none for it.
 */
bool symtab_lookup(struct symtab *symtab, uint64_t address, const char **name_out,
		   uint64_t *start_out);

/* Whether it is where a signal handler returns to: what it "called" was interrupted instead. */
bool symtab_is_signal(const struct symtab *symtab, uint64_t address);

/* Whether both hold the same functions under the same names. */
bool symtab_equal(const struct symtab *a, const struct symtab *b);

/* Returns the memory it takes, in bytes. */
size_t symtab_bytes(struct symtab *symtab);

struct symtab *symtab_free(struct symtab *symtab);
void symtab_freep(struct symtab **symtab);

#endif
