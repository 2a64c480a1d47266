/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_ELF_GO_PCLNTAB_H
#define STACKD_DAEMON_ELF_GO_PCLNTAB_H

/*
 * Go's own table of its functions, which stays when names and call frame information are stripped:
 * in goes a file, out come functions and how far each has moved the stack pointer where. All is
 * in the handle's memory, which must outlive it; no state, any thread. The bytes may be hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/elf/handle.h"

struct go_pclntab {
	const uint8_t *data;
	size_t size;
	uint64_t base; /* ELF virtual address that starts count from */
	uint64_t n_functions;
	uint64_t names, steps, functions; /* offsets */
	bool is_1_20;			  /* or later */
};

struct go_function {
	uint64_t start, end; /* ELF virtual addresses */
	const char *name;    /* not terminated, never empty */
	size_t name_size;
	uint32_t steps; /* 0: it is not Go's, and nothing is known of its stack */
	bool is_first;	/* of a thread or goroutine: it has no caller */
	bool writes_sp; /* in ways that its steps do not tell */
};

/* Where in a function the stack pointer is depth bytes below its return address. */
struct go_step {
	uint64_t start, end; /* ELF virtual addresses */
	uint32_t depth;
};

/*
 * False when there is no table of a version that is known (Go 1.18 and later), or nothing says
 * where its code is. *is_go_out: whether there is code of Go's all the same.
 */
bool go_pclntab_open(Elf *elf, struct go_pclntab *out, bool *is_go_out);

/* The function of that number; false where the table contradicts itself. */
bool go_pclntab_function(const struct go_pclntab *go, uint64_t i, struct go_function *out);

/*
 * Goes on while the callback returns 0; what else it returns ends the reading. Takes the bytes read
 * from *budget: -E2BIG when there are no more, for all functions may share one long piece. -EBADMSG
 * where the steps make no sense, after the ones that did.
 */
typedef int (*go_step_fn)(void *userdata, const struct go_step *step);
int go_pclntab_steps(const struct go_pclntab *go, const struct go_function *function,
		     uint64_t *budget, go_step_fn callback, void *userdata);

#endif
