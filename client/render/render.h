/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_RENDER_H
#define STACKD_CLIENT_RENDER_RENDER_H

/*
 * Stage 8: prints decoded answers about stacks, as text and as folded lines. Each function takes
 * how to show it (a view, with the stream) and borrows the answer. Write errors stay in the stream;
 * the program ends when memory runs out. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/render/page.h"
#include "proto/wire.h"

enum { RENDER_LABEL_WIDTH = 11, RENDER_FRAME_INDENT = 6 };

/* How to show frames and rows: --short, --offset and so on. */
struct view {
	struct page page;
	bool is_short; /* names of functions without their arguments */
	bool lines;    /* prints source files and lines, if frames have them */
	bool offset;
	bool verbose;
	bool annotations;
	bool delimited;
	bool by_max; /* a row begins with its longest wait, not with the sum */
	bool reverse;
	bool hides_unread; /* leaves out the flag "unread", which a note above explains for all */
	bool hides_kernel; /* prints no kernel frames; they still show what a thread waits for */
	bool hides_user;   /* prints no user frames */
	bool picks_waits;  /* --state or a length: the rows are part of what the totals sum up */
	bool by_stack;	   /* rows are stacks, as --by was not given */
	bool chain;	   /* the whole path of wakers, not only the last one */
	bool keeps_scheduler; /* shows the scheduler's frames: a CPU may have run these */
	int frame_indent;     /* columns, in the layout of older tools; 0: their usual 4 */
	bool milliseconds;    /* iolat: prints figures in ms */
	bool queued;	      /* iolat: prints histograms with the time in the queue, too */
	bool breakdown;	      /* iolat: prints trees of layers */
	bool over_time;	      /* iolat: prints maps of latencies over time */
	bool by_process;      /* iolat: rows stand for single processes */
	bool histograms;      /* iolat: prints histograms below the rows */
	const char *layer;    /* iolat: the only layer asked for, or NULL */
	int64_t top;	      /* entries that stuck and the overview show; 0: all */
	bool top_is_given;    /* --top was on the command line */
};

/* text.c: prints an answer for a person: coverage, totals, losses, then the rows in their order. */
void render_text(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * overview.c: prints the totals, and of each part of the time the stacks with the most of it,
 * view->top or all. samples may be NULL; `why` is the reason then, or NULL.
 */
void render_overview(const struct view *view, const struct wire_snapshot_reply *waits,
		     const struct wire_snapshot_reply *samples, const char *why);

/* stuck.c: prints who waits at the end of the range: long uninterruptible waits, then the oldest.
 */
void render_stuck(const struct view *view, const struct wire_snapshot_reply *reply);

/* waits.c: prints the totals and rows of offcpu or offwake; render_totals() the totals of offcpu.
 */
void render_waits(const struct view *view, const struct wire_snapshot_reply *reply);
void render_totals(const struct view *view, const struct wire_snapshot_reply *reply);

/* samples.c: true for an answer of oncpu; prints its totals and rows. */
bool reply_is_sampled(const struct wire_snapshot_reply *reply);
void render_samples(const struct view *view, const struct wire_snapshot_reply *reply);

/* calls.c: true for an answer of stackcount or stacksnoop; prints its totals and rows. */
bool reply_has_calls(const struct wire_snapshot_reply *reply);
void render_calls(const struct view *view, const struct wire_snapshot_reply *reply);

/* calls.c: prints one call with its stacks. */
void render_call(const struct view *view, const struct wire_call *call);

/* offwake.c: true for an answer of offwake, whose rows say who ended the waits; its totals. */
bool reply_has_wakers(const struct wire_snapshot_reply *reply);
void render_wake_totals(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * offwake.c: prints who ended a row's waits and its stack with the root first, so that it can stand
 * above the stack of the thread that it woke.
 */
void render_waker(const struct view *view, const struct wire_row *row);

/* offwake.c: prints one line such as "mysqld waits <- jbd2 (pid 412) woke it <- irq". */
void render_chain(const struct view *view, const struct wire_row *row);

/* offwake.c: returns "jbd2 (pid 412)", or the context such as "timer"; escaped, malloc'ed. */
char *waker_title(const struct wire_waker *waker);

/*
 * frames.c: prints both stacks, leaf first, at most `limit` frames of each (0: all), with a line
 * between kernel and user frames.
 */
void render_frames(const struct view *view, const struct wire_row *row, size_t indent,
		   size_t limit);

/* frames.c: returns "function", "module+0xoffset" or "[unknown]"; not escaped, malloc'ed. */
char *frame_label(const struct view *view, const struct wire_frame *frame, bool is_kernel);

/* frames.c: returns what a flag of a stack means, in words; NULL for an unknown flag. */
const char *flag_text(const char *flag);

/* frames.c: returns "mysqld (pid 4242, thread 4250 io)"; escaped, malloc'ed. */
char *row_title(const struct view *view, const struct wire_row *row);

/*
 * state.c: returns "S waits for data from a pipe" or "D uninterruptible (disk or lock)"; malloc'ed.
 */
char *state_words(const struct wire_row *row);

/* state.c: true for a wait in state D that not even kill -9 ends. */
bool row_is_uninterruptible(const struct wire_row *row);

#define DOUBT_WORDS "in doubt: it may be over, the thread was not seen when the last window ended"

/* state.c: true if the daemon could not look at the thread when the last window ended. */
bool row_is_in_doubt(const struct wire_row *row);

#endif
