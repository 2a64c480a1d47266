/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/base/term.h"
#include "client/call/fetch.h"
#include "client/call/output.h"
#include "client/render/formats.h"
#include "client/verb/verb.h"
#include "common/base.h"

enum exit_code cmd_sessions(struct options *options)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct page page = page_of_stdout();
	struct wire_sessions_reply reply;
	struct output output;
	enum exit_code code;

	code = FETCH(options, sessions, NULL, arena, &reply);
	if (code != EXIT_CODE_OK)
		return code;
	output_open(&output, NULL, NULL, NULL, 0);
	options->format->sessions(&page, &reply);
	return output_close(&output);
}
