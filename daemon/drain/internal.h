/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_INTERNAL_H
#define STACKD_DAEMON_DRAIN_INTERNAL_H

/*
 * What the files behind drain.h share: records of the ring (drain_records.c), the cut of a window
 * (drain_cut.c) and the thread that calls both (drain.c). The drain's thread only, but for what
 * drain.lock guards.
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

/* References to stacks that have come for a window. */
struct held_stacks {
	struct stack **v;
	size_t n;
	size_t capacity;
};

struct drain {
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows, up to stats */
	pthread_cond_t cut_done;
	bool is_stopping;
	bool cut_wanted;
	uint64_t seq;
	int64_t last_cut_ns;
	struct drain_stats stats;

	int wake_fd;
	const struct config *config; /* a reload may change its numbers */
	struct probe *probe;
	struct process_table *processes;
	struct stack_table *stacks;
	struct resolver *resolver;
	uint64_t session;
	bool follows_processes;
	struct window_builder *builder;
	struct call_stream *calls; /* of stacksnoop, else NULL; a reference */
	struct call_budget budget; /* of calls */
	struct drain_ring *ring;
	struct openwait_reader *openwait; /* of offcpu, else NULL */
	bool has_asked_openwait;	  /* since the last cut */
	struct cpu_counts *cpus;	  /* one a possible CPU, as read */
	size_t cpu_size;		  /* of a value of the map, per CPU */
	int n_cpus;
	struct cpu_counts last;
	uint64_t threads; /* of the cut in progress */
	uint64_t keys;
	uint64_t stale; /* since the start */
	uint64_t last_missed;
	uint64_t last_unknown;
	int64_t real_offset_ns; /* realtime less monotonic */
	int64_t next_ns;
	/*
	 * A stack comes once a window: until the window it came for has been assembled, nobody else
	 * may drop it. The last one is that of the window before, whose records may come late.
	 */
	struct held_stacks held[2];
	/* The kernel stack of a wait that goes on comes once only: the last window has it. */
	struct window *last_window;
};

/* drain_records.c: on_event of the ring. */
void drain_on_record(void *context, void *data, size_t size);

/* A window has been assembled: stacks that came for the one before it are let go. */
void drain_stacks_roll(struct drain *drain);
void drain_stacks_fini(struct drain *drain);

/* drain_cut.c: the new window begins; returns its start. */
int64_t drain_bump_epoch(struct cut *cut);

/* True if the probe keeps a table of threads (offcpu), which is read at each cut. */
bool drain_has_threads(const struct drain *drain);

/* The task iterator seeds threads and takes the kernel stacks of open waits. */
int drain_visit_tasks(struct drain *drain);

/* Sums of the programs' counts over all CPUs. 0 or negative errno. */
int drain_read_counts(struct drain *drain, struct cpu_counts *sum);

/* Ends the open window and assembles it; reports what failed. The window is the caller's. */
int drain_cut_window(struct drain *drain, struct window **out);

#endif
