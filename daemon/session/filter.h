/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_FILTER_H
#define STACKD_DAEMON_SESSION_FILTER_H

/*
 * The filter of a session or a query. Checks the filter in a client's request, and then decides
 * which threads, states, waits and I/O operations pass. A plain value that borrows the request's
 * strings; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/window/window.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

struct filter {
	const struct wire_filter *wire; /* the filter as requested; NULL: everything passes */
	const struct filter *base;	/* the session's filter, which applies too; or NULL */
	int64_t min_ns;			/* the shortest wait that passes; 0: no minimum */
	int64_t max_ns;			/* the longest wait that passes; INT64_MAX: no maximum */
	uint32_t states;     /* states that were given by name: bits by task_state_index() */
	uint32_t state_bits; /* states that were given by number: any of these bits passes */
	bool has_states;     /* only some task states pass */
	bool has_preempted;
	bool drops_kernel; /* kernel stacks are not wanted */
	bool drops_user;   /* user stacks are not wanted */
	/* True: the BPF programs have compared the cgroup at each event. It is not compared again,
	 * as the process may have been in another cgroup when stackd read it. */
	bool knows_cgroup;
	/* True: the BPF programs have compared thread ids and names. They are not compared again,
	 * as the windows have rows by process, without the ids and names of threads. */
	bool knows_threads;
};

/* Checks a requested filter and makes *filter of it. Returns 0, or -EINVAL with *error filled
 * (wire_error_clear() frees it). */
int filter_init(struct filter *filter, const struct wire_filter *wire, struct wire_error *error);

struct session_filter;
struct filter_cgroup;

/* Makes the filter that a session's BPF programs apply. cgroups: array of FILTER_CGROUPS entries,
 * the cgroups that the filter names. */
void filter_to_programs(const struct filter *filter, const struct filter_cgroup *cgroups,
			struct session_filter *out);

/* True if the filter selects threads, so that a query in which none matches gets an error. */
bool filter_selects_threads(const struct filter *filter);

bool filter_has_image(const struct filter *filter, const struct window_image *image,
		      const struct process_info *info);
bool filter_has_state(const struct filter *filter, uint32_t state);
bool filter_has_duration(const struct filter *filter, uint64_t ns);

/* True if waits of any state pass, however short. Waits too short for a row are recorded in sums
 * without a state, which can pass only as a whole. */
bool filter_has_shorts(const struct filter *filter);

/* Sums of the waits of a row; after filter_row(), sums of the waits whose length the filter lets
 * pass. */
struct filter_part {
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns;
	uint64_t max_ns; /* longest wait in ns; if has_max is false, a lower bound of it */
	bool has_max;
	bool is_estimate; /* the times are estimates, as only some of the waits pass */
	uint64_t buckets[WAIT_BUCKETS];
};

/*
 * Reduces the sums to the waits whose length the filter lets pass. The length of the longest wait
 * is known exactly, that of the others by bucket only. No sum grows. False if no wait is left.
 */
bool filter_row(const struct filter *filter, struct filter_part *part);

/* Checks that the filter's layer, operation and disk exist. 0, or -EINVAL with *error filled. */
int filter_io_check(const struct wire_filter *wire, struct wire_error *error);
bool filter_has_io(const struct filter *filter, const struct window_io *io);

#endif
