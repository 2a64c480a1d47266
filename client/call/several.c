/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/several.h"

#include <stdlib.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/answers.h"
#include "client/call/snapshot.h"
#include "client/option/options.h"
#include "client/render/formats.h"
#include "common/base.h"

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

static void range_print(const struct answers *answers, const struct view *view)
{
	snapshot_render(answers->options, view, false, &answers->v[0].reply);
}

enum exit_code ranges_run(struct options *options, const char *probe)
{
	_cleanup_(answers_fini) struct answers answers = {
		.kind = STREAM_SLICES,
		.print = options->format->stream_new ? NULL : range_print,
		.is_each = true,
	};
	enum exit_code code = answers_run_snapshot(&answers, options, probe, false);

	if (code != EXIT_CODE_OK || answers.n_begun == 0)
		return code;
	if (answers.n_empty == answers.n_begun) {
		print_message("no data in any of the %zu ranges", answers.n_begun);
		return EXIT_CODE_NO_DATA;
	}
	if (!options->strict || answers.n_incomplete == 0)
		return EXIT_CODE_OK;
	print_message("not complete: %zu of %zu ranges have gaps or losses", answers.n_incomplete,
		      answers.n_begun);
	return EXIT_CODE_PARTIAL;
}
