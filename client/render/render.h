/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_RENDER_H
#define STACKD_CLIENT_RENDER_RENDER_H

/*
 * Stage 8: in goes a decoded reply and how to show it, out come lines on a stream. The reply is
 * borrowed and not changed; write errors stay in the stream. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/base/term.h"
#include "client/render/page.h"
#include "proto/wire.h"

enum { RENDER_LABEL_WIDTH = 11, RENDER_FRAME_INDENT = 6 };

/* How frames and rows are to be shown; --short, --offset and so on. */
struct view {
	struct page page;
	bool is_short;
	bool lines; /* of the source, where frames have them */
	bool offset;
	bool verbose;
	bool annotations;
	bool delimited;
	bool by_max; /* the longest wait leads, not the sum */
	bool reverse;
	bool hides_unread; /* said once for all */
	bool hides_kernel; /* stacks, though what they say of the wait is shown */
	bool hides_user;
	bool picks_waits;     /* by state or length: sums are of more than rows */
	bool by_stack;	      /* nothing else was asked for */
	bool chain;	      /* the path of wakers, not only the last */
	bool keeps_scheduler; /* time on a CPU may be its own */
	int frame_indent;     /* of older tools; 0: theirs */
	bool milliseconds;    /* of I/O, as the next six */
	bool queued;	      /* histograms of requests with their time in the queue */
	bool breakdown;
	bool over_time;
	bool by_process;
	bool histograms;
	const char *layer; /* NULL: all */
	int64_t top;	   /* stuck: entries to show, 0 for all */
	bool top_is_given; /* it is no default */
};

/* For a person: coverage, totals, losses, then the rows in the order they came. */
void render_text(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * The overview: the totals, and the view's top stacks of each part. samples may be NULL; why, then,
 * says for what reason, or is NULL.
 */
void render_overview(const struct view *view, const struct wire_snapshot_reply *waits,
		     const struct wire_snapshot_reply *samples, const char *why);

/* The same as folded lines, of all rows: part;comm;user;kernel, a tower for each part. */
void render_overview_folded(const struct view *view, const struct wire_snapshot_reply *waits,
			    const struct wire_snapshot_reply *samples);

/* Threads, and their time on a CPU, runnable and blocked. */
void render_totals(const struct view *view, const struct wire_snapshot_reply *reply);

/* Of a probe that samples: there are no waits in it. */
bool reply_is_sampled(const struct wire_snapshot_reply *reply);

/* Of a probe of calls: its rows have a count and no time. */
bool reply_has_calls(const struct wire_snapshot_reply *reply);
void render_calls(const struct view *view, const struct wire_snapshot_reply *reply);

/* One call, as it happened. */
void render_call(const struct view *view, const struct wire_call *call);

/* What render_text() shows of it below the coverage. */
void render_samples(const struct view *view, const struct wire_snapshot_reply *reply);

/* Of a probe that knows who ended a wait. */
bool reply_has_wakers(const struct wire_snapshot_reply *reply);

/* What there is to sum up of it. */
void render_wake_totals(const struct view *view, const struct wire_snapshot_reply *reply);

/* Who ended a row's waits, with its stack, root first: it goes above the one that it woke. */
void render_waker(const struct view *view, const struct wire_row *row);

/* "mysqld waits <- jbd2 (pid 412) woke it <- irq". */
void render_chain(const struct view *view, const struct wire_row *row);

/* "jbd2 (pid 412)" or the context; escaped, malloc'ed. */
char *waker_title(const struct wire_waker *waker);

/* Of the windows an answer is made of, without the gaps between them. */
int64_t coverage_length(const struct wire_coverage *coverage);

/* 0.04, 1.6, 48: so many of something, at any time. */
void average_text(int64_t ns, int64_t length, char text[static 32]);

/* For a person with a hung system: who waits right now, uninterruptible first, then the oldest. */
void render_stuck(const struct view *view, const struct wire_snapshot_reply *reply);

/* comm;user root first;kernel root first microseconds; equal lines added up. */
void render_folded(const struct view *view, const struct wire_snapshot_reply *reply);

/* A name as a part of such a line. */
void folded_put_name(FILE *out, const char *name);

struct folded_line {
	char *text;
	int64_t ns;  /* a call counts as 1 us */
	size_t rank; /* where the first of equal lines stood */
};

/* Such lines as they gather. Starts as zeroes. */
struct folded {
	struct folded_line *lines;
	size_t n, capacity;
};

/* ns of a row below root, the name of a tower of its own; NULL: below none. */
void folded_add(struct folded *folded, const struct view *view, const char *root,
		const struct wire_row *row, int64_t ns);

/* Prints and frees the lines. */
void folded_print(struct folded *folded, FILE *out);

/* The reply's parameters as one JSON document. 0, -ENOMEM. */
int render_json(FILE *out, const struct wire_snapshot_reply *reply, bool is_pretty);

/* What was asked, what is covered, what is missing. */
void render_coverage(const struct view *view, const struct wire_snapshot_reply *reply);

/* Of a second answer for the time of the first: what is missing that the first does not say. */
void render_missing_too(const struct view *view, const char *label,
			const struct wire_snapshot_reply *first,
			const struct wire_snapshot_reply *second);

/* The same for an answer about the end of the range. */
void render_moment(const struct view *view, const struct wire_snapshot_reply *reply);

/* A moment, with its date where it is another day's. */
void moment_text(int64_t moment, int64_t day, char text[static TERM_TIME_MAX]);

/* "lost" and its reasons, or that nothing was; the label's column is indent wide. */
void render_lost(const struct page *page, const struct wire_losts *lost, size_t indent);

/*
 * Frames of both stacks, leaf first, at most limit of each (0: all), with the border between
 * kernel and user.
 */
void render_frames(const struct view *view, const struct wire_row *row, size_t indent,
		   size_t limit);

/* A frame's name: function, module+0xoffset or [unknown], not escaped; malloc'ed. */
char *frame_label(const struct view *view, const struct wire_frame *frame, bool is_kernel);

/* "S waits for data from a pipe", "D uninterruptible (disk or lock)"; malloc'ed. */
char *state_words(const struct wire_row *row);

/* What a flag of a stack means, in words; NULL for one not known. */
const char *flag_text(const char *flag);

/* "mysqld (pid 4242, thread 4250 io)"; escaped, malloc'ed. */
char *row_title(const struct view *view, const struct wire_row *row);

/* In a wait that nothing ends but what it waits for: D, and not the kind that kill -9 ends. */
bool row_is_uninterruptible(const struct wire_row *row);

#define DOUBT_WORDS "in doubt: it may be over, the thread was not seen when the last window ended"

/* A wait that may be over: its thread could not be looked at when the last window ended. */
bool row_is_in_doubt(const struct wire_row *row);

#endif
