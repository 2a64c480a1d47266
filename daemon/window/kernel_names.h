/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_KERNEL_NAMES_H
#define STACKD_DAEMON_WINDOW_KERNEL_NAMES_H

/*
 * Names kernel addresses by /proc/kallsyms, which is read again when that is due. Only the
 * resolver's thread calls these functions; any thread may read `status`.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/symbol/symbol.h"

struct kallsyms;

struct kernel_names {
	struct kallsyms *symbols; /* NULL: they could not be read */
	/* symbols before the last reload; the stack that is being named may point to them */
	struct kallsyms *before;
	int64_t reload_ns;    /* when they may be read again */
	uint64_t modules;     /* hash of the list of loaded modules before the symbols were read */
	int64_t checked_ns;   /* when this list was last looked at */
	uint32_t version;     /* how often the symbols were read */
	uint64_t own_bpf;     /* own_bpf_generation() before the symbols were read */
	_Atomic int status;   /* of the last attempt to read them: 0, or a negative errno */
	uint64_t sched_start; /* address at which the scheduler's functions start; 0: unknown */
	uint64_t sched_end;   /* address at which the scheduler's functions end; 0: unknown */
};

/* Reads the symbols. *names must be all 0. */
void kernel_names_init(struct kernel_names *names);
void kernel_names_fini(struct kernel_names *names);

/*
 * Finds the function of an address; if is_call is true, of the call before it. The strings in *out
 * are valid until kernel_names_release() is called.
 */
void kernel_names_lookup(struct kernel_names *names, uint64_t ip, bool is_call, struct symbol *out);
void kernel_names_release(struct kernel_names *names);

/*
 * Reads the symbols again if modules were loaded or unloaded since, at most every 10 s. Then
 * names->version is another one.
 */
void kernel_names_refresh(struct kernel_names *names);

#endif
