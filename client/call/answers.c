/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/answers.h"

#include <errno.h>
#include <string.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/named.h"
#include "client/option/options.h"
#include "client/render/formats.h"
#include "common/base.h"
#include "common/write_error.h"
#include "proto/codec.h"

static int open_output(struct stream *stream)
{
	const struct options *options = stream->options;

	stream->code = output_open(&stream->output, options->output, stream->stem,
				   options->format->suffix, stream->now);
	if (stream->code != EXIT_CODE_OK)
		return -EIO;
	stream->view = snapshot_view(options, stream->output.out);
	output_be_patient(&stream->output);
	stream->view.page.out = stream->output.out;
	stream->printer = options->format->stream_new(&stream->view, stream->kind);
	return 0;
}

/*
 * Returns the answer that the reply is a part of; makes it if the reply is its first one. NULL if
 * there are too many.
 */
static struct collection *answer_of(struct stream *stream, const struct wire_snapshot_reply *reply)
{
	struct collection *last = stream->n > 0 ? &stream->answers[stream->n - 1] : NULL;

	if (last && stream->kind == STREAM_SLICES && collection_is_whole(last)) {
		arena_free(last->arena);
		*last = (struct collection){};
	}
	if (last &&
	    (stream->kind != STREAM_OVERVIEW || strcmp(last->reply.probe, reply->probe) == 0))
		return last;
	return stream->n < STREAM_ANSWERS ? &stream->answers[stream->n++] : NULL;
}

static int print_reply(struct stream *stream, const struct wire_snapshot_reply *reply,
		       bool is_first)
{
	int r = collection_check_reply(reply);

	if (r == 0 && !stream->printer)
		r = open_output(stream);
	if (r < 0)
		return r;
	stream->options->format->stream_add(stream->printer, reply, is_first);
	stream->has_failed = stream_finish(stream->output.out) < 0;
	return stream->has_failed ? -EIO : 0;
}

static int on_reply(const struct varlink_message *message, void *context)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct wire_snapshot_reply reply;
	struct stream *stream = context;
	struct collection *answer;
	bool is_first;
	int r = snapshot_reply_decode(message, arena, &reply, NULL);

	if (r < 0)
		return r;
	answer = answer_of(stream, &reply);
	if (!answer)
		return -EINVAL;
	is_first = !answer->has_reply;
	r = print_reply(stream, &reply, is_first);
	answer->n += reply.rows.n;
	stream->n_doubtful += count_doubtful_rows(&reply.rows);
	if (is_first) {
		stream->n_begun++;
		stream->n_incomplete += !reply.coverage.complete;
		stream->n_empty += snapshot_is_empty(stream->options, &reply);
		answer->reply = reply;
		answer->reply.rows = (struct wire_rows){};
		answer->has_reply = true;
		answer->arena = TAKE(arena);
	}
	return r;
}

enum exit_code stream_run(struct stream *stream, const struct text *request)
{
	enum exit_code code = call_run_named(stream->options, request, on_reply, stream, NULL),
		       closed;
	bool is_whole = code == EXIT_CODE_OK;

	if (stream->code != EXIT_CODE_OK)
		return stream->code;
	if (!stream->printer)
		return code;
	stream->options->format->stream_end(stream->printer, is_whole);
	/* output_close() says why a write has failed. */
	if (!is_whole && !stream->has_failed) {
		output_discard(&stream->output);
		return code;
	}
	closed = output_close(&stream->output);
	return closed != EXIT_CODE_OK ? closed : code;
}

const struct wire_snapshot_reply *stream_reply(const struct stream *stream, const char *probe)
{
	for (size_t i = 0; i < stream->n; i++)
		if (!probe || strcmp(stream->answers[i].reply.probe, probe) == 0)
			return &stream->answers[i].reply;
	return NULL;
}

void stream_fini(struct stream *stream)
{
	for (size_t i = 0; i < stream->n; i++)
		arena_free(stream->answers[i].arena);
}
