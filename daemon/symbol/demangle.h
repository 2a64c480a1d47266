/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_DEMANGLE_H
#define STACKD_DAEMON_SYMBOL_DEMANGLE_H

/*
 * Names as people wrote them: in goes a C++ or Rust symbol, out comes its full readable name.
 * Stateless, any thread. The only door to libiberty.
 */

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_INPUT_MAX  1024 /* libiberty needs stack in proportion, and refuses more itself */
#define DEMANGLE_OUTPUT_MAX 4096 /* a few hundred bytes of input can stand for gigabytes */

/* Whether the name may be a mangled one at all: cheap, for most names are not. */
bool demangle_is_candidate(const char *name);

/*
 * Writes the readable name to buffer (size: DEMANGLE_OUTPUT_MAX for all of them) and returns it,
 * or returns name itself where it is a plain one or where a limit stands against it.
 */
const char *demangle(const char *name, char *buffer, size_t size);

#endif
