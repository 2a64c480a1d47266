/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_WINDOW_H
#define STACKD_DAEMON_WINDOW_WINDOW_H

/*
 * One window: everything that a session recorded between two cuts. A cut ends one window and begins
 * the next. Windows are refcounted, and immutable once they are in the history, so any thread may
 * read them. Times are ns of CLOCK_MONOTONIC; a window is the half-open interval [start_ns,
 * end_ns). Adding real_offset_ns to a time gives ns since the epoch, by the realtime clock as it
 * was at the cut that ended the window.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "common/probe_kind.h"
#include "daemon/process/process.h"
#include "daemon/window/stack.h"

/*
 * The lowest number that a session started by a client can have. Sessions that are always on have
 * lower numbers.
 */
enum { SESSION_FIRST_ID = 100 };

/*
 * A thread while it runs one program: after an exec, the same thread has another image. `sums`
 * counts the time that the thread spent in this window as this image.
 */
struct window_image {
	uint64_t uid; /* identifies the thread: equal in all of its images */
	uint64_t start_boot_ns;
	struct process *process; /* owned reference, unless window.is_borrowing */
	struct thread_sums sums;
	int32_t tid;
	uint32_t exec_gen;
	char comm[COMM_LEN];
};

/*
 * Waits of one image with the same stacks and state that ended in the window. In windows of offcpu
 * they also began in it; see struct window_span for the others. bucket_mask and bucket_first locate
 * the histogram of the waits' lengths, see window_row_add_buckets().
 */
struct window_row {
	struct stack *kernel; /* kernel and user are references; NULL: no such stack */
	struct stack *user;
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* part of runnable_ns, in which the cgroup had no CPU quota */
	uint64_t max_ns;
	int64_t max_end_ns; /* time at which the longest wait ended */
	uint32_t image;	    /* index into window.images */
	uint32_t state;	    /* task state bits of the waiting thread, see task_state.h */
	uint32_t bucket_mask;
	uint32_t bucket_first;
};

/*
 * One waker on the path of wakers that led to the end of a wait. pid, tid and comm are zero unless
 * the waker was a thread.
 */
struct window_link {
	uint32_t context; /* enum wake_context */
	int32_t pid;
	int32_t tid;
	char comm[COMM_LEN];
};

/* offwake: the waker that ended the waits of a row. wakers[i] belongs to rows[i]. */
struct window_waker {
	struct stack *kernel; /* kernel and user are references; NULL: no such stack */
	struct stack *user;
	struct window_link links[WAKE_LINKS]; /* the waker, then the thread that woke the waker, and
						 so on, up to WAKE_NONE */
};

/* offcpu: a wait that ended in this window and began in an earlier one. */
struct window_span {
	struct stack *kernel;
	struct stack *user;
	int64_t start_ns;
	int64_t wake_ns; /* when the thread was made runnable */
	int64_t end_ns;
	uint64_t throttled_ns; /* time without CPU quota between wake_ns and end_ns */
	uint32_t image;
	uint32_t state;
};

/* offcpu: a wait that had not ended when the window ended. */
struct window_open {
	struct stack *kernel;
	struct stack *user; /* NULL if the user stack was not read during the wait */
	int64_t start_ns;
	int64_t wake_ns;       /* when the thread was made runnable; INT64_MAX: still blocked */
	uint64_t throttled_ns; /* time without CPU quota from wake_ns to the window's end */
	uint32_t image;
	uint32_t state;
};

/*
 * oncpu, stackcount and stacksnoop: the samples or calls of one image with the same stacks. on_ns
 * is the time that samples of oncpu stand for.
 */
struct window_sample {
	struct stack *kernel; /* kernel and user are references; NULL: no such stack */
	struct stack *user;
	uint64_t count;
	uint64_t on_ns;
	uint32_t image;
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
	struct stack *kernel; /* kernel and user are references; NULL: no such stack */
	struct stack *user;
	uint64_t count;
	uint64_t total_ns;
	uint64_t own_ns; /* total_ns without the time spent in lower layers */
	uint64_t runnable_ns;
	uint64_t asleep_ns; /* includes device_ns, queue_ns and throttled_ns */
	uint64_t device_ns;
	uint64_t queue_ns;
	uint64_t throttled_ns;
	uint64_t async; /* operations that continue after the call returned; not in count */
	uint64_t open;	/* operations not ended at end_ns; 0 except in rows of open operations */
	uint64_t oldest_ns; /* age at end_ns of the oldest open operation */
	uint64_t errors;
	uint64_t bytes;
	uint64_t merges;
	uint64_t requeues;
	uint64_t max_ns;
	int64_t max_end_ns;
	uint64_t bucket_mask;
	uint32_t bucket_first;
	uint32_t image; /* index into window.images: the image that stands for the process */
	uint32_t dev;	/* device number of the kernel, major << 20 | minor; 0: no device */
	uint32_t magic; /* magic number of the file system, as in struct io_key */
	uint32_t call;	/* number of the system call plus one; 0: no system call */
	uint32_t layer; /* enum io_layer */
	uint32_t op;	/* enum io_op */
	uint32_t is_slow;
	int32_t max_tid;
	int32_t oldest_tid;
	char device[WINDOW_DEVICE_LEN]; /* name of the device at the cut; "": no device */
};

enum window_loss {
	WINDOW_LOST_MISSED_RUNS = LOST_N, /* runs of BPF programs that were skipped */
	WINDOW_LOST_STACK_FRAMES,	  /* stack ids whose frames never arrived */
	WINDOW_LOST_MEMORY,	  /* events dropped for lack of memory or at PROCESSES_MAX */
	WINDOW_LOST_WAIT_THREADS, /* waits whose thread the daemon does not know */
	WINDOW_LOST_LATE_RECORDS, /* 1: some records of the window may be in a later window */
	WINDOW_LOST_OTHER,	  /* losses in a stored window that another version counted */
	WINDOW_LOST_N,
};

struct window {
	_Atomic unsigned int refs;
	uint64_t run; /* number of the daemon's run, from the store; seq starts anew in each run */
	uint64_t seq; /* number of the window; that of the first window if several were merged */
	uint32_t parts; /* number of windows merged into this one; 1: not merged */
	uint64_t session;
	enum probe_kind kind;
	int64_t start_ns;
	int64_t end_ns;
	int64_t real_offset_ns;
	int64_t boot_offset_ns; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC: time that the host was
				   suspended */
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
	size_t n_wakers; /* equal to n_rows in windows of offwake, else 0 */
	struct window_io *ios;
	size_t n_ios;
	uint64_t *io_buckets;
	size_t n_io_buckets;
	uint32_t *buckets;
	size_t n_buckets;
	bool is_borrowing; /* stacks and processes belong to the store, which outlives the window */
	uint64_t lost[WINDOW_LOST_N]; /* counts of losses, by enum loss and enum window_loss */
	uint64_t lost_ns;	      /* total duration of lost waits */
	/* Counts that the BPF programs keep apart from the rows, to check the rows against. */
	uint64_t switch_ins;
	uint64_t sampled; /* number of runs of the sampling program */
	size_t bytes;	  /* memory that the window takes; set by window_seal() */
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

/* Returns the waker of the row with the index `row`; NULL if the window has no wakers. */
const struct window_waker *window_row_waker(const struct window *window, size_t row);

/*
 * Returns a hash of a waker's path and, if wanted, of its kernel and user stack. Equal wakers have
 * the same id, also in different windows. 0 for NULL.
 */
uint64_t window_waker_id(const struct window_waker *waker, bool with_kernel, bool with_user);

/*
 * Stores the histogram buckets[WAIT_BUCKETS] with the row; empty buckets take no memory. 0, or
 * -ENOMEM.
 */
int window_row_set_buckets(struct window *window, struct window_row *row, const uint32_t *buckets);

/* Adds the row's histogram to sums[WAIT_BUCKETS]. */
void window_row_add_buckets(const struct window *window, const struct window_row *row,
			    uint64_t *sums);

/*
 * Store and add the histogram of a row of I/O, which has IO_BUCKETS_N buckets, in the same way as
 * the two functions above do for a row of waits.
 */
int window_io_set_buckets(struct window *window, struct window_io *io, const uint64_t *buckets);
void window_io_add_buckets(const struct window *window, const struct window_io *io, uint64_t *sums);

/*
 * Adds the counts and times of `io` to `sum`, which takes over the longest and the oldest operation
 * of the two. Leaves out the histogram.
 */
void window_io_add(struct window_io *sum, const struct window_io *io);

/*
 * Frees the spare capacity of the arrays and sets window.bytes. No members may be added afterwards.
 */
void window_seal(struct window *window);

/* Returns the text that clients show for a reason for loss. */
const char *window_loss_name(unsigned int loss);

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
