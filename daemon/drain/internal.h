/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_INTERNAL_H
#define STACKD_DAEMON_DRAIN_INTERNAL_H

/*
 * The drain, shared by its three files: records.c handles the records of the ring, cut.c cuts
 * windows, and drain.c has the thread that calls both. Used on that thread only, but for the
 * members that drain.lock guards.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/layout.h"
#include "daemon/drain/call_budget.h"
#include "daemon/drain/drain.h"
#include "daemon/drain/ring.h"
#include "daemon/window/builder.h"

/* References to the stacks that arrived for one window. */
struct held_stacks {
	struct stack **v;
	size_t n;
	size_t capacity;
};

struct drain {
	pthread_t thread;
	pthread_mutex_t lock; /* guards the members below, up to stats */
	pthread_cond_t cut_done;
	bool is_stopping;
	bool cut_wanted;
	uint64_t seq; /* number of the newest window; 0: there is none yet */
	int64_t last_cut_ns;
	struct drain_stats stats;

	int wake_fd;		     /* an eventfd that ends the thread's sleep */
	const struct config *config; /* a reload may change its numbers */
	struct probe *probe;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	uint64_t session;
	bool follows_processes;
	struct window_builder *builder;
	struct call_stream *calls; /* a reference; NULL if calls are not streamed */
	struct call_budget budget; /* used by kinds of calls only */
	struct drain_ring *ring;
	struct openwait_reader *openwait; /* NULL but for offcpu */
	bool has_asked_openwait;	  /* a pass was requested since the last cut */
	struct cpu_counts *cpus;	  /* the counters as read, one per possible CPU */
	size_t cpu_size; /* the distance from one CPU's counters to the next, in bytes */
	int n_cpus;
	struct cpu_counts last; /* sums at the last cut */
	uint64_t threads;	/* read at the cut in progress */
	uint64_t keys;
	uint64_t stale;		/* threads dropped since the start */
	uint64_t last_missed;	/* the value of probe_missed() at the last cut */
	uint64_t last_unknown;	/* the value of stack_unknown_here() at the last cut */
	int64_t real_offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	int64_t next_ns;	/* when the next cut is due */
	/*
	 * A stack is sent once per window: these references keep it until that window is built.
	 * held[0] is of the open window, held[1] of the one before, whose records may be late.
	 */
	struct held_stacks held[2];
	/* The kernel stack of an open wait is sent once only: the last window keeps it alive. */
	struct window *last_window;
};

/* records.c: handles one record of the ring; the drain_ring_fn of the drain. */
void drain_on_record(void *context, void *data, size_t size);

/* Called when a window has been built: lets go of the stacks that arrived for the one before it. */
void drain_stacks_roll(struct drain *drain);
/* Lets go of all stacks. */
void drain_stacks_fini(struct drain *drain);

/* cut.c: begins a new window and returns its start. */
int64_t drain_bump_epoch(struct cut *cut);

/* True if the probe keeps a table of threads (offcpu), which is read at each cut. */
bool drain_has_threads(const struct drain *drain);

/*
 * Runs the task iterator, which adds threads that the programs do not know yet and takes the kernel
 * stacks of open waits. 0, or a negative errno.
 */
int drain_visit_tasks(struct drain *drain);

/* Adds up the programs' counters of all CPUs. 0, or a negative errno. */
int drain_read_counts(struct drain *drain, struct cpu_counts *sum);

/*
 * Ends the open window and builds it. The window is the caller's. 0, or a negative errno, logged.
 */
int drain_cut_window(struct drain *drain, struct window **out);

#endif
