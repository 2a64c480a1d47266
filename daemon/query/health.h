/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_HEALTH_H
#define STACKD_DAEMON_QUERY_HEALTH_H

/*
 * Finds problems of the running daemon for `stackctl status`: an enabled probe that is not on,
 * windows that are overdue or lost events, unreadable function names, a store that cannot be read
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

enum { HEALTH_MAX_PROBLEMS = 8 + STORE_TIERS_MAX + PROBE_KIND_N * (2 + WINDOW_LOST_N) };

/*
 * Sets *out to all problems of the daemon. The members for probes and the store in
 * answer->reply.status must be set before. Returns 0 or -ENOMEM.
 */
int health_problems(struct recorder *recorder, const struct answer *answer, struct wire_strs *out);

/*
 * True if the host hides some threads from BPF: it runs no BPF programs in such a thread, see
 * drain_hidden(). iolat then misses disk requests that are issued or end while such a thread is on
 * the CPU. This is not listed as a problem, because nothing can be done about it; `stackctl probes`
 * and the notes of answers mention it.
 */
bool health_host_is_hiding(struct recorder *recorder);

/*
 * Adds a problem to problems[] for each probe and each reason for which the windows of `list` lost
 * events. Adds the number of these problems to *n. `list` is made by history_lossy(), oldest window
 * first. `now` is in ns since the epoch. `is_hiding` is the result of health_host_is_hiding(); if
 * it is true, the loss of disk requests that BPF does not see is left out. Returns 0 or -ENOMEM.
 */
int health_losses(struct arena *arena, const struct history_list *list, int64_t now, bool is_hiding,
		  const char **problems, size_t *n);

#endif
