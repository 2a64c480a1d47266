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

/*
 * Asks a probe for all of its rows, because the row with the most runnable time may be far down in
 * the daemon's order by total time. If the daemon sends an error, stores it in *error. If `error`
 * is NULL, prints it instead.
 */
static enum exit_code fetch(const struct options *options, struct snapshot_request *request,
			    const char *probe, struct call_error *error,
			    struct collection *collection)
{
	enum exit_code code;
	struct text text;

	request->request.probe = probe;
	request->request.top = 0;
	text_init(&text, VARLINK_MAX_REPLY);
	snapshot_request_encode(&request->request, VARLINK_MORE, &text);
	code = error ? call_try(options, &text, collection_add, collection, error)
		     : call_run(options, &text, collection_add, collection);
	text_fini(&text);
	return code;
}

/*
 * Asks for the samples in the time that the waits cover. There may be none: the probe may be off,
 * or the process hardly ran. Leaves out filters by the length or state of waits, because samples
 * have neither.
 */
static enum exit_code fetch_samples(const struct options *options, struct snapshot_request *request,
				    const struct collection *waits, struct call_error *error,
				    struct collection *samples)
{
	const struct wire_range *used = &waits->reply.coverage.used;

	request->request.window_ns = WIRE_ABSENT;
	request->request.since_ns = used->start;
	request->request.until_ns = used->end;
	request->filter.min_block_ns = request->filter.max_block_ns = WIRE_ABSENT;
	request->filter.states = (struct wire_strs){ 0 };
	return fetch(options, request, "oncpu", error, samples);
}

/*
 * Checks, if --strict was given, that both answers are complete. Missing samples are no fault if
 * the threads that the filter selects did not run.
 */
static enum exit_code check_complete(const struct options *options, const struct collection *waits,
				     const struct collection *samples,
				     const struct call_error *error)
{
	enum exit_code code = snapshot_check_complete(options, "waits", &waits->reply), of_samples;
	bool is_missing = !samples->has_reply && !error->is_of_filter;

	/*
	 * No message is needed for the text for people: it says in the place of the samples why
	 * there are none.
	 */
	if (is_missing && (options->strict || !options->format->is_for_people))
		print_message("no samples: %s", error->text);
	if (is_missing && options->strict)
		return EXIT_CODE_PARTIAL;
	if (!samples->has_reply)
		return code;
	of_samples = snapshot_check_complete(options, "samples", &samples->reply);
	return code != EXIT_CODE_OK ? code : of_samples;
}

static enum exit_code print(const struct options *options, const struct collection *waits,
			    const struct collection *samples, const struct call_error *error,
			    int64_t now)
{
	struct output output;
	struct view view;
	enum exit_code code;

	code = output_open(&output, options->output, "overview", options->format->suffix, now);
	if (code != EXIT_CODE_OK)
		return code;
	view = snapshot_view(options, output.out);
	view.top = options->top != WIRE_ABSENT ? options->top : STACKS_DEFAULT;
	options->format->overview(&view, &waits->reply, samples->has_reply ? &samples->reply : NULL,
				  error->is_of_filter ? NULL : error->text);
	code = output_close(&output);
	return code != EXIT_CODE_OK ? code : check_complete(options, waits, samples, error);
}

static enum exit_code run(struct options *options, struct collection *waits,
			  struct collection *samples)
{
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct snapshot_request request;
	struct call_error error = { 0 };
	enum exit_code code;

	if (snapshot_request_init(&request, options, "offcpu", false, now) < 0) {
		print_message("%s", options->message);
		return EXIT_CODE_USAGE;
	}
	code = fetch(options, &request, "offcpu", NULL, waits);
	if (code != EXIT_CODE_OK)
		return code;
	code = fetch_samples(options, &request, waits, &error, samples);
	/* Print the waits even if there are no samples, unless the call itself failed. */
	if (code == EXIT_CODE_OK || error.text)
		code = print(options, waits, samples, &error, now);
	free(error.text);
	return code;
}

enum exit_code overview_run(struct options *options)
{
	struct collection waits = { .arena = must(arena_new()) };
	struct collection samples = { .arena = must(arena_new()) };
	enum exit_code code = check_options(options);

	if (code == EXIT_CODE_OK)
		code = run(options, &waits, &samples);
	free(waits.rows);
	free(samples.rows);
	arena_free(waits.arena);
	arena_free(samples.arena);
	return code;
}
