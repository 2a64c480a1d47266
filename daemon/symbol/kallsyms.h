/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_KALLSYMS_H
#define STACKD_DAEMON_SYMBOL_KALLSYMS_H

/*
 * Reads the kernel's functions from /proc/kallsyms and finds the function of a kernel address. The
 * resolver (the thread that looks up names) owns the table; no other thread uses it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/symbol.h"

struct kallsyms;

/*
 * Reads the functions of the kernel from the file at `path`, or from /proc/kallsyms if `path` is
 * NULL. The caller owns *out. Returns 0; -EPERM if the kernel hides the addresses; -ENODATA if the
 * file has no functions; or another negative errno.
 */
int kallsyms_load(const char *path, struct kallsyms **out);

/*
 * Finds the function of an address. If is_call is true, the address is a return address; finds the
 * function that contains the byte before it. The offsets in *symbol_out are those of the address
 * itself. Returns false if no function covers the address; *symbol_out then has only the kind, and
 * the address as file_offset.
 */
bool kallsyms_lookup(const struct kallsyms *symbols, uint64_t address, bool is_call,
		     struct symbol *symbol_out);

/*
 * Stores the number of functions in the table, and the memory in bytes that the table takes. For
 * tests, which limit the memory per function.
 */
void kallsyms_size(const struct kallsyms *symbols, size_t *functions, size_t *bytes);

struct kallsyms *kallsyms_free(struct kallsyms *symbols);
void kallsyms_freep(struct kallsyms **symbols);

#endif
