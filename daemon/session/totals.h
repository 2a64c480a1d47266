/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SESSION_TOTALS_H
#define STACKD_DAEMON_SESSION_TOTALS_H

/*
 * Adds up the windows of the probes that are always on, from the start of the daemon: the counters
 * that monitoring systems collect. They never fall. At most TOTALS_UNITS units have counters of
 * their own; the others share one. Owned by the recorder; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/buckets.h"
#include "bpf/io_shared.h"
#include "common/wait_class.h"
#include "daemon/window/window.h"

enum {
	TOTALS_UNITS = 50,
	/* units with longer paths, or names that are no UTF-8, have no counters of their own */
	TOTALS_UNIT_LEN = 256,
};

/* Times of the threads of a unit. */
struct totals_unit {
	char path[TOTALS_UNIT_LEN]; /* the unit's control group */
	uint64_t blocked_ns[WAIT_CLASS_N];
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* part of runnable_ns */
};

/*
 * What is known about the windows of a probe. last_ns is the end of the last one, in ns since the
 * epoch; covered_ns is the sum of their lengths, gap_ns the time between one and the next.
 */
struct totals_probe {
	uint64_t windows;
	uint64_t covered_ns;
	uint64_t gap_ns;
	int64_t last_ns;      /* 0: there is no window yet */
	int64_t last_mono_ns; /* the same moment by CLOCK_MONOTONIC */
	uint64_t last_seq;    /* the window's number, see struct window */
};

/* Operations of one layer and kind. buckets[i] counts those of 2^i up to 2^(i+1) ns. */
struct totals_io {
	uint64_t count;
	uint64_t total_ns;
	uint64_t bytes;
	uint64_t errors;
	uint64_t async;
	uint64_t buckets[IO_BUCKETS_N];
};

struct totals_data {
	struct totals_unit units[TOTALS_UNITS];
	size_t n_units;
	struct totals_unit others; /* its path is "" */
	uint64_t
		given_up; /* number of units that lost their counters to others, see totals_add() */
	uint64_t not_added; /* number of windows that are missing for lack of memory */
	/* Waits of preempted and new threads that ended: their whole length and their buckets. */
	uint64_t preempted_ns;
	uint64_t preempted[WAIT_BUCKETS];
	struct totals_io ios[IO_LAYERS][IO_OPS];
	struct totals_probe probes[PROBE_KIND_N];
	uint64_t pressure_ns;	 /* for how long `stalled` was measured */
	uint32_t pressure_state; /* enum pressure_state, in the last window of offcpu */
	struct pressure stalled; /* of the host, in the windows of offcpu */
};

struct totals;

/* Returns 0 or -ENOMEM. */
int totals_new(struct totals **out);
struct totals *totals_free(struct totals *totals);

/*
 * Adds a window of a probe that is always on; no thread may change it any more. As long as the unit
 * of one of its processes has not been read yet, a window of offcpu is held back, at most until the
 * next one: so each time is added to the unit in which queries find it. A unit gets counters of its
 * own in the first window in which it has waits, as long as there is room; in each window, those
 * that were ready or waited for something for longest come first. When there is no room, it takes
 * the place of the unit that was last seen longest ago, if that is more than TOTALS_GONE_NS ago.
 * The counters of that unit end.
 */
void totals_add(struct totals *totals, struct window *window);

/* A unit without any thread for this time may lose its place. */
#define TOTALS_GONE_NS (600 * INT64_C(1000000000))

/*
 * Copies all counters: for each probe, the sums of its windows up to last_seq. Adds a window that
 * was held back and whose units are known by now.
 */
void totals_read(struct totals *totals, struct totals_data *out);

/*
 * Returns the length of the part of a control group's path that names its unit: up to the first
 * component that is no slice, or the whole path if all are slices.
 */
size_t totals_unit_length(const char *cgroup);

#endif
