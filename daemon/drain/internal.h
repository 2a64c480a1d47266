/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_INTERNAL_H
#define STACKD_DAEMON_DRAIN_INTERNAL_H

/*
 * The struct of the drain, shared by its three files: records.c handles the records of the ring,
 * cut.c cuts windows, and drain.c has the thread that calls both. Used on that thread only, except
 * for the members that drain.lock guards.
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

/* References to the stacks that arrived while one window was open. */
struct held_stacks {
	struct stack **v;
	size_t n;
	size_t capacity;
};

struct drain {
	pthread_t thread;
	pthread_mutex_t lock; /* guards the members from here up to `stats` */
	pthread_cond_t cut_done;
	bool is_stopping;
	bool cut_wanted;
	uint64_t seq; /* number of the newest window; 0: there is no window yet */
	int64_t last_cut_ns;
	struct drain_stats stats;

	int wake_fd; /* eventfd; a write to it ends the sleep of the drain's thread */
	const struct config *config; /* the settings; a reload may change their numbers */
	struct probe *probe;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	uint64_t session;
	bool follows_processes;
	struct window_builder *builder;
	struct call_stream *calls; /* reference to the stream; NULL if calls are not streamed */
	struct call_budget budget; /* used only by kinds that record calls */
	struct drain_ring *ring;
	struct openwait_reader *openwait; /* used by offcpu only, else NULL */
	bool has_asked_openwait; /* a pass of `openwait` was requested since the last cut */
	struct cpu_counts *cpus; /* buffer for the programs' counters, one per possible CPU */
	size_t cpu_size;	 /* bytes from one CPU's counters to those of the next CPU */
	int n_cpus;
	struct cpu_counts last; /* sums of the counters at the last cut */
	uint64_t threads;	/* number of threads read at the cut in progress */
	uint64_t keys;		/* number of keys read at the cut in progress */
	uint64_t stale;		/* number of stale threads dropped since the start */
	uint64_t last_missed;	/* the value of probe_missed() at the last cut */
	uint64_t last_unknown;	/* the value of stack_unknown_here() at the last cut */
	int64_t real_offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	int64_t next_ns;	/* time at which the next cut is due */
	/*
	 * The programs send a stack once per window. These references keep the stack until that
	 * window is built. held[0] has the stacks of the open window, held[1] those of the window
	 * before, whose records may arrive late.
	 */
	struct held_stacks held[2];
	/*
	 * The newest window. Its references keep the kernel stacks of open waits, which the
	 * programs send only once per wait.
	 */
	struct window *last_window;
};

/*
 * Defined in records.c, as are the next two. Handles one record of the ring; serves as the ring's
 * drain_ring_fn.
 */
void drain_on_record(void *context, void *data, size_t size);

/*
 * Drops the references in held[1], then moves those of held[0] there. Call when a window has been
 * built.
 */
void drain_stacks_roll(struct drain *drain);
/* Drops all references to stacks that arrived. */
void drain_stacks_fini(struct drain *drain);

/* Defined in cut.c, as are the next four. Begins a new window and returns its start, in ns. */
int64_t drain_bump_epoch(struct cut *cut);

/* True if the probe keeps a table of threads (offcpu only), which is read at each cut. */
bool drain_has_threads(const struct drain *drain);

/*
 * Runs the task iterator, a BPF program that visits all threads: it adds threads that the other
 * programs do not know yet, and takes the kernel stacks of open waits. 0, or a negative errno.
 */
int drain_visit_tasks(struct drain *drain);

/* Stores the sums over all CPUs of the programs' counters in *sum. 0, or a negative errno. */
int drain_read_counts(struct drain *drain, struct cpu_counts *sum);

/*
 * Ends the open window, builds it and stores it in *out, where the caller owns it. 0, or a negative
 * errno, which has been logged.
 */
int drain_cut_window(struct drain *drain, struct window **out);

#endif
