/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/fetch.h"

#include <errno.h>
#include <string.h>

#include "client/call/call.h"
#include "client/option/options.h"
#include "common/base.h"
#include "proto/codec.h"

struct target {
	struct arena *arena;
	void *out;
};

static int on_status(const struct varlink_message *message, void *context)
{
	struct target *target = context;

	return status_reply_decode(message, target->arena, target->out, NULL);
}

static int on_probes(const struct varlink_message *message, void *context)
{
	struct target *target = context;

	return probes_reply_decode(message, target->arena, target->out, NULL);
}

static int on_sessions(const struct varlink_message *message, void *context)
{
	struct target *target = context;

	return sessions_reply_decode(message, target->arena, target->out, NULL);
}

/* Puts this reply's windows behind those of the earlier ones. */
static int on_windows(const struct varlink_message *message, void *context)
{
	struct target *target = context;
	struct wire_windows_reply *sum = target->out, reply;
	struct wire_window *all;
	int r;

	r = windows_reply_decode(message, target->arena, &reply, NULL);
	if (r < 0)
		return r;
	all = arena_array(target->arena, sum->windows.n + reply.windows.n + 1, sizeof *all);
	if (!all)
		return -ENOMEM;
	if (sum->windows.n > 0)
		memcpy(all, sum->windows.v, sum->windows.n * sizeof *all);
	if (reply.windows.n > 0)
		memcpy(all + sum->windows.n, reply.windows.v, reply.windows.n * sizeof *all);
	sum->windows = (struct wire_windows){ all, sum->windows.n + reply.windows.n };
	sum->gaps = reply.gaps;
	return 0;
}

static enum exit_code fetch_plain(const struct options *options, const char *method,
				  reply_handler handler, struct target target)
{
	enum exit_code code;
	struct text text;

	text_init(&text, VARLINK_MAX_REPLY);
	varlink_call_encode(method, NULL, NULL, 0, &text);
	code = call_run(options, &text, handler, &target);
	text_fini(&text);
	return code;
}

enum exit_code fetch_status(const struct options *options, struct arena *arena,
			    struct wire_status_reply *out)
{
	return fetch_plain(options, method_status.name, on_status, (struct target){ arena, out });
}

enum exit_code fetch_probes(const struct options *options, struct arena *arena,
			    struct wire_probes_reply *out)
{
	return fetch_plain(options, method_probes.name, on_probes, (struct target){ arena, out });
}

static int on_functions(const struct varlink_message *message, void *context)
{
	struct target *target = context;

	return functions_reply_decode(message, target->arena, target->out, NULL);
}

enum exit_code fetch_functions(const struct options *options, struct arena *arena,
			       struct wire_functions_reply *out)
{
	const struct wire_functions_request request = {
		.function = options->functions,
		.regexp = options->regexp ? 1 : WIRE_BOOL_ABSENT,
		.max = WIRE_ABSENT,
	};
	struct target target = { arena, out };
	enum exit_code code;
	struct text text;

	text_init(&text, VARLINK_MAX_REPLY);
	functions_request_encode(&request, 0, &text);
	code = call_run(options, &text, on_functions, &target);
	text_fini(&text);
	return code;
}

enum exit_code fetch_sessions(const struct options *options, struct arena *arena,
			      struct wire_sessions_reply *out)
{
	return fetch_plain(options, method_sessions.name, on_sessions,
			   (struct target){ arena, out });
}

enum exit_code fetch_windows(const struct options *options,
			     const struct wire_windows_request *request, struct arena *arena,
			     struct wire_windows_reply *out)
{
	struct target target = { arena, out };
	enum exit_code code;
	struct text text;

	*out = (struct wire_windows_reply){ 0 };
	text_init(&text, VARLINK_MAX_REPLY);
	windows_request_encode(request, VARLINK_MORE, &text);
	code = call_run(options, &text, on_windows, &target);
	text_fini(&text);
	return code;
}
