/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_REACH_H
#define STACKD_DAEMON_QUERY_REACH_H

/*
 * Works out how far back the windows in memory and those on disk reach, for `stackctl status`. No
 * state; any thread.
 */

#include <stdint.h>

#include "common/arena.h"
#include "daemon/session/recorder.h"
#include "daemon/store/history.h"
#include "daemon/store/store.h"
#include "proto/wire.h"

/* Sets *out to the tiers of the store. `now` is in ns since the epoch. Returns 0 or -ENOMEM. */
int reach_tiers(struct arena *arena, const struct store_stats *stats, int64_t now,
		struct wire_tiers *out);

/*
 * Appends problems to problems[], at most 1 + STORE_TIERS_MAX, and adds their number to *n. There
 * is one problem if [window] max_memory causes windows in memory to be evicted before they reach
 * the age [window] keep, unless is_on_disk says that they are on disk. There is one problem for
 * each tier if [store] max_size causes its windows to be merged or evicted before they reach the
 * age in [store] tiers. `tiers` is the result of reach_tiers(). Returns 0 or -ENOMEM.
 */
int reach_problems(struct arena *arena, const struct history_stats *history,
		   const struct config *config, const struct wire_tiers *tiers, int64_t now,
		   bool is_on_disk, const char **problems, size_t *n);

#endif
