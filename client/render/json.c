/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/exit_code.h"
#include "client/base/message.h"
#include "client/base/term.h"
#include "client/render/diff.h"
#include "client/render/formats.h"
#include "common/base.h"
#include "proto/codec.h"

static void fail(int r)
{
	print_message("cannot write the answer: %s", strerror(-r));
	exit(EXIT_CODE_IO);
}

/*
 * Prints a JSON document and frees it. `r` is the result of the function that wrote the document.
 * If `r` is negative, prints a message and ends the program.
 */
static void put_document(FILE *out, int r, struct text *text)
{
	if (r < 0)
		fail(r);
	fwrite(text->data, 1, text->len, out);
	fputc('\n', out);
	text_fini(text);
}

/*
 * Prints an answer as one JSON document: on a terminal in several indented lines, else in one line.
 */
static void print_snapshot(const struct view *view, const struct wire_snapshot_reply *reply)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	put_document(view->page.out, snapshot_reply_print(reply, view->page.cuts_names, &text),
		     &text);
}

/* Answers that are printed while their replies arrive. */
struct json_stream {
	const struct view *view;
	enum stream_kind kind;
	bool is_open;  /* a document was begun and not ended */
	size_t member; /* number of the member of the overview, or of the slice, that comes next */
	size_t n_rows; /* number of rows in the open document */
};

/* The members of an overview, in order, and the probes that they are answers of. */
static const struct {
	const char *name;
	const char *probe;
} members[] = { { "waits", "offcpu" }, { "samples", "oncpu" }, { "io", "iolat" } };

static void stream_put(const struct json_stream *stream, int r, struct text *text)
{
	if (r < 0)
		fail(r);
	if (text->len > 0)
		fwrite(text->data, 1, text->len, stream->view->page.out);
	text_fini(text);
}

static void document_begin(struct json_stream *stream, const struct wire_snapshot_reply *reply)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	stream_put(stream, snapshot_print_begin(reply, stream->view->page.cuts_names, &text),
		   &text);
	stream->is_open = true;
	stream->n_rows = 0;
}

static void document_end(struct json_stream *stream)
{
	struct text text;

	if (!stream->is_open)
		return;
	text_init(&text, SIZE_MAX);
	stream_put(stream, snapshot_print_end(stream->n_rows, stream->view->page.cuts_names, &text),
		   &text);
	fputc('\n', stream->view->page.out);
	stream->is_open = false;
}

static void *stream_new(const struct view *view, enum stream_kind kind)
{
	struct json_stream *stream = must(calloc(1, sizeof(*stream)));

	*stream = (struct json_stream){ .view = view, .kind = kind };
	return stream;
}

/* Begins the next member of an overview, behind the members before it. */
static void member_begin(struct json_stream *stream)
{
	fprintf(stream->view->page.out, "%c\"%s\":", stream->member == 0 ? '{' : ',',
		members[stream->member].name);
	stream->member++;
}

/*
 * Prints null for the members of an overview up to the one of a probe, or for all if `probe` is
 * NULL. Returns false if there is no such member.
 */
static bool members_skip(struct json_stream *stream, const char *probe)
{
	while (stream->member < ARRAY_SIZE(members) &&
	       (!probe || strcmp(members[stream->member].probe, probe) != 0)) {
		member_begin(stream);
		fputs("null", stream->view->page.out);
	}
	return stream->member < ARRAY_SIZE(members);
}

static void stream_add(void *opaque, const struct wire_snapshot_reply *reply, bool is_first)
{
	struct json_stream *stream = opaque;
	struct text text;

	if (is_first) {
		document_end(stream);
		if (stream->kind == STREAM_SLICES)
			fputc(stream->member++ == 0 ? '[' : ',', stream->view->page.out);
		if (stream->kind == STREAM_OVERVIEW) {
			/* There is no answer: a later one, or the end, prints null in its place. */
			if (reply->missing || reply->coverage.windows == 0 ||
			    !members_skip(stream, reply->probe))
				return;
			member_begin(stream);
		}
		document_begin(stream, reply);
	}
	text_init(&text, SIZE_MAX);
	stream_put(stream,
		   snapshot_print_rows(&reply->rows, stream->n_rows, stream->view->page.cuts_names,
				       &text),
		   &text);
	stream->n_rows += reply->rows.n;
}

static void stream_end(void *opaque, bool is_whole)
{
	struct json_stream *stream = opaque;

	if (is_whole)
		document_end(stream);
	if (is_whole && stream->kind == STREAM_SLICES)
		fputs(stream->member == 0 ? "[]\n" : "]\n", stream->view->page.out);
	if (is_whole && stream->kind == STREAM_OVERVIEW) {
		members_skip(stream, NULL);
		fputs("}\n", stream->view->page.out);
	}
	free(stream);
}

/* Prints a call as one line of JSON, so that a program can read the calls as they happen. */
static void print_call(const struct view *view, const struct wire_call *call)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	put_document(view->page.out, call_print(call, &text), &text);
}

static void print_status(const struct page *page, const struct wire_status_reply *reply,
			 int64_t now)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	put_document(page->out, status_reply_print(reply, true, &text), &text);
}

static void print_probes(const struct page *page, const struct wire_probes_reply *reply)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	put_document(page->out, probes_reply_print(reply, true, &text), &text);
}

static void print_settled(const struct page *page, int64_t pid,
			  const struct wire_settled_reply *reply)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	put_document(page->out, settled_reply_print(reply, true, &text), &text);
}

static void print_functions(const struct page *page, const struct wire_functions_reply *reply)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	put_document(page->out, functions_reply_print(reply, true, &text), &text);
}

static void print_sessions(const struct page *page, const struct wire_sessions_reply *reply)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	put_document(page->out, sessions_reply_print(reply, true, &text), &text);
}

static void print_windows(const struct page *page, const struct wire_windows_reply *reply)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	put_document(page->out, windows_reply_print(reply, true, &text), &text);
}

const struct format format_json = {
	.name = "json",
	.suffix = "json",
	.snapshot = print_snapshot,
	.stream_new = stream_new,
	.stream_add = stream_add,
	.stream_end = stream_end,
	.diff = diff_print_json,
	.call = print_call,
	.status = print_status,
	.probes = print_probes,
	.settled = print_settled,
	.functions = print_functions,
	.sessions = print_sessions,
	.windows = print_windows,
};
