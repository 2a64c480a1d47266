/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_IOLAT_H
#define STACKD_CLIENT_RENDER_IOLAT_H

/*
 * Prints answers of iolat as text: a table by layer, histograms, trees of layers (breakdown.c), or
 * maps of latencies over time (heat.c). Borrows the answer; write errors stay in the stream. Main
 * thread.
 */

#include <stdbool.h>
#include <stdio.h>

#include "client/render/render.h"

/* True for an answer of iolat, whose rows are operations. */
bool reply_is_iolat(const struct wire_snapshot_reply *reply);

/* Prints the table of operations, layer by layer. */
void render_iolat(const struct view *view, const struct wire_snapshot_reply *reply);

/* Prints a tree for each kind of operation: the time of each layer, and what threads did meanwhile.
 */
void render_breakdown(const struct view *view, const struct wire_snapshot_reply *reply);

/* Prints a map of latencies over time for each kind of operation; the rows are by window. */
void render_heats(const struct view *view, const struct wire_snapshot_reply *reply);

/* Writes three digits and a unit, "1.25ms", or ms without a unit, "1.250". Returns the text. */
const char *io_figure(int64_t ns, bool is_ms, char text[static 32]);

enum { IO_HIST_BUCKETS = 64 };

/*
 * Prints "lo -> hi : count |****  |" for each bucket up to the last that is not empty; label is the
 * unit, "nsecs". buckets[i] counts figures from 2^i up to 2^(i+1), the first one 0, too.
 * skips_empty: begins with the first bucket that is not empty.
 */
void render_histogram(FILE *out, const char *label, const int64_t *buckets, size_t n,
		      bool skips_empty);

/* Converts buckets of ns into buckets of ms (the first is below 1 ms). Returns how many there are.
 */
size_t histogram_to_ms(const int64_t *buckets, size_t n, int64_t ms[static IO_HIST_BUCKETS]);

/* Returns the file system and the device: "ext4 vda", "pipe", "vda"; escaped, malloc'ed. */
char *io_place(const struct wire_io *io);

/* Returns the kind of an operation: "read" for the system call pread64, else its own name. */
const char *io_kind(const struct wire_io *io);

#endif
