/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_H

/*
 * The symbol table of one ELF file: loads the functions and names virtual addresses. Immutable once
 * loaded, but for a cache of demangled names with a lock of its own, so any thread may look up.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/file.h"

struct symtab;

/* Other files that help to read one. */
struct symtab_aids {
	int debug_fd; /* its separate debug file, checked to belong to it; -1: none. Borrowed */
};

/*
 * Reads .symtab, or else that of the debug file or of .gnu_debugdata, or the table of Go's runtime;
 * then .dynsym; then, for code that all these leave out, the extents in .eh_frame: functions
 * without a name. A file without functions gives an empty table. -ENOEXEC when it is not an ELF
 * file, -E2BIG when a limit is exceeded, -EBADMSG when it is broken, -ENOMEM.
 */
int symtab_load(const struct elf_source *source, const struct symtab_aids *aids,
		struct symtab **out);

/*
 * Names the function that holds the address, the innermost if several do; *start_out is its first
 * address. False where no function holds it: the nearest one is not offered. The name lives as long
 * as the table; it is NULL where the file has none for the function.
 */
bool symtab_lookup(struct symtab *symtab, uint64_t address, const char **name_out,
		   uint64_t *start_out);

/*
 * True if a signal handler returns to the address. Then the next frame was interrupted there and
 * did not make a call.
 */
bool symtab_is_signal(const struct symtab *symtab, uint64_t address);

/* True if both have the same functions with the same names. */
bool symtab_equal(const struct symtab *a, const struct symtab *b);

/* Returns the memory it takes, in bytes. */
size_t symtab_bytes(struct symtab *symtab);

struct symtab *symtab_free(struct symtab *symtab);
void symtab_freep(struct symtab **symtab);

#endif
