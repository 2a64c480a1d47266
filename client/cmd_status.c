/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>

#include "client/fetch.h"
#include "client/output.h"
#include "client/render_status.h"
#include "client/term.h"
#include "client/verb.h"
#include "proto/base.h"
#include "proto/codec.h"

enum exit_code cmd_status(struct options *options)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct wire_status_reply reply;
	struct output output;
	enum exit_code code;

	code = fetch_status(options, arena, &reply);
	if (code != EXIT_CODE_OK)
		return code;
	if (options->format == FORMAT_JSON) {
		struct text text;

		text_init(&text, SIZE_MAX);
		code = print_json(status_reply_print(&reply, true, &text), &text);
	} else {
		struct page page = page_of_stdout();

		output_open(&output, NULL, NULL, NULL, 0);
		if (options->check)
			render_check(&page, &reply);
		else
			render_status(&page, &reply, clock_ns(CLOCK_REALTIME));
		code = output_close(&output);
	}
	if (code == EXIT_CODE_OK && options->check && !status_is_well(&reply))
		return EXIT_CODE_PARTIAL;
	return code;
}
