/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_HEAD_H
#define STACKD_CLIENT_RENDER_HEAD_H

/*
 * Prints the head of an answer: which time it is about, what is missing, the totals, how busy the
 * CPUs were. Four lines or less when all is well; a line more only for what touches the rows below
 * it. With -v, render_coverage() prints all that is known in its place. Borrows the answers. A
 * write error only sets the stream's error flag. Main thread.
 */

#include "client/render/render.h"

/* The most answers that one head is about: those of an overview. */
enum { HEAD_ANSWERS_MAX = 3 };

/* The answers that a head is about; the first one has the time and the totals. */
struct head {
	struct {
		const char *of; /* what the answer is about, in front of what it lacks; "": all */
		const struct wire_snapshot_reply *reply; /* NULL: there is none */
	} answers[HEAD_ANSWERS_MAX];
	bool has_totals; /* prints a line with the sums of the threads' times */
	/* true: the answer is about its last moment, that of `stackctl stuck` */
	bool is_of_moment;
	/* true: the answer is about all slices of a range, which each have totals of their own */
	bool is_of_slices;
	/* true: the rows are of processes that started, which are counted without sampling */
	bool is_of_spawns;
};

/* Lets `put` print something on the view that it gets. Returns how many lines that has. */
size_t head_counted(const struct view *view,
		    void (*put)(const struct view *view, const void *context), const void *context);

/* Prints the head. Returns how many lines it has. */
size_t head_print(const struct view *view, const struct head *head);

/* Prints a label and a text as one line, which is shortened on a terminal. */
void head_line(const struct page *page, enum style style, const char *label, const char *format,
	       ...) __attribute__((format(printf, 4, 5)));

/* Prints how many rows were folded, as one line; nothing if `folded` is NULL. */
void head_folded(const struct page *page, const struct wire_folded *folded);

/*
 * True if the totals are sums of rows: a fleet does not know how many threads a filter selects, nor
 * for how long those of waits were on a CPU.
 */
bool totals_are_of_rows(const struct wire_snapshot_reply *reply);

#endif
