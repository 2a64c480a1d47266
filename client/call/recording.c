/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/recording.h"

#include <string.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/call.h"
#include "client/call/snapshot.h"
#include "client/option/options.h"
#include "client/option/suggest.h"
#include "common/base.h"
#include "common/probe_kind.h"
#include "proto/codec.h"

void recording_fini(struct recording *recording)
{
	arena_free(recording->arena);
	recording->arena = NULL;
}

static int on_reply(const struct varlink_message *message, void *context)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct recording *recording = context;
	struct wire_start_reply reply;
	int r = start_reply_decode(message, arena, &reply, NULL);

	if (r < 0)
		return r;
	arena_free(recording->arena);
	recording->arena = TAKE(arena);
	recording->session = reply.session;
	recording->has_session = true;
	recording->missed += reply.missed == WIRE_ABSENT ? 0 : reply.missed;
	if (recording->on_calls && reply.calls.n > 0)
		r = recording->on_calls(recording, &reply.calls);
	if (r == 0 && recording->on_progress)
		r = recording->on_progress(recording);
	return r;
}

enum exit_code recording_start(const struct options *options, bool is_bound,
			       struct recording *recording)
{
	struct snapshot_request parts;
	struct wire_start_request request = {
		.probe = options->argument,
		.name = options->name,
		.filter = &parts.filter,
		.duration_ns = options->duration_ns,
		.frequency = options->frequency,
		.period_ns = options->period_ns,
		.event = options->event,
		.idle = options->idle ? 1 : WIRE_BOOL_ABSENT,
		.function = options->function,
		.regexp = options->regexp ? 1 : WIRE_BOOL_ABSENT,
		.rate = options->rate,
	};
	enum exit_code code;
	struct text text;

	snapshot_filter_init(&parts, options);
	/*
	 * Only the probe oncpu can leave out idle CPUs when it records. Other probes always record
	 * idle waits: for them --idle changes only the output.
	 */
	if (!options->argument || strcmp(options->argument, "oncpu") != 0)
		request.idle = WIRE_BOOL_ABSENT;
	text_init(&text, VARLINK_MAX_REPLY);
	start_request_encode(&request, is_bound ? VARLINK_MORE : 0, &text);
	code = call_start(options, &text, is_bound, on_reply, recording);
	text_fini(&text);
	return code;
}

enum exit_code recording_check_probe(const struct options *options)
{
	struct suggestion near;
	enum probe_kind kind;
	char kinds[128];

	if (probe_kind_find(options->argument, &kind))
		return EXIT_CODE_OK;
	suggestion_init(&near, options->argument, strlen(options->argument));
	for (kind = 0; kind < PROBE_KIND_N; kind++)
		suggestion_try(&near, probe_kind_name(kind));
	probe_kinds_with(0, " and ", kinds, sizeof kinds);
	if (near.best)
		print_message("no probe %s; did you mean %s?", options->argument, near.best);
	else
		print_message("no probe %s; there are: %s", options->argument, kinds);
	return EXIT_CODE_USAGE;
}

enum exit_code recording_report_choice(const char *verb)
{
	char kinds[128];

	probe_kinds_with(0, " or ", kinds, sizeof kinds);
	print_message("%s needs a probe: %s; as in: stackctl %s oncpu", verb, kinds, verb);
	return EXIT_CODE_USAGE;
}
