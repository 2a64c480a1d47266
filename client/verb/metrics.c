/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/metrics.h"
#include "client/base/term.h"
#include "client/call/fetch.h"
#include "client/call/output.h"
#include "client/verb/verb.h"
#include "common/arena.h"
#include "common/base.h"

enum exit_code cmd_metrics(struct options *options)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct wire_metrics_reply metrics;
	struct wire_status_reply status;
	struct output output;
	enum exit_code code;

	code = FETCH(options, metrics, NULL, arena, &metrics);
	if (code == EXIT_CODE_OK)
		code = FETCH(options, status, NULL, arena, &status);
	if (code == EXIT_CODE_OK)
		code = output_open(&output, options->output, "metrics", "prom",
				   clock_ns(CLOCK_REALTIME));
	if (code != EXIT_CODE_OK)
		return code;
	render_metrics(output.out, &metrics, &status);
	return output_close(&output);
}
