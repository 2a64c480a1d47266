/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/several.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/answers.h"
#include "client/call/named.h"
#include "client/call/output.h"
#include "client/call/snapshot.h"
#include "client/option/options.h"
#include "client/render/formats.h"
#include "common/array.h"
#include "common/base.h"
#include "proto/codec.h"

/* The answers of all slices, in the order in which they arrive: the newest first. */
struct answers {
	struct arena *arena;
	struct collection *v;
	size_t n, capacity;
};

/* Adds a reply to its slice. To be used as a reply_handler. */
static int answers_add(const struct varlink_message *message, void *context)
{
	struct answers *answers = context;
	struct wire_snapshot_reply reply;
	int r = snapshot_reply_decode(message, answers->arena, &reply, NULL);

	if (r < 0)
		return r;
	if (answers->n == 0 || collection_is_whole(&answers->v[answers->n - 1])) {
		r = array_reserve(answers->v, answers->capacity, answers->n + 1);
		if (r < 0)
			return r;
		answers->v[answers->n++] = (struct collection){ .arena = answers->arena };
	}
	return collection_add_reply(&answers->v[answers->n - 1], &reply);
}

static enum exit_code print(const struct options *options, const char *probe,
			    const struct answers *answers, int64_t now)
{
	const struct wire_snapshot_reply **slices =
		must(calloc(answers->n + 1, sizeof(struct wire_snapshot_reply *)));
	enum exit_code code;
	struct output output;
	struct view view;

	for (size_t i = 0; i < answers->n; i++)
		slices[i] = &answers->v[answers->n - 1 - i].reply;
	code = output_open(&output, options->output, probe, options->format->suffix, now);
	if (code == EXIT_CODE_OK) {
		view = snapshot_view(options, output.out);
		options->format->slices(&view, slices, answers->n);
		code = output_close(&output);
	}
	for (size_t i = 0; i < answers->n && code == EXIT_CODE_OK; i++)
		code = snapshot_check_complete(options, NULL, slices[i]);
	free(slices);
	return code;
}

/* Prints the answers when all have arrived, the oldest slice first. */
static enum exit_code run_whole(const struct options *options, const char *probe,
				const struct text *request, int64_t now)
{
	struct answers answers = { .arena = must(arena_new()) };
	enum exit_code code = call_run_named(options, request, answers_add, &answers, NULL);

	if (code == EXIT_CODE_OK)
		code = print(options, probe, &answers, now);
	for (size_t i = 0; i < answers.n; i++)
		free(answers.v[i].rows);
	free(answers.v);
	arena_free(answers.arena);
	return code;
}

/* Prints the answers while they arrive, the newest slice first. */
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

	if (code != EXIT_CODE_OK || !options->strict || stream.n_incomplete == 0)
		return code;
	print_message("not complete: %zu slices have gaps or losses", stream.n_incomplete);
	return EXIT_CODE_PARTIAL;
}

enum exit_code slices_run(struct options *options, const char *probe)
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
	code = options->format->slices ? run_whole(options, probe, &text, now)
				       : run_stream(options, probe, &text, now);
	text_fini(&text);
	return code;
}
