/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_DRAIN_H
#define STACKD_DAEMON_DRAIN_DRAIN_H

/*
 * Reads the data that a session's BPF programs record (stage 3 of the pipeline). Empties the ring
 * as it fills, and rotates windows: gives the programs an empty window map, waits until no program
 * uses the old map, and reads the old map as a whole. Passes stacks and windows on to the resolver.
 * Owned by the session; has a thread of its own.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/drain/openwait_reader.h"
#include "daemon/window/window.h"

struct call_stream;
struct config;
struct drain;
struct probe;
struct process_table;
struct resolver;
struct stack_table;

struct drain_stats {
	uint64_t cuts;
	int64_t cut_ns; /* duration of the last cut, from its start until the window was built */
	int64_t cut_max_ns; /* duration of the longest cut */
	int64_t last_ns;    /* time at which the last cut ended, CLOCK_MONOTONIC */
	uint64_t threads;   /* number of threads that the programs knew at the last cut */
	uint64_t keys_max;  /* largest number of keys that the map of one window had */
	uint64_t stale;	    /* number of threads dropped because they had ended unnoticed */
	uint64_t lost[WINDOW_LOST_N]; /* losses since the start, by reason (enum loss, enum
					 window_loss) */
	uint64_t every;	       /* kinds that record calls: one call in `every` is recorded now */
	uint64_t calls_per_s;  /* kinds that record calls: calls per second that match the filter */
	uint64_t load_percent; /* kinds that record calls: cost, in percent of one CPU */
	bool is_over; /* kinds that record calls: over the budget even at the lowest rate */
	struct cpu_counts counts;	/* the programs' counters, as read at the last cut */
	struct openwait_stats openwait; /* offcpu: counts of the open wait reader */
};

/* All pointers are borrowed and must outlive the drain. */
struct drain_options {
	const struct config *config;
	struct probe *probe;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	uint64_t session;	/* number of the session, which its windows get */
	int64_t min_wait_ns;	/* offcpu: open waits shorter than this get no row */
	bool follows_processes; /* the drain reports forks, execs and exits to `processes` */
	bool may_be_short;	/* the session may end soon: open stacks are read from the start */
	struct call_stream *calls; /* the stream that takes the calls; NULL: none are streamed */
	uint64_t rate;		   /* largest number of calls streamed per second */
	uint64_t call_cost_ns; /* kinds that record calls: time to reach the program, per call */
};

/* Makes a drain, begins its first window and starts its thread. 0, or a negative errno. */
int drain_start(const struct drain_options *options, struct drain **out);

/*
 * Cuts the open window, passes it on to the resolver, ends the thread and frees the drain. Stores
 * the last counts in *stats_out and the number of the last window in *seq_out; both pointers may be
 * NULL.
 */
struct drain *drain_stop(struct drain *drain, struct drain_stats *stats_out, uint64_t *seq_out);

/*
 * Cuts the open window now. Does not cut if the window is shorter than the setting [window]
 * min_length, unless it is the first one. Stores the sequence number of the newest window in
 * *seq_out; 0 if there is none yet. 0, or -ETIMEDOUT if the drain's thread did not finish the cut
 * in time. Any thread.
 */
int drain_cut(struct drain *drain, int64_t timeout_ns, uint64_t *seq_out);

/* Copies the present counts to *out. Any thread. */
void drain_stats(struct drain *drain, struct drain_stats *out);

/*
 * offcpu: returns the number of switches of threads that the host hides from BPF; 0 if it hides
 * none.
 */
uint64_t drain_hidden(const struct drain_stats *stats);

#endif
