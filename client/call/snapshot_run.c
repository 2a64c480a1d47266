/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/snapshot_run.h"

#include <stdlib.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/answers.h"
#include "client/call/snapshot.h"
#include "client/option/options.h"
#include "client/render/formats.h"
#include "common/base.h"

/*
 * Returns EXIT_CODE_FOUND if --fail was given and at least one thread waits. A wait of which it is
 * not known whether it is over does not count. n_doubtful is the number of rows of such waits.
 */
static enum exit_code check_found(const struct options *options,
				  const struct wire_snapshot_reply *reply, size_t n_doubtful)
{
	bool is_found = reply->shown.rows + reply->rest.rows > (int64_t)n_doubtful;

	return options->fail && is_found ? EXIT_CODE_FOUND : EXIT_CODE_OK;
}

static void answer_print(const struct answers *answers, const struct view *view)
{
	snapshot_render(answers->options, view, answers->options->is_stuck, &answers->v[0].reply);
}

enum exit_code snapshot_run_seen(struct options *options, const char *probe, bool is_stuck,
				 int64_t *threads_out)
{
	bool is_stream = options->format->stream_new && !(is_stuck && options->format->stuck);
	_cleanup_(answers_fini) struct answers answers = {
		.kind = STREAM_ANSWER,
		.print = is_stream ? NULL : answer_print,
	};
	enum exit_code code = answers_run_snapshot(&answers, options, probe, is_stuck);
	const struct wire_snapshot_reply *reply = answers_find(&answers, NULL);

	*threads_out = reply ? reply->totals.threads : 0;
	if (code == EXIT_CODE_OK && reply)
		code = check_found(options, reply, answers.n_doubtful);
	return code == EXIT_CODE_OK && reply ? snapshot_check_complete(options, NULL, reply) : code;
}

enum exit_code snapshot_run(struct options *options, const char *probe, bool is_stuck)
{
	int64_t threads;

	return snapshot_run_seen(options, probe, is_stuck, &threads);
}

/* Prints the slices, which have arrived with the newest first, in the order of time. */
static void slices_print(const struct answers *answers, const struct view *view)
{
	const struct wire_snapshot_reply **slices =
		must(calloc(answers->n, sizeof(struct wire_snapshot_reply *)));

	for (size_t i = 0; i < answers->n; i++)
		slices[i] = &answers->v[answers->n - 1 - i].reply;
	answers->options->format->slices(view, slices, answers->n);
	free(slices);
}

enum exit_code slices_run(struct options *options, const char *probe)
{
	_cleanup_(answers_fini) struct answers answers = {
		.kind = STREAM_SLICES,
		.print = options->format->slices ? slices_print : NULL,
	};
	enum exit_code code = answers_run_snapshot(&answers, options, probe, false);

	if (answers.print) {
		for (size_t i = answers.n; i > 0 && code == EXIT_CODE_OK; i--)
			code = snapshot_check_complete(options, NULL, &answers.v[i - 1].reply);
		return code;
	}
	if (code != EXIT_CODE_OK || !options->strict || answers.n_incomplete == 0)
		return code;
	print_message("not complete: %zu slices have gaps or losses", answers.n_incomplete);
	return EXIT_CODE_PARTIAL;
}

enum exit_code ranges_run(struct options *options, const char *probe)
{
	_cleanup_(answers_fini) struct answers answers = {
		.kind = STREAM_SLICES,
		.print = options->format->stream_new ? NULL : answer_print,
		.is_each = true,
	};
	enum exit_code code = answers_run_snapshot(&answers, options, probe, false);

	if (code != EXIT_CODE_OK || answers.n_begun == 0)
		return code;
	if (answers.n_empty == answers.n_begun) {
		print_message(answers.n_begun == 1 ? "no data in the range"
						   : "no data in any of the %zu ranges",
			      answers.n_begun);
		return EXIT_CODE_NO_DATA;
	}
	if (!options->strict || answers.n_incomplete == 0)
		return EXIT_CODE_OK;
	print_message("not complete: %zu of %zu ranges have gaps or losses", answers.n_incomplete,
		      answers.n_begun);
	return EXIT_CODE_PARTIAL;
}
