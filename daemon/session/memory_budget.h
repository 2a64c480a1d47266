/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_MEMORY_BUDGET_H
#define STACKD_DAEMON_SESSION_MEMORY_BUDGET_H

/*
 * Decides how much memory the windows in memory may take, so that stackd keeps within the setting
 * [budget] memory. Only windows can make room: their past is on disk, too, whereas what stackd
 * needs to record cannot be shed. No state but its own; one thread.
 */

#include <stddef.h>
#include <stdint.h>

/* The number of readings, one a second, after which there is a decision. */
enum { MEMORY_READINGS = 16 };

/* An all zero struct has taken no reading. */
struct memory_budget {
	size_t least;	  /* the least of the readings since the last decision, in bytes */
	unsigned int n;	  /* number of these readings */
	size_t limit;	  /* what windows may take, in bytes; 0: there was no decision yet */
	uint64_t lowered; /* how often the limit was lowered */
};

struct memory_reading {
	size_t rss;	/* memory of the process */
	size_t budget;	/* the setting [budget] memory */
	size_t windows; /* what windows take now */
	size_t most;	/* the setting [window] max_memory */
};

/*
 * Takes a reading. After MEMORY_READINGS of them, lowers the limit if all were above the budget,
 * and raises it again if there is room. Memory that is above the budget only now and then belongs
 * to answers to clients, and changes nothing. Returns the limit: at least a quarter of
 * reading->most, at most all of it.
 */
size_t memory_budget_update(struct memory_budget *budget, const struct memory_reading *reading);

#endif
