/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/fetch.h"
#include "client/call/output.h"
#include "client/call/snapshot.h"
#include "client/option/range.h"
#include "client/render/formats.h"
#include "client/verb/verb.h"
#include "common/base.h"

enum exit_code cmd_windows(struct options *options)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct page page = page_of_stdout();
	struct wire_windows_request request;
	struct wire_windows_reply reply;
	struct output output;
	enum exit_code code;
	struct range range;

	if (range_resolve(options, now, &range) < 0) {
		print_message("%s", options->message);
		return EXIT_CODE_USAGE;
	}
	request = (struct wire_windows_request){
		.since_ns = range.since_ns,
		.until_ns = range.until_ns,
		.hosts = { options->hosts.v, options->hosts.n },
	};
	if (options->argument && snapshot_is_probe(options->argument))
		request.probe = options->argument;
	else
		request.session = options->argument;
	if (range.window_ns != WIRE_ABSENT)
		request.since_ns = now - range.window_ns;
	code = fetch_windows(options, &request, arena, &reply);
	if (code != EXIT_CODE_OK)
		return code;
	output_open(&output, NULL, NULL, NULL, 0);
	options->format->windows(&page, &reply);
	code = output_close(&output);
	return code == EXIT_CODE_OK && reply.windows.n == 0 ? EXIT_CODE_NO_DATA : code;
}
