/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_QUERY_AGGREGATE_H
#define STACKD_DAEMON_QUERY_AGGREGATE_H

/*
 * Aggregates windows for an answer: takes a list of windows and a filter; returns groups of waits,
 * samples or I/O operations (by stack, thread, process, kind of operation or window) with their
 * sums, and the totals over all groups. Reads one window at a time, newest first, so that windows
 * on disk need not all be in memory. The caller owns an aggregate and uses it in one thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/hash_table.h"
#include "daemon/query/aggregate_set.h"
#include "daemon/query/group_name.h"
#include "daemon/query/reason_times.h"
#include "daemon/session/filter.h"
#include "daemon/store/timeline.h"

/* The property that all waits, samples or operations of a group share. */
enum aggregate_by {
	AGGREGATE_BY_STACK, /* the same kernel stack, user stack, process and state */
	AGGREGATE_BY_THREAD,
	AGGREGATE_BY_PROCESS,
	AGGREGATE_BY_OPERATION, /* only for iolat: same operation, layer, device and file system */
	AGGREGATE_BY_WINDOW,	/* only for iolat: same operation, layer and window */
};

/* The value by which groups are sorted: total time, longest wait or number of waits. */
enum aggregate_rank { AGGREGATE_BY_TOTAL, AGGREGATE_BY_MAX, AGGREGATE_BY_COUNT };

/*
 * The key of a group of waits or samples. It has no padding, so that keys can be compared as bytes.
 */
struct aggregate_key {
	uint64_t pid;
	uint64_t process_start;
	/* tid and start time of the thread as one number; 0 unless grouped by thread */
	uint64_t thread;
	uint64_t state;
	uint64_t kernel; /* identifies the kernel stack; 0 if stacks are not part of the key */
	uint64_t user;
	uint64_t waker;
	/* hash of the name that rows are grouped by, such as that of a unit; else 0 */
	uint64_t name;
	uint64_t function; /* with line_functions: hash of the function's name; else 0 */
	char comm[COMM_LEN];
};

/* The process of a group: a struct process in memory, or the number of its row on disk. */
struct aggregate_process {
	struct process *process; /* reference to the process; NULL: only `number` is known */
	int64_t number;		 /* number of the row on disk, for store_reader_process() */
	int64_t at_ns;		 /* time of a window that has it, for process_info_at() */
};

enum { AGGREGATE_SLOTS = 8, GROUP_FUNCTIONS = 4 };

/*
 * The functions, see group_name(), that may have the most time of a group: a hash of each name, and
 * a lower bound of its time (the algorithm of Misra and Gries). A function with more than a fifth
 * of the time is among them.
 */
struct aggregate_functions {
	uint64_t hashes[GROUP_FUNCTIONS];
	uint64_t ns[GROUP_FUNCTIONS];
};

/* The members that only a group of GROUP_BY_LINE has. */
struct aggregate_line {
	/*
	 * The processes of the group that are not folded: the first one; if there are others, all
	 * of them, as far as there is memory
	 */
	struct process_id process;
	struct aggregate_set processes;
	/* the folded entries of windows whose processes are counted in the group */
	struct aggregate_set folded;
	/* the time of the group, and the part of it that was runnable, in each slot of the range */
	uint64_t slots[AGGREGATE_SLOTS];
	uint64_t runnable_slots[AGGREGATE_SLOTS];
};

struct aggregate_group {
	struct aggregate_key key;
	struct aggregate_process process; /* the process of one of the threads in the group */
	int32_t tid;			  /* the id of one of the threads in the group */
	const char *name; /* the text whose hash is key.name; NULL if key.name is 0 */
	/* references to the stacks of the group; each may be NULL */
	struct stack *kernel;
	struct stack *user;
	/* where the filter asks for callers: the first frames of these stacks that are shown */
	uint32_t kernel_from;
	uint32_t user_from;
	/* if key.waker is not 0: the waker, with references to its stacks; else NULL */
	struct window_waker *waker;
	uint32_t state; /* the state bits of all waits of the group, combined by OR */
	/*
	 * has_reason: `reason` is the reason of all waits of the group; false if they have several,
	 * or if the aggregate does not need reasons
	 */
	bool has_reason;
	enum wait_reason reason;
	/*
	 * with options.by_reasons: the time of the group's waits by reason, but for waits below the
	 * minimum length, which have none; in no order
	 */
	struct reason_time *reasons;
	struct aggregate_functions functions; /* if aggregate_needs_functions(); else empty */
	bool is_idle;
	bool is_sample;
	/* the group is the sum of waits below the minimum length, which have no stack */
	bool is_short;
	/* the group is the sum of groups that did not fit into the query's memory */
	bool is_others;
	bool is_own; /* the group is all of stackd's own threads: see options.folds_own */
	/* set if rows are by GROUP_BY_LINE; `tid` is then the thread with the longest wait */
	struct aggregate_line *line;
	/*
	 * used by the caller: the group has one of the highest times in a part of the overview, see
	 * part_make()
	 */
	bool is_first;
	bool is_urgent; /* used by the caller: see urgent_mark() */
	/* used by the caller: the group comes after those with a lower place */
	unsigned char place;
	/* used by the caller: what the thread waits for and who holds it; NULL: not looked up */
	struct group_holders *holders;
	uint64_t thread_start_ns;	   /* when the thread `tid` started, in ns since boot */
	WAIT_MEASURES(WAIT_MEASURE_MEMBER) /* in a group of samples, only `count` is not 0 */
	uint64_t on_ns;			   /* for samples: the CPU time that they stand for */
	/*
	 * the part of count, blocked_ns and runnable_ns that is an estimate: of short waits, only
	 * some were recorded, see bpf/sample.h
	 */
	struct window_estimate sampled;
	/*
	 * while windows are added: what is to be taken from the sums of short waits in this group
	 * at the end, because `sampled` of other groups has it
	 */
	struct window_estimate deducted;
	bool is_estimate; /* a filter of lengths has left only some waits of a row in the group */
	uint64_t open;	  /* number of waits that have not ended */
	uint64_t open_ns;
	/* number of waits that may have ended unseen: their thread could not be inspected */
	uint64_t unseen;
	/*
	 * number of processes that the group stands for if there are several (see
	 * window_image.folded); else 0
	 */
	uint32_t folded;
	uint64_t folded_window; /* the last of the windows read whose processes are counted */
	uint32_t started;
	struct culprits culprits;
	uint64_t max_ns; /* length of the longest wait of the group, in ns */
	/*
	 * end of the longest wait, in ns since the epoch; INT64_MAX if it has not ended, or if its
	 * end is not known
	 */
	int64_t max_end_real_ns;
	int32_t max_pid; /* the process and the thread of the longest wait */
	int32_t max_tid;
	char max_comm[COMM_LEN];
	/* number of waits in each range of lengths, see wait_bucket() */
	uint64_t buckets[WAIT_BUCKETS];
	struct aggregate_group *next_spare; /* while the group is not used: see aggregate.spare */
};

/*
 * The key of a group of I/O operations. It has no padding, so that keys can be compared as bytes.
 */
struct aggregate_io_key {
	uint64_t what;	/* layer, operation and system call as one number */
	uint64_t where; /* device and file system as one number */
	uint64_t pid;
	uint64_t process_start;
	uint64_t kernel; /* identifies the kernel stack; 0 if stacks are not part of the key */
	uint64_t user;
	int64_t window; /* start of the window, ns since the epoch; 0 unless grouped by window */
	char device[WINDOW_DEVICE_LEN];
};

struct aggregate_io_group {
	struct aggregate_io_key key;
	struct aggregate_process process; /* the process of one of the operations in the group */
	/*
	 * the sums of the group, with references to its stacks; the members `image` and bucket_*
	 * are not used
	 */
	struct window_io io;
	/*
	 * the group is the sum of the groups of one layer that did not fit into the query's memory
	 */
	bool is_others;
	bool is_first; /* used by the caller, like the member of struct aggregate_group */
	/* the parts of io.count and io.total_ns that are estimates, see aggregate_group.sampled */
	uint64_t sampled;
	uint64_t sampled_ns;
	int64_t max_end_real_ns;
	uint64_t buckets[IO_BUCKETS_N];
};

struct aggregate_totals {
	uint64_t operations;
	uint64_t samples;
	uint64_t on_cpu_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* time without CPU quota, a part of runnable_ns */
	uint64_t blocked_ns;
	uint64_t waits;
	/* number of waits shorter than the minimum length, which are recorded only as sums */
	uint64_t short_waits;
	uint64_t short_ns;
	uint64_t sampled_ns; /* the estimate of short_ns by the short waits that were recorded */
	uint64_t open_waits;
	uint64_t step_waits; /* how many of open_waits count from their thread's first step on */
	/* number of waits that may have ended unseen: their thread could not be inspected */
	uint64_t unseen;
	/*
	 * time since their wakeup, in ns, of waits whose thread could not be inspected and that no
	 * row has the end of: a part of runnable_ns, and of no row
	 */
	uint64_t unseen_ns;
	uint64_t threads;
	uint64_t processes;
	uint64_t idle_threads;
	/* time in waits or samples of the threads that filter_excludes_image() is true for */
	uint64_t excluded_ns;
};

struct aggregate;
struct aggregate_options;

/*
 * True if the reason of each wait has to be found while windows are read: to group, to filter or,
 * with open_only, to sort by it, or because a stack that shows it is left out of the answer. This
 * needs the first REASON_FRAMES frames of each stack.
 */
bool aggregate_needs_reasons(const struct filter *filter, const struct aggregate_options *options);

/*
 * True if the function of each wait or sample has to be found while windows are read, because a
 * group has several stacks, or lacks one that the filter drops. This needs the first GROUP_FRAMES
 * frames of each stack.
 */
bool aggregate_needs_functions(const struct filter *filter,
			       const struct aggregate_options *options);

struct aggregate_options {
	enum aggregate_by by;
	bool open_only; /* count only waits that have not ended at the end of the last window */
	/*
	 * for samples: treat two stacks as equal if they have the same functions, even at other
	 * addresses
	 */
	bool by_functions;
	/* if set, waits or samples are grouped by this property, and `by` has no effect */
	enum group_by group;
	bool by_reasons;     /* sum up the time of each group by reason, too */
	bool line_functions; /* with GROUP_BY_LINE: each function has a group of its own */
	/*
	 * put all waits or samples of stackd's own threads into one group, those that are idle into
	 * another one; not for I/O
	 */
	bool folds_own;
	/*
	 * with folds_own: returns the process of an image of a window on disk, borrowed, as its
	 * name alone does not say whether it is one of stackd's; NULL if it is not known
	 */
	struct process *(*find_process)(void *userdata, const struct aggregate_process *process);
	void *userdata;
	/* the value by which groups are ranked when memory is full: the lowest are merged */
	enum aggregate_rank rank;
	/*
	 * Limit in bytes of the memory for groups; 0: no limit. When it is reached, half of the
	 * groups are merged: those with the lowest rank. The idle ones among them are merged into
	 * one group, the others into another group, and groups of I/O into one for each layer.
	 * These groups are marked is_others, and their sums are exact.
	 */
	size_t max_memory;
	/* when this is set, no further window is read and the result is -ECANCELED; may be NULL */
	const atomic_bool *is_cancelled;
};

/*
 * Facts about the groups that did not fit into the query's memory, and were merged into the groups
 * that are marked is_others.
 */
struct aggregate_others {
	/*
	 * number of groups that were merged into a group with is_others; a group that appears again
	 * later, in the same window or another, may be counted again
	 */
	uint64_t groups;
	/*
	 * A group may have been merged into a group marked is_others, and may then appear again.
	 * Therefore the sum of a group in the result may be too small, by at most bound_ns. A group
	 * that is not in the result had a sum of at most bound_ns. bound_count is the same for the
	 * number of waits or samples.
	 */
	uint64_t bound_ns;
	uint64_t bound_count;
};

/*
 * Aggregates the windows of `list`. `later` lists the windows after them; the two lists may
 * overlap. If a wait ended in a window of `later`, it gets the stacks that were taken at its end.
 * `unread` is a stack that says that a stack was not read; a wait that has not ended gets it in
 * place of a user stack that was not read. Returns 0 and *out, owned by the caller; or -ENOMEM.
 */
int aggregate_new(const struct timeline_list *list, const struct timeline_list *later,
		  const struct filter *filter, const struct aggregate_options *options,
		  struct stack *unread, struct aggregate **out);
struct aggregate *aggregate_free(struct aggregate *aggregate);

/*
 * Does what aggregate_new() does for the windows [first, end) of `list`. `newer` is the aggregate
 * of the windows after them, from which it takes what is known about waits that end there; `later`
 * is then not read. NULL: these windows are the newest of the list. If windows are aggregated in
 * parts, each of them is read once.
 */
int aggregate_new_part(const struct timeline_list *list, size_t first, size_t end,
		       const struct timeline_list *later, struct aggregate *newer,
		       const struct filter *filter, const struct aggregate_options *options,
		       struct stack *unread, struct aggregate **out);

/*
 * Returns an array of the groups of waits and samples, in no particular order. The aggregate owns
 * the array; the caller may sort it in place.
 */
struct aggregate_group **aggregate_groups(struct aggregate *aggregate, size_t *n_out);

/* Drops the stacks of a group that is not needed any more, because its row was sent. */
void aggregate_group_give_stacks(struct aggregate_group *group);

/*
 * Sets *out to an array of the groups of operations, in no particular order, which the caller
 * frees. Returns 0 or -ENOMEM.
 */
int aggregate_io_groups(struct aggregate *aggregate, struct aggregate_io_group ***out,
			size_t *n_out);

/* Returns the facts about the groups that did not fit into the query's memory. */
struct aggregate_others aggregate_others(const struct aggregate *aggregate);

/*
 * Sets *out to the facts about a thread's process. `image` is the thread in `window`. If the window
 * was read from disk for a query, *out has only the facts that struct window_owner has.
 */
void aggregate_image_process(const struct window *window, const struct window_image *image,
			     struct process_info *out);

/*
 * Returns the time of the threads that the filter selects that no group has, as their rows were
 * folded with those of other threads. If the filter leaves out waits of these threads, their time
 * is a part of the result.
 */
uint64_t aggregate_missing_ns(const struct aggregate *aggregate);

/* True if a window has rows of WINDOW_OTHERS that the filter leaves out. */
bool aggregate_has_others(const struct aggregate *aggregate);

/*
 * True if the filter (struct filter) selects at least one thread of the window, or a folded entry
 * that stands for a process with one of the filter's pids. Needs window->images, window->members,
 * and owners or processes.
 */
bool aggregate_wants(const void *filter, const struct window *window);

/* Returns the sums of window->cost over the windows. */
const struct window_cost *aggregate_cost(const struct aggregate *aggregate);

/* Returns the sums of window->pressure over the windows. */
const struct window_pressure *aggregate_pressure(const struct aggregate *aggregate);

/* Returns the sums of window->spawns over the windows. */
const struct window_spawns *aggregate_spawns(const struct aggregate *aggregate);

/*
 * Returns the long waits of all windows with what was found about them, also those of threads that
 * the filter leaves out: one of them may hold what another thread waits for.
 */
const struct window_held *aggregate_held(const struct aggregate *aggregate);

/*
 * Returns when the longest wait of a group began, in ns since the epoch; 0 if that is not known.
 */
int64_t aggregate_longest_since(const struct aggregate *aggregate,
				const struct aggregate_group *group);

/* Returns the sums of window->folded over the windows, as in a window merged from them. */
const struct window_folded *aggregate_folded(const struct aggregate *aggregate);

const struct aggregate_totals *aggregate_totals(const struct aggregate *aggregate);

/*
 * Returns the number of processes in a group of GROUP_BY_LINE: at least the number, if rows of some
 * were folded, or if there are more than the query has memory for.
 */
uint64_t aggregate_line_processes(const struct aggregate_group *group);

/*
 * Returns the function with the most time in a group, see aggregate_needs_functions(); NULL if none
 * stands out: with a tenth of the time at least in a group of GROUP_BY_LINE, with more than half of
 * it in others, which may have the time of several programs. What is compared is the lower bound of
 * its time, so one with up to a fifth more than that may be left out.
 */
const char *aggregate_function(const struct aggregate *aggregate,
			       const struct aggregate_group *group);

/*
 * Sets *n_out to the number of slots of equal length into which the range was divided for groups of
 * GROUP_BY_LINE. Returns how much of each slot its windows cover, in ns. A window belongs to the
 * slot in which its middle lies.
 */
const uint64_t *aggregate_slots(const struct aggregate *aggregate, size_t *n_out);

/* Returns the greatest window->sample_below_ns of the windows. 0: no waits were sampled. */
int64_t aggregate_sample_below(const struct aggregate *aggregate);

/*
 * Returns how many rows have times that are estimates. A row has the sum of the times of its waits,
 * but only the longest wait's own length. If the filter selects waits by length, and selects only
 * some of a row's waits, the time of the selected waits is estimated. An estimate is never more
 * than the time of the whole row.
 */
uint64_t aggregate_estimated(const struct aggregate *aggregate);

#endif
