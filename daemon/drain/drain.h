/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_DRAIN_H
#define STACKD_DAEMON_DRAIN_DRAIN_H

/*
 * Stage 3 of one session: reads what the session's programs record. Empties the ring as it fills,
 * and rotates windows: swaps the window map, waits until no program uses the old one, and reads
 * that whole. Passes stacks and windows on to the resolver. Owned by the session; has a thread of
 * its own.
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
	int64_t cut_ns;		      /* duration of the last cut: until its window was built */
	int64_t cut_max_ns;	      /* duration of the longest cut */
	int64_t last_ns;	      /* when the last cut ended, CLOCK_MONOTONIC */
	uint64_t threads;	      /* known to the programs at the last cut */
	uint64_t keys_max;	      /* the most keys in one window */
	uint64_t stale;		      /* threads dropped because their task had gone unseen */
	uint64_t lost[WINDOW_LOST_N]; /* losses since the start, by reason (enum loss, enum
					 window_loss) */
	uint64_t every;		      /* kinds of calls: one call in `every` is recorded now */
	uint64_t calls_per_s;	      /* kinds of calls: calls per second that match the filter */
	uint64_t load_percent;	      /* kinds of calls: their cost, in percent of one CPU */
	bool is_over;		      /* kinds of calls: over the budget even at the lowest rate */
	struct cpu_counts counts;     /* the programs' counters, as read at the last cut */
	struct openwait_stats openwait; /* offcpu: the reader of open waits' user stacks */
};

/* All pointers are borrowed and must outlive the drain. */
struct drain_options {
	const struct config *config;
	struct probe *probe;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	uint64_t session;	   /* the session's number, for its windows */
	int64_t min_wait_ns;	   /* offcpu: shorter open waits get no row */
	bool follows_processes;	   /* it reports forks, execs and exits to `processes` */
	bool may_be_short;	   /* it may end soon: have open stacks read from the start */
	struct call_stream *calls; /* takes streamed calls; NULL: none are streamed */
	uint64_t rate;		   /* the most streamed calls per second */
	uint64_t call_cost_ns;	   /* kinds of calls: the cost of reaching the program */
};

/* Begins the first window and starts the thread. 0, or a negative errno. */
int drain_start(const struct drain_options *options, struct drain **out);

/*
 * Cuts the open window, passes it to the resolver and ends the thread. Stores the last counts in
 * *stats_out and the number of the last window in *seq_out; both may be NULL.
 */
struct drain *drain_stop(struct drain *drain, struct drain_stats *stats_out, uint64_t *seq_out);

/*
 * Cuts the open window now, unless it is shorter than [window] min_length and not the first one.
 * Stores the sequence number of the newest window in *seq_out (0: none yet). 0, or -ETIMEDOUT if
 * the drain does not get to it in time. Any thread.
 */
int drain_cut(struct drain *drain, int64_t timeout_ns, uint64_t *seq_out);

/* Copies the counts. Any thread. */
void drain_stats(struct drain *drain, struct drain_stats *out);

/* offcpu: the number of switches of threads that the host hides from BPF; 0: it hides none. */
uint64_t drain_hidden(const struct drain_stats *stats);

#endif
