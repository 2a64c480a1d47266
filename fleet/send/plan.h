/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SEND_PLAN_H
#define STACKD_FLEET_SEND_PLAN_H

/*
 * Finds out what has to be sent: compares the windows that the daemon has with what the server has.
 * Pure functions; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "proto/wire.h"

struct arena;

/* A stretch of time that the server has a header or a gap for. */
struct plan_span {
	int64_t start_ns;
	int64_t end_ns;
};

struct plan_spans {
	struct plan_span *v; /* by start_ns */
	size_t n, capacity;
};

/* A stretch of time to be sent: one window, those of one minute, or a gap. */
struct plan_item {
	int64_t start_ns;
	int64_t end_ns;
	int64_t seq;	    /* of its first window */
	const char *reason; /* of a gap; NULL: it is no gap */
};

struct plan {
	struct plan_item *v; /* by start_ns */
	size_t n;
	/*
	 * The last stretch with windows that overlap others which were sent by themselves: the
	 * clock was set back, and the server can have one window of a time only. 0: there is none
	 */
	struct plan_span lost;
};

/* Reasons of gaps for which the daemon has none. */
#define PLAN_AGED   "the daemon did not keep it until it was sent"
#define PLAN_MERGED "a part of a longer window, of which another part had been sent"
#define PLAN_BACK   "the clock was set back to a time of which windows had been sent"

/*
 * Plans what to send of `windows`, which are ordered by start. each_ns is 0 for a stretch for each
 * window, or the length of aligned slices, each of which consists of the windows whose middle lies
 * in it; a slice that ends after `until_ns` has to wait for more windows. What the server has, in
 * `known`, is not sent again. The plan is in the arena. Returns 0 or -ENOMEM.
 */
int plan_make(const struct wire_windows_reply *windows, const struct plan_spans *known,
	      int64_t each_ns, int64_t until_ns, struct arena *arena, struct plan *out);

/* Leaves out of a plan what ended by `since_ns`, and the part of a gap before that. */
void plan_limit(struct plan *plan, int64_t since_ns);

#endif
