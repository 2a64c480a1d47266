/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_DEMANGLE_H
#define STACKD_COMMON_DEMANGLE_H

/*
 * Converts a mangled C++ or Rust symbol to its full readable name, by means of libiberty. No state;
 * any thread.
 */

#include <stdbool.h>
#include <stddef.h>

/* Longer names are not demangled, because libiberty needs more stack the longer the name is. */
#define DEMANGLE_INPUT_MAX 1024
/* Longer results are discarded: a few hundred bytes of input can expand to gigabytes. */
#define DEMANGLE_OUTPUT_MAX 4096

/* True if the name begins like a mangled name. This cheap test is false for most names. */
bool demangle_is_candidate(const char *name);

/*
 * Writes the readable name to the buffer and returns the buffer. Returns `name` itself if it is not
 * mangled, exceeds a limit, or has a readable form that does not fit into the buffer. The buffer
 * need not be larger than DEMANGLE_OUTPUT_MAX.
 */
const char *demangle(const char *name, char *buffer, size_t size);

#endif
