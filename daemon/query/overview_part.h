/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_QUERY_OVERVIEW_PART_H
#define STACKD_QUERY_OVERVIEW_PART_H

/*
 * The questions about single probes of which an overview consists, and what stands in the place of
 * an answer that there is not. For the daemon and the gateway of a fleet. Any thread.
 */

#include "common/probe_kind.h"
#include "proto/wire.h"

/*
 * Fills in the request for the answer of one probe: for offcpu, about the range of the overview,
 * for the others about the time `used`, with the filter's parts about lengths, states and reasons
 * of waits left out, which only waits have. `*filter` has to live as long as the request.
 */
void overview_part_request(const struct wire_overview_request *request, enum probe_kind kind,
			   struct wire_range used, struct wire_filter *filter,
			   struct wire_snapshot_request *out);

/* Makes the reply, which is all zeros, one without rows of this probe. */
void overview_part_missing(enum probe_kind kind, struct wire_snapshot_reply *reply);

#endif
