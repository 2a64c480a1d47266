/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "daemon/drain/call_stream.h"
#include "daemon/query/answer_stacks.h"

int answer_calls(struct arena *arena, const struct call *calls, size_t n, bool kernel_addresses,
		 struct wire_calls *out)
{
	const struct answer_row_options options = { .kernel_addresses = kernel_addresses };
	struct answer_stacks stacks = { .arena = arena, .options = &options };
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
		r = v[i].comm ? answer_stack(&stacks, calls[i].kernel, &v[i].kernel) : -ENOMEM;
		if (!r)
			r = answer_stack(&stacks, calls[i].user, &v[i].user);
	}
	answer_stacks_fini(&stacks);
	*out = (struct wire_calls){ .v = v, .n = n };
	return r;
}
