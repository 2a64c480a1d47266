/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_INTERNAL_H
#define STACKD_DAEMON_DRAIN_INTERNAL_H

/*
 * The struct of the drain, shared by its three files: records.c handles the records of the ring
 * buffer, cut.c ends windows and builds them, and drain.c has the thread that calls both. Used on
 * that thread only, except for the members that drain.lock guards.
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
	pthread_mutex_t lock; /* guards the members from here to `stats`, including `stats` */
	pthread_cond_t done;  /* a cut was made, or a pass that a thread waits for */
	bool is_stopping;
	bool cut_wanted;
	uint64_t seq; /* number of the newest finished window; 0: there is none yet */
	int64_t last_cut_ns;
	/*
	 * drain_catch_up() asks for a pass: the ring is emptied, and the processes are shown to the
	 * unwinder. `passed` is the number of the last pass that was asked for and made.
	 */
	uint64_t asked, passed;
	/*
	 * time of the last cut (end of a window) that was not made for a client; the next one is
	 * due one window length later
	 */
	int64_t period_ns;
	struct drain_stats stats;

	int wake_fd;		     /* eventfd; a write to it wakes the drain's thread */
	const struct config *config; /* the settings; a reload may change their values */
	struct probe *probe;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	struct tick *tick;
	uint64_t session;
	enum window_folding folding;
	bool follows_processes;
	bool is_always; /* true if no client started the session */
	struct window_builder *builder;
	struct call_stream *calls; /* reference to the stream; NULL if calls are not streamed */
	struct call_budget budget; /* CPU budget; used by stackcount and stacksnoop only */
	struct drain_ring *ring;
	struct openwait_reader *openwait; /* reads stacks during waits; NULL unless offcpu */
	struct pressure_meter *pressure;  /* measures the pressure in each window */
	struct cost_meter *cost;
	struct cost_totals last_cost; /* the totals when the last window ended */
	struct cpu_counts run_counts; /* counters of which the cost was added to drain->cost */
	int64_t run_counts_ns;	      /* time at which they were read */
	bool has_asked_openwait; /* true if `openwait` was already asked to read the stacks of waits
				    that have not ended when this window ends */
	struct cpu_counts *cpus; /* buffer for the BPF programs' counters: one struct per CPU */
	size_t cpu_size; /* offset from one CPU's counters to those of the next CPU, in bytes */
	int n_cpus;
	struct cpu_counts last; /* counters summed over all CPUs when the last window ended */
	uint64_t threads;	/* number of threads read at the end of the window */
	uint64_t keys;		/* number of map entries read at the end of the window */
	uint64_t last_missed;	/* value of probe_missed() at the end of the last window */
	uint64_t last_unknown;	/* value of stack_unknown_here() at the end of the last window */
	int64_t real_offset_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC, for the last window */
	int64_t next_ns;	/* time at which the open window has to end */
	/* the greatest length below which waits were sampled in the open window; 0: none were */
	uint64_t below_max_ns;
	uint64_t below_before_ns; /* the same of the window before it */
	/* the counters `braked` right before the open window began, summed over all CPUs */
	uint64_t braked[BRAKE_STEPS];
	uint32_t shed; /* what was shed at any time in the open window, see cost_meter_set() */
	/*
	 * References to stacks: they keep each stack until its window is built, because the BPF
	 * programs send a stack only once per window. held[0] has the stacks that arrived during
	 * the open window. held[1] has those of the previous window, whose records may arrive late.
	 */
	struct held_stacks held[2];
	/*
	 * The stacks of waits that had not ended at the end of the newest finished window: the BPF
	 * programs send such a stack only once per wait.
	 */
	struct held_stacks opens;
};

/*
 * Handles one record of the ring buffer; used as the drain_ring_fn. Defined in records.c, as are
 * drain_stacks_roll() and drain_stacks_fini().
 */
void drain_on_record(void *context, const void *data, size_t size);

/*
 * Drops the references to stacks in held[1], then moves those of held[0] to held[1]. To be called
 * when a window has been built.
 */
void drain_stacks_roll(struct drain *drain);
/* Replaces the references in opens by those to the stacks of the waits in window.opens. */
void drain_stacks_hold_opens(struct drain *drain, const struct window *window);
/* Drops all references in held[] and opens. */
void drain_stacks_fini(struct drain *drain);

/*
 * Begins a new window and returns its start, in ns. All functions from here on are defined in
 * cut.c.
 */
int64_t drain_bump_epoch(struct cut *cut);

/*
 * True if the probe keeps a table of threads, which is read at the end of each window: offcpu only.
 */
bool drain_has_threads(const struct drain *drain);

/*
 * Runs the task iterator, a BPF program that visits all threads. It adds threads that the other BPF
 * programs do not know yet, and takes the kernel stacks of waits that have not ended. 0, or a
 * negative errno.
 */
int drain_visit_tasks(struct drain *drain);

/* Adds what the probe's programs cost since the last call to drain->cost. */
void drain_add_cost(struct drain *drain, const struct cpu_counts *counts);

/*
 * Reads the BPF programs' counters and stores their sums over all CPUs in *sum. 0, or a negative
 * errno.
 */
int drain_read_counts(struct drain *drain, struct cpu_counts *sum);

/*
 * Ends the open window and begins the next one. Stores the ended window in *out; the caller owns
 * it. 0, or a negative errno, which has been logged.
 */
int drain_cut_window(struct drain *drain, struct window **out);

#endif
