/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_IOLAT_H
#define STACKD_CLIENT_RENDER_IOLAT_H

/*
 * Prints answers of the probe iolat as text: a table by layer, histograms, trees of layers
 * (breakdown.c), or maps of latencies over time (heat.c). Borrows the answer. A write error only
 * sets the stream's error flag. Main thread.
 */

#include <stdbool.h>
#include <stdio.h>

#include "client/render/render.h"

/* True if the layer is a part of the time of a request, which the layer block has as a whole. */
bool io_is_part_of_request(const char *layer);

/* Prints a table of the operations for each layer. */
void render_iolat(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * Prints a tree of layers for each kind of operation: how much of its time each layer took, and how
 * long the threads ran or waited for a CPU meanwhile.
 */
void render_breakdown(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * Prints a map of latencies over time for each kind of operation. The answer must have a row for
 * each kind of operation and window.
 */
void render_heats(const struct view *view, const struct wire_snapshot_reply *reply);

enum { IO_HIST_BUCKETS = 64 };

/*
 * Prints a line such as "1024 -> 2047 : 12 |**** |" for each bucket up to the last that is not
 * empty. buckets[i] is the number of figures from 2^i up to 2^(i+1); the first bucket includes
 * figures of 0. `label` is the unit, such as "nsecs". If skips_empty is true, begins with the first
 * bucket that is not empty.
 */
void render_histogram(FILE *out, const char *label, const int64_t *buckets, size_t n,
		      bool skips_empty);

/*
 * Converts a histogram of times in ns into one in ms. One ms is taken as 2^20 ns. The first bucket
 * counts times below 2 ms. Returns the number of buckets in ms.
 */
size_t histogram_to_ms(const int64_t *buckets, size_t n, int64_t ms[static IO_HIST_BUCKETS]);

/*
 * Returns the file system and device of an operation, as "ext4 vda", "pipe" or "vda". The text is
 * escaped; the caller frees it.
 */
char *io_target(const struct wire_io *io);

/* Returns how many bytes an operation moved: to discard blocks moves none. */
int64_t io_moved(const struct wire_io *io);

/*
 * Returns the kind of an operation, such as "read" for the system call pread64. For an operation
 * that is not a system call, returns its name.
 */
const char *io_kind(const struct wire_io *io);

/*
 * Returns an operation as a line names it: "read", or "disk write" in the lowest layer. The text is
 * escaped; the caller frees it.
 */
char *io_operation(const struct wire_io *io);

#endif
