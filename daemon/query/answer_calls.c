/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "daemon/drain/call_stream.h"
#include "daemon/query/answer_rows.h"
#include "daemon/session/session.h"

int answer_calls(struct arena *arena, const struct call *calls, size_t n, bool kernel_addresses,
		 struct wire_calls *out)
{
	const struct answer_row_options options = { .kernel_addresses = kernel_addresses };
	struct row_context context = { .arena = arena, .options = &options };
	struct wire_call *v = arena_array(arena, n + 1, sizeof(*v));
	size_t i;
	int r = v ? 0 : -ENOMEM;

	for (i = 0; i < n && !r; i++) {
		v[i] = (struct wire_call){
			.time = calls[i].time_ns,
			.comm = arena_strndup(arena, calls[i].comm, COMM_LEN),
			.pid = calls[i].pid,
			.tid = calls[i].tid,
			.cpu = calls[i].cpu,
			.count = (int64_t)calls[i].count,
		};
		r = v[i].comm ? answer_stack(&context, calls[i].kernel, &v[i].kernel) : -ENOMEM;
		if (!r)
			r = answer_stack(&context, calls[i].user, &v[i].user);
	}
	HASH_CLEAR(hh, context.memos);
	*out = (struct wire_calls){ .v = v, .n = n };
	return r;
}

void answer_session_calls(struct session *session, const struct drain_stats *stats,
			  struct wire_session *out)
{
	const struct session_info *info = session_info(session);
	const struct cpu_counts *counts = &stats->counts;
	bool is_running = out->ended == WIRE_ABSENT;

	out->regexp = WIRE_BOOL_ABSENT;
	out->functions = out->calls_per_s = out->load = out->every = out->rate = out->held =
		WIRE_ABSENT;
	if (!info->function)
		return;
	out->function = info->function;
	out->file = session_file(session);
	/* Of an earlier run it is not known any more. */
	if (session_functions(session))
		out->functions = (int64_t)session_functions(session);
	out->count = (int64_t)(counts->samples - counts->filtered);
	if (info->is_regex)
		out->regexp = 1;
	if (is_running) {
		out->calls_per_s = (int64_t)stats->calls_per_s;
		out->load = (int64_t)stats->load_percent;
	}
	if (stats->every > 1)
		out->every = (int64_t)stats->every;
	if (info->kind != PROBE_STACKSNOOP || !session_functions(session))
		return;
	out->rate = (int64_t)info->rate;
	out->held = out->count - (int64_t)(counts->streamed + counts->lost[LOST_CALL_NESTED] +
					   counts->lost[LOST_CALL_RING]);
}
