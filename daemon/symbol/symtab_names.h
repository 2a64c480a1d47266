/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_NAMES_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_NAMES_H

/*
 * A hash table of the readable names of functions, by the index of the function in its symbol
 * table. It has only names that were looked up, which are few of the many functions of a file.
 * Strings live as long as the table. One thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

struct symtab_names;

struct symtab_names *symtab_names_new(void);
struct symtab_names *symtab_names_free(struct symtab_names *names);

/* Returns the name of a function; NULL if it has not been added to the table. */
const char *symtab_names_find(const struct symtab_names *names, uint32_t function);

/*
 * Adds a copy of a function's name, which must not be in the table yet. Returns the copy; NULL when
 * out of memory.
 */
const char *symtab_names_add(struct symtab_names *names, uint32_t function, const char *name);

/* Returns the memory that the table takes, in bytes. */
size_t symtab_names_bytes(const struct symtab_names *names);

#endif
