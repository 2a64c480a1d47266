/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_FILTER_H
#define STACKD_DAEMON_SESSION_FILTER_H

/*
 * Which threads and waits a query is about: in goes the filter of a request, checked, out come
 * yes and no for images, states and waits. Borrows the request's strings; a plain value.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/window/window.h"
#include "proto/wire.h"
#include "proto/wire_error.h"

struct filter {
	const struct wire_filter *wire; /* NULL: everything */
	const struct filter *base;	/* that has to let it through too, or NULL */
	int64_t min_ns;			/* 0: none */
	int64_t max_ns;			/* INT64_MAX: none */
	uint32_t states;		/* those asked for by name, a bit each */
	uint32_t state_bits;		/* those asked for by number: any of these bits */
	bool has_states;
	bool has_preempted;
	bool drops_kernel; /* user stacks only */
	bool drops_user;
	/* Nothing was recorded that was not in its cgroup at that moment: where the process was
	 * when stackd read of it may be another one. */
	bool knows_cgroup;
	/* Nor of other threads, or of those with other names; its rows are of processes. */
	bool knows_threads;
};

/* 0, or -EINVAL with error filled (its strings are the caller's to free). */
int filter_init(struct filter *filter, const struct wire_filter *wire, struct wire_error *error);

struct session_filter;
struct filter_cgroup;

/* The same for the programs of a session, cgroups (FILTER_CGROUPS) being those that it names. */
void filter_to_programs(const struct filter *filter, const struct filter_cgroup *cgroups,
			struct session_filter *out);

/* Whether anything in it selects threads: then a filter that saw nobody is worth an error. */
bool filter_selects_threads(const struct filter *filter);

bool filter_has_image(const struct filter *filter, const struct window_image *image,
		      const struct process_info *info);
bool filter_has_state(const struct filter *filter, uint32_t state);
bool filter_has_duration(const struct filter *filter, uint64_t ns);

/* Whether it lets waits through of which only their sum is known: in any state, however short. */
bool filter_has_shorts(const struct filter *filter);

/* Waits of which only sums are kept, and what of them is within the filter's times. */
struct filter_part {
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns;
	uint64_t max_ns; /* the longest; without has_max it is at least so long, and not known */
	bool has_max;
	bool is_estimate; /* the time is, as waits on both sides of an edge are in it */
	uint64_t buckets[WAIT_BUCKETS];
};

/*
 * Reduces all to what is within the times: the longest is known exactly, the others by bucket.
 * The sums never grow. False when nothing is left.
 */
bool filter_row(const struct filter *filter, struct filter_part *part);

/* Whether layer, op and disk are there: 0, or -EINVAL with *error. */
int filter_io_check(const struct wire_filter *wire, struct wire_error *error);
bool filter_has_io(const struct filter *filter, const struct window_io *io);

#endif
