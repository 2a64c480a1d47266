/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_FOLD_INTERNAL_H
#define STACKD_DAEMON_WINDOW_FOLD_INTERNAL_H

/*
 * Private header of the files that implement fold.h, listed here as layers from the lowest to the
 * highest. fold_owners.c shares rows out among owners, fold_own.c decides which sums stay whole.
 * fold_images.c folds entries of window.images and decides which may stay, fold_groups.c which rows
 * are summed up into one. fold_waits.c and fold_counts.c give each row the name under which it is
 * added to fold.sums, and fold_finish.c folds entries of window.images without rows.
 * fold_preempted.c drops stacks of preempted waits. fold.c has window_fold(). A struct fold lives
 * as long as one call of window_fold().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/key_table.h"
#include "daemon/window/fold.h"
#include "daemon/window/row_sums.h"

#define FOLD_NONE UINT32_MAX

/* Data about one entry of in.images, which is a thread or stands for several processes. */
struct fold_image {
	struct process_info process;
	uint64_t hash; /* hash; equal for entries that may be folded into one */
	/* hash of the cgroup; equal for entries that may share one "(others)" entry */
	uint64_t cgroup;
	uint64_t name; /* hash of the process's comm, exe and cgroup */
	/*
	 * Not 0: what is folded of the entry is added up for its process alone, under the name
	 * own_comm, see fold_own_find(). Equal for entries with the same process and own_comm.
	 */
	uint64_t own;
	char own_comm[COMM_LEN];
	uint32_t owner; /* index in fold.owned: of the user or service that owns the entry */
	uint32_t kept;	/* index of the entry in out.images if it stays as it is, else FOLD_NONE */
	bool is_alone;	/* true: the entry is no process, but stands for CPUs or for a cgroup; it
			   always stays */
	bool is_others;
	bool keeps_sum; /* true: rows of the entry are not folded into "(others)" */
	bool is_small; /* true: nothing of the entry stays as it is, because enough others have more
			  time, see fold_images_limit() */
	bool has_started; /* true if the entry's process started within the window */
};

/*
 * The entries of in.images with the same key are folded into one entry of out.images, which has the
 * index `image`.
 */
struct fold_slot {
	uint64_t key; /* fold_image.own, fold_image.hash or, for "(others)" entries,
			 fold_image.cgroup */
	uint32_t image;
};

/*
 * Says that something which belongs to entry `from` of in.images was folded into an entry or a row
 * of `out`.
 */
struct fold_use {
	uint64_t key; /* Index of the entry of out.images into which it was folded. While a row is
			 made from several rows: index of that row in fold_targets. */
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
	const struct window *in; /* the window to be folded; fold_preempted() may have dropped
				    stacks from its rows */
	const struct window_fold_limits *limits;
	struct window *out;
	struct fold_image *images; /* data about each entry of in.images */
	struct key_table slots;	   /* of struct fold_slot */
	/* cgroups with an "(others)" entry; the member `image` of struct fold_slot is not used */
	struct key_table cgroups;
	/* the rows, samples and I/O operations of `out` */
	struct row_sums sums;
	/* How many of the rows that are being given out each owner has got; n_owners entries. */
	size_t *owned;
	size_t n_owners;
	struct fold_uses uses; /* the member `key` of each is an index in out.images */
};

/*
 * Something that either stays as it is or is added to a summed row: a row, a wait, a sample, an I/O
 * operation, or an entry of window.images.
 */
struct fold_item {
	uint64_t ns; /* items are ranked by this time; those with most time stay as they are */
	struct stack *kernel;
	struct stack *user;
	uint64_t places[2]; /* ids of the kernel stack and of the user stack */
	uint64_t waker;	    /* hash of the waker, see window_waker_id(); 0: none */
	uint64_t extra;	    /* hash of what else the items of a summed row have in common, such as a
			       device */
	uint32_t image;	    /* index of the item's thread in in.images */
	uint32_t state;
	uint32_t processes; /* number of processes whose data was added up in the item when it was
			       folded before; else 0 */
	uint32_t started;
	uint32_t array;	 /* the array that the item is from: FROM_ROWS and so on in fold_waits.c,
			    else 0 */
	uint32_t source; /* index of the item in the array that the member `array` names */
	uint32_t target; /* index of the summed row to which the item is added; FOLD_NONE: it stays
			    as it is */
	bool is_idle;
	bool is_disk; /* true for a wait in uninterruptible sleep */
	/*
	 * There are too many items, and this one was chosen to stay as it is. It comes first when
	 * items are sorted, even before items of a higher rank: some rows are reserved for idle
	 * waits.
	 */
	bool is_first;
	bool is_sum;	/* true if it was folded before, or belongs to no single process */
	bool is_summed; /* true if it is always summed up: is_sum, or its image is small */
};

/* A summed row of the folded window. */
struct fold_target {
	struct stack *kernel; /* `kernel` and `user` are borrowed; NULL in rows of "(others)" */
	struct stack *user;
	uint32_t image; /* index in out.images */
	uint32_t state;
	uint32_t item; /* index of one of the items that are added to this row */
	/* these two are 0 once a sample or an I/O operation was added */
	uint32_t processes;
	uint32_t started;
	bool is_others;
	/* where waits are added: the sum, or 1 plus an index in out.opens; else NULL and 0 */
	struct row_sum *sum;
	size_t open;
};

struct fold_targets {
	struct fold_target *v;
	size_t n, capacity;
	/*
	 * the largest time of items with equal keys, which are not idle, that got only a row of
	 * "(others)"
	 */
	uint64_t lacks_ns;
};

/*
 * Defined in fold_owners.c. The rows that stay as they are, and the summed rows with stacks, are
 * shared out among owners: otherwise one user with many long waits would leave the others none.
 */

/* Sets the member `owner` of each entry of fold.images. 0 or -ENOMEM. */
int fold_owners_init(struct fold *fold);
void fold_owners_fini(struct fold *fold);

/*
 * Chooses `max` of n things, which are sorted by rank, the highest first: stores in is_chosen[]
 * which. The highest come first, except that an owner gets at most three times as many as are left,
 * as long as others want some. images[i] is the index in fold.images of the entry to which thing i
 * belongs. If n is not above max, chooses all.
 */
void fold_owners_choose(struct fold *fold, const uint32_t *images, size_t n, size_t max,
			bool *is_chosen);

/*
 * Defined in fold_own.c: decides whose sums stay whole, by the time rest_ns[] that is to be folded,
 * by index in in.images. Sets `own` in the entries of the processes with the most time, but in
 * those of at most four with the same name; of such a process, threads of a comm with an eighth of
 * its time have a sum with this comm. Sets keeps_sum in the other entries of the names (comm, exe,
 * cgroup) with the most time. At most max_sums processes, and as many names, have that. 0 or
 * -ENOMEM.
 */
int fold_own_find(struct fold *fold, const uint64_t *rest_ns);

/* Defined in fold_images.c: */

int fold_images_init(struct fold *fold);
void fold_images_fini(struct fold *fold);

/*
 * Copies entry `image` of in.images to out.images, if it is not there already, and sets *out to its
 * index there. 0 or -ENOMEM.
 */
int fold_image_keep(struct fold *fold, uint32_t image, uint32_t *out);

/*
 * Sets *out to the index of the entry of out.images into which entry `image` of in.images is
 * folded; adds the entry if out.images does not have it. If is_others is true, the entry is the
 * "(others)" entry of the cgroup. 0 or -ENOMEM.
 */
int fold_image_slot(struct fold *fold, uint32_t image, bool is_others, uint32_t *out);

/*
 * Returns what the summed rows without stacks have in common into which rows of the entry `image`
 * of in.images are folded, as a hash: the process, if fold_image.own is set; the comm, exe and
 * cgroup, if keeps_sum is set; else the cgroup, which has an "(others)" entry. At most max_folded
 * cgroups, or 64 if that is more, have such an entry, and all others share one. The cgroups for
 * which this is called first get an entry: so the order of the calls must not depend on the order
 * of in.images.
 */
uint64_t fold_image_rest(struct fold *fold, uint32_t image);

/*
 * If more than max_images threads have rows, waits, samples or I/O operations, sets is_small in the
 * entries of those that have the least time. A quarter of the threads that stay is for idle ones.
 * 0 or -ENOMEM.
 */
int fold_images_limit(struct fold *fold);

/* Records that the item was folded into entry `image` of out.images. 0 or -ENOMEM. */
int fold_use_add(struct fold *fold, uint32_t image, const struct fold_item *item);

/*
 * Sets the numbers of processes of the folded entries, window.members and window.folded. 0 or
 * -ENOMEM.
 */
int fold_members_finish(struct fold *fold);

/*
 * Sorts `uses`, and calls add() once for each different pair of a key and a process in it.
 * `processes` is the number of processes that the process of the pair stands for, and `started` the
 * number of those that started within the window.
 */
void fold_uses_count(struct fold_uses *uses,
		     void (*add)(void *userdata, uint64_t key, uint32_t processes,
				 uint32_t started),
		     void *userdata);

/* fold_groups.c */

/*
 * Sets is_sum and is_summed of the items, and sorts the items by rank; those with is_summed come
 * last. Returns the number of items without is_summed.
 */
size_t fold_items_sort(const struct fold *fold, struct fold_item *items, size_t n);

/*
 * Sorts the items so that those that stay as they are come first, and stores their number in
 * *stay_out. It is at most max_rows, and none of them is always summed up. If there are too many
 * items, a quarter of max_rows is reserved for idle items, unless is_busy_first is true, and owners
 * get shares, see fold_owners_choose(). 0 or -ENOMEM.
 */
int fold_items_choose(struct fold *fold, struct fold_item *items, size_t n, bool is_busy_first,
		      size_t *stay_out);

/*
 * Assigns each item to a summed row. Appends these rows to *targets, which the caller frees. 0 or
 * -ENOMEM.
 */
int fold_items_group(struct fold *fold, struct fold_item *items, size_t n,
		     struct fold_targets *targets);

/* Adds an item to its summed row. 0 or -ENOMEM. */
typedef int (*fold_add)(struct fold *fold, const struct fold_item *item,
			struct fold_target *target);

/*
 * Assigns each item to a summed row, counts the processes of each of these rows, and calls add()
 * for each item. If has_lacks is true, notes in fold->out what rows lack (see window.lacks_ns). 0
 * or -ENOMEM.
 */
int fold_items_sum(struct fold *fold, struct fold_item *items, size_t n, bool has_lacks,
		   fold_add add);

/* fold_waits.c: adds rows[] to fold->sums, and spans[] and opens[] to fold->out. */
int fold_waits(struct fold *fold);

/*
 * fold_preempted.c: removes the stacks of the shortest preempted waits (see
 * window_fold_limits.preempted_percent). Sets *out to a window that has no more than the rows, or
 * to NULL if no row loses its stacks. 0 or -ENOMEM.
 */
int fold_preempted(const struct window *window, unsigned int percent, struct window **out);

/*
 * fold_finish.c: decides about those entries of in.images of which no row stays as it is: keeps the
 * entries with the most CPU time, with their times, and folds the others. 0 or -ENOMEM.
 */
int fold_images_finish(struct fold *fold);

/* fold_counts.c: add the samples, and the I/O operations, to fold->sums. */
int fold_samples(struct fold *fold);
int fold_ios(struct fold *fold);

#endif
