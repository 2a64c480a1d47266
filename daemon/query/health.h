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
#include "daemon/query/answer.h"
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
	HEALTH_MAX_PROBLEMS =
		9 + HEALTH_STUCK_MAX + STORE_TIERS_MAX + PROBE_KIND_N * (3 + WINDOW_LOST_N)
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

#endif
