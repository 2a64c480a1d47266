/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_NAMER_H
#define STACKD_DAEMON_WINDOW_NAMER_H

/* Names the frames of stacks. Owned by the resolver, and used by its thread only. */

#include "daemon/window/kernel_names.h"

struct frame_cache;
struct stack;
struct stack_table;

struct namer {
	struct stack_table *stacks;
	char *const *idle_functions;
	struct frame_cache *frames;
	struct kernel_names kernel;
};

/*
 * Makes a namer of the stacks of this table, which must outlive it; so must idle_functions, see
 * resolver_new(). 0 or -ENOMEM. The caller has to call kernel_names_init() before the first stack.
 */
int namer_init(struct namer *namer, struct stack_table *stacks, char *const *idle_functions);
void namer_fini(struct namer *namer);

/* Adds named frames to a stack that has none. May block: reads files. */
void namer_name(struct namer *namer, struct stack *stack);

#endif
