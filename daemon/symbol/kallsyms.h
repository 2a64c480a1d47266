/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_KALLSYMS_H
#define STACKD_DAEMON_SYMBOL_KALLSYMS_H

/*
 * The kernel's functions: reads /proc/kallsyms and names kernel addresses. Owned by the resolver,
 * used on its thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/symbol.h"

struct kallsyms;

/*
 * Reads path (NULL: /proc/kallsyms). Returns 0, -EPERM when the kernel hides all addresses
 * (kptr_restrict), or the error of reading. *out is owned by the caller.
 */
int kallsyms_load(const char *path, struct kallsyms **out);

/*
 * Names one address. For a return address pass is_call: then address - 1 is looked up, while
 * offsets remain those of address. False where no function covers it; symbol_out then has the kind,
 * and the address as file_offset.
 */
bool kallsyms_lookup(const struct kallsyms *symbols, uint64_t address, bool is_call,
		     struct symbol *symbol_out);

/*
 * Returns how many functions there are and the memory they take, in bytes. For tests, which bound
 * the memory per function.
 */
void kallsyms_size(const struct kallsyms *symbols, size_t *functions, size_t *bytes);

struct kallsyms *kallsyms_free(struct kallsyms *symbols);
void kallsyms_freep(struct kallsyms **symbols);

#endif
