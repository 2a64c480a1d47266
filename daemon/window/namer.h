/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_NAMER_H
#define STACKD_DAEMON_WINDOW_NAMER_H

/* Names the frames of stacks. Owned by the resolver, and used by its thread only. */

#include "daemon/window/kernel_names.h"

struct frame_cache;
struct stack;
struct stack_table;
struct window;

struct namer {
	struct stack_table *stacks;
	char *const *idle_functions;
	struct frame_cache *frames;
	struct kernel_names kernel;
	int64_t until_ns; /* see process_refresh(); the resolver sets it for each piece of work */
};

/*
 * Makes a namer of the stacks of this table, which must outlive it; so must idle_functions, see
 * resolver_new(). 0 or -ENOMEM. The caller has to call kernel_names_init() before the first stack.
 */
int namer_init(struct namer *namer, struct stack_table *stacks, char *const *idle_functions);
void namer_fini(struct namer *namer);

/* Adds named frames to a stack that has none. May block: reads files. */
void namer_name(struct namer *namer, struct stack *stack);

/*
 * Puts stacks with new names in the place of those stacks of a window of which names have changed:
 * of code that was made at run time, by a perf map that has come or has changed; of files and
 * mappings that were read later; of modules of the kernel. A stack is named when it first arrives,
 * and the hottest stacks arrive only once. Windows that were handed on before keep the old names.
 * No other thread may use this window yet.
 */
void namer_renew(struct namer *namer, struct window *window);

#endif
