/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_AGGREGATE_H
#define STACKD_DAEMON_QUERY_AGGREGATE_H

/*
 * Aggregates windows for an answer: takes a list of windows and a filter, returns groups (by
 * stack, thread, process or kind of operation) with their sums, and the totals over all groups.
 * Reads one window at a time, newest first, so that windows on disk need not all be in memory.
 * The aggregate is its maker's and is used by one thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/hash_table.h"
#include "daemon/session/filter.h"
#include "daemon/store/timeline.h"

/* The property that all waits, samples or operations of a group share. */
enum aggregate_by {
	AGGREGATE_BY_STACK, /* both stacks, the process, and the state of a wait */
	AGGREGATE_BY_THREAD,
	AGGREGATE_BY_PROCESS,
	AGGREGATE_BY_OPERATION, /* iolat: the operation, its layer, device and file system */
	AGGREGATE_BY_WINDOW,	/* iolat: the operation, its layer, and the window */
};

/* The key of a group of waits or samples. It has no padding: keys are compared by their bytes. */
struct aggregate_key {
	uint64_t pid;
	uint64_t process_start;
	uint64_t thread; /* tid and start of the thread; 0 unless grouped by thread */
	uint64_t state;
	uint64_t kernel; /* an id of the stack; 0 where stacks do not count */
	uint64_t user;
	uint64_t waker;
	char comm[COMM_LEN];
};

struct aggregate_group {
	struct aggregate_key key;
	const struct window_image *image; /* any one of its threads: do not use the sums in it */
	struct stack *kernel;		  /* references */
	struct stack *user;
	struct window_waker waker; /* set if key.waker is not 0; holds references */
	uint32_t state;		   /* the states of all its waits, or'ed */
	bool is_idle;
	bool is_sample;
	bool is_short; /* sums of the waits below the minimum, which have no stack */
	uint64_t count;
	uint64_t on_ns;	     /* samples: the time on CPU that they stand for */
	uint64_t blocked_ns; /* waits */
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* part of runnable_ns */
	uint64_t open;	       /* waits that have not ended */
	uint64_t open_ns;
	uint64_t unseen; /* part of open: the thread could not be inspected, it may have gone on */
	uint64_t max_ns; /* the longest wait */
	int64_t max_end_real_ns; /* its end, ns since the epoch; INT64_MAX: open, or unknown */
	int32_t max_tid;
	char max_comm[COMM_LEN];
	uint64_t buckets[WAIT_BUCKETS]; /* number of waits by length, see wait_bucket() */
	UT_hash_handle hh;		/* in aggregate.groups */
};

/* The key of a group of I/O operations. It has no padding: keys are compared by their bytes. */
struct aggregate_io_key {
	uint64_t what;	/* layer, operation and system call */
	uint64_t where; /* device and file system */
	uint64_t pid;
	uint64_t process_start;
	uint64_t kernel; /* an id of the stack; 0 where stacks do not count */
	uint64_t user;
	int64_t window; /* by window: its start, ns since the epoch; else 0 */
	char device[WINDOW_DEVICE_LEN];
};

struct aggregate_io_group {
	struct aggregate_io_key key;
	const struct window_image *image; /* any one of its processes */
	struct window_io io; /* sums; holds references to stacks; do not use its image, buckets */
	int64_t max_end_real_ns;
	uint64_t buckets[IO_BUCKETS_N];
	UT_hash_handle hh; /* in aggregate.io_groups */
};

struct aggregate_totals {
	uint64_t operations;
	uint64_t samples;
	uint64_t on_cpu_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* part of runnable_ns */
	uint64_t blocked_ns;
	uint64_t waits;
	uint64_t short_waits; /* those below the minimum */
	uint64_t short_ns;
	uint64_t open_waits;
	uint64_t unseen;    /* part of open_waits: the thread could not be inspected */
	uint64_t unseen_ns; /* part of runnable_ns: the time of these waits */
	uint64_t threads;
	uint64_t processes;
	uint64_t idle_threads;
};

struct aggregate;

struct aggregate_options {
	enum aggregate_by by;
	bool open_only;	   /* only waits that are open at the end of the last window */
	bool by_functions; /* samples: stacks that differ only by address within a function are one
			    */
};

/*
 * Aggregates the windows of list. `later` holds the windows that follow it (it may overlap list):
 * a wait that ended in one of them is shown with the stacks that it ended with. `unread` stands
 * for the user stack of a wait that is still open. Returns 0 and *out, owned by the caller;
 * -ENOMEM.
 */
int aggregate_new(const struct timeline_list *list, const struct timeline_list *later,
		  const struct filter *filter, const struct aggregate_options *options,
		  struct stack *unread, struct aggregate **out);
struct aggregate *aggregate_free(struct aggregate *aggregate);

/* Returns the groups of waits and samples in no order; the array may be sorted in place. */
struct aggregate_group **aggregate_groups(struct aggregate *aggregate, size_t *n_out);

/* Returns the groups of operations in no order, in an array for the caller to free. 0, -ENOMEM. */
int aggregate_io_groups(struct aggregate *aggregate, struct aggregate_io_group ***out,
			size_t *n_out);

const struct aggregate_totals *aggregate_totals(const struct aggregate *aggregate);

/*
 * Returns how many rows of windows had waits both inside and outside of the filter's lengths, not
 * counting the longest wait, whose length is known. The time of these rows is estimated, and never
 * more than all of it.
 */
uint64_t aggregate_estimated(const struct aggregate *aggregate);

#endif
