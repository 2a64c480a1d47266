/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdint.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/fetch.h"
#include "client/call/output.h"
#include "client/render/formats.h"
#include "client/verb/verb.h"
#include "common/base.h"

static enum exit_code list_functions(const struct options *options)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	const struct wire_functions_request request = {
		.function = options->functions,
		.regexp = options->regexp ? 1 : WIRE_BOOL_ABSENT,
		.max = WIRE_ABSENT,
	};
	struct page page = page_of_stdout();
	struct wire_functions_reply reply;
	struct output output;
	enum exit_code code;

	code = FETCH(options, functions, &request, arena, &reply);
	if (code != EXIT_CODE_OK)
		return code;
	output_open(&output, NULL, NULL, NULL, 0);
	options->format->functions(&page, &reply);
	code = output_close(&output);
	/*
	 * Only the text for people needs the messages below, about functions that are not in the
	 * list. The other formats print the members `count` and `forbidden` of the reply.
	 */
	if (!options->format->is_for_people)
		return code;
	if ((int64_t)reply.functions.n < reply.count)
		print_message("%s more match",
			      count_text(reply.count - (int64_t)reply.functions.n));
	if (reply.forbidden > 0)
		print_message("%s that match cannot be traced%s", count_text(reply.forbidden),
			      reply.file ? ", as they are chosen at run time (IFUNC)" : "");
	if (reply.count == 0)
		print_message("0 functions matched by \"%s\"%s", options->functions,
			      reply.forbidden > 0 ? " can be traced" : "");
	return code == EXIT_CODE_OK && reply.count == 0 ? EXIT_CODE_USAGE : code;
}

enum exit_code cmd_probes(struct options *options)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct page page = page_of_stdout();
	struct wire_probes_reply reply;
	struct output output;
	enum exit_code code;

	if (options->functions)
		return list_functions(options);
	if (options->regexp) {
		print_message("--regexp is about the PATTERN of --functions, which is not given");
		return EXIT_CODE_USAGE;
	}
	code = FETCH(options, probes, NULL, arena, &reply);
	if (code != EXIT_CODE_OK)
		return code;
	output_open(&output, NULL, NULL, NULL, 0);
	options->format->probes(&page, &reply);
	return output_close(&output);
}
