/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_SYMTAB_NAMES_H
#define STACKD_DAEMON_SYMBOL_SYMTAB_NAMES_H

/*
 * Names that had to be made, by the number of the function: of a table's many functions few are
 * ever asked for. In and out go strings, which stay as long as the set. One thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

struct symtab_names;

struct symtab_names *symtab_names_new(void);
struct symtab_names *symtab_names_free(struct symtab_names *names);

/* NULL where there is none. */
const char *symtab_names_find(const struct symtab_names *names, uint32_t function);

/* Copies the name of a function that has none yet; the copy, or NULL when out of memory. */
const char *symtab_names_add(struct symtab_names *names, uint32_t function, const char *name);

/* Memory it takes. */
size_t symtab_names_bytes(const struct symtab_names *names);

#endif
