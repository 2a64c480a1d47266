/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/drain/call_stream.h"
#include "daemon/query/answer_stacks.h"

/* Splits the arguments of a program. A NUL ends each, but for one that is cut. */
static int arguments_wire(struct arena *arena, const struct call_exec *exec, struct wire_strs *out)
{
	const char *at = exec->text + strlen(exec->text) + 1, *end = at + exec->n;
	const char **v = arena_array(arena, exec->n + 1, sizeof(*v));
	size_t n = 0, length;

	if (!v)
		return -ENOMEM;
	for (; at < end; at += length + 1) {
		length = strnlen(at, (size_t)(end - at));
		v[n] = arena_strndup(arena, at, length);
		if (!v[n++])
			return -ENOMEM;
	}
	*out = (struct wire_strs){ .v = v, .n = n };
	return 0;
}

static int exec_wire(struct arena *arena, const struct call_exec *exec,
		     const struct wire_exec **out)
{
	struct wire_exec *wire;

	if (!exec)
		return 0;
	wire = arena_array(arena, 1, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_exec){
		.path = arena_strndup(arena, exec->text, strlen(exec->text)),
		.arguments_more = exec->all > exec->n ? exec->all - exec->n : WIRE_ABSENT,
		.parent = exec->parent,
		.parent_comm = arena_strndup(arena, exec->parent_comm, COMM_LEN),
	};
	if (!wire->path || !wire->parent_comm)
		return -ENOMEM;
	*out = wire;
	return arguments_wire(arena, exec, &wire->arguments);
}

int answer_calls(struct arena *arena, const struct call *calls, size_t n, bool kernel_addresses,
		 struct wire_calls *out)
{
	const struct answer_row_options options = { .kernel_addresses = kernel_addresses };
	_cleanup_(answer_stacks_fini) struct answer_stacks stacks = {
		.arena = arena,
		.options = &options,
	};
	struct wire_call *v = arena_array(arena, n + 1, sizeof(*v));
	size_t i;
	int r;

	*out = (struct wire_calls){ .v = v, .n = n };
	if (!v)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		v[i] = (struct wire_call){
			.time = calls[i].time_ns,
			.comm = arena_strndup(arena, calls[i].comm, COMM_LEN),
			.pid = calls[i].pid,
			.tid = calls[i].tid,
			.cpu = calls[i].cpu,
			.count = (int64_t)calls[i].count,
		};
		if (!v[i].comm)
			return -ENOMEM;
		r = answer_stack(&stacks, calls[i].kernel, &v[i].kernel);
		if (r)
			return r;
		r = answer_stack(&stacks, calls[i].user, &v[i].user);
		if (r)
			return r;
		r = exec_wire(arena, calls[i].exec, &v[i].exec);
		if (r)
			return r;
	}
	return 0;
}
