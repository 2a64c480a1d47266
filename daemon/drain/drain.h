/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_DRAIN_H
#define STACKD_DAEMON_DRAIN_DRAIN_H

/*
 * Stage 3 of one session: empties the ring as it fills and cuts windows: swaps the map, waits until
 * no program uses the old one, reads it whole. Out go stacks and windows to the resolver. Owned by
 * the session; has a thread of its own.
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
	int64_t cut_ns;			/* from cut to drained, the last one */
	int64_t cut_max_ns;		/* and the longest */
	int64_t last_ns;		/* when the last cut was drained, CLOCK_MONOTONIC */
	uint64_t threads;		/* in the map at the last cut */
	uint64_t keys_max;		/* most keys in one window */
	uint64_t stale;			/* threads dropped because no task was left for them */
	uint64_t lost[WINDOW_LOST_N];	/* since the start */
	uint64_t every;			/* of calls: one in so many is recorded now, */
	uint64_t calls_per_s;		/* of so many, */
	uint64_t load_percent;		/* which takes so much of one CPU; */
	bool is_over;			/* too much of it, whatever is recorded */
	struct cpu_counts counts;	/* of the programs, as read at the last cut */
	struct openwait_stats openwait; /* offcpu: of the user stacks of waits that go on */
};

/* All of it is borrowed and must outlive the drain. */
struct drain_options {
	const struct config *config;
	struct probe *probe;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	uint64_t session;	/* that the windows are of */
	int64_t min_wait_ns;	/* offcpu: open waits below have no row */
	bool follows_processes; /* it reports forks, execs and exits to `processes` */
	bool may_be_short;	/* its first window may be over when what reads stacks is loaded */
	struct call_stream *calls; /* where streamed calls go; NULL: none are */
	uint64_t rate;		   /* of these, a second */
	uint64_t call_cost_ns;	   /* of calls: of reaching the programs */
};

/* Seeds the threads, then starts the thread. */
int drain_start(const struct drain_options *options, struct drain **out);

/*
 * Cuts the open window, gives it to the resolver and ends the thread. Its last counts and the
 * number of its last window go to stats_out and seq_out, unless NULL.
 */
struct drain *drain_stop(struct drain *drain, struct drain_stats *stats_out, uint64_t *seq_out);

/*
 * Cuts now unless the open window is shorter than [window] min_length and not the first. Returns 0
 * and the sequence number of the newest window cut (0: none yet); -ETIMEDOUT when the drain does
 * not answer.
 */
int drain_cut(struct drain *drain, int64_t timeout_ns, uint64_t *seq_out);

void drain_stats(struct drain *drain, struct drain_stats *out);

/* Switches, of offcpu's, that show that the host hides threads from BPF; 0: it does not. */
uint64_t drain_hidden(const struct drain_stats *stats);

#endif
