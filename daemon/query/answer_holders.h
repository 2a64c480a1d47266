/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_ANSWER_HOLDERS_H
#define STACKD_DAEMON_QUERY_ANSWER_HOLDERS_H

/*
 * Adds to the rows of waits that have not ended the objects that they wait for, their holders, and
 * what the holders wait for themselves. Each answer is made by one thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "daemon/query/answer.h"

/* STEPS: the maximum number of holders in a chain that is sent. */
enum { HOLDER_STEPS = 8 };

/* The wait of a thread that holds what another one waits for. */
struct holder_step {
	int64_t pid;
	int32_t tid;
	const char *comm; /* need not end with a NUL if it is COMM_LEN bytes long */
	enum wait_reason reason;
	const char *object; /* NULL: not known */
	uint64_t ns;	    /* for how long it waits */
};

/* What was found for a group; its memory is in the arena of the answer. */
struct group_holders {
	const char *object;  /* NULL: not known */
	const char *unknown; /* why the holders are not known; NULL: they are */
	const struct holder *holders;
	size_t n;
	size_t more; /* number of holders that are not in `holders` */
	/*
	 * the holder's own wait, that of its holder, and so on; of each step, the one before it has
	 * no other holder. The last one is the end of the chain, before which some of a long chain
	 * are left out
	 */
	struct holder_step steps[HOLDER_STEPS];
	size_t n_steps;
	bool is_turn;	   /* see struct holder_answer */
	bool is_deadlock;  /* the last step is held by the group's own thread */
	int64_t looked_ns; /* when it was looked up, in ns since the epoch; 0: for this answer */
};

/*
 * Looks up the holders of the first n of the answer's groups, but of at most HOLDER_LOOKUPS, and
 * only of those that wait for something that has holders; then the holders of these, of which some
 * may be among the other groups. Leaves out groups that have holders already. All n_all groups are
 * open waits. Returns 0 or -ENOMEM.
 */
int answer_holders_find(struct answer *answer, struct aggregate_group **groups, size_t n,
			size_t n_all);

/*
 * Notes of those of the groups that have holders, but were not looked up, that this is so; sets
 * *left_out to their number. Returns 0 or -ENOMEM.
 */
int answer_holders_left(struct answer *answer, struct aggregate_group **groups, size_t n,
			size_t *left_out);

/*
 * Sets the holders of those of the first n groups that have none yet, and whose longest wait was
 * looked up when it was recorded. Returns 0 or -ENOMEM.
 */
int answer_holders_recorded(struct answer *answer, struct aggregate_group **groups, size_t n);

/*
 * Makes those of the groups idle that wait for their turn, behind a worker of the same server that
 * waits for a client. Returns how many there were.
 */
size_t answer_holders_idle(struct aggregate_group **groups, size_t n);

/* Fills the members of a row that are about holders. Returns 0 or -ENOMEM. */
int answer_holders_wire(struct arena *arena, const struct aggregate_group *group,
			struct wire_row *row);

#endif
