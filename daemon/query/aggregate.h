/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_AGGREGATE_H
#define STACKD_DAEMON_QUERY_AGGREGATE_H

/*
 * Many windows made one: in come windows and a filter, out come groups (process, thread or stack
 * in one state) with their sums, and the totals. Windows are looked at one by one, newest first, so
 * that those on disk need not all be in memory. One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/hash_table.h"
#include "daemon/session/filter.h"
#include "daemon/store/history.h"

/* The last two are of I/O. */
enum aggregate_by {
	AGGREGATE_BY_STACK,
	AGGREGATE_BY_THREAD,
	AGGREGATE_BY_PROCESS,
	AGGREGATE_BY_OPERATION,
	AGGREGATE_BY_WINDOW, /* one kind of operation in one layer and window, wherever it was */
};

/* All words, so that equal keys are equal bytes. */
struct aggregate_key {
	uint64_t pid;
	uint64_t process_start;
	uint64_t thread; /* by thread */
	uint64_t state;
	uint64_t kernel;
	uint64_t user;
	uint64_t waker;
	char comm[COMM_LEN];
};

struct aggregate_group {
	struct aggregate_key key;
	const struct window_image *image; /* one of its threads; its sums are of no account */
	struct stack *kernel;		  /* references */
	struct stack *user;
	struct window_waker waker; /* where key.waker is not 0; with references */
	uint32_t state;		   /* the bits of all waits */
	bool is_idle;
	bool is_sample;
	bool is_short; /* the waits under the minimum: no stack */
	uint64_t count;
	uint64_t on_ns; /* of samples; of waits the two after it */
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* of runnable_ns */
	uint64_t open;
	uint64_t open_ns;
	uint64_t unseen; /* of open: their threads could not be looked at, they may be over */
	uint64_t max_ns;
	int64_t max_end_real_ns; /* INT64_MAX: not ended, or not known */
	int32_t max_tid;
	char max_comm[COMM_LEN];
	uint64_t buckets[WAIT_BUCKETS];
	UT_hash_handle hh; /* aggregate.groups */
};

/* Of I/O; equal keys are equal bytes. */
struct aggregate_io_key {
	uint64_t what;	/* layer, operation, system call */
	uint64_t where; /* device, file system */
	uint64_t pid;
	uint64_t process_start;
	uint64_t kernel;
	uint64_t user;
	int64_t window; /* by window: when it began, ns since the epoch */
	char device[WINDOW_DEVICE_LEN];
};

struct aggregate_io_group {
	struct aggregate_io_key key;
	const struct window_image *image; /* one of its processes */
	struct window_io io; /* sums; stacks are references, its image and buckets of no account */
	int64_t max_end_real_ns;
	uint64_t buckets[IO_BUCKETS_N];
	UT_hash_handle hh; /* aggregate.io_groups */
};

struct aggregate_totals {
	uint64_t operations;
	uint64_t samples;
	uint64_t on_cpu_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* of runnable_ns */
	uint64_t blocked_ns;
	uint64_t waits;
	uint64_t short_waits;
	uint64_t short_ns;
	uint64_t open_waits;
	uint64_t unseen;
	uint64_t unseen_ns; /* of runnable_ns */
	uint64_t threads;
	uint64_t processes;
	uint64_t idle_threads;
};

struct aggregate;

struct aggregate_options {
	enum aggregate_by by;
	bool open_only;	   /* waits not ended at the end of the last window */
	bool by_functions; /* stacks of samples that differ by address only are one */
};

/*
 * Merges list; later may hold windows after it (and list's own): a wait that ended there is named
 * by the stack it ended with; unread stands for the user stack of one still open. Returns 0 and
 * *out, owned by the caller; -ENOMEM.
 */
int aggregate_new(const struct history_list *list, const struct history_list *later,
		  const struct filter *filter, const struct aggregate_options *options,
		  struct stack *unread, struct aggregate **out);
struct aggregate *aggregate_free(struct aggregate *aggregate);

/* Groups as an array of pointers, in no order; borrowed. */
struct aggregate_group **aggregate_groups(struct aggregate *aggregate, size_t *n_out);
/* Those of I/O, an array that is the caller's to free. 0 or -ENOMEM. */
int aggregate_io_groups(struct aggregate *aggregate, struct aggregate_io_group ***out,
			size_t *n_out);
const struct aggregate_totals *aggregate_totals(const struct aggregate *aggregate);

/*
 * How many rows had waits on both sides of the filter's times, besides their longest, which is
 * known: their time is an estimate, never more than all of it.
 */
uint64_t aggregate_estimated(const struct aggregate *aggregate);

#endif
