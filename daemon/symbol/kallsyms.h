/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_KALLSYMS_H
#define STACKD_DAEMON_SYMBOL_KALLSYMS_H

/*
 * The kernel's functions: in goes /proc/kallsyms, out come names for addresses. Owned by the
 * resolver, used on its thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/symbol.h"

struct kallsyms;

/*
 * Reads path (NULL: /proc/kallsyms). -EPERM when all addresses are hidden (kptr_restrict),
 * -errno when it cannot be read. *out is owned by the caller.
 */
int kallsyms_load(const char *path, struct kallsyms **out);

/*
 * Names one address; for a return address pass is_call so that address-1 is looked up while
 * offsets stay those of address. False (symbol filled with kind and address as offset) where no
 * function covers it.
 */
bool kallsyms_lookup(const struct kallsyms *symbols, uint64_t address, bool is_call,
		     struct symbol *symbol_out);

/* How many functions, and the memory in bytes. */
void kallsyms_size(const struct kallsyms *symbols, size_t *functions, size_t *bytes);

struct kallsyms *kallsyms_free(struct kallsyms *symbols);
void kallsyms_freep(struct kallsyms **symbols);

#endif
