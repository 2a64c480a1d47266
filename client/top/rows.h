/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_TOP_ROWS_H
#define STACKD_CLIENT_TOP_ROWS_H

/*
 * The rows of `stackctl top`: which rows of an answer a tab shows, in what order, and the text of
 * each in one line. Returned texts are escaped, malloc'ed and owned by the caller. Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/render/stuck_entries.h"
#include "client/top/ask.h"
#include "client/top/state.h"

struct top_base;

/* One line of the screen. The row, and what was asked for, are borrowed from the answer. */
struct top_row {
	const struct wire_row *row;
	const struct top_state *asked;
	const char *class; /* of the overview: what the thread did; else NULL */
	int64_t value;	   /* the time that the row is sorted by, in ns */
	int64_t whole;	   /* the time of all rows of this class, in ns */
	int64_t end;	   /* of the time that the answer is about, in ns since the epoch */
	bool is_sample;	   /* its count is of samples, which have no length */
	bool is_io;
	bool is_of_all;	  /* I/O of all processes: the one of the row is any of them */
	bool is_ready;	  /* it is about the time in which threads were ready for a CPU */
	bool has_longest; /* the row's longest wait is one of this class */
	bool is_stuck;
	/*
	 * The threads that wait with the row's, which has waited for longest; borrowed from struct
	 * top_rows. NULL but in the tab stuck by stack.
	 */
	const struct stuck_entry *entry;
};

struct top_rows {
	struct top_row *v;
	size_t n;
	struct stuck_entries entries; /* of the tab stuck by stack; else empty */
};

/* Fills *out with the rows of the answer that its tab shows. The caller calls top_rows_fini(). */
void top_rows_init(struct top_rows *out, const struct top_answer *answer);
void top_rows_fini(struct top_rows *rows);

/* True if the row stands for waits that hold others up. */
bool top_row_is_urgent(const struct top_row *row);

/* Returns the heading of the columns. `columns` is the width of the screen. */
char *top_heading(enum tab tab, bool has_base, size_t columns);

/* Returns the line of a row. base: NULL if nothing is compared; length: of the answer, in ns. */
char *top_row_text(const struct top_row *row, const struct top_base *base, int64_t length,
		   size_t columns);

#endif
