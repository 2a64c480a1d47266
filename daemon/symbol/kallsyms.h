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
 * Stores the number of functions in the table, and the memory in bytes that the table takes. For
 * tests, which limit the memory per function.
 */
int kallsyms_load(const char *path, struct kallsyms **out);

/*
 * Finds the function of an address. is_call: the address is a return address, so the function of
 * address - 1 is found; offsets in *symbol_out still refer to address. False if no function covers
 * it; *symbol_out then only has the kind, and the address as file_offset.
 */
bool kallsyms_lookup(const struct kallsyms *symbols, uint64_t address, bool is_call,
		     struct symbol *symbol_out);

/*
 * Finds the number of functions in the table and the memory that the table takes, in bytes. For
 * tests, which limit the memory per function.
 */
void kallsyms_size(const struct kallsyms *symbols, size_t *functions, size_t *bytes);

struct kallsyms *kallsyms_free(struct kallsyms *symbols);
void kallsyms_freep(struct kallsyms **symbols);

#endif
