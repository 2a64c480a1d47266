/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_DRAIN_H
#define STACKD_DAEMON_DRAIN_DRAIN_H

/*
 * Reads the data that a session's BPF programs record. Empties the ring buffer as it fills. At the
 * end of each window (a cut), gives the programs an empty map, waits until no program uses the old
 * map, and reads all of the old map. Passes stacks and windows on to the resolver. Owned by the
 * session; has a thread of its own.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/drain/cost_meter.h"
#include "daemon/drain/openwait_reader.h"
#include "daemon/drain/pressure_meter.h"
#include "daemon/window/window.h"

struct call_stream;
struct config;
struct drain;
struct probe;
struct process_table;
struct resolver;
struct stack_table;
struct tick;

struct drain_stats {
	uint64_t cuts;
	int64_t cut_ns; /* last cut (end of a window): time from its beginning until the window was
			   built, in ns */
	int64_t cut_max_ns; /* longest time that a cut has taken so far, measured as cut_ns */
	int64_t last_ns;    /* time at which the last cut ended, CLOCK_MONOTONIC */
	uint64_t threads;   /* number of threads in the BPF programs' table at the last cut */
	uint64_t keys_max;  /* largest number of entries that the map of one window had */
	uint64_t lost[WINDOW_LOST_N]; /* losses since the start, by reason: enum loss or enum
					 window_loss */
	uint64_t every;	       /* stackcount, stacksnoop: of `every` calls, one is recorded now */
	uint64_t calls_per_s;  /* stackcount, stacksnoop: calls per second that match the filter */
	uint64_t load_percent; /* stackcount, stacksnoop: CPU cost in percent of one CPU */
	bool is_over; /* stackcount, stacksnoop: true if the cost exceeds the budget although as few
			 calls as possible are recorded */
	struct cpu_counts counts;	/* the BPF programs' counters, as read at the last cut */
	struct openwait_stats openwait; /* offcpu: results of reading stacks during waits */
	struct pressure_stats pressure; /* the last reading of the pressure on the host */
};

/* All pointers are borrowed and must outlive the drain. */
struct drain_options {
	const struct config *config;
	struct probe *probe;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	struct tick *tick;	 /* wakes the drain when its ring buffer has records */
	struct cost_meter *cost; /* adds up the cost of all drains */
	uint64_t session;	 /* number of the session, stored in each of its windows */
	int64_t min_wait_ns;	 /* offcpu: a wait that has not ended is in a window only if it has
				    lasted this long */
	bool follows_processes;	 /* true if the drain has to report forks, execs and exits to
				    `processes` */
	/*
	 * true if the probe is always on; false if a client started the session, which may end
	 * soon: user stacks of waits are then read at its start, too
	 */
	bool is_always;
	enum window_folding folding; /* stored in each of the windows */
	bool reads_units;	     /* true if the windows have the pressure of units */
	struct call_stream *calls;   /* stream that gets the calls; NULL: calls are not streamed */
	uint64_t rate;		     /* maximum number of calls streamed per second */
	uint64_t call_cost_ns; /* stackcount, stacksnoop: time per call that the kernel takes to get
				  to the BPF program */
};

/* Makes a drain, begins its first window and starts its thread. 0, or a negative errno. */
int drain_start(const struct drain_options *options, struct drain **out);

/*
 * Ends the last window, passes it on to the resolver, ends the thread and frees the drain. Stores
 * the last counts in *stats_out and the number of the last window in *seq_out; both pointers may be
 * NULL.
 */
struct drain *drain_stop(struct drain *drain, struct drain_stats *stats_out, uint64_t *seq_out);

/*
 * Ends the open window now and begins a new one. If the open window is shorter than the setting
 * `min_length` of the section [window], this is done only for the first window of a session. Stores
 * the number of the newest finished window in *seq_out; 0 if there is none yet. Returns 0, or
 * -ETIMEDOUT if the drain's thread did not finish the window in time. Any thread.
 */
int drain_cut(struct drain *drain, int64_t timeout_ns, uint64_t *seq_out);

/*
 * Waits until the drain's thread has handled all records that are in its ring now. Returns 0, or
 * -ETIMEDOUT. Any thread.
 */
int drain_catch_up(struct drain *drain, int64_t timeout_ns);

/* Copies the present counts to *out. Any thread. */
void drain_stats(struct drain *drain, struct drain_stats *out);

/*
 * offcpu: some hosts hide threads from BPF: they run no BPF programs in such a thread. Returns how
 * many context switches of hidden threads were noticed; 0 if the host hides none.
 */
uint64_t drain_hidden(const struct drain_stats *stats);

#endif
