/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_H

/*
 * The symbol table of one ELF file: loads its functions and finds the function of an ELF virtual
 * address. May be used on any thread: a loaded table does not change, except for a cache of
 * demangled names, which has a lock of its own.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/file.h"

struct symtab;
struct symtab_arrays;

/* Other files that help to read the symbols of an ELF file. */
struct symtab_aids {
	int debug_fd; /* descriptor of the separate debug file; -1: none. The caller closes it, and
			 has checked that the debug file belongs to the ELF file */
};

/*
 * Reads the functions of an ELF file from the first of these sources that has any: .symtab of the
 * file, .symtab of the debug file, .symtab in .gnu_debugdata, the table of Go's runtime. Adds
 * functions of .dynsym. For code that none of these covers, adds functions without a name from
 * .eh_frame. A file without functions gives an empty table. Returns -ENOEXEC when the file is not
 * an ELF file, -E2BIG when a limit is exceeded, -EBADMSG when the file is broken, or -ENOMEM. The
 * caller owns *out.
 */
int symtab_load(const struct elf_source *source, const struct symtab_aids *aids,
		struct symtab **out);

/*
 * Makes a symbol table of sorted functions, which it then owns. Returns 0 or -ENOMEM. Frees the
 * arrays on failure.
 */
int symtab_from_arrays(struct symtab_arrays *arrays, struct symtab **out);

/*
 * How a table demangles names. demangle() writes the readable name to the buffer of
 * DEMANGLE_OUTPUT_MAX bytes; it returns false if there is none. free_context() frees `context`.
 */
struct symtab_demangler {
	bool (*demangle)(void *context, const char *name, char *buffer);
	void (*free_context)(void *context);
	void *context;
};

/*
 * Sets how the table demangles names; the table then owns the context. Called before the first
 * lookup. By default, it does so in this process.
 */
void symtab_set_demangler(struct symtab *symtab, const struct symtab_demangler *demangler);

/*
 * Finds the function that contains the address. If functions are nested, finds the innermost.
 * Stores its name and the address of its first byte. False if no function contains the address,
 * even if one is near. The name lives as long as the table; it is NULL if the file has no name for
 * the function.
 */
bool symtab_lookup(struct symtab *symtab, uint64_t address, const char **name_out,
		   uint64_t *start_out);

/*
 * True if a signal handler returns to the address. The next frame of a stack with this address is
 * then of a function that was interrupted by a signal, and did not make a call.
 */
bool symtab_is_signal(const struct symtab *symtab, uint64_t address);

/* True if both tables have the same functions with the same names. */
bool symtab_equal(const struct symtab *a, const struct symtab *b);

/* Returns the memory that the table takes, in bytes. */
size_t symtab_bytes(struct symtab *symtab);

struct symtab *symtab_free(struct symtab *symtab);
void symtab_freep(struct symtab **symtab);

#endif
