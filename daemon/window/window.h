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
#include "daemon/window/stack.h"

/*
 * The lowest number of a session that a client started. Sessions that are always on have lower
 * numbers.
 */
enum { SESSION_FIRST_ID = 100 };

/*
 * A thread while it runs one program: after an exec, the same thread has another image. `sums` has
 * the time that the thread spent in each state in this window while it ran this program.
 *
 * A folded image stands for several processes: its tid is 0, its process is one of
 * process_see_folded(), and its sums are those of the images that were folded into it. An image, or
 * a row, that was merged from several windows adds `started` and takes the larger `folded` or
 * `processes`, because the same process may be in each of these windows. The number to show is the
 * larger of the two, window_processes().
 */
struct window_image {
	uint64_t uid; /* identifies the thread; an exec does not change it */
	uint64_t start_boot_ns;
	struct process *process; /* owned reference, unless window.is_borrowing is set */
	struct thread_sums sums;
	int32_t tid;
	uint32_t exec_gen;
	char comm[COMM_LEN];
	uint32_t folded;  /* number of processes that were folded into the image; 0: a thread */
	uint32_t started; /* number of these processes that started within the window */
};

/*
 * Waits that ended in the window and have the same image (thread), stacks and state. In windows of
 * offcpu they also began in the window; struct window_span has the others. bucket_mask and
 * bucket_first locate the histogram of the waits' lengths, see window_row_add_buckets().
 */
struct window_row {
	struct stack *kernel; /* kernel and user are owned references; NULL: no such stack */
	struct stack *user;
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* part of runnable_ns during which the cgroup had no CPU quota */
	uint64_t max_ns;
	int64_t max_end_ns; /* time at which the longest of the waits ended */
	uint32_t image;	    /* index of the thread in window.images */
	uint32_t state;	    /* task state bits of the waiting thread, see task_state.h */
	uint32_t bucket_mask;
	uint32_t bucket_first;
	uint32_t processes; /* number of processes that were folded into the row; 0: not folded */
	uint32_t started;   /* number of these processes that started within the window */
};

/*
 * One waker in the chain that ended a wait: the waker, the thread that woke the waker, and so on.
 * pid, tid and comm are zero unless the waker was a thread.
 */
struct window_link {
	uint32_t context; /* what the waker was: enum wake_context */
	int32_t pid;
	int32_t tid;
	char comm[COMM_LEN];
};

/* offwake: the waker of the waits in one row. wakers[i] belongs to rows[i]. */
struct window_waker {
	struct stack *kernel; /* kernel and user are owned references; NULL: no such stack */
	struct stack *user;
	struct window_link links[WAKE_LINKS]; /* the waker, then the thread that woke the waker, and
						 so on; WAKE_NONE marks the end */
};

/* offcpu: a wait that ended in this window and began in an earlier one. */
struct window_span {
	struct stack *kernel;
	struct stack *user;
	int64_t start_ns;
	int64_t wake_ns; /* time at which the thread was made runnable */
	int64_t end_ns;
	uint64_t throttled_ns; /* time without CPU quota from wake_ns to end_ns */
	uint32_t image;
	uint32_t state;
};

/*
 * offcpu: a wait that had not ended when the window ended; or, if `count` is not 0, that number of
 * such waits, whose time in the window is in rows. start_ns and wake_ns are then the earliest of
 * these waits, throttled_ns and whole_ns are sums.
 */
struct window_open {
	struct stack *kernel;
	struct stack *user; /* NULL: the user stack was not read during the wait */
	int64_t start_ns;
	int64_t wake_ns; /* time at which the thread was made runnable; INT64_MAX: still blocked */
	uint64_t throttled_ns; /* time without CPU quota from wake_ns to the end of the window */
	uint32_t image;
	uint32_t state;
	uint64_t whole_ns; /* time from the starts of the waits to end_ns; 0 if count is 0 */
	uint64_t whole_runnable_ns; /* part of whole_ns that comes after the wakeups */
	uint32_t count; /* number of waits whose time is in rows; 0: one wait, whose time is not */
	uint32_t processes; /* number of processes that were folded into the wait; 0: not folded */
	uint32_t started;   /* number of these processes that started within the window */
	uint32_t pad;
};

/*
 * oncpu, stackcount and stacksnoop: samples or calls of one image (thread) with the same stacks.
 * on_ns is the CPU time that the samples of oncpu stand for.
 */
struct window_sample {
	struct stack *kernel; /* kernel and user are owned references; NULL: no such stack */
	struct stack *user;
	uint64_t count;
	uint64_t on_ns;
	uint32_t image;
	uint32_t processes; /* number of processes that were folded into the row; 0: not folded */
	uint32_t started;   /* number of these processes that started within the window */
	uint32_t pad;
};

enum { WINDOW_DEVICE_LEN = 16, IO_BUCKETS_N = 64 };

/*
 * iolat: the I/O operations of one process that have the same layer, operation (op), system call,
 * file system and device. Operations longer than the slow threshold are counted a second time, by
 * stack, in rows with is_slow set. bucket_mask and bucket_first locate the histogram of the
 * operations' lengths, see window_io_add_buckets().
 */
struct window_io {
	struct stack *kernel; /* kernel and user are owned references; NULL: no such stack */
	struct stack *user;
	uint64_t count;
	uint64_t total_ns;
	uint64_t own_ns; /* total_ns less the time of nested operations in lower layers */
	uint64_t runnable_ns;
	uint64_t asleep_ns; /* time asleep; includes device_ns, queue_ns and throttled_ns */
	uint64_t device_ns;
	uint64_t queue_ns;
	uint64_t throttled_ns;
	uint64_t async; /* number of operations that continued after their call returned; `count`
			   does not include them */
	uint64_t open;	/* number of operations that had not ended at end_ns; 0 except in rows of
			   open operations */
	uint64_t oldest_ns; /* time from the start of the oldest open operation to end_ns */
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
	uint32_t processes; /* number of processes that were folded into the row; 0: not folded */
	uint32_t started;   /* number of these processes that started within the window */
	char device[WINDOW_DEVICE_LEN]; /* the device's name when the window ended; "": no device */
};

/* A process that was folded, and the folded image that has its sums or a part of its rows. */
struct window_member {
	uint32_t image; /* index into window.images */
	int32_t pid;
};

/* The most members that a window lists. */
enum { WINDOW_MEMBERS_MAX = 16384 };

/* What was folded in a window. The sums of a merged window are added, as those of its rows are. */
struct window_folded {
	uint64_t rows;	    /* number of rows, waits and images that became parts of others */
	uint64_t processes; /* number of processes that lost a row or their image; merging windows
			       takes the larger number */
	uint64_t started;   /* number of these processes that started within the window */
	uint64_t ns;	    /* time of the rows that were folded */
	uint64_t unlisted;  /* number of these processes that are not in window.members */
};

enum window_loss {
	WINDOW_LOST_MISSED_RUNS = LOST_N, /* events missed while the BPF program was running */
	WINDOW_LOST_STACK_FRAMES,	  /* requests for stacks whose frames never arrived */
	WINDOW_LOST_MEMORY, /* events dropped: no memory, or already PROCESSES_MAX processes */
	WINDOW_LOST_WAIT_THREADS, /* waits whose thread the daemon does not know */
	WINDOW_LOST_LATE_RECORDS, /* 1: some records of this window may be in a later window */
	WINDOW_LOST_OTHER,	  /* losses on disk whose reason only another version knows */
	WINDOW_LOST_N,
};

struct window {
	_Atomic unsigned int refs;
	uint64_t run;	/* number of the run of the daemon; seq starts anew in each run */
	uint64_t seq;	/* number of the window; if several were merged, of the first one */
	uint32_t parts; /* number of windows that were merged into this one; 1: not merged */
	uint64_t session;
	enum probe_kind kind;
	int64_t start_ns;
	int64_t end_ns;
	int64_t real_offset_ns;
	int64_t boot_offset_ns; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC: the time for which the host
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
	size_t n_wakers; /* n_rows in windows of offwake, else 0 */
	struct window_io *ios;
	size_t n_ios;
	uint64_t *io_buckets;
	size_t n_io_buckets;
	uint32_t *buckets;
	size_t n_buckets;
	struct window_member *members; /* sorted by image, then by pid */
	size_t n_members;
	struct window_folded folded;
	bool is_borrowing; /* the store owns the stacks and processes and outlives the window */
	uint64_t lost[WINDOW_LOST_N]; /* number of losses, by enum loss and enum window_loss */
	uint64_t lost_ns;	      /* total duration of lost waits, in ns */
	/*
	 * The BPF programs count switch_ins and sampled apart from the rows: the rows are checked
	 * against them.
	 */
	uint64_t switch_ins;
	uint64_t sampled; /* number of runs of the BPF program that samples or traces */
	size_t bytes;	  /* memory of the window, in bytes; set by window_seal() */
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

/*
 * Sorts the n members, adds each one once to the window, which must have none, and counts those
 * beyond WINDOW_MEMBERS_MAX in window.folded.unlisted. 0, or -ENOMEM.
 */
int window_set_members(struct window *window, struct window_member *members, size_t n);

/* Returns the waker of the row with the index `row`; NULL if the window has no wakers. */
const struct window_waker *window_row_waker(const struct window *window, size_t row);

/*
 * Returns a hash of a waker's links[] and, if wanted, of its kernel and user stack. Equal wakers
 * have the same hash, also in different windows. 0 for NULL.
 */
uint64_t window_waker_id(const struct window_waker *waker, bool with_kernel, bool with_user);

/*
 * Stores buckets[WAIT_BUCKETS] as the histogram of the row's wait lengths. Empty buckets take no
 * memory. 0, or -ENOMEM.
 */
int window_row_set_buckets(struct window *window, struct window_row *row, const uint32_t *buckets);

/* Adds the row's histogram of wait lengths to sums[WAIT_BUCKETS]. */
void window_row_add_buckets(const struct window *window, const struct window_row *row,
			    uint64_t *sums);

/*
 * Store the histogram of a row of I/O operations, and add it to `sums`, as window_row_set_buckets()
 * and window_row_add_buckets() do for waits. Such a histogram has IO_BUCKETS_N buckets.
 */
int window_io_set_buckets(struct window *window, struct window_io *io, const uint64_t *buckets);
void window_io_add_buckets(const struct window *window, const struct window_io *io, uint64_t *sums);

/*
 * Adds the counts and times of `io` to `sum`. If the longest or the oldest operation of `io`
 * exceeds that of `sum`, copies it, too. Leaves out the histogram.
 */
void window_io_add(struct window_io *sum, const struct window_io *io);

/*
 * Frees the spare capacity of the arrays and sets window.bytes. No members may be added afterwards.
 */
void window_seal(struct window *window);

/* Returns the text by which clients describe a reason for loss (enum loss or enum window_loss). */
const char *window_loss_name(unsigned int loss);

/* Returns the number of processes that a folded row or image stands for. */
static inline uint32_t window_processes(uint32_t processes, uint32_t started)
{
	return processes > started ? processes : started;
}

/* Adds the counts of a folded row or image of another window, see struct window_image. */
static inline void window_processes_add(uint32_t *processes, uint32_t *started, uint32_t others,
					uint32_t others_started)
{
	if (others > *processes)
		*processes = others;
	*started += others_started;
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
