/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_GO_PCLNTAB_H
#define STACKD_DAEMON_ELF_GO_PCLNTAB_H

/*
 * Reads pclntab, the table that Go's runtime has of its functions: their names, and by how much
 * they have moved the stack pointer at each address. It stays when a program is stripped. All
 * results point into the handle's memory, which must outlive them; no state, any thread. The bytes
 * may be hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/handle.h"

struct go_pclntab {
	const uint8_t *data;
	size_t size;
	uint64_t base; /* ELF virtual address that the starts of functions count from */
	uint64_t n_functions;
	uint64_t names, steps, functions; /* offsets in data */
	bool is_1_20;			  /* written by Go 1.20 or later */
};

struct go_function {
	uint64_t start, end; /* ELF virtual addresses */
	const char *name;    /* never empty, not terminated by NUL */
	size_t name_size;
	uint32_t steps; /* 0: not written in Go, and nothing is known of its stack */
	bool is_first;	/* the first function of a thread or goroutine: it has no caller */
	bool writes_sp; /* it moves sp in ways that its steps do not show */
};

/* A range of addresses where the stack pointer is depth bytes below the return address. */
struct go_step {
	uint64_t start, end; /* ELF virtual addresses */
	uint32_t depth;
};

/*
 * Finds the table. False when there is none, when its version is not known (before Go 1.18), or
 * when the start of the code cannot be found. *is_go_out: the file has Go code in any case.
 */
bool go_pclntab_open(Elf *elf, struct go_pclntab *out, bool *is_go_out);

/* Reads function number i. False where the table contradicts itself. */
bool go_pclntab_function(const struct go_pclntab *go, uint64_t i, struct go_function *out);

/*
 * Calls back for the steps of a function; a callback that does not return 0 ends the reading. The
 * bytes read are taken from *budget, because many functions may share one long list of steps:
 * -E2BIG when it is used up. -EBADMSG where a step makes no sense; callbacks made before it stand.
 */
typedef int (*go_step_fn)(void *userdata, const struct go_step *step);
int go_pclntab_steps(const struct go_pclntab *go, const struct go_function *function,
		     uint64_t *budget, go_step_fn callback, void *userdata);

#endif
