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

	/*
	 * Each function prints one kind of answer, which it borrows. A write error only sets the
	 * stream's error flag. If stuck() is NULL, snapshot() also prints the answers to `stackctl
	 * stuck`.
	 */
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
	void (*call)(const struct view *view, const struct wire_call *call);
	void (*status)(const struct page *page, const struct wire_status_reply *reply, int64_t now);
	void (*probes)(const struct page *page, const struct wire_probes_reply *reply);
	void (*functions)(const struct page *page, const struct wire_functions_reply *reply);
	void (*sessions)(const struct page *page, const struct wire_sessions_reply *reply);
	void (*windows)(const struct page *page, const struct wire_windows_reply *reply);
};

#define FORMAT(name) extern const struct format format_##name;
FORMAT_LIST
#undef FORMAT

/* Returns the format with that name, or NULL if there is none. */
const struct format *format_find(const char *name);

enum { FORMAT_NAMES_MAX = sizeof(FORMAT_NAMES) };

/*
 * Writes the names of the formats, as in "text|json". Formats that can print only stacks are among
 * them if has_stacks is true.
 */
void format_names(bool has_stacks, char out[static FORMAT_NAMES_MAX]);

#endif
