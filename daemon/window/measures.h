/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_MEASURES_H
#define STACKD_DAEMON_WINDOW_MEASURES_H

/*
 * The measures of rows of waits. Each is a uint64_t in struct window_row and a column of it on
 * disk; it is added up where windows are folded, merged and aggregated, and scaled where a filter
 * selects a part of the waits of a row. A new one is a line here. What fills it is the probe's
 * builder, what shows it is in answer_rows.c and proto/io.stackd.varlink.
 */

/* These are estimated for a part of the waits of a row, in proportion to the lengths of the waits.
 */
#define WAIT_SHARES(X)                                                              \
	X(blocked_ns)                                                               \
	X(runnable_ns)                                                              \
	/* part of runnable_ns during which the thread's cgroup had no CPU quota */ \
	X(throttled_ns)

#define WAIT_MEASURES(X)               \
	X(count) /* number of waits */ \
	WAIT_SHARES(X)

#define WAIT_MEASURE_MEMBER(member) uint64_t member;

/* Adds the measures of *more to those of *sum. Both are structs of any type with these members. */
#define WAIT_MEASURES_ADD(sum, more)            \
	do {                                    \
		__auto_type add_to = (sum);     \
		__auto_type add_from = (more);  \
		WAIT_MEASURES(WAIT_MEASURE_ADD) \
	} while (0)
#define WAIT_MEASURE_ADD(member) add_to->member += add_from->member;

/* Copies them. */
#define WAIT_MEASURES_SET(to, from)             \
	do {                                    \
		__auto_type set_to = (to);      \
		__auto_type set_from = (from);  \
		WAIT_MEASURES(WAIT_MEASURE_SET) \
	} while (0)
#define WAIT_MEASURE_SET(member) set_to->member = set_from->member;

#endif
