/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SYMBOL_DEMANGLE_H
#define STACKD_DAEMON_SYMBOL_DEMANGLE_H

/*
 * Turns a mangled C++ or Rust symbol into its full readable name. No state, any thread. The only
 * user of libiberty.
 */

#include <stdbool.h>
#include <stddef.h>

#define DEMANGLE_INPUT_MAX \
	1024 /* libiberty needs stack in proportion, and has a limit of its own */
#define DEMANGLE_OUTPUT_MAX 4096 /* a few hundred bytes of input can expand to gigabytes */

/* True if the name may be mangled. A cheap test: most names are not. */
bool demangle_is_candidate(const char *name);

/*
 * Writes the readable name to buffer (size: DEMANGLE_OUTPUT_MAX holds every name) and returns it.
 * Returns name itself if it is not mangled, or if it exceeds a limit.
 */
const char *demangle(const char *name, char *buffer, size_t size);

#endif
