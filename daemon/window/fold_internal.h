/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_FOLD_INTERNAL_H
#define STACKD_DAEMON_WINDOW_FOLD_INTERNAL_H

/*
 * Private to the files that implement fold.h. fold.c begins and ends, fold_images.c decides which
 * images the folded window has, fold_groups.c finds out what is folded into what, fold_waits.c and
 * fold_counts.c make the rows. A fold lives as long as one call of window_fold().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/hash_table.h"
#include "daemon/window/fold.h"

#define FOLD_NONE UINT32_MAX

/* An image of the window that is folded. */
struct fold_image {
	struct process_info process;
	uint64_t hash; /* equal for images that are folded into one */
	uint64_t unit; /* equal for images that become one "(others)" */
	uint32_t kept; /* index in out.images of the image as it is; FOLD_NONE: not there */
	bool is_alone; /* the image is no process, but stands for CPUs or for a cgroup: it stays */
	bool is_others;
	bool has_started; /* its process started within the window */
};

/* The index in out.images of a folded image. */
struct fold_place {
	uint64_t key; /* fold_image.hash or fold_image.unit */
	uint32_t image;
	UT_hash_handle hh;
};

/* An image of the window, and the image in `out` that got a part of its rows or its sums. */
struct fold_use {
	uint64_t key;	  /* what the processes are counted for: an image or a row of `out` */
	uint64_t process; /* identifies the process */
	uint32_t from;
	uint32_t processes;
	uint32_t started;
};

struct fold_uses {
	struct fold_use *v;
	size_t n, capacity;
};

struct fold {
	const struct window *in; /* the window; its rows without the stacks that are dropped */
	const struct window_fold_limits *limits;
	struct window *out;
	struct fold_image *images; /* one for each image of `in` */
	struct fold_place *places;
	struct fold_place *units; /* the units that have an "(others)"; image is not used */
	struct fold_uses uses;	  /* key: index in out.images */
};

/* A part of a window that competes for a row: a row itself, a wait, a sample or an operation. */
struct fold_item {
	uint64_t ns; /* the larger, the sooner it stays as it is */
	struct stack *kernel;
	struct stack *user;
	uint64_t places[2]; /* ids of the stacks */
	uint64_t waker;	    /* id of the waker and its path; 0: none */
	uint64_t extra;	    /* id of what else the parts of a sum must share, such as a device */
	uint32_t image;	    /* index in in.images */
	uint32_t state;
	uint32_t processes; /* the numbers of processes that were folded into it before */
	uint32_t started;
	uint32_t array;	 /* the array that it is from; its meaning is the caller's */
	uint32_t source; /* index in that array */
	uint32_t target; /* index of the sum that it is a part of; FOLD_NONE: it stays as it is */
	bool is_idle;
	bool is_disk; /* a wait in uninterruptible sleep */
	bool is_sum;  /* it was folded before, or its image stands for more than a process */
};

/* A row of the folded window that is a sum. */
struct fold_target {
	struct stack *kernel; /* kernel and user are borrowed; NULL in rows of "(others)" */
	struct stack *user;
	uint32_t image; /* index in out.images */
	uint32_t state;
	uint32_t item; /* index of one of the items that it is the sum of */
	uint32_t processes;
	uint32_t started;
	bool is_others;
};

struct fold_targets {
	struct fold_target *v;
	size_t n, capacity;
};

/* fold_images.c */

int fold_images_init(struct fold *fold);
void fold_images_fini(struct fold *fold);

/* Sets *out to the index in out.images of an image that stays as it is. 0 or -ENOMEM. */
int fold_image_keep(struct fold *fold, uint32_t image, uint32_t *out);

/*
 * Sets *out to the index in out.images of the image that images like this one are folded into, or,
 * if is_others, of the "(others)" of its unit. 0 or -ENOMEM.
 */
int fold_image_place(struct fold *fold, uint32_t image, bool is_others, uint32_t *out);

/*
 * Returns the key of the "(others)" that the image is a part of. There are at most max_folded of
 * them, or 64; units beyond these share one. Must be called in an order that does not depend on the
 * order of the images.
 */
uint64_t fold_image_unit(struct fold *fold, uint32_t image);

/* Notes that a part of in.images[from] is now in out.images[image]. 0 or -ENOMEM. */
int fold_use_add(struct fold *fold, uint32_t image, const struct fold_item *item);

/* Keeps or folds the images of which no row is left, moves the sums. 0 or -ENOMEM. */
int fold_images_finish(struct fold *fold);

/* Sets the processes of the folded images, window.members and window.folded. 0 or -ENOMEM. */
int fold_members_finish(struct fold *fold);

/*
 * Adds up the processes of all uses with the same key and calls add() for each key and process.
 * Counts a process once. Sorts the uses.
 */
void fold_uses_count(struct fold_uses *uses,
		     void (*add)(void *userdata, uint64_t key, uint32_t processes,
				 uint32_t started),
		     void *userdata);

/* fold_groups.c */

/*
 * Sets is_sum of the items, sorts them by rank, those that are sums already last. Returns the
 * number of the items that are no sums.
 */
size_t fold_items_sort(const struct fold *fold, struct fold_item *items, size_t n);

/*
 * Sorts the items, and returns the number of those that stay as they are, which come first: at most
 * max_rows, and none that is a sum already.
 */
size_t fold_items_choose(const struct fold *fold, struct fold_item *items, size_t n);

/*
 * Assigns each of the items to a sum and appends the sums to *targets, which the caller frees. 0 or
 * -ENOMEM.
 */
int fold_items_group(struct fold *fold, struct fold_item *items, size_t n,
		     struct fold_targets *targets);

/*
 * Counts the processes of each sum, and notes which image is folded into which. 0 or -ENOMEM.
 */
int fold_targets_count(struct fold *fold, const struct fold_item *items, size_t n,
		       struct fold_targets *targets);

/* fold_waits.c: adds the rows, spans and open waits to fold->out. */
int fold_waits(struct fold *fold);

/*
 * fold_preempted.c: makes rows and buckets of *view, a copy of the window that owns nothing, anew
 * if preempted waits lose their stacks. Sets *is_changed_out to true then; the caller frees both
 * arrays. 0, -ENOMEM or -EOVERFLOW.
 */
int fold_preempted(struct window *view, unsigned int percent, bool *is_changed_out);

/* fold_counts.c: add the samples, or the operations, to fold->out. */
int fold_samples(struct fold *fold);
int fold_ios(struct fold *fold);

#endif
