/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_AGGREGATE_INTERNAL_H
#define STACKD_DAEMON_QUERY_AGGREGATE_INTERNAL_H

/*
 * Private to the files that implement aggregate.h: aggregate.c walks the windows, aggregate_index.c
 * keeps tables of threads and of waits that span windows, aggregate_waits.c adds waits,
 * aggregate_groups.c finds the group of a wait or sample, and aggregate_iolat.c adds I/O
 * operations. Each aggregate is used by one thread. A function that fails sets aggregate.error,
 * which ends the walk.
 */

#include <stdbool.h>
#include <stdint.h>

#include "bpf/io_shared.h"
#include "common/arena.h"
#include "common/base.h"
#include "daemon/base/key_index.h"
#include "daemon/query/aggregate.h"
#include "daemon/query/aggregate_lacks.h"
#include "daemon/query/aggregate_set.h"
#include "daemon/query/function_search.h"

/* The facts about a thread of the window that is being aggregated. */
struct aggregate_image_info {
	struct process_info process;
	struct aggregate_process handle; /* the thread's process; borrowed from the window */
	bool is_wanted;			 /* the filter selects the thread */
	bool is_own; /* a thread of stackd, which aggregate_options.folds_own puts into one group */
	bool is_excluded; /* filter_excludes_image() is true for the thread */
	/* the parts of the exact sums of the thread's short waits that its sampled rows took */
	struct window_estimate taken;
};

/* An id that the filter names, and whether a process or thread with this id was seen. */
struct aggregate_seen {
	uint64_t id;
	bool is_process; /* a process with this pid is in a window */
	bool is_thread; /* a thread with this id is in a window; its process has `pid` and `comm` */
	/*
	 * number of windows in which the process has rows of its own, while others of its rows are
	 * summed up with those of other processes
	 */
	uint32_t partly_folded;
	int32_t pid;
	char comm[COMM_LEN];
	UT_hash_handle hh;
};

/* A text whose hash is in the keys of groups. */
struct aggregate_name {
	uint64_t hash;
	const char *text;
	UT_hash_handle hh;
};

/* A wait that spans several windows, or that had not ended at the end of the last one. */
struct aggregate_wait {
	/* number that stackd gave the thread (window_image.uid), and start of the wait in ns */
	uint64_t key[2];
	/*
	 * if has_span is true: a copy of the window_span that has the end of the wait, with
	 * references to its stacks
	 */
	struct window_span span;
	/* reference to the user stack that was read before the wait ended; NULL: none was read */
	struct stack *user;
	bool has_span;
	bool is_open_at_end; /* the wait had not ended at the end of the last window */
	bool is_unseen;	     /* the thread could not be inspected at the end of the last window */
	bool is_counted;     /* the wait was already counted in totals.open_waits */
	UT_hash_handle hh;
};

/*
 * An entry of window->images that stands for several processes and is selected by the filter. The
 * numbers are sums over all windows.
 */
struct aggregate_folded {
	uint64_t uid; /* window_image.uid */
	uint32_t processes;
	uint32_t started;
	char comm[COMM_LEN];
	UT_hash_handle hh;
};

/*
 * A pid that the filter names, and a folded entry that stands for the process with this pid, among
 * others.
 */
struct aggregate_member {
	int64_t pid;
	const struct aggregate_folded *folded;
};

enum { AGGREGATE_MEMBERS_MAX = 256 };

/* Waits or samples of one thread with the same stacks, which are to be added to their group. */
struct aggregate_item {
	struct aggregate_key key; /* set by aggregate_add() and aggregate_queue_put() */
	uint64_t hash;		  /* set with the key */
	const struct window_image *image;
	const struct aggregate_image_info *info;
	struct stack *kernel;
	struct stack *user;
	const struct window_waker *waker; /* NULL unless the probe records wakers */
	/* as in struct aggregate_group */
	uint32_t kernel_from;
	uint32_t user_from;
	uint32_t state;
	bool has_reason; /* `reason` is set: see aggregate_needs_reasons() */
	enum wait_reason reason;
	uint64_t function; /* the hash of the function's name; 0: none, or not needed */
	bool is_idle;
	bool is_short;
	bool is_sample;
	bool is_step; /* a later step of a wait for a program's own lock, see step_waits.h */
	WAIT_MEASURES(WAIT_MEASURE_MEMBER)
	uint64_t on_ns;
	struct window_estimate sampled;	 /* see aggregate_group.sampled */
	struct window_estimate deducted; /* see aggregate_group.deducted */
	uint64_t max_ns;
	int64_t max_end_real_ns;
	struct culprits culprits;
	/*
	 * number of processes whose waits or samples are added up in the item, if there are several
	 * (see window_row.processes); else 0
	 */
	uint32_t processes;
	uint32_t started;
};

/* An item in the queue of items. */
struct aggregate_queued {
	struct aggregate_item item;
	/* if the item is a row of waits: the row, whose histogram is to be added, and its window */
	const struct window_row *row;
	const struct window *window;
};

/*
 * QUEUE: the number of items that are in the queue at the same time. While an item is there, the
 * CPU loads what it will be added to. QUEUE_SLOTS: as many items come before the slot of an item is
 * loaded, and its group can be.
 */
enum { AGGREGATE_QUEUE = 16, AGGREGATE_QUEUE_SLOTS = 8 };

struct aggregate {
	const struct filter *filter;
	struct aggregate_options options;
	/*
	 * Memory for tens of thousands of small structs that live as long as the aggregate. If each
	 * came from malloc(), they would leave holes among the daemon's long-lived allocations.
	 */
	struct arena *arena;
	struct key_index groups;	/* of struct aggregate_group */
	size_t n_groups;		/* number of members of `array` */
	struct aggregate_group **array; /* the members of `groups` as an array, for the caller */
	struct key_index io_groups;	/* of struct aggregate_io_group */
	/* the groups into which others were merged, by layer; NULL: none of the layer was */
	struct aggregate_io_group *io_rest[IO_LAYERS];
	/* memory of merged groups that can be used again, linked by next_spare */
	struct aggregate_group *spare;
	struct reason_time *spare_reasons; /* the same for sums by reason */
	/*
	 * the groups into which others were merged when memory was full: [0] not idle, [1] idle;
	 * NULL: none
	 */
	struct aggregate_group *rest[2];
	struct aggregate_others others; /* `groups` only: `lacks` has the bounds */
	struct aggregate_lacks lacks;
	/* the items [queue_first, queue_end) are at their number % AGGREGATE_QUEUE */
	struct aggregate_queued queue[AGGREGATE_QUEUE];
	size_t queue_first;
	size_t queue_end;
	size_t max_groups;
	size_t max_io_groups;
	struct aggregate_name *names;
	size_t names_bytes;	     /* memory of the names */
	size_t line_members;	     /* number of members in the sets of all lines */
	uint64_t n_windows;	     /* number of windows read, with the one being read */
	bool has_others;	     /* see aggregate_has_others() */
	struct aggregate_seen *seen; /* an entry for each process or thread id in the filter */
	struct aggregate_set threads;
	struct aggregate_set processes;
	struct process_id last_counted; /* the last one added to `processes`; pid -1: none */
	struct aggregate_wait *waits;
	struct aggregate_totals totals;
	struct window_folded folded;	 /* the sums of window->folded over all windows */
	struct window_cost cost;	 /* the sums of window->cost over all windows */
	struct window_pressure pressure; /* the sums of window->pressure over all windows */
	struct window_spawns spawns;	 /* the sums of window->spawns over all windows */
	struct window_held held;	 /* the waits of window->held of all windows */
	struct aggregate_folded *folded_images;
	/*
	 * pairs of a pid that the filter names and a folded entry that stands for its process; at
	 * most AGGREGATE_MEMBERS_MAX, those that were found first
	 */
	struct aggregate_member members[AGGREGATE_MEMBERS_MAX];
	size_t n_members;
	uint64_t estimated;
	int64_t sample_below_ns; /* the greatest window->sample_below_ns */
	int64_t end_ns;		 /* end of the newest window that was added up */
	int64_t end_real_ns;	 /* the same in ns since the epoch */
	uint64_t run; /* number of the run of stackd that recorded the window being read */
	/* end of the newest window that was recorded in the same run as the window being read */
	int64_t run_end_ns;
	/* see aggregate_slots(); slot: the slot of the window being read */
	uint64_t slots[AGGREGATE_SLOTS];
	size_t n_slots;
	size_t slot;
	int64_t slots_start_ns; /* the time that the slots divide, in ns since the epoch */
	int64_t slots_end_ns;
	bool needs_reasons;   /* see aggregate_needs_reasons() */
	bool needs_functions; /* see aggregate_needs_functions() */
	/* remembers where functions are in stacks; NULL if the filter does not ask for functions */
	struct function_search *functions;
	int error; /* 0, or the negative errno of the first failure */
};

/* The functions that follow are in aggregate_index.c. */

/*
 * Counts the threads and processes of the window that the filter selects. Returns an array with an
 * element for each member of window->images, which the caller frees; NULL when out of memory.
 */
struct aggregate_image_info *aggregate_infos_make(struct aggregate *aggregate,
						  const struct window *window);

/*
 * Makes a table with an entry for each process id and thread id in the filter. An entry
 * says whether a process or thread with this id was seen. Returns 0 or -ENOMEM.
 */
int aggregate_seen_init(struct aggregate *aggregate);

/* Returns the entry of a process id or thread id; NULL if the filter does not have this id. */
const struct aggregate_seen *aggregate_seen_find(const struct aggregate *aggregate, int64_t id);

/*
 * Returns a wait from the table of waits; NULL if the table does not have it. `uid` is the number
 * that stackd gave the thread (window_image.uid), and start_ns is the start of the wait.
 */
struct aggregate_wait *aggregate_wait_find(struct aggregate *aggregate, uint64_t uid,
					   int64_t start_ns);

/* Adds to the table of waits each wait that began before this window and ended in it. */
void aggregate_spans_index(struct aggregate *aggregate, const struct window *window);

/* Adds to the table of waits each wait that had not ended at the end of the last window. */
void aggregate_opens_index(struct aggregate *aggregate, const struct window *last);

/*
 * Removes each wait that began in this window from the table of waits: earlier windows do not have
 * it.
 */
void aggregate_waits_drop(struct aggregate *aggregate, const struct window *window);

/*
 * Moves the waits that ended in the windows of `newer`, or after them, to the table of waits of an
 * aggregate of earlier windows.
 */
void aggregate_waits_take(struct aggregate *aggregate, struct aggregate *newer);

void aggregate_index_free(struct aggregate *aggregate);

/* The functions that follow are in aggregate_groups.c. */

/*
 * Sets item->kernel, item->user, item->is_idle and, if reasons are needed, item->reason. A stack
 * that the filter drops is set to NULL. Returns false if the filter leaves out items with this
 * reason, or with these functions.
 */
bool aggregate_item_set_stacks(struct aggregate *aggregate, struct aggregate_item *item,
			       struct stack *kernel, struct stack *user);

/*
 * Adds an item to its group; creates the group if it does not exist. Returns the group, or NULL
 * when out of memory.
 */
struct aggregate_group *aggregate_add(struct aggregate *aggregate, struct aggregate_item *item);

/*
 * Returns a place in the queue for an item, all members of which are 0. Adds the oldest item of the
 * queue to its group if the queue is full. The caller fills the place and calls
 * aggregate_queue_put(), or leaves it alone.
 */
struct aggregate_queued *aggregate_queue_place(struct aggregate *aggregate);

/*
 * Appends the item that was filled in last to the queue. It will be added to its group later than
 * by aggregate_add(), but much faster, because its group is not waited for.
 */
void aggregate_queue_put(struct aggregate *aggregate);

/* Adds all items of the queue to their groups. */
void aggregate_queue_flush(struct aggregate *aggregate);

/*
 * Sets aggregate->max_groups and max_io_groups to the numbers of groups that fit into
 * options.max_memory.
 */
void aggregate_groups_limit(struct aggregate *aggregate);
void aggregate_groups_free(struct aggregate *aggregate);

void aggregate_add_sample(struct aggregate *aggregate, const struct window *window,
			  const struct window_sample *sample,
			  const struct aggregate_image_info *info);

/* The functions that follow are in aggregate_line.c. */

/* Sets group->line of a new group, which may have one to be used again. False: out of memory. */
bool aggregate_line_init(struct aggregate *aggregate, struct aggregate_group *group);

/*
 * Notes that a line has an item of this folded entry of the window being read. Returns true if it
 * had none before; false also if there is no memory for more.
 */
bool aggregate_line_has_new(struct aggregate *aggregate, struct aggregate_line *line,
			    const struct window_image *image);

/* Adds a time to a function, or takes it from all functions if there is no room for another. */
void aggregate_functions_add(struct aggregate_functions *functions, uint64_t hash, uint64_t ns);

/* Adds the times of the functions of another group of the same aggregate. */
void aggregate_functions_merge(struct aggregate_functions *sum,
			       const struct aggregate_functions *functions);

/* Adds the time of an item to the slot of the window being read. */
void aggregate_line_add(struct aggregate *aggregate, struct aggregate_line *line,
			const struct aggregate_item *item);

/* Divides the time of the windows [first, end) of the list into slots. */
void aggregate_slots_init(struct aggregate *aggregate, const struct timeline_list *list,
			  size_t first, size_t end);

/* Finds the slot of a window that is read now, and adds its length to it. */
void aggregate_slots_next(struct aggregate *aggregate, const struct window *window);

/* The functions that follow are in aggregate_iolat.c. */

/* Adds a row of I/O operations to its group. is_last: the window is the newest one of the list. */
void aggregate_add_io(struct aggregate *aggregate, const struct window *window,
		      const struct window_io *io, const struct aggregate_image_info *info,
		      bool is_last);
void aggregate_io_groups_free(struct aggregate *aggregate);

/* The functions that follow are in aggregate_waits.c. */

/* Adds the waits of window->rows[i], which all began and ended in the window. */
void aggregate_add_row(struct aggregate *aggregate, const struct window *window, size_t i,
		       struct aggregate_image_info *info);

/*
 * Adds a wait that began before the window and ended in it. Adds only the part of its time that
 * lies in the window.
 */
void aggregate_add_span(struct aggregate *aggregate, const struct window *window,
			const struct window_span *span, const struct aggregate_image_info *info);

/*
 * Adds a wait that had not ended at the end of the window. Adds only the part of its time that lies
 * in the window. If the query is only for waits that have not ended, adds all of the wait's time
 * instead.
 *
 * If the wait ended in a later window, the item gets the stacks that were taken at its end, which
 * are complete. Otherwise, the item gets the kernel stack and the user stack that were taken during
 * the wait. If the user stack of a user thread was not read, the item gets `unread` in its place.
 */
void aggregate_add_open(struct aggregate *aggregate, const struct window *window,
			const struct window_open *open, const struct aggregate_image_info *info,
			struct stack *unread);

/*
 * Adds several waits that had not ended at the end of the newest window and that were folded into
 * one entry of window->opens. Rows of the window include their time already, so only their number
 * is added. If the query is only for waits that have not ended, also adds the time since each of
 * them began.
 */
void aggregate_add_folded_open(struct aggregate *aggregate, const struct window_open *open,
			       const struct window_image *image,
			       const struct aggregate_image_info *info);

/*
 * Adds to totals.unseen_ns the time of a wait that may have ended unseen: its thread could not be
 * inspected at the end of the window, and no window says when it ended. Adds only the time since
 * the thread was woken, and only the part that lies in the window; no row has this time. Like the
 * other totals, unseen_ns does not depend on the states and lengths that the filter asks for.
 */
void aggregate_add_unseen(struct aggregate *aggregate, const struct window *window,
			  const struct window_open *open);

/*
 * Adds the waits of a thread that are shorter than the minimum length, or than the window's
 * sample_below_ns. The window has only their sums, and rows that stand for an estimate of a part of
 * them. To be called after the rows of the window were added.
 */
void aggregate_add_short(struct aggregate *aggregate, const struct window *window,
			 const struct window_image *image, const struct aggregate_image_info *info);

/* The function that follows is in aggregate_estimates.c. */

/*
 * Takes from the groups of short waits what other groups have by an estimate: the sum of all groups
 * in aggregate->array is then exact. What is left of a group of short waits is what no recorded
 * wait stands for. If the estimate is higher than the exact sum, that would be less than nothing:
 * then takes the excess from the other groups of short waits and, if they have not enough, from the
 * estimates, in proportion.
 */
void aggregate_estimates_settle(struct aggregate *aggregate);

#endif
