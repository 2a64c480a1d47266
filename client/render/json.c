/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/exit_code.h"
#include "client/base/message.h"
#include "client/render/formats.h"
#include "proto/codec.h"

/*
 * Prints one document, which a codec has written with the result r, and frees it. Ends the program,
 * as running out of memory does everywhere else, when there is none.
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

/* Takes several lines on a terminal, else one. */
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

/* Each call is a line of its own, for programs that read along. */
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
