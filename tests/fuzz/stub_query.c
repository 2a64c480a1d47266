/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "common/arena.h"
#include "common/base.h"
#include "daemon/query/query.h"
#include "daemon/session/filter.h"

/*
 * Stage 6 without a recorder: filters are checked as the daemon does, the rows are the request's
 * own words.
 */
struct answer {
	struct arena *arena;
	struct wire_snapshot_reply snapshot;
	struct wire_windows_reply windows;
	struct wire_status_reply status;
	struct wire_probes_reply probes;
	struct wire_sessions_reply sessions;
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
	answer->snapshot = (struct wire_snapshot_reply){
		.probe = probe,
		.session = probe,
		.hook = "",
		.rows = { row, 1 },
	};
	return 0;
}

int query_snapshot(struct recorder *recorder, const struct query_peer *peer,
		   const struct wire_snapshot_request *request, struct answer **out,
		   struct wire_error *error)
{
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

int query_windows(struct recorder *recorder, const struct wire_windows_request *request,
		  struct answer **out, struct wire_error *error)
{
	return answer_new(out);
}

int query_status(struct recorder *recorder, struct answer **out)
{
	int r = answer_new(out);

	if (r == 0)
		(*out)->status.version = (*out)->status.boot_id = (*out)->status.kernel = "";
	return r;
}

int query_probes(struct recorder *recorder, struct answer **out)
{
	return answer_new(out);
}

int query_sessions(struct recorder *recorder, struct answer **out)
{
	return answer_new(out);
}

const struct wire_snapshot_reply *answer_snapshot(const struct answer *answer)
{
	return &answer->snapshot;
}

const struct wire_windows_reply *answer_windows(const struct answer *answer)
{
	return &answer->windows;
}

const struct wire_status_reply *answer_status(const struct answer *answer)
{
	return &answer->status;
}

const struct wire_probes_reply *answer_probes(const struct answer *answer)
{
	return &answer->probes;
}

const struct wire_sessions_reply *answer_sessions(const struct answer *answer)
{
	return &answer->sessions;
}

static int refuse_sessions(struct wire_error *error)
{
	*error = (struct wire_error){
		.code = ERROR_NOT_SUPPORTED,
		.what = strdup("sessions"),
		.limit = WIRE_ABSENT,
		.message = strdup("nothing is recorded here"),
	};
	return -EOPNOTSUPP;
}

int query_start(struct recorder *recorder, const struct query_peer *peer,
		const struct wire_start_request *request, struct answer **out,
		struct wire_error *error)
{
	return refuse_sessions(error);
}

int query_stop(struct recorder *recorder, const struct query_peer *peer,
	       const struct wire_stop_request *request, struct answer **out,
	       struct wire_error *error)
{
	return refuse_sessions(error);
}

int query_functions(struct recorder *recorder, const struct wire_functions_request *request,
		    struct answer **out, struct wire_error *error)
{
	return refuse_sessions(error);
}

const struct wire_functions_reply *answer_functions(const struct answer *answer)
{
	return NULL;
}

const struct wire_start_reply *answer_start(const struct answer *answer)
{
	return NULL;
}

const struct wire_stop_reply *answer_stop(const struct answer *answer)
{
	return NULL;
}

int answer_start_refresh(struct answer *answer)
{
	return 0;
}

int answer_start_calls(struct answer *answer, size_t *n_out)
{
	*n_out = 0;
	return 0;
}

bool answer_start_has_calls(struct answer *answer)
{
	return false;
}

void answer_start_end(struct answer *answer)
{
}

void answer_start_give_up(struct answer *answer)
{
}

void answer_start_told(struct answer *answer)
{
}

bool answer_start_runs(const struct answer *answer)
{
	return false;
}

int query_follow_new(struct recorder *recorder, const struct query_peer *peer,
		     const struct wire_follow_request *request, struct query_follow **out,
		     struct wire_error *error)
{
	return refuse_sessions(error);
}

int query_follow_next(struct query_follow *follow, struct answer **out, struct wire_error *error)
{
	return 0;
}

struct query_follow *query_follow_free(struct query_follow *follow)
{
	return NULL;
}
