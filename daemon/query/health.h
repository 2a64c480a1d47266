/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_HEALTH_H
#define STACKD_DAEMON_QUERY_HEALTH_H

/*
 * What is wrong now, in words: in go the recorder and the windows of the last minutes, out come
 * problems for `status`. None: the daemon is healthy. Strings are the arena's. Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/base.h"
#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"
#include "daemon/store/history.h"
#include "proto/wire.h"

/* Whatever was lost longer ago is no problem of today; status.lost has it still. */
#define HEALTH_LOSS_NS (600 * NS_PER_S)

enum { HEALTH_MAX_PROBLEMS = 6 + PROBE_KIND_N * (2 + WINDOW_LOST_N) };

/* The recorder's own problems, of the probes in the answer, and those of its windows. 0 or -ENOMEM.
 */
int health_problems(struct recorder *recorder, const struct answer *answer, struct wire_strs *out);

/*
 * Whether the host hides threads from BPF (drain_hidden): iolat does not see requests that end
 * meanwhile. That is no problem of the recorder's; its answers, and what probes are blind to, say
 * so.
 */
bool health_host_is_hiding(struct recorder *recorder);

/*
 * Of these windows, see history_lossy(), oldest first: one problem for each reason of loss, at
 * problems[*n] on. now: ns since the epoch. Where the host hides threads from BPF, requests that
 * end meanwhile are no problem: nothing can be done about it, and answers count them. 0 or -ENOMEM.
 */
int health_losses(struct arena *arena, const struct history_list *list, int64_t now, bool is_hiding,
		  const char **problems, size_t *n);

#endif
