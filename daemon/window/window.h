/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_WINDOW_H
#define STACKD_DAEMON_WINDOW_WINDOW_H

/*
 * Stage 4, one window: what the drain gathered between two cuts. Refcounted and, once in the
 * history, immutable, so any thread may read it. Times are ns of CLOCK_MONOTONIC, half open
 * [start, end); real_offset_ns added to one gives the time since the epoch as it was at the cut.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "common/probe_kind.h"
#include "daemon/process/process.h"
#include "daemon/window/stack.h"

/* Sessions with a lower number are always on. */
enum { SESSION_FIRST_ID = 100 };

/*
 * A thread as one image: after an exec it is another image of the same thread. sums are of this
 * window, and of the time as this image.
 */
struct window_image {
	uint64_t uid;
	uint64_t start_boot_ns;
	struct process *process; /* a reference */
	struct thread_sums sums;
	int32_t tid;
	uint32_t exec_gen;
	char comm[COMM_LEN];
};

/* Waits that began and ended in the window, at one stack. buckets: see window_row_buckets(). */
struct window_row {
	struct stack *kernel; /* references; NULL: none */
	struct stack *user;
	uint64_t count;
	uint64_t blocked_ns;
	uint64_t runnable_ns;
	uint64_t throttled_ns; /* of runnable_ns */
	uint64_t max_ns;
	int64_t max_end_ns;
	uint32_t image;
	uint32_t state;
	uint32_t bucket_mask;
	uint32_t bucket_first;
};

/* One step of the path of who woke whom; without a thread where it is not a task. */
struct window_link {
	uint32_t context; /* enum wake_context */
	int32_t pid;
	int32_t tid;
	char comm[COMM_LEN];
};

/* Of offwake: who ended the waits of the row in the same place. */
struct window_waker {
	struct stack *kernel; /* references; NULL: none */
	struct stack *user;
	struct window_link links[WAKE_LINKS]; /* the waker, who woke that, ...; up to WAKE_NONE */
};

/* A wait that ended in the window and began before it; throttled from wake_ns on. */
struct window_span {
	struct stack *kernel;
	struct stack *user;
	int64_t start_ns;
	int64_t wake_ns;
	int64_t end_ns;
	uint64_t throttled_ns;
	uint32_t image;
	uint32_t state;
};

/*
 * A wait that had not ended when the window did; wake_ns is INT64_MAX while blocked, and from there
 * on it was throttled for so long. user is NULL
 * where it was not read while the wait went on.
 */
struct window_open {
	struct stack *kernel;
	struct stack *user;
	int64_t start_ns;
	int64_t wake_ns;
	uint64_t throttled_ns;
	uint32_t image;
	uint32_t state;
};

/* Of oncpu: samples of a thread at one stack, and the time they stand for. */
struct window_sample {
	struct stack *kernel; /* references; NULL: none, it ran in user mode */
	struct stack *user;
	uint64_t count;
	uint64_t on_ns;
	uint32_t image;
	uint32_t pad;
};

enum { WINDOW_DEVICE_LEN = 16, IO_BUCKETS_N = 64 };

/*
 * Of iolat: operations of a process in one layer, at one device. Slow ones are here by stack too,
 * in rows of their own (is_slow). buckets: see window_io_add_buckets().
 */
struct window_io {
	struct stack *kernel; /* references; NULL: none */
	struct stack *user;
	uint64_t count;
	uint64_t total_ns;
	uint64_t own_ns; /* less the layers below */
	uint64_t runnable_ns;
	uint64_t asleep_ns; /* of which the next three */
	uint64_t device_ns;
	uint64_t queue_ns;
	uint64_t throttled_ns;
	uint64_t async;	    /* besides count: they go on after their return */
	uint64_t open;	    /* in a row of its own: they had not ended at the end of the window, */
	uint64_t oldest_ns; /* as old as that then */
	uint64_t errors;
	uint64_t bytes;
	uint64_t merges;
	uint64_t requeues;
	uint64_t max_ns;
	int64_t max_end_ns;
	uint64_t bucket_mask;
	uint32_t bucket_first;
	uint32_t image; /* of the process: its first thread */
	uint32_t dev;
	uint32_t magic;
	uint32_t call;	/* a system call's number plus one, or 0 */
	uint32_t layer; /* enum io_layer */
	uint32_t op;	/* enum io_op */
	uint32_t is_slow;
	int32_t max_tid;
	int32_t oldest_tid;
	char device[WINDOW_DEVICE_LEN]; /* its name then; "" for none */
};

enum window_loss {
	WINDOW_LOST_MISSED_RUNS = LOST_N, /* programs not run because one was running */
	WINDOW_LOST_STACK_FRAMES,	  /* waits whose stack id never got its frames */
	WINDOW_LOST_MEMORY,		  /* records dropped: no memory, or PROCESSES_MAX */
	WINDOW_LOST_WAIT_THREADS,	  /* waits of threads of which nothing else is known */
	WINDOW_LOST_LATE_RECORDS,	  /* 1: some of the window's records came after it */
	WINDOW_LOST_OTHER,		  /* named by another version, in a window from the store */
	WINDOW_LOST_N,
};

struct window {
	_Atomic unsigned int refs;
	uint64_t run;	/* of stackd, as the store numbers them; seq begins anew with each */
	uint64_t seq;	/* of several that were merged, the first one's */
	uint32_t parts; /* how many windows it was cut as */
	uint64_t session;
	enum probe_kind kind;
	int64_t start_ns;
	int64_t end_ns;
	int64_t real_offset_ns;
	int64_t boot_offset_ns; /* CLOCK_BOOTTIME less CLOCK_MONOTONIC: time suspended */
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
	size_t n_wakers; /* as many as rows, or none */
	struct window_io *ios;
	size_t n_ios;
	uint64_t *io_buckets;
	size_t n_io_buckets;
	uint32_t *buckets;
	size_t n_buckets;
	bool is_borrowing; /* stacks and processes are the store's and live longer: no references */
	uint64_t lost[WINDOW_LOST_N];
	uint64_t lost_ns;
	/* The independent counters' growth, as read at the cut. */
	uint64_t switch_ins;
	uint64_t sampled; /* runs of the sampling program */
	size_t bytes;
};

/* An empty window with one reference, NULL when out of memory. */
struct window *window_new(void);
struct window *window_ref(struct window *window);
struct window *window_unref(struct window *window);

/* Appends one zeroed member; NULL when out of memory. The pointer is good until the next one. */
struct window_image *window_add_image(struct window *window);
struct window_row *window_add_row(struct window *window);
struct window_span *window_add_span(struct window *window);
struct window_open *window_add_open(struct window *window);
struct window_sample *window_add_sample(struct window *window);
struct window_waker *window_add_waker(struct window *window);
struct window_io *window_add_io(struct window *window);

/* Of a row by its place; NULL where none is known. */
const struct window_waker *window_row_waker(const struct window *window, size_t row);

/*
 * One number for a waker, its path and those of its stacks that count: equal for equal ones, also
 * of two windows. 0 for NULL.
 */
uint64_t window_waker_id(const struct window_waker *waker, bool with_kernel, bool with_user);

/* Keeps the buckets that are not zero with the row. 0 or -ENOMEM. */
int window_row_set_buckets(struct window *window, struct window_row *row, const uint32_t *buckets);

/* Adds the row's buckets to sums[WAIT_BUCKETS]. */
void window_row_add_buckets(const struct window *window, const struct window_row *row,
			    uint64_t *sums);

/* The same for a row of I/O, of IO_BUCKETS_N. 0 or -ENOMEM. */
int window_io_set_buckets(struct window *window, struct window_io *io, const uint64_t *buckets);
void window_io_add_buckets(const struct window *window, const struct window_io *io, uint64_t *sums);

/* Adds one row's sums to another's; buckets are apart. */
void window_io_add(struct window_io *sum, const struct window_io *io);

/* Gives back what the arrays have to spare and counts the bytes held. */
void window_seal(struct window *window);

/* The name of a reason for loss, as it goes over the wire. */
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
