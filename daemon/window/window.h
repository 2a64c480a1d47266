/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_WINDOW_H
#define STACKD_DAEMON_WINDOW_WINDOW_H

/*
 * One window: the data that one session recorded from start_ns to end_ns, without end_ns itself.
 * The next window begins when this one ends. Windows are refcounted, and immutable once they are in
 * the history, so any thread may read them. Times are ns of CLOCK_MONOTONIC. Adding real_offset_ns
 * gives ns since the epoch, by the realtime clock as it was when the window ended.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "common/probe_kind.h"
#include "daemon/process/process.h"
#include "daemon/window/measures.h"
#include "daemon/window/stack.h"
#include "daemon/window/window_held.h"
#include "daemon/window/window_pressure.h"
#include "daemon/window/window_spawns.h"

/*
 * The lowest number of a session that a client started. Sessions that are always on have lower
 * numbers.
 */
enum { SESSION_FIRST_ID = 100 };

/*
 * The part of a thread's short waits that rows with STATE_SAMPLED stand for, by an estimate: the
 * counts and times of these rows. Their expected value is that of the thread's sums.short_count and
 * so on, which are exact.
 */
struct window_estimate {
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
};

/*
 * A thread while it runs one program. If the thread calls exec, it gets another entry in
 * window.images. `sums` has the time that the thread spent in each state while it ran this program,
 * within this window.
 *
 * If a window has too many rows, small ones are folded: summed up over several processes. A folded
 * entry stands for these processes. Its tid is 0, its process was made by process_see_folded(), and
 * its sums are the totals of the threads that it stands for. Small rows of a process that has much
 * time are summed up for it alone: then the folded entry has this process, and `folded` is 1.
 *
 * If several windows are merged, the same process may be in each of them, but it starts in only
 * one. A total of `folded` would count it several times, so a merged entry has the largest `folded`
 * of these windows. A total of `started` counts it once, so a merged entry has this total. Each of
 * the two numbers is at most the number of different processes, so the larger one is shown, see
 * window_processes(). The same holds for `processes` and `started` of a merged row.
 */
struct window_image {
	uint64_t uid; /* the number that stackd gave the thread; an exec does not change it */
	uint64_t start_boot_ns;
	/* owned reference, unless window.is_borrowing is set; NULL: see window.owners */
	struct process *process;
	struct thread_sums sums;
	struct window_estimate estimate;
	int32_t tid;
	uint32_t exec_gen;
	char comm[COMM_LEN];
	uint32_t folded;  /* number of processes that a folded entry stands for; 0: a thread */
	uint32_t started; /* how many of `folded` started within the window */
	uint32_t owner;	  /* index of the process in window.owners, if process is NULL */
	uint32_t pad;
};

/*
 * Holds what a query needs to know about a process of the window, even if the answer does not show
 * that process. Everything else about a process is read from disk only if the answer shows it.
 */
struct window_owner {
	struct process_id id; /* the member exec_gen is not set */
	int64_t number;	      /* number of the process in the database */
	const char *cgroup;   /* one of window.owner_texts; NULL: unknown */
	char comm[COMM_LEN];
	bool is_kernel;
	bool is_folded;
};

/*
 * Waits that ended in the window and have the same thread (`image`), stacks and state. In windows
 * of offcpu, they also began in the window; struct window_span has the waits that began earlier. If
 * the state has STATE_SAMPLED, the row stands for short waits, of which only some were recorded:
 * its count, times and histogram are estimates, see bpf/sample.h. max_ns is the length of a real
 * wait. bucket_mask and bucket_first tell where the histogram of the waits' lengths is, see
 * window_row_add_buckets().
 */
struct window_row {
	struct stack *kernel; /* `kernel` and `user` are owned references; NULL: no such stack */
	struct stack *user;
	WAIT_MEASURES(WAIT_MEASURE_MEMBER)
	uint64_t max_ns;
	int64_t max_end_ns;	  /* time at which the longest of the waits ended */
	struct culprits culprits; /* offcpu */
	uint32_t image;		  /* index of the thread in window.images */
	uint32_t state;		  /* task state bits of the waiting thread, see task_state.h */
	uint32_t bucket_mask;
	uint32_t bucket_first;
	uint32_t processes; /* number of processes that a folded row stands for; 0: not folded */
	uint32_t started;   /* how many of `processes` started within the window */
};

/*
 * Stands for the waker of a wait, or for the thread that woke that waker, and so on. `pid`, `tid`
 * and `comm` are zero if the waker was not a thread.
 */
struct window_link {
	uint32_t context; /* kind of waker: enum wake_context */
	int32_t pid;
	int32_t tid;
	char comm[COMM_LEN];
};

/* offwake: the waker of the waits in one row. wakers[i] belongs to rows[i]. */
struct window_waker {
	struct stack *kernel; /* `kernel` and `user` are owned references; NULL: no such stack */
	struct stack *user;
	struct window_link links[WAKE_LINKS]; /* the waker, the thread that woke it, and so on;
						 WAKE_NONE marks the end */
};

/* offcpu: a wait that ended in this window and began in an earlier one. */
struct window_span {
	struct stack *kernel;
	struct stack *user;
	int64_t start_ns;
	int64_t wake_ns; /* time at which the thread was made runnable */
	int64_t end_ns;
	uint64_t throttled_ns; /* time without CPU quota from wake_ns to end_ns */
	struct culprits culprits;
	uint32_t image;
	uint32_t state;
};

/*
 * offcpu. If `count` is 0: a wait that had not ended when the window ended. Else `count` such
 * waits, whose time in this window is in rows[]; start_ns and wake_ns are then those of the
 * earliest of these waits, throttled_ns and whole_ns are totals.
 */
struct window_open {
	struct stack *kernel;
	struct stack *user; /* NULL: the user stack was not read during the wait */
	int64_t start_ns;
	int64_t wake_ns;       /* time at which the thread was made runnable; INT64_MAX: it is still
				  blocked */
	uint64_t throttled_ns; /* time without CPU quota from wake_ns to the end of the window */
	uint32_t image;
	uint32_t state;
	uint64_t whole_ns; /* if count is not 0: total of the waits' lengths from their starts to
			      end_ns */
	uint64_t whole_runnable_ns; /* part of whole_ns in which the threads were runnable */
	uint32_t count; /* number of waits whose time is in rows[]; 0: one wait, whose time is in no
			   row */
	uint32_t processes; /* number of processes that a folded entry stands for; 0: not folded */
	uint32_t started;   /* how many of `processes` started within the window */
	uint32_t pad;
};

/*
 * oncpu: samples of one thread (`image`) with the same stacks; on_ns is the CPU time that they
 * stand for. stackcount and stacksnoop: calls of one thread with the same stacks.
 */
struct window_sample {
	struct stack *kernel; /* `kernel` and `user` are owned references; NULL: no such stack */
	struct stack *user;
	uint64_t count;
	uint64_t on_ns;
	uint32_t image;
	uint32_t processes; /* number of processes that a folded row stands for; 0: not folded */
	uint32_t started;   /* how many of `processes` started within the window */
	uint32_t pad;
};

enum { WINDOW_DEVICE_LEN = 16, IO_BUCKETS_N = 64 };

/* The bits of window_io.is_slow. */
enum { WINDOW_IO_SLOW = 1, WINDOW_IO_SAMPLED = 2 };

/*
 * iolat: the I/O operations of one process (`image`) that have the same layer, kind (`op`), system
 * call, file system and device. Operations longer than the slow threshold are also counted in rows
 * with is_slow set, one for each stack. If is_slow has the bit WINDOW_IO_SAMPLED, the row stands
 * for operations that were not slow, of which only some were recorded: all its sums are estimates.
 * bucket_mask and bucket_first tell where the histogram of the operations' lengths is, see
 * window_io_add_buckets().
 */
struct window_io {
	struct stack *kernel; /* `kernel` and `user` are owned references; NULL: no such stack */
	struct stack *user;
	uint64_t count;
	uint64_t total_ns;
	uint64_t own_ns; /* total_ns minus the time of nested operations in lower layers */
	uint64_t runnable_ns;
	uint64_t asleep_ns; /* time asleep; includes device_ns, queue_ns and throttled_ns */
	uint64_t device_ns;
	uint64_t queue_ns;
	uint64_t throttled_ns;
	uint64_t async; /* number of operations that went on after the call that began them
			   returned; not in `count` */
	uint64_t open; /* number of operations that had not ended at end_ns; 0 in rows of operations
			  that have ended */
	uint64_t oldest_ns; /* length of the oldest operation that had not ended at end_ns, up to
			       end_ns */
	uint64_t errors;
	uint64_t bytes;
	uint64_t merges;
	uint64_t requeues;
	uint64_t max_ns;
	int64_t max_end_ns;
	uint64_t bucket_mask;
	uint32_t bucket_first;
	uint32_t image; /* index of the process in window.images */
	uint32_t dev;	/* device number, major << 20 | minor; 0: no device */
	uint32_t magic; /* magic number of the file system, as in struct io_key */
	uint32_t call;	/* number of the system call plus one; 0: no system call */
	uint32_t layer; /* layer of the operations: enum io_layer */
	uint32_t op;	/* kind of the operations: enum io_op */
	uint32_t is_slow;
	int32_t max_tid;
	int32_t oldest_tid;
	uint32_t processes; /* number of processes that a folded row stands for; 0: not folded */
	uint32_t started;   /* how many of `processes` started within the window */
	char device[WINDOW_DEVICE_LEN]; /* the device's name when the window ended; "": no device */
};

/*
 * A process that was folded. `image` is the index of the folded entry that has its times, or whose
 * rows count its waits, samples or operations.
 */
struct window_member {
	uint32_t image; /* index into window.images */
	int32_t pid;
};

/* Maximum number of entries in window.members. */
enum { WINDOW_MEMBERS_MAX = 8192 };

/*
 * Says how much was folded in a window. A merged window has the sums of these numbers over its
 * windows, except for `processes`, see there.
 */
struct window_folded {
	uint64_t rows; /* number of rows, waits and entries of window.images that were folded into
			  others */
	uint64_t processes; /* number of processes of which something was folded; in a merged
			       window, the largest of these numbers */
	uint64_t started;   /* how many of `processes` started within the window */
	uint64_t ns;	    /* total time of the rows that were folded */
	uint64_t unlisted;  /* how many of `processes` are not in window.members */
};

/* Names the details that stackd gives up to keep within its budget, besides stacks of short waits.
 */
enum window_shed {
	WINDOW_SHED_SAMPLES, /* oncpu: most samples; those that are left stand for the others */
	WINDOW_SHED_CALLS,   /* iolat: operations in system calls and file systems */
	WINDOW_SHED_FRAMES,  /* frames of user stacks behind the first SHED_DEPTH */
	/* new files of processes that lived less than a second: functions' names, unwind rows */
	WINDOW_SHED_BRIEF,
	WINDOW_SHED_N,
};

/* Returns the name of an enum window_shed for clients and their users; NULL if there is none. */
const char *window_shed_name(unsigned int shed);

/*
 * The CPU time that stackd took in the window, and what it did to keep within its budget: all of
 * stackd, not only the probe that made the window. A merged window has the sums of these numbers,
 * except for brake_below_ns, see there.
 */
struct window_cost {
	uint64_t ns;	 /* time for which the cost was measured; 0: it was not */
	uint64_t cpu_ns; /* CPU time of the daemon's threads */
	uint64_t bpf_ns; /* CPU time of its BPF programs, estimated from some of their runs */
	/* of cpu_ns, for answers, and of bpf_ns, for sessions of clients: no budget holds these */
	uint64_t answers_ns, sessions_ns;
	/* part of `ns` for which the setting [budget] cpu is known: older windows do not have it */
	uint64_t known_ns;
	uint64_t limited_ns; /* part of known_ns in which there was a limit */
	uint64_t budget_ns;  /* CPU time that the setting allowed in limited_ns */
	uint64_t beyond_ns;  /* part of limited_ns at which the last minute had cost clearly more */
	/* number of short waits that only the brakes of CPUs left to chance, see bpf/brake.h */
	uint64_t braked;
	/*
	 * length below which the brakes left waits to chance, at most; in a merged window, the
	 * greatest of these lengths. Not above the window's sample_below_ns.
	 */
	int64_t brake_below_ns;
	/* by enum window_shed: total length of the windows in which this was not recorded */
	uint64_t shed_ns[WINDOW_SHED_N];
};

enum window_loss {
	WINDOW_LOST_MISSED_RUNS = LOST_N, /* events that the kernel did not pass to a BPF program,
					     because the program was running on that CPU already */
	WINDOW_LOST_STACK_FRAMES,	  /* requests for stacks whose frames never arrived */
	WINDOW_LOST_MEMORY,	  /* events dropped for lack of memory, or because there were
				     PROCESSES_MAX processes */
	WINDOW_LOST_WAIT_THREADS, /* waits whose thread the daemon does not know */
	WINDOW_LOST_LATE_RECORDS, /* 1: some records of this window may be in a later window */
	WINDOW_LOST_OTHER,	  /* losses on disk whose reason only another version knows */
	WINDOW_LOST_N,
};

/*
 * Says whether window_fold() folds the window, and how. A window is folded after the functions of
 * its stacks have got names. See fold.h.
 */
enum window_folding {
	WINDOW_FOLD_NONE,
	WINDOW_FOLD_ROWS, /* rows are folded if there are too many */
	WINDOW_FOLD_ALL,  /* as WINDOW_FOLD_ROWS, and stacks of short preempted waits are dropped */
};

struct window {
	_Atomic unsigned int refs;
	enum window_folding folding;
	uint64_t run;	      /* number of the daemon's run; in each run, seq begins at 1 */
	uint64_t seq;	      /* number of the window; if several were merged, of the first one */
	uint32_t merged_from; /* number of windows that were merged into this one; 1: not merged */
	uint64_t session;
	enum probe_kind kind;
	int64_t start_ns;
	int64_t end_ns;
	int64_t real_offset_ns;
	/*
	 * Waits shorter than this were recorded by the rule in bpf/sample.h. 0: no waits were. If
	 * the length changed within the window, the greatest one: each wait has the weight of its
	 * moment. In a merged window, the greatest value of the windows that were merged.
	 */
	int64_t sample_below_ns;
	int64_t boot_offset_ns; /* CLOCK_BOOTTIME minus CLOCK_MONOTONIC: the time for which the host
				   was suspended */
	struct window_image *images;
	size_t n_images;
	struct window_row *rows;
	size_t n_rows;
	struct window_span *spans;
	size_t n_spans;
	struct window_open *opens;
	size_t n_opens;
	struct window_sample *samples;
	size_t n_samples;
	struct window_waker *wakers;
	size_t n_wakers; /* equal to n_rows in windows of offwake; 0 in others */
	struct window_io *ios;
	size_t n_ios;
	uint64_t *io_buckets;
	size_t n_io_buckets;
	uint32_t *buckets;
	size_t n_buckets;
	struct window_member *members; /* sorted by image, then by pid */
	size_t n_members;
	struct window_folded folded;
	/*
	 * Set by window_fold(), not stored: the largest time of rows with the same comm, exe,
	 * cgroup, stacks and state, which are not idle, that the folded window has only within rows
	 * of WINDOW_OTHERS.
	 */
	uint64_t lacks_ns;
	struct window_pressure pressure;
	struct window_spawns spawns;
	struct window_held held; /* offcpu: long waits and their holders */
	struct window_cost cost;
	/*
	 * The processes of a window that was read from disk for a query. In such a window,
	 * window_image.process is NULL. The strings are in owner_texts, an array of n_owner_texts
	 * strings.
	 */
	struct window_owner *owners;
	size_t n_owners;
	char **owner_texts;
	size_t n_owner_texts;
	/*
	 * true: the rows have no references to their stacks and processes. Either the store owns
	 * these and outlives the window, or `lent` has the references
	 */
	bool is_borrowing;
	/* if the window was read from disk for a query: references to all stacks of its rows */
	struct stack **lent;
	size_t n_lent;
	uint64_t lost[WINDOW_LOST_N]; /* number of losses, by enum loss and enum window_loss */
	uint64_t lost_ns;	      /* total duration of lost waits, in ns */
	/*
	 * The BPF programs count `switch_ins` and `sampled` separately from the rows, so that the
	 * rows can be checked against them.
	 */
	uint64_t switch_ins;
	uint64_t sampled; /* runs of the BPF program that takes samples or records calls */
	void *block;	  /* memory of all arrays, see window_pack(); NULL: each has its own */
	size_t block_size;
	size_t bytes; /* memory of the window, in bytes; set by window_seal() and window_pack() */
};

/* Returns an empty window with one reference; NULL when out of memory. */
struct window *window_new(void);
struct window *window_ref(struct window *window);
struct window *window_unref(struct window *window);

/*
 * Append one zeroed member to an array of the window and return the member. NULL when out of
 * memory. The pointer is valid until the next member is added to the same array.
 */
struct window_image *window_add_image(struct window *window);
struct window_row *window_add_row(struct window *window);
struct window_span *window_add_span(struct window *window);
struct window_open *window_add_open(struct window *window);
struct window_sample *window_add_sample(struct window *window);
struct window_waker *window_add_waker(struct window *window);
struct window_io *window_add_io(struct window *window);
struct window_member *window_add_member(struct window *window);

/* Returns the uid of a folded entry, which follows from its start_boot_ns and comm. */
uint64_t window_folded_uid(const struct window_image *image);

/*
 * Sorts `members`, removes duplicates, and stores them in the window, which must have no members
 * yet. Counts those beyond WINDOW_MEMBERS_MAX in window.folded.unlisted. 0, or -ENOMEM.
 */
int window_set_members(struct window *window, struct window_member *members, size_t n);

/* Returns the waker of the row with the index `row`; NULL if the window has no wakers. */
const struct window_waker *window_row_waker(const struct window *window, size_t row);

/*
 * Returns a hash of a waker's links[]. The flags with_kernel and with_user say whether the hash
 * also covers the waker's kernel stack and its user stack. Equal wakers have the same hash in all
 * windows. 0 for NULL.
 */
uint64_t window_waker_id(const struct window_waker *waker, bool with_kernel, bool with_user);

/*
 * Stores buckets[WAIT_BUCKETS] as the histogram of the waits in the row, by length. Empty buckets
 * take no memory. 0, or -ENOMEM.
 */
int window_row_set_buckets(struct window *window, struct window_row *row, const uint32_t *buckets);

/* Adds the histogram of the waits in the row to sums[WAIT_BUCKETS], bucket by bucket. */
void window_row_add_buckets(const struct window *window, const struct window_row *row,
			    uint64_t *sums);

/*
 * Copies the WAIT_BUCKETS sums of histograms to a histogram. A sum that does not fit becomes the
 * greatest number that does, as a few sampled waits may stand for billions. The row's count is
 * right in any case.
 */
void window_buckets_narrow(const uint64_t *sums, uint32_t *buckets);

/*
 * Like window_row_set_buckets() and window_row_add_buckets(), for a row of I/O operations and with
 * IO_BUCKETS_N buckets.
 */
int window_io_set_buckets(struct window *window, struct window_io *io, const uint64_t *buckets);
void window_io_add_buckets(const struct window *window, const struct window_io *io, uint64_t *sums);

/*
 * Adds the counts and times of `io` to those of `sum`, without the histogram. If the longest
 * operation of `io` is longer than that of `sum`, copies its length, end and thread, too. Does the
 * same for the oldest operation that has not ended.
 */
void window_io_add(struct window_io *sum, const struct window_io *io);

/*
 * Calls visit() for each place of the window that refers to a stack; *stack may be NULL. visit()
 * may put another stack there, as long as no other thread uses the window.
 */
void window_visit_stacks(struct window *window, void (*visit)(void *userdata, struct stack **stack),
			 void *userdata);

/*
 * Replaces user stacks of processes that have exited by stacks that all such processes share, see
 * stack_table_share(). Their addresses within the process are lost. All stacks must have names, and
 * no other thread may use the window yet.
 */
void window_share_stacks(struct window *window, struct stack_table *table);

/*
 * Frees the spare capacity of the arrays and sets window.bytes. No members may be added afterwards.
 */
void window_seal(struct window *window);

/*
 * Moves the arrays of a sealed window into memory of their own, for windows that stay for long; see
 * pages.h. No other thread may use the window yet. Does nothing if they are small or when out of
 * memory.
 */
void window_pack(struct window *window);

/* Returns the text by which clients describe a reason for loss (enum loss or enum window_loss). */
const char *window_loss_name(unsigned int loss);

/*
 * Returns the time at which a window's processes are said to be in their control groups: one that
 * was moved within the window is in the group where it was longer.
 */
static inline int64_t window_middle_ns(const struct window *window)
{
	return window->start_ns + (window->end_ns - window->start_ns) / 2;
}

/*
 * Returns how many processes a folded row or entry stands for. Both arguments are members of this
 * row or entry.
 */
static inline uint32_t window_processes(uint32_t processes, uint32_t started)
{
	return processes > started ? processes : started;
}

/*
 * Used when windows are merged. Changes `processes` and `started` of a folded row or entry of the
 * merged window: takes into account `others` and `others_started`, which are those of the same row
 * or entry in another window. The rule is described at struct window_image.
 */
static inline void window_processes_add(uint32_t *processes, uint32_t *started, uint32_t others,
					uint32_t others_started)
{
	if (others > *processes)
		*processes = others;
	*started += others_started;
}

/* Adds the sums of a thread to those of another one, or of the same one in another window. */
static inline void thread_sums_add(struct thread_sums *sum, const struct thread_sums *more)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)more;

	_Static_assert(sizeof(*sum) % sizeof(uint64_t) == 0, "thread_sums has words only");
	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += from[i];
}

/*
 * Adds the counts and times of `row` to those of `sum`, without the histogram. The longest wait of
 * both stays; of two equally long ones, that which ended later.
 */
static inline void window_row_add(struct window_row *sum, const struct window_row *row)
{
	WAIT_MEASURES_ADD(sum, row);
	culprits_add(&sum->culprits, &row->culprits);
	window_processes_add(&sum->processes, &sum->started, row->processes, row->started);
	if (row->max_ns < sum->max_ns ||
	    (row->max_ns == sum->max_ns && row->max_end_ns <= sum->max_end_ns))
		return;
	sum->max_ns = row->max_ns;
	sum->max_end_ns = row->max_end_ns;
}

static inline void window_sample_add(struct window_sample *sum, const struct window_sample *sample)
{
	sum->count += sample->count;
	sum->on_ns += sample->on_ns;
	window_processes_add(&sum->processes, &sum->started, sample->processes, sample->started);
}

static inline void window_estimate_add(struct window_estimate *sum,
				       const struct window_estimate *estimate)
{
	sum->count += estimate->count;
	sum->blocked_ns += estimate->blocked_ns;
	sum->runnable_ns += estimate->runnable_ns;
}

static inline void window_cost_add(struct window_cost *sum, const struct window_cost *cost)
{
	sum->ns += cost->ns;
	sum->cpu_ns += cost->cpu_ns;
	sum->bpf_ns += cost->bpf_ns;
	sum->answers_ns += cost->answers_ns;
	sum->sessions_ns += cost->sessions_ns;
	sum->known_ns += cost->known_ns;
	sum->limited_ns += cost->limited_ns;
	sum->budget_ns += cost->budget_ns;
	sum->beyond_ns += cost->beyond_ns;
	sum->braked += cost->braked;
	if (cost->brake_below_ns > sum->brake_below_ns)
		sum->brake_below_ns = cost->brake_below_ns;
	for (unsigned int i = 0; i < WINDOW_SHED_N; i++)
		sum->shed_ns[i] += cost->shed_ns[i];
}

/* Adds what was folded in another window. */
static inline void window_folded_add(struct window_folded *sum, const struct window_folded *folded)
{
	sum->rows += folded->rows;
	sum->ns += folded->ns;
	sum->unlisted += folded->unlisted;
	sum->started += folded->started;
	if (folded->processes > sum->processes)
		sum->processes = folded->processes;
}

/* True if the wait is that of one thread of a process, and goes on at the end of the window. */
static inline bool window_open_is_one(const struct window *window, const struct window_open *open)
{
	const struct window_image *image = &window->images[open->image];

	return !open->count && !(open->state & STATE_UNSEEN) && image->tid && !image->folded &&
	       image->process && open->wake_ns >= window->end_ns;
}

/* Returns the length of the part of [from, to) that lies within [start, end), in ns. */
static inline uint64_t window_overlap_ns(int64_t from, int64_t to, int64_t start, int64_t end)
{
	if (from < start)
		from = start;
	if (to > end)
		to = end;
	return to > from ? (uint64_t)(to - from) : 0;
}

#endif
