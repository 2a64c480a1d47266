/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_NAMES_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_NAMES_H

/*
 * Demangled names by the number of their function. A hash table, because few of the many functions
 * of a file are ever asked for. Strings live as long as the table. One thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

struct symtab_names;

struct symtab_names *symtab_names_new(void);
struct symtab_names *symtab_names_free(struct symtab_names *names);

/* Returns the name of a function, NULL where it has none yet. */
const char *symtab_names_find(const struct symtab_names *names, uint32_t function);

/* Copies the name of a function that has none yet. Returns the copy, NULL when out of memory. */
const char *symtab_names_add(struct symtab_names *names, uint32_t function, const char *name);

/* Returns the memory it takes, in bytes. */
size_t symtab_names_bytes(const struct symtab_names *names);

#endif
