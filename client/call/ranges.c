/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/ranges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/answers.h"
#include "client/call/named.h"
#include "client/call/output.h"
#include "client/call/snapshot.h"
#include "client/option/options.h"
#include "client/render/formats.h"
#include "common/base.h"
#include "proto/codec.h"

/* The answers that have come, of which only the last one is in memory, until it is whole. */
struct ranges {
	const struct options *options;
	const char *probe;
	int64_t now;
	struct output output;
	bool is_open; /* the output was opened */
	struct collection last;
	size_t n; /* number of answers that were printed */
	size_t n_empty;
	size_t n_incomplete;
	enum exit_code code; /* why the output could not be opened */
};

static void last_free(struct ranges *ranges)
{
	free(ranges->last.rows);
	arena_free(ranges->last.arena);
	ranges->last = (struct collection){};
}

/* Prints the last answer, below an empty line unless it is the first one, and frees it. */
static int last_print(struct ranges *ranges)
{
	const struct wire_snapshot_reply *reply = &ranges->last.reply;
	struct view view;

	if (!ranges->is_open) {
		ranges->code = output_open(&ranges->output, ranges->options->output, ranges->probe,
					   ranges->options->format->suffix, ranges->now);
		if (ranges->code != EXIT_CODE_OK)
			return -EIO;
		ranges->is_open = true;
	}
	view = snapshot_view(ranges->options, ranges->output.out);
	if (ranges->n++ > 0)
		page_break(&view.page);
	snapshot_render(ranges->options, &view, false, reply);
	ranges->n_incomplete += !reply->coverage.complete;
	ranges->n_empty += snapshot_is_empty(ranges->options, reply);
	last_free(ranges);
	return output_flush(ranges->output.out, ranges->output.path);
}

/* Adds a reply to the last answer. To be used as a reply_handler. */
static int ranges_add(const struct varlink_message *message, void *context)
{
	struct ranges *ranges = context;
	int r;

	if (!ranges->last.arena)
		ranges->last.arena = must(arena_new());
	r = collection_add(message, &ranges->last);
	if (r == 0 && collection_is_whole(&ranges->last))
		r = last_print(ranges);
	return r;
}

/* Returns the exit code of n answers that were printed. */
static enum exit_code check(const struct options *options, size_t n, size_t n_empty,
			    size_t n_incomplete)
{
	if (n_empty == n) {
		print_message("no data in any of the %zu ranges", n);
		return EXIT_CODE_NO_DATA;
	}
	if (!options->strict || n_incomplete == 0)
		return EXIT_CODE_OK;
	print_message("not complete: %zu of %zu ranges have gaps or losses", n_incomplete, n);
	return EXIT_CODE_PARTIAL;
}

/* Prints each answer when all of its replies have arrived. */
static enum exit_code run_whole(const struct options *options, const char *probe,
				const struct text *request, int64_t now)
{
	struct ranges ranges = { .options = options, .probe = probe, .now = now };
	enum exit_code code = call_run_named(options, request, ranges_add, &ranges, NULL);

	last_free(&ranges);
	if (ranges.code != EXIT_CODE_OK)
		return ranges.code;
	if (!ranges.is_open)
		return code;
	if (code != EXIT_CODE_OK) {
		output_discard(&ranges.output);
		return code;
	}
	code = output_close(&ranges.output);
	return code != EXIT_CODE_OK ? code
				    : check(options, ranges.n, ranges.n_empty, ranges.n_incomplete);
}

/* Prints the answers while they arrive. */
static enum exit_code run_stream(const struct options *options, const char *probe,
				 const struct text *request, int64_t now)
{
	_cleanup_(stream_fini) struct stream stream = {
		.options = options,
		.stem = probe,
		.kind = STREAM_SLICES,
		.now = now,
	};
	enum exit_code code = stream_run(&stream, request);

	return code != EXIT_CODE_OK
		       ? code
		       : check(options, stream.n_begun, stream.n_empty, stream.n_incomplete);
}

enum exit_code ranges_run(struct options *options, const char *probe)
{
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct snapshot_request request;
	enum exit_code code;
	struct text text;

	if (snapshot_request_init(&request, options, probe, false, now) < 0) {
		print_message("%s", options->message);
		return EXIT_CODE_USAGE;
	}
	snapshot_request_set_lines(&request, options);
	text_init(&text, VARLINK_MAX_REPLY);
	snapshot_request_encode(&request.request, VARLINK_MORE, &text);
	code = options->format->stream_new ? run_stream(options, probe, &text, now)
					   : run_whole(options, probe, &text, now);
	text_fini(&text);
	return code;
}
