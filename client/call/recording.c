/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/recording.h"

#include <fnmatch.h>
#include <string.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/call.h"
#include "client/call/snapshot.h"
#include "client/option/options.h"
#include "client/option/suggest.h"
#include "common/base.h"
#include "common/probe_kind.h"
#include "common/wait_reason.h"
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
	if (recording->on_calls && reply.calls.n > 0) {
		r = recording->on_calls(recording, &reply.calls);
		if (r < 0)
			return r;
	}
	return recording->on_progress ? recording->on_progress(recording) : 0;
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
	_cleanup_(text_fini) struct text text = {};

	snapshot_filter_init(&parts, options);
	/*
	 * Only the probe oncpu can leave out idle CPUs when it records. Other probes always record
	 * idle waits: for them --idle changes only the output.
	 */
	if (!options->argument || strcmp(options->argument, "oncpu") != 0)
		request.idle = WIRE_BOOL_ABSENT;
	text_init(&text, VARLINK_MAX_REPLY);
	start_request_encode(&request, is_bound ? VARLINK_MORE : 0, &text);
	return call_start(options, &text, is_bound, on_reply, recording);
}

static int on_stopped(const struct varlink_message *message, void *context)
{
	struct wire_stop_reply reply;

	return stop_reply_decode(message, context, &reply, NULL);
}

enum exit_code recording_stop(const struct options *options, const char *id, char **message_out)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	const struct wire_stop_request request = { .session = id };
	_cleanup_(text_fini) struct text text = {};

	text_init(&text, VARLINK_MAX_REPLY);
	stop_request_encode(&request, 0, &text);
	return message_out ? call_quiet(options, &text, on_stopped, arena, message_out)
			   : call_start(options, &text, false, on_stopped, arena);
}

void recording_end(const struct options *options, const struct recording *recording)
{
	const bool was_interrupted = call_was_interrupted();
	_cleanup_(freep) char *message = NULL;

	call_release_signals();
	if (was_interrupted)
		recording_stop(options, recording->session.id, &message);
}

static bool reason_is_known(const char *glob)
{
	for (unsigned int i = 0; i < WAIT_REASON_N; i++)
		if (fnmatch(glob, wait_reason_word(i), 0) == 0)
			return true;
	return false;
}

/* Prints a message about the first word that is no reason. Returns false if there is one. */
static bool reasons_are_known(const char *option, const struct reason_list *reasons)
{
	char why[WAIT_REASON_REFUSAL_LEN];

	for (size_t i = 0; i < reasons->n; i++) {
		if (reason_is_known(reasons->v[i]))
			continue;
		wait_reason_refuse(reasons->v[i], why);
		print_message("--%s: %s", option, why);
		return false;
	}
	return true;
}

/*
 * Checks what only the output at the end needs: the daemon would refuse it when all has been
 * recorded.
 */
static enum exit_code check_reasons(const struct options *options, enum probe_kind kind)
{
	bool is_by_reason = options->by && strcmp(options->by, "reason") == 0;
	const char *what = is_by_reason			? "by reason"
			   : options->reasons.n > 0	? "reason"
			   : options->not_reasons.n > 0 ? "not-reason"
			   : options->not_states.n > 0	? "not-state"
							: NULL;
	bool has_functions = options->in_functions.n > 0 || options->not_functions.n > 0 ||
			     options->callers.n > 0;
	char kinds[128];

	if (has_functions && !probe_kind_has(kind, PROBE_STACKS)) {
		print_message("--%s: %s has rows of operations, not of stacks",
			      options->callers.n > 0	    ? "callers"
			      : options->in_functions.n > 0 ? "function"
							    : "not-function",
			      probe_kind_name(kind));
		return EXIT_CODE_USAGE;
	}
	if (what && !probe_kind_has(kind, PROBE_WAITS)) {
		probe_kinds_with(PROBE_WAITS, " and ", kinds, sizeof kinds);
		print_message("--%s: %s has no waits that have a %s; see %s", what,
			      probe_kind_name(kind),
			      strcmp(what, "not-state") == 0 ? "state" : "reason", kinds);
		return EXIT_CODE_USAGE;
	}
	if (!reasons_are_known("reason", &options->reasons) ||
	    !reasons_are_known("not-reason", &options->not_reasons))
		return EXIT_CODE_USAGE;
	return EXIT_CODE_OK;
}

enum exit_code recording_check_probe(const struct options *options)
{
	struct suggestion near;
	enum probe_kind kind;
	char kinds[128];

	if (probe_kind_find(options->argument, &kind))
		return check_reasons(options, kind);
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
