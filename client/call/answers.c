/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/named.h"
#include "client/option/options.h"
#include "client/render/formats.h"
#include "common/array.h"
#include "common/base.h"
#include "common/write_error.h"
#include "proto/codec.h"

/* The most answers of an overview. */
enum { OVERVIEW_ANSWERS = 3 };

static int open_output(struct answers *answers)
{
	const struct options *options = answers->options;

	answers->code = output_open(&answers->output, options->output, answers->stem,
				    options->format->suffix, answers->now);
	if (answers->code != EXIT_CODE_OK)
		return -EIO;
	answers->view = snapshot_view(options, answers->output.out);
	answers->is_open = true;
	return 0;
}

static int open_printer(struct answers *answers)
{
	int r = open_output(answers);

	if (r < 0)
		return r;
	output_be_patient(&answers->output);
	answers->view.page.out = answers->output.out;
	answers->printer = answers->options->format->stream_new(&answers->view, answers->kind);
	return 0;
}

/* Forgets the answers that have come. */
static void answers_clear(struct answers *answers)
{
	for (size_t i = 0; i < answers->n; i++) {
		free(answers->v[i].rows);
		arena_free(answers->v[i].arena);
	}
	answers->n = 0;
	answers->arena = arena_free(answers->arena);
}

/* True if the reply is a part of the answer. */
static bool is_of_answer(const struct answers *answers, const struct collection *answer,
			 const struct wire_snapshot_reply *reply)
{
	if (answers->kind == STREAM_OVERVIEW)
		return strcmp(answer->reply.probe, reply->probe) == 0;
	return answers->kind != STREAM_SLICES || !collection_is_whole(answer);
}

/*
 * Returns the answer that the reply is a part of; makes it if the reply is its first one. NULL if
 * there are too many.
 */
static struct collection *answer_of(struct answers *answers,
				    const struct wire_snapshot_reply *reply)
{
	struct collection *last = answers->n > 0 ? &answers->v[answers->n - 1] : NULL;

	if (last && is_of_answer(answers, last, reply))
		return last;
	if (answers->kind == STREAM_OVERVIEW && answers->n == OVERVIEW_ANSWERS)
		return NULL;
	if (answers->kind == STREAM_SLICES && !answers->print)
		answers_clear(answers);
	if (array_reserve(answers->v, answers->capacity, answers->n + 1) < 0)
		must(NULL);
	answers->n_begun++;
	answers->n_incomplete += !reply->coverage.complete;
	answers->n_empty += snapshot_is_empty(answers->options, reply);
	last = &answers->v[answers->n++];
	*last = (struct collection){};
	return last;
}

/* Prints the only answer that is in memory, below an empty line unless it is the first one. */
static int print_each(struct answers *answers)
{
	int r = answers->is_open ? 0 : open_output(answers);

	if (r < 0)
		return r;
	if (answers->n_begun > 1)
		page_break(&answers->view.page);
	answers->print(answers, &answers->view);
	answers_clear(answers);
	return output_flush(answers->output.out, answers->output.path);
}

/* Adds a reply to its answer, which is printed when it is whole. To be used as a reply_handler. */
static int on_reply_to_keep(const struct varlink_message *message, void *context)
{
	struct wire_snapshot_reply reply;
	struct answers *answers = context;
	struct collection *answer;
	int r;

	if (!answers->arena)
		answers->arena = must(arena_new());
	r = snapshot_reply_decode(message, answers->arena, &reply, NULL);
	if (r < 0)
		return r;
	answer = answer_of(answers, &reply);
	r = answer ? collection_add_reply(answer, &reply) : -EINVAL;
	if (r < 0)
		return r;
	answers->n_doubtful += count_doubtful_rows(&reply.rows);
	return answers->is_each && collection_is_whole(answer) ? print_each(answers) : 0;
}

static int print_reply(struct answers *answers, const struct wire_snapshot_reply *reply,
		       bool is_first)
{
	int r = collection_check_reply(reply);

	if (r < 0)
		return r;
	r = answers->printer ? 0 : open_printer(answers);
	if (r < 0)
		return r;
	answers->options->format->stream_add(answers->printer, reply, is_first);
	answers->has_failed = stream_finish(answers->output.out) < 0;
	return answers->has_failed ? -EIO : 0;
}

/* Prints a reply and keeps it without its rows. To be used as a reply_handler. */
static int on_reply_to_print(const struct varlink_message *message, void *context)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct wire_snapshot_reply reply;
	struct answers *answers = context;
	struct collection *answer;
	bool is_first;
	int r = snapshot_reply_decode(message, arena, &reply, NULL);

	if (r < 0)
		return r;
	answer = answer_of(answers, &reply);
	if (!answer)
		return -EINVAL;
	is_first = !answer->has_reply;
	r = print_reply(answers, &reply, is_first);
	answer->n += reply.rows.n;
	answers->n_doubtful += count_doubtful_rows(&reply.rows);
	if (is_first) {
		answer->reply = reply;
		answer->reply.rows = (struct wire_rows){};
		answer->has_reply = true;
		answer->arena = TAKE(arena);
	}
	return r;
}

enum exit_code answers_run(struct answers *answers, const struct text *request)
{
	enum exit_code closed,
		code = call_run_named(answers->options, request,
				      answers->print ? on_reply_to_keep : on_reply_to_print,
				      answers, NULL);
	bool is_whole = code == EXIT_CODE_OK;

	if (is_whole && answers->print && !answers->is_each && answers->n > 0 &&
	    !open_output(answers))
		answers->print(answers, &answers->view);
	if (answers->code != EXIT_CODE_OK)
		return answers->code;
	if (!answers->is_open)
		return code;
	if (answers->printer)
		answers->options->format->stream_end(answers->printer, is_whole);
	/* output_close() says why a write has failed. */
	if (!is_whole && !answers->has_failed) {
		output_discard(&answers->output);
		return code;
	}
	closed = output_close(&answers->output);
	return closed != EXIT_CODE_OK ? closed : code;
}

enum exit_code answers_run_snapshot(struct answers *answers, struct options *options,
				    const char *probe, bool is_stuck)
{
	struct snapshot_request request;
	_cleanup_(text_fini) struct text text = {};

	answers->options = options;
	answers->stem = is_stuck ? "stuck" : probe;
	answers->now = clock_ns(CLOCK_REALTIME);
	if (snapshot_request_init(&request, options, probe, is_stuck, answers->now) < 0) {
		print_message("%s", options->message);
		return EXIT_CODE_USAGE;
	}
	if (!is_stuck)
		snapshot_request_set_lines(&request, options);
	text_init(&text, VARLINK_MAX_REPLY);
	snapshot_request_encode(&request.request, VARLINK_MORE, &text);
	return answers_run(answers, &text);
}

const struct wire_snapshot_reply *answers_find(const struct answers *answers, const char *probe)
{
	for (size_t i = 0; i < answers->n; i++)
		if (!probe || strcmp(answers->v[i].reply.probe, probe) == 0)
			return &answers->v[i].reply;
	return NULL;
}

void answers_fini(struct answers *answers)
{
	answers_clear(answers);
	free(answers->v);
}
