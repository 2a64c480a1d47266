/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_SWEEPER_H
#define STACKD_DAEMON_SESSION_SWEEPER_H

/*
 * Sweeps the tables of processes and stacks, which all sessions share: a thread of its own removes
 * entries to which nothing refers, once in each window length. Owned by the recorder. The thread
 * runs even if no session does.
 */

#include <stddef.h>
#include <stdint.h>

struct budget;
struct config;
struct history;
struct process_table;
struct resolver;
struct sessions;
struct stack_table;
struct sweeper;

/* All pointers are borrowed and must outlive the sweeper. */
struct sweeper_options {
	const struct config *config; /* the settings; a reload may change the length of windows */
	struct process_table *processes;
	struct stack_table *stacks;
	struct history *history;
	struct resolver *resolver;
	struct sessions *sessions;
	struct budget *budget; /* the thread of the sweeper also calls budget_tick() */
};

/* How stackd keeps within the setting [budget] memory. */
struct sweeper_memory {
	size_t rss;	  /* the least of the last readings of the memory of the process */
	uint64_t lowered; /* how often that was lowered */
};

/* Starts the thread. 0, or a negative errno. */
int sweeper_start(const struct sweeper_options *options, struct sweeper **out);

/* Copies the present state to *out. Any thread. NULL is allowed: nothing was read then. */
void sweeper_memory(struct sweeper *sweeper, struct sweeper_memory *out);

/* Waits for the end of a running sweep and ends the thread. NULL is allowed. */
struct sweeper *sweeper_stop(struct sweeper *sweeper);

#endif
