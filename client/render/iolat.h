/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_IOLAT_H
#define STACKD_CLIENT_RENDER_IOLAT_H

/*
 * Rows of I/O for people: in comes a decoded answer of iolat, out come a table by layer, histograms
 * the parts of each kind of operation or maps over time. The answer is borrowed. Main thread.
 */

#include <stdbool.h>
#include <stdio.h>

#include "client/render/render.h"

/* Of a probe whose rows are operations. */
bool reply_is_iolat(const struct wire_snapshot_reply *reply);

/* What render_text() shows of it below the coverage. */
void render_iolat(const struct view *view, const struct wire_snapshot_reply *reply);

/* Each kind of operation as a tree: its layers' own times, and what the threads did meanwhile. */
void render_breakdown(const struct view *view, const struct wire_snapshot_reply *reply);

/* Rows by window: each kind of operation as a map of latencies over time. */
void render_heats(const struct view *view, const struct wire_snapshot_reply *reply);

/* Three digits and a unit, no more than a column is wide; of ms the figure alone. */
const char *io_figure(int64_t ns, bool is_ms, char text[static 32]);

enum { IO_HIST_BUCKETS = 64 };

/*
 * "lo -> hi : count |****  |" for each power of two up to the last that counted; label is what the
 * numbers are, "nsecs". buckets[i]: from 2^i on; the first takes 0. skips_empty: from the first
 * that counted.
 */
void render_histogram(FILE *out, const char *label, const int64_t *buckets, size_t n,
		      bool skips_empty);

/* Buckets of ns made buckets of ms: what is below 1 ms is in the first. */
size_t histogram_to_ms(const int64_t *buckets, size_t n, int64_t ms[static IO_HIST_BUCKETS]);

/* "ext4 on vda", "pipe", "vda"; escaped, malloc'ed. */
char *io_place(const struct wire_io *io);

/* The kind of operation that a system call is of: "read" for pread64; any other is its own. */
const char *io_kind(const struct wire_io *io);

#endif
