/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_FILTER_H
#define STACKD_DAEMON_SESSION_FILTER_H

/*
 * The filter of a session or a query: checks the one of a request, and then decides which threads,
 * states, waits and I/O pass. A plain value that borrows the request's strings; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/window/window.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

struct filter {
	const struct wire_filter *wire; /* NULL: everything */
	const struct filter *base;	/* a filter that has to pass too: the session's; or NULL */
	int64_t min_ns;			/* 0: no minimum */
	int64_t max_ns;			/* INT64_MAX: no maximum */
	uint32_t states;		/* states by name: a bit for each row of the table */
	uint32_t state_bits;		/* states by number: any of these bits */
	bool has_states;
	bool has_preempted;
	bool drops_kernel; /* kernel stacks are not wanted */
	bool drops_user;   /* user stacks are not wanted */
	/* The programs have compared cgroups at each event. The cgroup that stackd has of the
	 * process may be another one, read at another time: it is not compared again. */
	bool knows_cgroup;
	/* The programs have compared threads and names: rows are by process, which has others. */
	bool knows_threads;
};

/* Checks a filter. 0, or -EINVAL with *error filled (wire_error_clear() frees it). */
int filter_init(struct filter *filter, const struct wire_filter *wire, struct wire_error *error);

struct session_filter;
struct filter_cgroup;

/* Makes the filter of a session's programs. cgroups: the FILTER_CGROUPS that the filter names. */
void filter_to_programs(const struct filter *filter, const struct filter_cgroup *cgroups,
			struct session_filter *out);

/* True if it selects threads: then it is worth an error that it matched none. */
bool filter_selects_threads(const struct filter *filter);

bool filter_has_image(const struct filter *filter, const struct window_image *image,
		      const struct process_info *info);
bool filter_has_state(const struct filter *filter, uint32_t state);
bool filter_has_duration(const struct filter *filter, uint64_t ns);

/* True if waits of any state, however short, pass: of the shortest only sums are recorded. */
bool filter_has_shorts(const struct filter *filter);

/* Sums of several waits, or of those of them that are within the filter's times. */
struct filter_part {
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns;
	uint64_t max_ns; /* the longest wait; without has_max, a lower bound of it */
	bool has_max;
	bool is_estimate; /* times are estimated: a bucket has waits on both sides of a limit */
	uint64_t buckets[WAIT_BUCKETS];
};

/*
 * Reduces sums to the waits that are within the filter's times. The longest wait is known exactly,
 * the others by bucket. Sums never grow. False if nothing is left.
 */
bool filter_row(const struct filter *filter, struct filter_part *part);

/* Checks that layer, operation and disk exist. 0, or -EINVAL with *error. */
int filter_io_check(const struct wire_filter *wire, struct wire_error *error);
bool filter_has_io(const struct filter *filter, const struct window_io *io);

#endif
