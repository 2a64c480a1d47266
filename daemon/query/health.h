/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_HEALTH_H
#define STACKD_DAEMON_QUERY_HEALTH_H

/*
 * Finds problems of the running daemon for `stackctl status`: an enabled probe that is not on,
 * windows that are overdue or lost events, names or a disk that cannot be read or written. The
 * daemon is healthy if there are none. Strings are the arena's or static; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/base.h"
#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"
#include "daemon/store/history.h"
#include "proto/wire.h"

/* Losses longer ago are no problem of today; they remain in status.lost. */
#define HEALTH_LOSS_NS (600 * NS_PER_S)

enum { HEALTH_MAX_PROBLEMS = 6 + PROBE_KIND_N * (2 + WINDOW_LOST_N) };

/* Sets *out to all problems; answer->reply.status has its probes already. 0 or -ENOMEM. */
int health_problems(struct recorder *recorder, const struct answer *answer, struct wire_strs *out);

/*
 * True if the host hides threads from BPF while they run, see drain_hidden(). iolat cannot see disk
 * requests that end during that time. This is not listed as a problem: nothing can be done about
 * it, and the probe's blind spots and the notes of its answers name it.
 */
bool health_host_is_hiding(struct recorder *recorder);

/*
 * Adds a problem for each probe and reason of loss in these windows (oldest first, from
 * history_lossy()) at problems[*n], and counts *n up. now: ns since the epoch. is_hiding: the
 * result of health_host_is_hiding(); requests that BPF does not see are left out then. 0 or
 * -ENOMEM.
 */
int health_losses(struct arena *arena, const struct history_list *list, int64_t now, bool is_hiding,
		  const char **problems, size_t *n);

#endif
