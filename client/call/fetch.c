/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/fetch.h"

#include <errno.h>
#include <string.h>

#include "client/call/call.h"
#include "common/base.h"
#include "proto/codec.h"

/* How to decode a reply, and where to store it. */
struct target {
	const struct wire_method *method;
	struct arena *arena;
	void *out;
};

static int on_reply(const struct varlink_message *message, void *context)
{
	struct target *target = context;

	return method_reply_decode(target->method, message, target->arena, target->out, NULL);
}

enum exit_code fetch_reply(const struct options *options, const struct wire_method *method,
			   const void *request, struct arena *arena, void *out)
{
	struct target target = { method, arena, out };
	_cleanup_(text_fini) struct text text = {};

	text_init(&text, VARLINK_MAX_REPLY);
	method_call_encode(method, request, 0, &text);
	return call_run(options, &text, on_reply, &target);
}

/* Appends the windows of this reply to the windows of the earlier replies. */
static int on_windows(const struct varlink_message *message, void *context)
{
	struct target *target = context;
	struct wire_windows_reply *sum = target->out, reply;
	struct wire_window *all;
	int r = windows_reply_decode(message, target->arena, &reply, NULL);

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

enum exit_code fetch_windows(const struct options *options,
			     const struct wire_windows_request *request, struct arena *arena,
			     struct wire_windows_reply *out)
{
	struct target target = { &method_windows, arena, out };
	_cleanup_(text_fini) struct text text = {};

	*out = (struct wire_windows_reply){ 0 };
	text_init(&text, VARLINK_MAX_REPLY);
	windows_request_encode(request, VARLINK_MORE, &text);
	return call_run(options, &text, on_windows, &target);
}
