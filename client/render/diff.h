/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_DIFF_H
#define STACKD_CLIENT_RENDER_DIFF_H

/*
 * Compares two answers about one probe, the base and the new one: adds up the time of equal stacks
 * in each of them, and prints what changed. Rows of the base are scaled to the time that the
 * windows of the new answer cover, so that ranges of different lengths, or with gaps, can be
 * compared. Then scaled base + change = new holds for each row and for the sums, to the nanosecond.
 * The program ends when memory runs out. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "client/render/path.h"
#include "client/render/render.h"
#include "proto/wire.h"

enum diff_side { DIFF_BASE, DIFF_NEW, DIFF_SIDES };

/* One stack of threads of one name. The values are ns or, of calls, how many. */
struct diff_row {
	size_t stack;		     /* its number among the stacks */
	int64_t value[DIFF_SIDES];   /* as in the answers */
	int64_t bytes[DIFF_SIDES];   /* that operations moved */
	int64_t count[DIFF_SIDES];   /* of waits, samples, operations or calls */
	int64_t scaled;		     /* value[DIFF_BASE], scaled; see diff_finish() */
	int64_t change;		     /* value[DIFF_NEW] less scaled */
	int64_t sleep[DIFF_SIDES];   /* the part of value that is idle, see hides_idle */
	bool has_function;	     /* it is known where the threads waited */
	bool is_own;		     /* of stackd's own threads: they come last */
	bool is_estimated;	     /* a part of one of the values is an estimate */
	double variance[DIFF_SIDES]; /* of the values, in ns squared, as far as they are estimates
				      */
	int64_t error;		     /* of the change: twice its standard deviation, in ns */
};

/* Names and stacks take at most this many bytes: later stacks are added up as "[others]". */
enum { DIFF_BYTES_MAX = 256 * 1024 * 1024 };

struct diff {
	const struct view *view;
	bool has_lines; /* rows are by line, without stacks */
	bool has_ids;	/* rows are by process or thread: their ids are part of their names */
	/*
	 * The answers have idle rows, which are left out but for sleeps: a sleep that is longer
	 * than before is a finding, even if the thread does nothing else.
	 */
	bool hides_idle;
	size_t bytes_max; /* DIFF_BYTES_MAX */
	/* The first replies of the answers, without rows; borrowed, valid until diff_fini(). */
	struct wire_snapshot_reply sides[DIFF_SIDES];
	struct path path;
	struct intern *frames; /* names */
	struct intern *stacks; /* numbers of frames, uint32_t each, the outermost first */
	uint32_t *numbers;     /* the stack that is being added */
	size_t numbers_capacity;
	struct diff_row *rows; /* by the numbers of stacks; after diff_finish(), in order */
	size_t n, capacity;
	size_t n_others; /* number of rows of answers that became part of "[others]" */
	int64_t total[DIFF_SIDES];
	int64_t idle[DIFF_SIDES]; /* idle time that is in no row */
	int64_t scaled_total;
	int64_t covered[DIFF_SIDES]; /* lengths of the windows, in ns */
};

/* diff_init() borrows the view. */
void diff_init(struct diff *diff, const struct view *view);
void diff_fini(struct diff *diff);

/*
 * Adds the rows of a reply, which need not stay; either side may come first. `is_first` is true for
 * the first reply of an answer.
 */
void diff_add(struct diff *diff, enum diff_side side, const struct wire_snapshot_reply *reply,
	      bool is_first);

/*
 * Leaves out sleeps of one range only if it is not known where: those of threads that began or
 * ended, most likely. Scales the base, and puts the rows in order: those first whose change, up or
 * down, is the largest less its error, as far as there is more than the error. Both answers must
 * have windows. The remainders of the scaling are carried from row to row, so that the scaled
 * values add up to the scaled sum.
 */
void diff_finish(struct diff *diff);

/* True if the values are numbers of calls, not ns. */
bool diff_has_calls(const struct diff *diff);

/*
 * Returns how many rows are printed: those of --top, or all. The rest of the rows is added up into
 * `rest`, whose stack is not set.
 */
size_t diff_top(const struct diff *diff, struct diff_row *rest);

/* Returns the row to be printed as number `i` of `top`, from 0. */
const struct diff_row *diff_row_at(const struct diff *diff, size_t top, size_t i);

/* Returns how long the windows of both answers overlap, in ns; 0 if they do not. */
int64_t diff_overlap(const struct diff *diff);

/*
 * Returns the names of a row's frames from number `first` on, with ; between, as in folded stacks:
 * a ; within a name becomes a colon. The text is escaped; the caller frees it.
 */
char *diff_path(const struct diff *diff, const struct diff_row *row, size_t first);

/* Returns how many frames a row has, and the name of one, escaped; frame 0 is the outermost one. */
size_t diff_frames(const struct diff *diff, const struct diff_row *row);
const char *diff_frame(const struct diff *diff, const struct diff_row *row, size_t frame);

/* The output after diff_finish(). diff_text.c has diff_print_text(), diff_data.c the others. */
void diff_print_text(const struct diff *diff);
void diff_print_folded(const struct diff *diff);
void diff_print_json(const struct diff *diff);

#endif
