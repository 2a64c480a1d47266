/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdbool.h>
#include <stdio.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/fetch.h"
#include "client/call/output.h"
#include "client/render/formats.h"
#include "client/render/status.h"
#include "client/verb/verb.h"
#include "common/base.h"

/*
 * Returns the exit code of `stackctl status --check` when the daemon has not answered. If has_line
 * is true, also prints the line that a monitoring system reads.
 */
static enum check_code check_without_answer(enum exit_code code, bool has_line)
{
	bool is_refused = code == EXIT_CODE_REFUSED || code == EXIT_CODE_USAGE;

	if (has_line)
		puts(is_refused ? "UNKNOWN: not allowed to ask stackd"
				: "CRITICAL: stackd does not answer");
	return is_refused ? CHECK_UNKNOWN : CHECK_CRITICAL;
}

/* Says what is known of one process. */
static enum exit_code process_print(const struct options *options)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct wire_settled_request request = { .pid = options->pids.v[0] };
	struct page page = page_of_stdout();
	struct wire_settled_reply reply;
	struct output output;
	enum exit_code code;

	if (options->pids.n > 1 || options->check || options->verbose) {
		print_message("--pid %s", options->pids.n > 1 ? "takes one process"
					  : options->check    ? "and --check exclude each other"
							      : "and --verbose exclude each other");
		return EXIT_CODE_USAGE;
	}
	code = FETCH(options, settled, &request, arena, &reply);
	if (code != EXIT_CODE_OK)
		return code;
	output_open(&output, NULL, NULL, NULL, 0);
	options->format->settled(&page, request.pid, &reply);
	return output_close(&output);
}

enum exit_code cmd_status(struct options *options)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct page page = page_of_stdout();
	enum check_code check = CHECK_OK;
	struct wire_status_reply reply;
	struct output output;
	enum exit_code code;

	if (options->pids.n)
		return process_print(options);
	code = FETCH(options, status, NULL, arena, &reply);
	if (code != EXIT_CODE_OK && options->check)
		return (enum exit_code)check_without_answer(code, options->format->is_for_people);
	if (code != EXIT_CODE_OK)
		return code;
	if (options->check)
		check = status_check(&reply);
	output_open(&output, NULL, NULL, NULL, 0);
	if (options->check && options->format->is_for_people)
		render_check(&page, &reply);
	else if (options->format->is_for_people && !options->verbose)
		render_status_brief(&page, &reply, clock_ns(CLOCK_REALTIME));
	else
		options->format->status(&page, &reply, clock_ns(CLOCK_REALTIME));
	code = output_close(&output);
	return code == EXIT_CODE_OK ? (enum exit_code)check : code;
}
