/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "common/base.h"
#include "daemon/query/query.h"
#include "daemon/session/filter.h"

/*
 * Answers queries without a recorder: filters are checked as the daemon checks them, and the rows
 * repeat what the request says. tests/proto/refusing_query.c refuses the other methods.
 */
struct answer {
	struct arena *arena;
	union wire_reply reply;
	const struct wire_row *row; /* of a snapshot; NULL: it has none */
};

static int answer_new(struct answer **out)
{
	struct answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return -ENOMEM;
	answer->arena = arena_new();
	if (!answer->arena) {
		free(answer);
		return -ENOMEM;
	}
	*out = answer;
	return 0;
}

struct answer *answer_free(struct answer *answer)
{
	if (!answer)
		return NULL;
	arena_free(answer->arena);
	free(answer);
	return NULL;
}

void answer_freep(struct answer **answer)
{
	*answer = answer_free(*answer);
}

static int row_make(struct answer *answer, const struct wire_snapshot_request *request)
{
	const struct wire_filter *wire = request->filter;
	struct wire_row *row = arena_alloc(answer->arena, sizeof(*row));
	const char *probe =
		arena_strdup(answer->arena, request->probe ? request->probe : request->session);
	const char *comm = arena_strdup(answer->arena, wire && wire->comm ? wire->comm : "");

	if (!row || !probe || !comm)
		return -ENOMEM;
	*row = (struct wire_row){
		.process = { .comm = probe },
		.comm = comm,
		.state = "S",
		.tid = request->top,
		.max_end = request->until_ns,
		.max_tid = WIRE_ABSENT,
	};
	answer->reply.snapshot = (struct wire_snapshot_reply){
		.probe = probe,
		.session = probe,
		.hook = "",
	};
	answer->row = row;
	return 0;
}

size_t answer_n_rows(const struct answer *answer)
{
	return answer->row ? 1 : 0;
}

int answer_row(struct answer *answer, size_t i, const struct wire_row **out)
{
	*out = answer->row;
	return 0;
}

int query_snapshot(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	const struct wire_snapshot_request *request = params;
	_cleanup_(answer_freep) struct answer *answer = NULL;
	struct filter filter;
	int r = filter_init(&filter, request->filter, error);

	if (r == 0)
		r = answer_new(&answer);
	if (r == 0)
		r = row_make(answer, request);
	if (r == 0)
		*out = TAKE(answer);
	return r;
}

int query_windows(struct recorder *recorder, const struct query_peer *peer, const void *params,
		  struct answer **out, struct wire_error *error)
{
	return answer_new(out);
}

int query_status(struct recorder *recorder, const struct query_peer *peer, const void *params,
		 struct answer **out, struct wire_error *error)
{
	int r = answer_new(out);

	if (r == 0)
		(*out)->reply.status.version = (*out)->reply.status.boot_id =
			(*out)->reply.status.kernel = "";
	return r;
}

int query_metrics(struct recorder *recorder, const struct query_peer *peer, const void *params,
		  struct answer **out, struct wire_error *error)
{
	int r = answer_new(out);

	if (r == 0)
		(*out)->reply.metrics.started = 0;
	return r;
}

int query_probes(struct recorder *recorder, const struct query_peer *peer, const void *params,
		 struct answer **out, struct wire_error *error)
{
	return answer_new(out);
}

int query_settled(struct recorder *recorder, const struct query_peer *peer, const void *params,
		  struct answer **out, struct wire_error *error)
{
	int r = answer_new(out);

	if (r == 0)
		(*out)->reply.settled.comm = "";
	return r;
}

int query_sessions(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	return answer_new(out);
}

const union wire_reply *answer_reply(const struct answer *answer)
{
	return &answer->reply;
}
