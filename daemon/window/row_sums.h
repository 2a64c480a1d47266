/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_ROW_SUMS_H
#define STACKD_DAEMON_WINDOW_ROW_SUMS_H

/*
 * Sums up rows of windows that have the same key: the same thread, stacks and so on. The one place
 * where the daemon adds up rows to make a window: fold.h adds rows under the name of a process that
 * stands for several ones, and store_downsample() adds the rows of several windows. Counts, times
 * and histograms are exact; of each sum, the longest wait is kept. The sums borrow stacks and
 * wakers, which must stay until row_sums_finish(). One thread.
 */

#include <stdint.h>

#include "daemon/base/key_table.h"
#include "daemon/window/window.h"

struct row_sum {
	uint64_t key[5]; /* thread, task state, kernel stack, user stack, waker */
	struct window_row row;
	const struct window_waker *waker; /* NULL: none */
	uint64_t buckets[WAIT_BUCKETS];
};

struct sample_sum {
	uint64_t key[3]; /* thread, kernel stack, user stack */
	struct window_sample sample;
};

struct io_sum {
	uint64_t key[8]; /* process, layer, operation, system call, file system, device, stacks */
	struct window_io io;
	uint64_t buckets[IO_BUCKETS_N];
};

struct row_sums {
	struct key_table rows; /* of struct row_sum, and so on */
	struct key_table samples;
	struct key_table ios;
};

#define ROW_SUMS                                                                            \
	{                                                                                   \
		.rows = KEY_TABLE(struct row_sum), .samples = KEY_TABLE(struct sample_sum), \
		.ios = KEY_TABLE(struct io_sum)                                             \
	}

/*
 * Returns the sum with the key of a row, to which the row is to be added; NULL when out of memory.
 * Here and below, row->image is the index that the thread has in the window that is being made.
 */
struct row_sum *row_sums_get(struct row_sums *sums, const struct window_row *row,
			     const struct window_waker *waker);

/* Adds a row to a sum, with its histogram, which is in the window `from`. */
void row_sum_add(struct row_sum *sum, const struct window *from, const struct window_row *row);

/* These add a row to the sum with its key. Return 0 or -ENOMEM. */
int row_sums_add(struct row_sums *sums, const struct window *from, const struct window_row *row,
		 const struct window_waker *waker);
int row_sums_add_sample(struct row_sums *sums, const struct window_sample *sample);
int row_sums_add_io(struct row_sums *sums, const struct window *from, const struct window_io *io);

/*
 * Appends the sums to the arrays of `out`, in the order in which their keys came first, with
 * references to their stacks. Returns 0 or -ENOMEM.
 */
int row_sums_finish(const struct row_sums *sums, struct window *out);

void row_sums_fini(struct row_sums *sums);

/*
 * Returns the part of a wait that lies in [from_ns, until_ns), as the times of a row: of a wait
 * that began at start_ns, whose thread was made runnable at wake_ns and then was without CPU quota
 * for throttled_ns. wake_ns is INT64_MAX, and throttled_ns is 0, if it is still blocked.
 */
struct window_row row_of_wait(int64_t start_ns, int64_t wake_ns, uint64_t throttled_ns,
			      int64_t from_ns, int64_t until_ns);

/* Sets the members of a row that tell of one wait as a whole, not of its part in a range. */
void row_set_span(struct window_row *row, const struct window_span *span);

/* Returns the part of a span of the window that lies in it, as a row with one wait. */
struct window_row row_of_span(const struct window *window, const struct window_span *span);

#endif
