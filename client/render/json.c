/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/exit_code.h"
#include "client/base/message.h"
#include "client/render/formats.h"
#include "proto/codec.h"

/*
 * Prints a JSON document and frees it. `r` is the result of the function that wrote the document.
 * If `r` is negative, prints a message and ends the program.
 */
static void put_document(FILE *out, int r, struct text *text)
{
	if (r < 0) {
		print_message("cannot write the answer: %s", strerror(-r));
		exit(EXIT_CODE_IO);
	}
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

static void print_overview(const struct view *view, const struct wire_snapshot_reply *waits,
			   const struct wire_snapshot_reply *samples, const char *why)
{
	fputs("{\"waits\":", view->page.out);
	print_snapshot(view, waits);
	fputs(",\"samples\":", view->page.out);
	if (samples)
		print_snapshot(view, samples);
	else
		fputs("null", view->page.out);
	fputs("}\n", view->page.out);
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
	.overview = print_overview,
	.call = print_call,
	.status = print_status,
	.probes = print_probes,
	.functions = print_functions,
	.sessions = print_sessions,
	.windows = print_windows,
};
