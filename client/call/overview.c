/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/overview.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/call.h"
#include "client/call/output.h"
#include "client/call/snapshot.h"
#include "client/option/options.h"
#include "client/render/formats.h"
#include "common/base.h"
#include "proto/codec.h"

enum { STACKS_DEFAULT = 5 };

/* Refuses --sort, --by and --reverse, which apply only to the rows of a single probe. */
static enum exit_code check_options(const struct options *options)
{
	const char *what = NULL, *value;

	if (options->sort)
		what = "--sort";
	else if (options->by)
		what = "--by";
	else if (options->reverse)
		what = "--reverse";
	if (!what)
		return EXIT_CODE_OK;
	value = options->sort ? options->sort : options->by;
	print_message("%s needs a probe, as in: stackctl snapshot offcpu %s%s%s", what, what,
		      value ? " " : "", value ? value : "");
	return EXIT_CODE_USAGE;
}

/* Answers that an overview shows together: waits (offcpu) and CPU samples (oncpu). */
struct answers {
	struct collection waits;
	struct collection samples;
	/*
	 * why there are no samples; NULL if there are some, or if there are none because no
	 * selected thread ran
	 */
	const char *missing;
};

/* Adds a reply to the answer about its probe. To be used as a reply_handler. */
static int answers_add(const struct varlink_message *message, void *context)
{
	struct answers *answers = context;
	struct wire_snapshot_reply reply;
	int r = snapshot_reply_decode(message, answers->waits.arena, &reply, NULL);

	if (r < 0)
		return r;
	if (strcmp(reply.probe, "oncpu") != 0)
		return collection_add_reply(&answers->waits, &reply);
	answers->missing = reply.missing;
	if (reply.missing || reply.coverage.windows == 0)
		return 0;
	return collection_add_reply(&answers->samples, &reply);
}

/* Returns how many rows of each part of the overview to ask for; 0: all. */
static int64_t rows_to_ask(const struct options *options)
{
	if (options->format->has_all_rows)
		return 0;
	if (options->top != WIRE_ABSENT)
		return options->top;
	return options->format->is_for_people ? STACKS_DEFAULT : 0;
}

static enum exit_code fetch(const struct options *options, const struct snapshot_request *request,
			    struct answers *answers)
{
	const struct wire_overview_request overview = {
		.window_ns = request->request.window_ns,
		.since_ns = request->request.since_ns,
		.until_ns = request->request.until_ns,
		.filter = request->request.filter,
		.top = rows_to_ask(options),
		.idle = request->request.idle,
	};
	enum exit_code code;
	struct text text;

	text_init(&text, VARLINK_MAX_REPLY);
	overview_request_encode(&overview, VARLINK_MORE, &text);
	code = call_run(options, &text, answers_add, answers);
	text_fini(&text);
	return code;
}

/*
 * Checks, if --strict was given, that both answers are complete. Missing samples are no fault if
 * the threads that the filter selects did not run.
 */
static enum exit_code check_complete(const struct options *options, const struct collection *waits,
				     const struct collection *samples, const char *missing)
{
	enum exit_code code = snapshot_check_complete(options, "waits", &waits->reply), of_samples;
	bool is_missing = missing != NULL;

	/*
	 * No message is needed for the text for people: it says in the place of the samples why
	 * there are none.
	 */
	if (is_missing && (options->strict || !options->format->is_for_people))
		print_message("no samples: %s", missing);
	if (is_missing && options->strict)
		return EXIT_CODE_PARTIAL;
	if (!samples->has_reply)
		return code;
	of_samples = snapshot_check_complete(options, "samples", &samples->reply);
	return code != EXIT_CODE_OK ? code : of_samples;
}

static enum exit_code print(const struct options *options, const struct answers *answers,
			    int64_t now)
{
	const struct collection *samples = &answers->samples;
	struct output output;
	struct view view;
	enum exit_code code;

	code = output_open(&output, options->output, "overview", options->format->suffix, now);
	if (code != EXIT_CODE_OK)
		return code;
	view = snapshot_view(options, output.out);
	view.top = options->top != WIRE_ABSENT ? options->top : STACKS_DEFAULT;
	options->format->overview(&view, &answers->waits.reply,
				  samples->has_reply ? &samples->reply : NULL, answers->missing);
	code = output_close(&output);
	return code != EXIT_CODE_OK
		       ? code
		       : check_complete(options, &answers->waits, samples, answers->missing);
}

static enum exit_code run(struct options *options, struct answers *answers)
{
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct snapshot_request request;
	enum exit_code code;

	if (snapshot_request_init(&request, options, "offcpu", false, now) < 0) {
		print_message("%s", options->message);
		return EXIT_CODE_USAGE;
	}
	code = fetch(options, &request, answers);
	return code == EXIT_CODE_OK ? print(options, answers, now) : code;
}

enum exit_code overview_run(struct options *options)
{
	struct arena *arena = must(arena_new());
	struct answers answers = { .waits.arena = arena, .samples.arena = arena };
	enum exit_code code = check_options(options);

	if (code == EXIT_CODE_OK)
		code = run(options, &answers);
	free(answers.waits.rows);
	free(answers.samples.rows);
	arena_free(arena);
	return code;
}
