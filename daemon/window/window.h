/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_WINDOW_H
#define STACKD_DAEMON_WINDOW_WINDOW_H

/*
 * Stage 4, one window: everything that a session recorded between two cuts. Refcounted, and
 * immutable once it is in the history, so any thread may read it. Times are ns of CLOCK_MONOTONIC;
 * a window is the half-open interval [start_ns, end_ns). A time plus real_offset_ns is ns since the
 * epoch, as the realtime clock was at the cut.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "common/probe_kind.h"
#include "daemon/process/process.h"
#include "daemon/window/stack.h"

/* The lowest number of a session that a client started; those that are always on have lower ones.
 */
enum { SESSION_FIRST_ID = 100 };

/*
 * A thread as it runs one program: after an exec it is another image of the same thread. sums count
 * the thread's time in this window, as this image.
 */
struct window_image {
	uint64_t uid; /* the thread's: equal for all its images */
	uint64_t start_boot_ns;
	struct process *process; /* a reference */
	struct thread_sums sums;
	int32_t tid;
	uint32_t exec_gen;
	char comm[COMM_LEN];
};

/*
 * Waits of one image at one stack that began and ended in the window. bucket_mask and bucket_first:
 * the histogram of their lengths, see window_row_add_buckets().
 */
struct window_row {
	struct stack *kernel; /* references; NULL: none */
	struct stack *user;
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* part of runnable_ns: the cgroup had no CPU quota */
	uint64_t max_ns;
	int64_t max_end_ns; /* when the longest wait ended */
	uint32_t image;	    /* an index into images */
	uint32_t state;	    /* see task_state.h */
	uint32_t bucket_mask;
	uint32_t bucket_first;
};

/* One step of a path of wakers. Without pid, tid and comm if it was not a thread that woke. */
struct window_link {
	uint32_t context; /* enum wake_context */
	int32_t pid;
	int32_t tid;
	char comm[COMM_LEN];
};

/* offwake: the waker that ended the waits of the row with the same index. */
struct window_waker {
	struct stack *kernel; /* references; NULL: none */
	struct stack *user;
	struct window_link
		links[WAKE_LINKS]; /* the waker, its own waker, and so on, up to WAKE_NONE */
};

/* A wait that ended in the window and began before it. */
struct window_span {
	struct stack *kernel;
	struct stack *user;
	int64_t start_ns;
	int64_t wake_ns; /* when the thread was made runnable */
	int64_t end_ns;
	uint64_t throttled_ns; /* part of the time since wake_ns */
	uint32_t image;
	uint32_t state;
};

/* A wait that had not ended when the window did. */
struct window_open {
	struct stack *kernel;
	struct stack *user; /* NULL if it was not read during the wait */
	int64_t start_ns;
	int64_t wake_ns;       /* when it was made runnable; INT64_MAX: still blocked */
	uint64_t throttled_ns; /* part of the time since wake_ns */
	uint32_t image;
	uint32_t state;
};

/* oncpu and kinds of calls: samples of an image at one stack, and the time they stand for. */
struct window_sample {
	struct stack *kernel; /* references; NULL: none, as the thread ran in user mode */
	struct stack *user;
	uint64_t count;
	uint64_t on_ns;
	uint32_t image;
	uint32_t pad;
};

enum { WINDOW_DEVICE_LEN = 16, IO_BUCKETS_N = 64 };

/*
 * iolat: I/O operations of one kind, of a process, in one layer, at one device. Operations above
 * the slow threshold are counted a second time, by stack, in rows with is_slow. bucket_mask and
 * bucket_first: the histogram of their lengths, see window_io_add_buckets().
 */
struct window_io {
	struct stack *kernel; /* references; NULL: none */
	struct stack *user;
	uint64_t count;
	uint64_t total_ns;
	uint64_t own_ns; /* total_ns less the time in layers below */
	uint64_t runnable_ns;
	uint64_t asleep_ns; /* contains device_ns, queue_ns and throttled_ns */
	uint64_t device_ns;
	uint64_t queue_ns;
	uint64_t throttled_ns;
	uint64_t async;	    /* not in count: operations that go on after their return */
	uint64_t open;	    /* set only in rows of open operations: not ended at end_ns, */
	uint64_t oldest_ns; /* and the age of the oldest one then */
	uint64_t errors;
	uint64_t bytes;
	uint64_t merges;
	uint64_t requeues;
	uint64_t max_ns;
	int64_t max_end_ns;
	uint64_t bucket_mask;
	uint32_t bucket_first;
	uint32_t image; /* the process, as its first thread */
	uint32_t dev;	/* the kernel's number of the device; 0: no device */
	uint32_t magic; /* the file system's, as in struct io_key */
	uint32_t call;	/* a system call's number plus one; 0: none */
	uint32_t layer; /* enum io_layer */
	uint32_t op;	/* enum io_op */
	uint32_t is_slow;
	int32_t max_tid;
	int32_t oldest_tid;
	char device[WINDOW_DEVICE_LEN]; /* its name at the cut; "": no device */
};

enum window_loss {
	WINDOW_LOST_MISSED_RUNS = LOST_N, /* runs of programs skipped as one was running */
	WINDOW_LOST_STACK_FRAMES,	  /* stack ids whose frames never arrived */
	WINDOW_LOST_MEMORY,		  /* events dropped: no memory, or PROCESSES_MAX */
	WINDOW_LOST_WAIT_THREADS,	  /* waits of threads that are not known otherwise */
	WINDOW_LOST_LATE_RECORDS,	  /* 1: some of the window's records may be late */
	WINDOW_LOST_OTHER,		  /* read from the store, where another version put it */
	WINDOW_LOST_N,
};

struct window {
	_Atomic unsigned int refs;
	uint64_t run;	/* the store's number of the daemon's run; seq begins anew with each run */
	uint64_t seq;	/* its number; that of the first, if it was made of several windows */
	uint32_t parts; /* the number of windows that it was made of; 1 when it was cut */
	uint64_t session;
	enum probe_kind kind;
	int64_t start_ns;
	int64_t end_ns;
	int64_t real_offset_ns;
	int64_t boot_offset_ns; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC: the time suspended */
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
	size_t n_wakers; /* n_rows, or 0 */
	struct window_io *ios;
	size_t n_ios;
	uint64_t *io_buckets;
	size_t n_io_buckets;
	uint32_t *buckets;
	size_t n_buckets;
	bool is_borrowing; /* stacks and processes are borrowed from the store, which outlives it */
	uint64_t lost[WINDOW_LOST_N]; /* counts of losses, by enum loss and enum window_loss */
	uint64_t lost_ns;	      /* the time of lost waits */
	/* Growth of the programs' own counters, to check the rows against. */
	uint64_t switch_ins;
	uint64_t sampled; /* runs of the sampling program */
	size_t bytes;	  /* the memory it takes, set by window_seal() */
};

/* An empty window with one reference, NULL when out of memory. */
struct window *window_new(void);
struct window *window_ref(struct window *window);
struct window *window_unref(struct window *window);

/*
 * Append one zeroed member. NULL when out of memory. The pointer is valid until the next member is
 * added to the same array.
 */
struct window_image *window_add_image(struct window *window);
struct window_row *window_add_row(struct window *window);
struct window_span *window_add_span(struct window *window);
struct window_open *window_add_open(struct window *window);
struct window_sample *window_add_sample(struct window *window);
struct window_waker *window_add_waker(struct window *window);
struct window_io *window_add_io(struct window *window);

/* The waker of the row with this index; NULL if the window has no wakers. */
const struct window_waker *window_row_waker(const struct window *window, size_t row);

/*
 * A hash over a waker's path and, if wanted, its kernel and user stack: equal wakers have the same
 * id, also in different windows. 0 for NULL.
 */
uint64_t window_waker_id(const struct window_waker *waker, bool with_kernel, bool with_user);

/* Stores a histogram of WAIT_BUCKETS with the row; zeroes take no memory. 0, or -ENOMEM. */
int window_row_set_buckets(struct window *window, struct window_row *row, const uint32_t *buckets);

/* Adds the row's histogram to sums[WAIT_BUCKETS]. */
void window_row_add_buckets(const struct window *window, const struct window_row *row,
			    uint64_t *sums);

/* Do the same for a row of I/O, with a histogram of IO_BUCKETS_N. */
int window_io_set_buckets(struct window *window, struct window_io *io, const uint64_t *buckets);
void window_io_add_buckets(const struct window *window, const struct window_io *io, uint64_t *sums);

/* Adds the row io to sum, but for the histogram. */
void window_io_add(struct window_io *sum, const struct window_io *io);

/* Shrinks the arrays to their size and sets window.bytes. No members may be added afterwards. */
void window_seal(struct window *window);

/* Describes a reason for loss, as clients see it. */
const char *window_loss_name(unsigned int loss);

/* Returns how much of the time from `from` to `to` lies between start and end. */
static inline uint64_t window_overlap_ns(int64_t from, int64_t to, int64_t start, int64_t end)
{
	if (from < start)
		from = start;
	if (to > end)
		to = end;
	return to > from ? (uint64_t)(to - from) : 0;
}

#endif
