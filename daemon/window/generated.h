/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_GENERATED_H
#define STACKD_DAEMON_WINDOW_GENERATED_H

/*
 * Frames of code that a process made at run time and that has no name, as emulators do. Such
 * code has other addresses in each process, so each walk through it would be a stack of its own.
 * Pure; any thread.
 */

#include <stddef.h>

#include "daemon/symbol/symbol.h"

/*
 * Replaces the symbols of such code by one that is the same for all addresses and processes, and
 * several of them in a row by a single one. Returns the number of symbols that are left.
 */
size_t generated_merge(struct symbol *symbols, size_t n);

#endif
