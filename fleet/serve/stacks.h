/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SERVE_STACKS_H
#define STACKD_FLEET_SERVE_STACKS_H

/*
 * The stacks of the rows that an answer shows, by their ids. A stack that is not what its id says
 * is marked as ambiguous and not shown. Used by the thread that makes an answer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash_table.h"
#include "proto/wire.h"

struct arena;
struct fleet_config;
struct shards;

struct stack_entry {
	uint64_t id;
	struct wire_stack wire; /* no id: it was not found */
	bool is_forged;		/* only copies that are not what the id says were found */
	UT_hash_handle hh;
};

struct stacks {
	struct arena *arena;
	struct stack_entry *table;
	size_t n_ambiguous;
};

/* Notes that the answer needs a stack; 0 is none. Returns 0 or -ENOMEM. */
int stacks_want(struct stacks *stacks, uint64_t id);

/* Reads all stacks that are wanted. Returns 0 or a negative errno. */
int stacks_read(struct stacks *stacks, struct shards *shards, const struct fleet_config *config);

/* Returns a stack that was read; NULL if the id is 0. */
const struct wire_stack *stacks_get(const struct stacks *stacks, uint64_t id);

void stacks_fini(struct stacks *stacks);

#endif
