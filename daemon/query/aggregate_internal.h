/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_AGGREGATE_INTERNAL_H
#define STACKD_DAEMON_QUERY_AGGREGATE_INTERNAL_H

/*
 * What the files behind aggregate.h share: who is seen (aggregate_index.c), the groups
 * (aggregate_groups.c), what waits add to them (aggregate_waits.c) and the order of the windows
 * (aggregate.c). One thread. Failures are kept in aggregate.error.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/arena.h"
#include "common/base.h"
#include "daemon/query/aggregate.h"

/* A thread or process that was seen, for counting each once. */
struct aggregate_task {
	uint64_t key[2];
	bool is_idle;
	UT_hash_handle hh;
};

/* A thread as one image, over all windows: who it is and whether it is asked for, found once. */
struct aggregate_image_info {
	uint64_t key[2]; /* uid, process */
	struct process_info process;
	struct aggregate_task *thread;
	struct window_image image; /* as in the newest window; with a reference to its process */
	char comm[COMM_LEN];
	bool is_wanted;
	UT_hash_handle hh;
};

/* A wait that spans windows: how it ended, if it did, and whether it was open at the end. */
struct aggregate_wait {
	uint64_t key[2];	 /* uid, start */
	struct window_span span; /* a copy, with references */
	struct stack *user;	 /* as read while it went on, with a reference */
	bool has_span;
	bool is_open_at_end;
	bool is_unseen; /* at the end */
	bool is_counted;
	UT_hash_handle hh;
};

struct aggregate {
	const struct filter *filter;
	struct aggregate_options options;
	/*
	 * Of all that lives as long as the merge: tens of thousands of pieces among those of others
	 * would leave as many holes.
	 */
	struct arena *arena;
	struct aggregate_group *groups;
	struct aggregate_group **array;
	struct aggregate_io_group *io_groups;
	struct aggregate_image_info *infos;
	struct aggregate_task *threads;
	struct aggregate_task *processes;
	struct aggregate_wait *waits;
	struct aggregate_totals totals;
	uint64_t estimated;
	int64_t end_ns;	    /* of the last window */
	uint64_t run;	    /* of the window at hand, */
	int64_t run_end_ns; /* and the end of the last window of that run */
	int error;
};

/* One wait, or many alike, on its way into a group. */
struct aggregate_item {
	const struct window_image *image;
	struct aggregate_image_info *info;
	struct stack *kernel;
	struct stack *user;
	const struct window_waker *waker; /* NULL where none is known */
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
struct aggregate_wait *aggregate_wait_get(struct aggregate *aggregate, uint64_t uid,
					  int64_t start_ns, bool add);
void aggregate_spans_index(struct aggregate *aggregate, const struct window *window);
void aggregate_opens_index(struct aggregate *aggregate, const struct window *last);

/* Forgets the waits that began in the window: none of them is in an earlier one. */
void aggregate_waits_forget(struct aggregate *aggregate, const struct window *window);

/* Who an image is, and whether it is asked for. NULL when out of memory. */
struct aggregate_image_info *aggregate_image_info_get(struct aggregate *aggregate,
						      const struct window_image *image);

void aggregate_index_free(struct aggregate *aggregate);

/* aggregate_groups.c: whether a wait is idle does not depend on which of its stacks are wanted. */
void aggregate_item_set_stacks(const struct aggregate *aggregate, struct aggregate_item *c,
			       struct stack *kernel, struct stack *user);

struct aggregate_group *aggregate_add(struct aggregate *aggregate, const struct aggregate_item *c);

void aggregate_groups_free(struct aggregate *aggregate);

void aggregate_add_sample(struct aggregate *aggregate, const struct window *window,
			  const struct window_sample *sample, struct aggregate_image_info *info);

/* aggregate_iolat.c */
void aggregate_add_io(struct aggregate *aggregate, const struct window *window,
		      const struct window_io *io, struct aggregate_image_info *info, bool is_last);
void aggregate_io_groups_free(struct aggregate *aggregate);

/* aggregate_waits.c */
void aggregate_add_row(struct aggregate *aggregate, const struct window *window, size_t place,
		       struct aggregate_image_info *info);
void aggregate_add_span(struct aggregate *aggregate, const struct window *window,
			const struct window_span *span, struct aggregate_image_info *info);
void aggregate_add_unseen(struct aggregate *aggregate, const struct window *window,
			  const struct window_open *open);
void aggregate_add_open(struct aggregate *aggregate, const struct window *window,
			const struct window_open *open, struct aggregate_image_info *info,
			struct stack *unread);
void aggregate_add_short(struct aggregate *aggregate, const struct window_image *image,
			 struct aggregate_image_info *info);

#endif
