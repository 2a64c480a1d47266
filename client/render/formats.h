/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RENDER_FORMATS_H
#define STACKD_CLIENT_RENDER_FORMATS_H

/*
 * The output formats. Each is a file in render/ that defines `const struct format format_NAME`. Its
 * NAME is in the list of formats in meson.build. From that list, the values of --format are made
 * for the parser, for help and for the completion. Constant.
 */

#include <stdbool.h>
#include <stdint.h>

#include "client/render/format_list.h"
#include "client/render/page.h"
#include "client/render/render.h"
#include "proto/wire.h"

struct diff;

/* What is printed while it arrives: an answer, an overview, or the answers of slices. */
enum stream_kind { STREAM_ANSWER, STREAM_OVERVIEW, STREAM_SLICES };

struct format {
	const char *name;   /* the value of --format that selects this format */
	const char *suffix; /* extension of the files that --output DIR/ makes, without the dot */
	/*
	 * True if people read the output: by default it has only the largest rows, and stackctl
	 * also prints hints. False if programs read it.
	 */
	bool is_for_people;
	/*
	 * true: all rows are printed, so that they add up to the whole time, and --top is refused
	 */
	bool has_all_rows;
	/* true: the format can print only stacks; call() and the functions after it are NULL */
	bool has_only_stacks;
	/* true: idle waits are left out unless --idle is given, as in text */
	bool leaves_out_idle;
	/* true: a file has one answer, so that `stackctl watch`, which prints many, refuses it */
	bool has_one_answer;
	bool is_binary;	    /* true: the output is no text, and is not printed on a terminal */
	bool has_build_ids; /* true: the output has build-ids of files and positions in them */

	/*
	 * Each function prints one kind of answer, which it borrows. A write error only sets the
	 * stream's error flag. If stuck() is NULL, snapshot() also prints the answers to `stackctl
	 * stuck`.
	 */
	/* NULL: format_print() calls stream_new() and the functions after it. */
	void (*snapshot)(const struct view *view, const struct wire_snapshot_reply *reply);
	void (*stuck)(const struct view *view, const struct wire_snapshot_reply *reply);
	/* Prints an overview. NULL where stream_new() is not. */
	void (*overview)(const struct view *view, const struct overview *overview);
	/*
	 * Prints the answers of n slices of a range, oldest first. NULL where stream_new() is not.
	 */
	void (*slices)(const struct view *view, const struct wire_snapshot_reply *const *slices,
		       size_t n);
	/*
	 * These print answers while their replies arrive. Of one answer, they print the same as
	 * snapshot(). stream_new() returns a stream, which borrows the view.
	 * stream_add() prints the rows of a reply; is_first is true for the first reply of each
	 * answer. stream_end() frees the stream, and prints the end if all replies have come. NULL:
	 * the format needs the whole answer.
	 */
	void *(*stream_new)(const struct view *view, enum stream_kind kind);
	void (*stream_add)(void *stream, const struct wire_snapshot_reply *reply, bool is_first);
	void (*stream_end)(void *stream, bool is_whole);
	/* Prints a comparison after diff_finish(). NULL: the format has none. */
	void (*diff)(const struct diff *diff);
	void (*call)(const struct view *view, const struct wire_call *call);
	void (*status)(const struct page *page, const struct wire_status_reply *reply, int64_t now);
	void (*probes)(const struct page *page, const struct wire_probes_reply *reply);
	void (*settled)(const struct page *page, int64_t pid,
			const struct wire_settled_reply *reply);
	void (*functions)(const struct page *page, const struct wire_functions_reply *reply);
	void (*sessions)(const struct page *page, const struct wire_sessions_reply *reply);
	void (*windows)(const struct page *page, const struct wire_windows_reply *reply);
};

#define FORMAT(name) extern const struct format format_##name;
FORMAT_LIST
#undef FORMAT

/* Prints a whole answer in the format. */
void format_print(const struct format *format, const struct view *view,
		  const struct wire_snapshot_reply *reply);

/* Returns the format with that name, or NULL if there is none. */
const struct format *format_find(const char *name);

/*
 * Returns the format whose suffix the name of a file ends with; of several the one with the longest
 * suffix. Returns NULL if there is none.
 */
const struct format *format_of_file(const char *path);

/*
 * True if the name of a file ends with a suffix, such as .pdf, of no format. What is not 1 to 5
 * letters and digits that begin with a letter is no suffix: neither a date nor the end of a name
 * that mktemp made. A .log is text.
 */
bool format_is_unknown_file(const char *path);

/* True if the name of a file ends as those of traces or pages, which only `stackctl report` writes.
 */
bool format_is_trace_file(const char *path);
bool format_is_page_file(const char *path);

enum { FORMAT_NAMES_MAX = sizeof(FORMAT_NAMES), FORMAT_SUFFIXES_MAX = 256 };

/* The kinds of what a verb prints in a format. */
enum format_use {
	FORMAT_OF_LISTS,   /* no stacks */
	FORMAT_OF_STACKS,  /* one answer with stacks */
	FORMAT_OF_MANY,	   /* many such answers, one after the other */
	FORMAT_OF_CHANGES, /* a comparison of two */
};

bool format_fits(const struct format *format, enum format_use use);

/* Writes the names of the formats that fit, as in "text|json". */
void format_names(enum format_use use, char out[static FORMAT_NAMES_MAX]);
/* Writes the suffixes of their files, as in ".txt, .json". */
void format_suffixes(enum format_use use, char out[static FORMAT_SUFFIXES_MAX]);

#endif
