/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>

#include "common/base.h"
#include "daemon/probe/multi_attach.h"
#include "daemon/probe/target.h"
#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"

/*
 * The maximum number of function names in one reply. With more, the reply could exceed the maximum
 * length of a message.
 */
enum { NAMES_MAX = 5000 };

static int names_make(struct answer *answer, const struct targets *targets, size_t n)
{
	const char **names = arena_array(answer->arena, n + 1, sizeof(*names));
	size_t i;

	if (!names)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		names[i] = arena_strndup(answer->arena, targets->v[i].name, 160);
		if (!names[i])
			return -ENOMEM;
	}
	answer->reply.functions.functions = (struct wire_strs){ .v = names, .n = n };
	return 0;
}

static int functions_make(struct answer *answer, const struct targets *targets, size_t max)
{
	static const char *const kinds[] = {
		[TARGET_FUNCTION] = "function",
		[TARGET_TRACEPOINT] = "tracepoint",
		[TARGET_USER] = "user",
		[TARGET_USDT] = "usdt",
	};

	answer->reply.functions = (struct wire_functions_reply){
		.kind = kinds[targets->kind],
		.count = (int64_t)targets->n,
		.forbidden = (int64_t)targets->forbidden,
	};
	if (targets->path) {
		answer->reply.functions.file = arena_strdup(answer->arena, targets->path);
		if (!answer->reply.functions.file)
			return -ENOMEM;
	}
	return names_make(answer, targets, targets->n < max ? targets->n : max);
}

int query_functions(struct recorder *recorder, const struct query_peer *peer, const void *params,
		    struct answer **out, struct wire_error *error)
{
	const struct wire_functions_request *request = params;
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	_cleanup_(targets_fini) struct targets targets = {};
	const struct targets_options options = {
		.config = recorder->config,
		.parser = recorder->parser,
		.is_regex = request->regexp == 1,
		.is_restricted = peer->uid != 0,
	};
	size_t max = NAMES_MAX;
	int r;

	if (!answer)
		return -ENOMEM;
	if (request->max != WIRE_ABSENT && request->max < 0)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, "max",
				      "%" PRId64 " is not a number of names: 0 or more",
				      request->max);
	if (request->max != WIRE_ABSENT && request->max < NAMES_MAX)
		max = (size_t)request->max;
	r = targets_search(&options, request->function, &targets, error);
	if (r)
		return r;
	/* A daemon that records nothing has no right to find out what the kernel allows. */
	if (targets.kind == TARGET_FUNCTION && !recorder->is_serve_only &&
	    !multi_attach_has_functions())
		return wire_error_set(error, -EOPNOTSUPP, ERROR_NOT_SUPPORTED, "function", "%s",
				      multi_attach_no_functions);
	r = functions_make(answer, &targets, max);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}
