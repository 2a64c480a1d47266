/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_RENDER_H
#define STACKD_CLIENT_RENDER_RENDER_H

/*
 * Prints decoded answers about stacks, as text and as folded lines. Each function borrows the
 * answer and takes a view, which has the stream and the settings for printing. A write error only
 * sets the stream's error flag; the program ends when memory runs out. Main thread.
 *
 * The source files of this room form layers, listed here from the lowest to the highest; each calls
 * only files of lower layers: page, parts, reply < coverage, measures, pressure, table < comments,
 * estimate, heat, spawns < state < frames, holders < calls, iolat, offwake, path, stuck_entries <
 * breakdown, waits < diff, head, samples < diff_data, diff_text, lines, status < overview_lines,
 * slices, stuck < overview < text. The other formats (csv, folded, json, pprof, speedscope, svg)
 * call these; formats.c, the highest, lists all formats. The rest are helpers of one file.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "client/render/page.h"
#include "proto/wire.h"

enum { RENDER_LABEL_WIDTH = 11, RENDER_FRAME_INDENT = 6 };

/* The page to print on, and the settings that options such as --short and --offset make. */
struct view {
	struct page page;
	bool is_short; /* prints names of functions without their arguments */
	bool lines;    /* prints the source file and line of each frame, if they are known */
	bool offset;
	bool verbose;
	bool annotations;
	bool delimited;
	bool by_max; /* shows the longest wait in a row's title, not the sum of its waits */
	bool reverse;
	bool has_keys;	   /* is in a pane of top: hints name its keys, and not options */
	bool hides_unread; /* does not print the flag "unread" of stacks */
	bool hides_kernel; /* uses kernel frames only to name the wait, and does not print them */
	bool hides_user;   /* prints no user frames */
	/*
	 * True if --state, -m or -M was given. These options select which waits are in the rows.
	 * The totals include all waits.
	 */
	bool picks_waits;
	bool has_lines;	    /* prints a line for each row, without the stacks */
	bool names_threads; /* the answer is about selected processes or threads only */
	/*
	 * The lines that the screen has for text, without the one of the prompt; 0: no limit. Where
	 * --top was not given, an answer in lines is no longer.
	 */
	size_t height;
	const char *by;	      /* the value of --by; NULL: not given */
	bool has_utf8;	      /* the terminal shows UTF-8 */
	bool by_stack;	      /* --by was not given, so each row is one stack of one process */
	bool chain;	      /* prints the whole path of wakers, not only the last waker */
	bool keeps_scheduler; /* also prints the frames of the scheduler */
	int frame_indent;     /* indentation of frames in layouts of older tools; 0: 4 columns */
	bool milliseconds;    /* iolat: prints figures in ms */
	bool queued;	      /* iolat: also prints histograms of the time in the queue */
	bool breakdown;	      /* iolat: prints trees of layers */
	bool over_time;	      /* iolat: prints maps of latencies over time */
	bool by_process;      /* iolat: each row stands for one process */
	bool histograms;      /* iolat: prints histograms below the rows */
	const char *layer;    /* iolat: the value of --layer, or NULL */
	int64_t top;	      /* maximum number of entries that are printed; 0: no limit */
	bool top_is_given;    /* true: --top was on the command line */
};

/*
 * text.c: prints an answer as text: coverage, totals and losses, then the rows in the answer's
 * order.
 */
void render_text(const struct view *view, const struct wire_snapshot_reply *reply);

/* The answers of an overview. `samples` and `io` are NULL if there are none. */
struct overview {
	const struct wire_snapshot_reply *waits;
	const struct wire_snapshot_reply *samples;
	const struct wire_snapshot_reply *io;
	/* why there are no samples; NULL: the selected threads did not run */
	const char *no_samples;
	/* why there is no I/O; NULL: the selected processes did none, of what is recorded */
	const char *no_io;
	/* which I/O is not recorded, see reply_above(); NULL: all is */
	const char *above;
};

/*
 * overview.c: prints one screen of lines if view->has_lines is true, see overview_lines.h.
 * Otherwise prints the totals. Then prints, for each part of the time, the stacks that took the
 * most of it: view->top stacks, or all if view->top is 0. Then the same for the processes that did
 * I/O.
 */
void render_overview(const struct view *view, const struct overview *overview);

/*
 * slices.c: prints the answers of n slices of a range, oldest first, as a table with a line for
 * each: how many threads ran and waited on average, and the first rows of the answer.
 */
void render_slices(const struct view *view, const struct wire_snapshot_reply *const *slices,
		   size_t n);

/*
 * stuck.c: prints which threads wait at the end of the range: first those in long uninterruptible
 * waits, then the others, the oldest wait first.
 */
void render_stuck(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * holders.c: prints what the thread with the longest wait of a row waits for, who holds it, and for
 * what each holder waits itself, as far as the answer has it. The first line begins with `label`.
 */
void render_holders(const struct view *view, const struct wire_row *row, const char *label,
		    const struct wire_range *used);

/*
 * reply.c. These are true for an answer of one kind of probe: of iolat, whose rows are I/O
 * operations; of oncpu; of stackcount or stacksnoop; and of offwake, each of whose rows has the
 * waker that ended the waits.
 */
bool reply_is_iolat(const struct wire_snapshot_reply *reply);
bool reply_is_sampled(const struct wire_snapshot_reply *reply);
bool reply_has_calls(const struct wire_snapshot_reply *reply);
bool reply_has_wakers(const struct wire_snapshot_reply *reply);

/*
 * reply.c: returns the words that say which I/O is not recorded, as it is above the highest layer
 * that is, and the command that records all; NULL if all is. The text belongs to the answer.
 */
const char *reply_above(const struct wire_snapshot_reply *reply);

/* estimate.c. True if any row of the answer has figures that are estimates. */
bool reply_has_estimates(const struct wire_snapshot_reply *reply);

/* estimate.c. Returns "~" if the row has figures that are estimates, else "". */
const char *row_about(const struct wire_row *row);

/*
 * estimate.c. Returns "~" if a sum over rows of the answer is an estimate, else "". sampled_ns is
 * the part of the sum that stands for sampled waits, or WIRE_ABSENT. A sum over all rows of offcpu
 * is exact even so, unless options select waits or idle rows are left out of it.
 */
const char *sum_about(const struct view *view, const struct wire_snapshot_reply *reply,
		      int64_t sampled_ns);

/* waits.c: returns "~" if the time of all rows that are not left out is an estimate, else "". */
const char *whole_about(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * estimate.c. These return a time of a row that may be an estimate, with as many digits as its
 * error leaves, and that error, as a part of the time: NULL if it is exact.
 */
char *time_estimate(const struct wire_snapshot_reply *reply, const struct wire_row *row,
		    int64_t ns);
char *error_text(const struct wire_snapshot_reply *reply, const struct wire_row *row, int64_t ns);

/*
 * estimate.c. If any row of the answer has estimates, says so on stderr and returns true. For
 * formats in which the figures cannot be marked.
 */
bool report_estimates(const struct wire_snapshot_reply *reply);

/*
 * waits.c. render_waits() prints an answer of offcpu or offwake: the totals and the rows.
 * render_totals() prints only the totals of an answer of offcpu.
 */
void render_waits(const struct view *view, const struct wire_snapshot_reply *reply);
void render_totals(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * waits.c: returns the name of a culprit: its process, and the thread if that has a name of its
 * own, as in "java(42)/GC Thread#0"; with the thread's id if has_tid is set. If it is not known
 * what the process is called, returns the thread alone. The caller frees it.
 */
char *culprit_name(const struct wire_culprit *culprit, bool has_tid);

/*
 * waits.c: if the filter leaves out waits or samples, prints how much time is left of the time `of`
 * of the threads that it selects, and of those that it leaves out by name.
 */
void render_kept(const struct view *view, const struct wire_snapshot_reply *reply, int64_t of);

/*
 * waits.c: returns how many threads were left out as idle, as "7 idle threads" for the noun "idle
 * thread". One that was folded counts once, however many threads it stands for: then it is "7+".
 * Where their number is not known, as in a fleet, it is "idle threads". The caller frees it.
 */
char *idle_threads(const struct wire_snapshot_reply *reply, const char *noun);

/* waits.c: prints that idle threads were left out, if any were. */
void render_idle(const struct view *view, const struct wire_snapshot_reply *reply);

/* samples.c: prints the totals and the rows of an answer of oncpu. */
void render_samples(const struct view *view, const struct wire_snapshot_reply *reply);

/* calls.c: prints the totals and the rows of an answer of stackcount or stacksnoop. */
void render_calls(const struct view *view, const struct wire_snapshot_reply *reply);

/* calls.c: prints one call with its stacks. */
void render_call(const struct view *view, const struct wire_call *call);

/* offwake.c: prints the totals of an answer of offwake. */
void render_wake_totals(const struct view *view, const struct wire_snapshot_reply *reply);

/*
 * offwake.c: prints the waker that ended a row's waits, and its stack with the root first. The leaf
 * is then next to the stack of the woken thread, which is printed below it.
 */
void render_waker(const struct view *view, const struct wire_row *row);

/*
 * offwake.c: prints the path of wakeups that ended a row's waits, as one line such as "mysqld waits
 * <- jbd2 (pid 412) woke it <- irq".
 */
void render_chain(const struct view *view, const struct wire_row *row);

/*
 * offwake.c: returns the waker as "jbd2 (pid 412)", or its context as "timer". The text is escaped;
 * the caller frees it.
 */
char *waker_title(const struct wire_waker *waker);

/*
 * frames.c: prints the kernel stack and the user stack of a row, leaf first, at most `limit` lines
 * of each (0: all), with a line between the two.
 */
void render_frames(const struct view *view, const struct wire_row *row, size_t indent,
		   size_t limit);

/*
 * frames.c: returns a frame as "function", "module+0xoffset" or "[unknown]". The text is not
 * escaped; the caller frees it.
 */
char *frame_label(const struct view *view, const struct wire_frame *frame, bool is_kernel);

/*
 * frames.c: returns the function of a row in words, without its arguments if is_short is true.
 * Where it has no name, as in a file that is not read yet, the row has the path of the file, and
 * this is "[file]". The text is escaped; the caller frees it.
 */
char *function_words(const char *function, bool is_short);

/* frames.c: returns the meaning of a stack's flag, in words; NULL if the flag is not known. */
const char *flag_text(const char *flag);

/*
 * frames.c: returns the title of a row, as "mysqld (pid 4242, thread 4250 io)". The text is
 * escaped; the caller frees it.
 */
char *row_title(const struct view *view, const struct wire_row *row);

/*
 * frames.c: returns how many frames of the scheduler a stack begins with, counted from the leaf. If
 * all frames are of the scheduler, does not count the last one. Frames of the scheduler say nothing
 * about the wait, and are missing in stacks that are taken while the thread sleeps.
 */
size_t scheduler_frames(const struct wire_stack *kernel);

/*
 * state.c: returns the text for the reason of a row, which can follow "waits for"; NULL if `word`
 * is NULL, or not known to this version, or "unknown".
 */
const char *reason_text(const char *word);

/*
 * state.c: returns the state of a row's threads, as "S waits for data from a pipe" or "D
 * uninterruptible". The caller frees it.
 */
char *state_words(const struct wire_row *row);

/*
 * state.c: returns the reasons of a row that has several, the one with the most time first,
 * escaped: all with their times, as "pipe-read 6.2 s, futex 3 s", or else the first ones with their
 * shares, as "pipe-read 67 %, futex 33 %". The caller frees it.
 */
char *reasons_words(const struct wire_row *row, bool in_full);

/* state.c: returns one or two words for a wait without a reason. */
const char *state_word(const struct wire_row *row);

/*
 * state.c: returns why a process cannot wait any more: "exited", or "before exec" if it goes on
 * with another program. NULL if it can.
 */
const char *process_fate(const struct wire_process *process);

/* state.c: true if the row's thread waited for something else than a CPU. */
bool row_was_blocked(const struct wire_row *row);

/* state.c: true if the row's wait is in state D and not even kill -9 ends it. */
bool row_is_uninterruptible(const struct wire_row *row);

#define DOUBT_WORDS "in doubt: it may be over, the thread was not seen when the last window ended"

/*
 * state.c: true if the row's wait may be over: the daemon could not look at the thread when the
 * last window ended, so it does not know whether the thread still waits.
 */
bool row_is_in_doubt(const struct wire_row *row);

#endif
