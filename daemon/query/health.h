/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_HEALTH_H
#define STACKD_DAEMON_QUERY_HEALTH_H

/*
 * Finds problems of the running daemon for `stackctl status`: an enabled probe that is not on,
 * windows that are overdue, wait for names or lost events, threads that hang, unreadable function
 * names, a store that cannot be read
 * or written. The daemon is healthy if it has no problems. The strings are static or in the arena;
 * any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/base.h"
#include "daemon/base/activity.h"
#include "daemon/parse/parser.h"
#include "daemon/process/process.h"
#include "daemon/query/answer.h"
#include "daemon/session/budget.h"
#include "daemon/session/recorder.h"
#include "daemon/store/history.h"
#include "daemon/store/store.h"
#include "proto/wire.h"

/* Only losses in the last 10 minutes are problems; status.lost also counts older ones. */
#define HEALTH_LOSS_NS (600 * NS_PER_S)

/*
 * A thread that has been at one piece of work for this long, and for three window lengths, is
 * reported as stuck. HEALTH_STUCK_MAX: maximum number of such threads that are reported.
 */
#define HEALTH_STUCK_NS (10 * NS_PER_S)

enum { HEALTH_STUCK_MAX = 8 };

enum {
	HEALTH_MAX_PROBLEMS = 11 + STORE_PROBLEMS + STORE_NOTICES + HEALTH_STUCK_MAX +
			      STORE_TIERS_MAX + PROBE_KIND_N * (3 + WINDOW_LOST_N)
};

/*
 * Sets *out to all problems of the daemon. The members for probes and the store in
 * answer->reply.status must be set before. Returns 0 or -ENOMEM.
 */
int health_problems(struct recorder *recorder, const struct answer *answer, struct wire_strs *out);

/*
 * True if so large a part of the disk requests was not seen that answers about disks are not to be
 * trusted. `seen` and `unseen` are numbers of requests.
 */
bool health_unseen_is_much(uint64_t seen, uint64_t unseen);

/*
 * Adds a problem to problems[] for each probe and each reason for which the windows of `list` lost
 * events. If a control group fills most of the newest of them, names it: the tables that were full
 * are shared by all. Adds the number of these problems to *n. `list` is made by history_lossy(),
 * oldest window first. If is_unseen_usual is true, the loss of disk requests that BPF does not see
 * is left out: the host hides threads from BPF, and nothing can be done about it. Returns 0 or
 * -ENOMEM.
 */
int health_losses(struct arena *arena, const struct history_list *list, bool is_unseen_usual,
		  const char **problems, size_t *n);

/*
 * The following functions add the problems that these facts make to problems[], and the number of
 * these problems to *n. A NULL that they add means that there was no memory. now_ns is of
 * CLOCK_REALTIME.
 */

/* About the database. */
void health_store(struct arena *arena, const struct store_stats *store, int64_t now_ns,
		  const char **problems, size_t *n);

/* If recording cost more than its budget, which is an average over a minute. */
void health_budget(struct arena *arena, const struct budget_state *state, int64_t now_ns,
		   const char **problems, size_t *n);

/* If files are not opened because a file system does not answer. */
void health_openings(struct arena *arena, const struct opener_stats *opening, const char **problems,
		     size_t *n);

/* If processes cannot be read because their memory maps are locked. */
void health_reads(struct arena *arena, const struct process_stats *processes, const char **problems,
		  size_t *n);

/* If files cannot be parsed, as without memory or under a limit on processes. */
void health_parser(struct arena *arena, const struct parser_stats *parser, const char **problems,
		   size_t *n);

/* For each probe that is enabled and failed to attach. */
void health_probes(struct arena *arena, const struct wire_probes *probes, const char **problems,
		   size_t *n);

/* If kernel functions have no names. `error`: the errno of reading them, negative; 0: none. */
void health_kernel_names(struct arena *arena, int error, const char **problems, size_t *n);

/* For each of these threads, which have been at one piece of work for too long. */
void health_stuck(struct arena *arena, const struct activity_stuck *stuck, size_t count,
		  const char **problems, size_t *n);

/* The windows of a probe that is on. Times are of CLOCK_MONOTONIC. */
struct health_windows {
	enum probe_kind kind;
	int64_t now_ns;
	int64_t length_ns; /* length of a window */
	int64_t since_ns;  /* since when the probe is on */
	int64_t cut_ns;	   /* time of the last cut */
	int64_t newest_ns; /* end of the newest window with all its names; 0: there is none */
};

/*
 * If its windows are not cut in time; or they are, but wait for names; or none has ever arrived. At
 * most one problem.
 */
void health_windows(struct arena *arena, const struct health_windows *of, const char **problems,
		    size_t *n);

#endif
