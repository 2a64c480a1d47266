/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_GO_PCLNTAB_H
#define STACKD_DAEMON_ELF_GO_PCLNTAB_H

/*
 * Reads pclntab, the table of functions in every Go program. It has the name of each function, and
 * for each address by how much the function has moved the stack pointer. Stripping a program does
 * not remove the table. All results point into the memory of the ELF handle, which must outlive
 * them; no state, any thread. The bytes may be hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/handle.h"

struct go_pclntab {
	const uint8_t *data;
	size_t size;
	uint64_t base; /* ELF virtual address of the code; function starts are relative to it */
	uint64_t n_functions;
	uint64_t names, steps, functions; /* offsets in `data` of the lists of names, of steps
					     (changes of sp) and of functions */
	bool is_1_20;			  /* the table was written by Go 1.20 or later */
};

struct go_function {
	uint64_t start, end; /* ELF virtual addresses; end is excluded */
	const char *name;    /* name of the function: never empty, no NUL at the end */
	size_t name_size;
	uint32_t steps; /* offset of the function's steps in the list of all steps; 0: not a Go
			   function */
	bool is_first;	/* the function starts a thread or goroutine, so it has no caller */
	bool writes_sp; /* the function moves sp in ways that its steps do not show */
};

/* A range of addresses. In it, the stack pointer is `depth` bytes below the return address. */
struct go_step {
	uint64_t start, end; /* ELF virtual addresses; end is excluded */
	uint32_t depth;
};

/*
 * Finds the table. Returns false if there is none, if its version is not known (as before Go 1.18),
 * or if the start of the code cannot be found. Sets *is_go_out to whether the file has Go code.
 */
bool go_pclntab_open(Elf *elf, struct go_pclntab *out, bool *is_go_out);

/* Reads function number i. Returns false if its data in the table is inconsistent. */
bool go_pclntab_function(const struct go_pclntab *go, uint64_t i, struct go_function *out);

/*
 * Calls `callback` for each step of a function, until the callback returns anything but 0. Returns
 * 0, or what the callback returned. Returns -EBADMSG at a step that is not valid; the steps passed
 * to the callback before are valid. Subtracts the number of bytes read from *budget and returns
 * -E2BIG when the budget is used up, because many functions may share one long list of steps.
 */
typedef int (*go_step_fn)(void *userdata, const struct go_step *step);
int go_pclntab_steps(const struct go_pclntab *go, const struct go_function *function,
		     uint64_t *budget, go_step_fn callback, void *userdata);

#endif
