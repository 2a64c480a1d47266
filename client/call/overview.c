/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/overview.h"

#include <string.h>
#include <time.h>

#include "client/base/message.h"
#include "client/call/answers.h"
#include "client/call/snapshot.h"
#include "client/option/options.h"
#include "client/render/formats.h"
#include "common/base.h"
#include "proto/codec.h"

/* The number of rows for each part of the time: with their stacks, and as lines. */
enum { STACKS_DEFAULT = 5, LINES_DEFAULT = 4 };

/* Says which probe has the view that the options ask for. */
static enum exit_code refuse_view(const struct options *options)
{
	print_message("%s needs a probe, as in: stackctl snapshot %s",
		      options->breakdown      ? "--breakdown"
		      : options->over_time    ? "--over-time"
		      : options->queued	      ? "--queued"
		      : options->milliseconds ? "--milliseconds"
					      : "--chain",
		      options->breakdown      ? "iolat --breakdown"
		      : options->over_time    ? "iolat --over-time"
		      : options->queued	      ? "iolat --queued"
		      : options->milliseconds ? "iolat --milliseconds"
					      : "offwake --chain");
	return EXIT_CODE_USAGE;
}

/* True if the overview is the table of processes that began and ended, by their parents. */
static bool is_by_parent(const struct options *options)
{
	return options->by && strcmp(options->by, "parent") == 0;
}

/*
 * Refuses --sort, --reverse, --each, --range and --by for anything but parents, which apply only to
 * a single probe.
 */
static enum exit_code check_options(const struct options *options)
{
	const char *what = NULL, *value;

	if (is_by_parent(options) && options->format->has_only_stacks) {
		print_message("--by parent has no %s output: text or json", options->format->name);
		return EXIT_CODE_USAGE;
	}
	if (options->sort)
		what = "--sort";
	else if (options->by && !is_by_parent(options))
		what = "--by";
	else if (options->reverse)
		what = "--reverse";
	else if (options->each_ns != WIRE_ABSENT)
		what = "--each";
	else if (options->ranges.n > 0)
		what = "--range";
	else if (options->breakdown || options->over_time || options->queued ||
		 options->milliseconds || options->chain)
		return refuse_view(options);
	if (!what)
		return EXIT_CODE_OK;
	value = options->sort			  ? options->sort
		: options->by			  ? options->by
		: options->each_ns != WIRE_ABSENT ? "10s"
		: options->ranges.n > 0		  ? options->ranges.v[0]
						  : NULL;
	print_message("%s needs a probe, as in: stackctl snapshot offcpu %s%s%s", what, what,
		      value ? " " : "", value ? value : "");
	return EXIT_CODE_USAGE;
}

/* True if the text is one screen, with a line for each row. */
static bool is_screen(const struct options *options)
{
	return options->format->is_for_people && snapshot_has_lines(options);
}

static int64_t rows_default(const struct options *options)
{
	return is_screen(options) ? LINES_DEFAULT : STACKS_DEFAULT;
}

/* Returns how many rows of each part of the overview to ask for; 0: all. */
static int64_t rows_to_ask(const struct options *options)
{
	if (is_by_parent(options))
		return 1;
	if (options->format->has_all_rows)
		return 0;
	if (options->top != WIRE_ABSENT)
		return options->top;
	return options->format->is_for_people ? rows_default(options) : 0;
}

static void request_encode(const struct options *options, const struct snapshot_request *request,
			   struct text *out)
{
	const struct wire_overview_request overview = {
		.window_ns = request->request.window_ns,
		.since_ns = request->request.since_ns,
		.until_ns = request->request.until_ns,
		.filter = request->request.filter,
		.by = is_screen(options) ? "line" : NULL,
		.top = rows_to_ask(options),
		/*
		 * The screen of a whole host has no room for idle rows, and says what is not there.
		 * Whoever asks for a process may look for just these: they come last.
		 */
		.idle = is_screen(options) && !options->idle && !options_name_somebody(options)
				? 0
				: request->request.idle,
		/* Folded lines add up to the time of threads, and I/O is a part of that. */
		.io = !options->format->has_only_stacks && !is_by_parent(options),
		.fold_own = request->request.fold_own,
		.build_ids = request->request.build_ids,
	};

	overview_request_encode(&overview, VARLINK_MORE, out);
}

/*
 * Checks, if --strict was given, that the answers are complete. Missing samples are no fault if the
 * threads that the filter selects did not run, and missing I/O is none: the probe may be off.
 */
static enum exit_code check_complete(const struct options *options, const struct overview *overview)
{
	enum exit_code code = snapshot_check_complete(options, "waits", overview->waits), more;
	bool is_missing = overview->no_samples != NULL;

	/*
	 * No message is needed for the text for people: it says in the place of the samples why
	 * there are none.
	 */
	if (is_missing && (options->strict || !options->format->is_for_people))
		print_message("no samples: %s", overview->no_samples);
	if (overview->no_io && !options->format->is_for_people)
		print_message("no I/O: %s", overview->no_io);
	if (is_missing && options->strict)
		return EXIT_CODE_PARTIAL;
	if (overview->samples) {
		more = snapshot_check_complete(options, "samples", overview->samples);
		code = code != EXIT_CODE_OK ? code : more;
	}
	if (overview->io) {
		more = snapshot_check_complete(options, "I/O", overview->io);
		code = code != EXIT_CODE_OK ? code : more;
	}
	return code;
}

/* Returns the answer, or NULL if it is in the place of one that does not exist. */
static const struct wire_snapshot_reply *answer_if_any(const struct wire_snapshot_reply *reply)
{
	return reply && !reply->missing && reply->coverage.windows > 0 ? reply : NULL;
}

static struct overview overview_of(const struct answers *answers)
{
	const struct wire_snapshot_reply *samples = answers_find(answers, "oncpu");
	const struct wire_snapshot_reply *io = answers_find(answers, "iolat");

	return (struct overview){
		.waits = answers_find(answers, NULL),
		.samples = answer_if_any(samples),
		.io = answer_if_any(io),
		.no_samples = samples ? samples->missing : NULL,
		.no_io = io ? io->missing : NULL,
		.above = io ? reply_above(io) : NULL,
	};
}

static void print(const struct answers *answers, const struct view *view)
{
	const struct options *options = answers->options;
	const struct overview overview = overview_of(answers);
	struct view with = *view;

	with.top = options->top != WIRE_ABSENT ? options->top
		   : is_by_parent(options)     ? 0
					       : rows_default(options);
	options->format->overview(&with, &overview);
}

enum exit_code overview_run(struct options *options)
{
	_cleanup_(answers_fini) struct answers answers = {
		.options = options,
		.stem = "overview",
		.kind = STREAM_OVERVIEW,
		.now = clock_ns(CLOCK_REALTIME),
		.print = options->format->stream_new ? NULL : print,
	};
	enum exit_code code = check_options(options);
	struct snapshot_request request;
	_cleanup_(text_fini) struct text text = {};
	struct overview overview;

	if (code != EXIT_CODE_OK)
		return code;
	if (snapshot_request_init(&request, options, "offcpu", false, answers.now) < 0) {
		print_message("%s", options->message);
		return EXIT_CODE_USAGE;
	}
	text_init(&text, VARLINK_MAX_REPLY);
	request_encode(options, &request, &text);
	code = answers_run(&answers, &text);
	if (code != EXIT_CODE_OK || answers.n == 0)
		return code;
	overview = overview_of(&answers);
	return check_complete(options, &overview);
}
