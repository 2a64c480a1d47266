/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_AGGREGATE_INTERNAL_H
#define STACKD_DAEMON_QUERY_AGGREGATE_INTERNAL_H

/*
 * Private to the files behind aggregate.h: aggregate.c walks the windows, aggregate_index.c knows
 * threads and the waits that span windows, aggregate_waits.c adds waits, aggregate_groups.c
 * finds the group of a wait or sample, and aggregate_iolat.c adds I/O operations. One thread. A
 * function that fails sets aggregate.error, which ends the walk.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/base.h"
#include "daemon/query/aggregate.h"

/* A thread or a process, to count each once. */
struct aggregate_task {
	uint64_t key[2]; /* tid or pid, and start */
	bool is_idle;
	UT_hash_handle hh;
};

/*
 * A thread between two execs, over all windows: which process it is of, and whether the filter
 * selects it. Found once instead of once per window.
 */
struct aggregate_image_info {
	uint64_t key[2]; /* uid of the image, address of the process */
	struct process_info process;
	struct aggregate_task *thread; /* NULL if the filter never selected it */
	struct window_image image; /* from the newest window; holds a reference to the process */
	char comm[COMM_LEN];	   /* the name that is_wanted was found with */
	bool is_wanted;
	UT_hash_handle hh;
};

/* A wait that more than one window has a part of. */
struct aggregate_wait {
	uint64_t key[2];	 /* uid of the image, start of the wait */
	struct window_span span; /* its end, if has_span; a copy, with references to stacks */
	struct stack *user;	 /* read while the wait was open; a reference, or NULL */
	bool has_span;
	bool is_open_at_end; /* when the last window ended */
	bool is_unseen;	     /* is_open_at_end, but the thread could not be inspected then */
	bool is_counted;     /* an open wait that has been counted */
	UT_hash_handle hh;
};

struct aggregate {
	const struct filter *filter;
	struct aggregate_options options;
	/*
	 * Memory for tens of thousands of small structs that live as long as the aggregate. From
	 * malloc() they would leave holes among the daemon's long-lived allocations.
	 */
	struct arena *arena;
	struct aggregate_group *groups;
	struct aggregate_group **array; /* all of groups */
	struct aggregate_io_group *io_groups;
	struct aggregate_image_info *infos;
	struct aggregate_task *threads;
	struct aggregate_task *processes;
	struct aggregate_wait *waits;
	struct aggregate_totals totals;
	uint64_t estimated;
	int64_t end_ns;	    /* end of the newest window */
	uint64_t run;	    /* the run (lifetime) of stackd that recorded the current window */
	int64_t run_end_ns; /* end of the newest window of that run */
	int error;	    /* 0, or the negative errno of the first failure */
};

/* A wait, or many with the same key, to be added to a group. */
struct aggregate_item {
	const struct window_image *image;
	struct aggregate_image_info *info;
	struct stack *kernel;
	struct stack *user;
	const struct window_waker *waker; /* NULL: unknown */
	uint32_t state;
	bool is_idle;
	bool is_short;
	bool is_sample;
	uint64_t count;
	uint64_t on_ns;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns;
	uint64_t max_ns;
	int64_t max_end_real_ns;
};

/* aggregate_index.c */

/* Finds what is known of an image, or finds it out. NULL when out of memory. */
struct aggregate_image_info *aggregate_image_info_get(struct aggregate *aggregate,
						      const struct window_image *image);

/* Finds a wait that spans windows by its image and start; NULL if none is known. */
struct aggregate_wait *aggregate_wait_find(struct aggregate *aggregate, uint64_t uid,
					   int64_t start_ns);

/* Notes the ends of the waits that began before this window and ended in it. */
void aggregate_spans_index(struct aggregate *aggregate, const struct window *window);

/* Notes which waits are open at the end of the last window. */
void aggregate_opens_index(struct aggregate *aggregate, const struct window *last);

/* Drops the waits that began in the window: no earlier window has a part of them. */
void aggregate_waits_drop(struct aggregate *aggregate, const struct window *window);

void aggregate_index_free(struct aggregate *aggregate);

/* aggregate_groups.c */

/* Sets the item's stacks, without those that the filter drops, and whether it is idle. */
void aggregate_item_set_stacks(const struct aggregate *aggregate, struct aggregate_item *item,
			       struct stack *kernel, struct stack *user);

/* Adds an item to its group. Returns the group, NULL when out of memory. */
struct aggregate_group *aggregate_add(struct aggregate *aggregate,
				      const struct aggregate_item *item);

void aggregate_groups_free(struct aggregate *aggregate);

void aggregate_add_sample(struct aggregate *aggregate, const struct window *window,
			  const struct window_sample *sample, struct aggregate_image_info *info);

/* aggregate_iolat.c */

/* is_last: the window is the last of all. */
void aggregate_add_io(struct aggregate *aggregate, const struct window *window,
		      const struct window_io *io, struct aggregate_image_info *info, bool is_last);
void aggregate_io_groups_free(struct aggregate *aggregate);

/* aggregate_waits.c */

/* Adds waits that began and ended in the window: those of window->rows[i]. */
void aggregate_add_row(struct aggregate *aggregate, const struct window *window, size_t i,
		       struct aggregate_image_info *info);

/* Adds the part that lies in the window of a wait that began before it and ended in it. */
void aggregate_add_span(struct aggregate *aggregate, const struct window *window,
			const struct window_span *span, struct aggregate_image_info *info);

/*
 * Adds the part that lies in the window of a wait that did not end in it. If a later window has
 * its end, its stacks are those it ended with, which are complete; else the kernel stack is the
 * one taken while it was open, and `unread` stands for a user stack that was not read.
 */
void aggregate_add_open(struct aggregate *aggregate, const struct window *window,
			const struct window_open *open, struct aggregate_image_info *info,
			struct stack *unread);

/* Adds to totals.unseen_ns, whatever state and length the filter asks for, as other totals do. */
void aggregate_add_unseen(struct aggregate *aggregate, const struct window *window,
			  const struct window_open *open);

/* Adds the sums of an image's waits below the minimum. */
void aggregate_add_short(struct aggregate *aggregate, const struct window_image *image,
			 struct aggregate_image_info *info);

#endif
