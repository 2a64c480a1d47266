/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/base/real_offset.h"
#include "daemon/drain/call_stream.h"
#include "daemon/query/answer.h"
#include "daemon/query/session_request.h"
#include "daemon/query/stored_sessions.h"
#include "daemon/session/recorder.h"
#include "daemon/store/store.h"
#include "proto/varlink.h"

/*
 * Function calls on different CPUs may arrive out of order. A call is sent only when it is older
 * than this: by then, all earlier calls have arrived.
 */
#define SETTLE_NS (20 * NS_PER_MS)

/*
 * Sets answer->sessions to the always-on sessions, then the stored ones, then the sessions that
 * clients started in this run of stackd.
 */
static int all_list(struct recorder *recorder, struct answer *answer)
{
	struct session **past, **own, **all;
	size_t n_past, n_own, i, always = 0;
	int r = sessions_list(recorder->sessions, &own, &n_own);

	if (r)
		return r;
	r = query_stored_list(recorder, answer, own, n_own, &past, &n_past);
	all = r ? NULL : calloc(n_own + n_past + 1, sizeof(struct session *));
	if (!all) {
		sessions_list_free(own, n_own);
		if (!r)
			sessions_list_free(past, n_past);
		return -ENOMEM;
	}
	while (always < n_own && session_info(own[always])->is_always)
		always++;
	for (i = 0; i < n_own + n_past; i++)
		all[i] = i < always	       ? own[i]
			 : i < always + n_past ? past[i - always]
					       : own[i - n_past];
	free(own);
	free(past);
	answer->sessions = all;
	answer->n_sessions = n_own + n_past;
	return 0;
}

/*
 * Describes a session that only the store has. The number of its events is not known any more; its
 * losses are summed up from its windows on disk.
 */
static int past_wire(struct answer *answer, struct session *session, struct wire_session *out)
{
	uint64_t lost[WINDOW_LOST_N] = {};
	int r = answer_session(answer->arena, session, out);

	if (r)
		return r;
	out->count = WIRE_ABSENT;
	query_stored_losses(answer, session_info(session), lost);
	return answer_losses(answer->arena, lost, &out->lost);
}

int query_sessions(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	struct wire_session *sessions;
	size_t i;
	int r;

	if (!answer)
		return -ENOMEM;
	r = all_list(recorder, answer);
	if (r)
		return r;
	sessions = arena_array(answer->arena, answer->n_sessions + 1, sizeof(*sessions));
	if (!sessions)
		return -ENOMEM;
	for (i = 0; i < answer->n_sessions && !r; i++) {
		struct session *session = answer->sessions[i];

		if (session_info(session)->run)
			r = past_wire(answer, session, &sessions[i]);
		else
			r = answer_session(answer->arena, session, &sessions[i]);
	}
	if (r)
		return r;
	store_reader_rest(answer->reader);
	answer->reply.sessions.sessions.v = sessions;
	answer->reply.sessions.sessions.n = answer->n_sessions;
	*out = TAKE(answer);
	return 0;
}

int query_start(struct recorder *recorder, const struct query_peer *peer, const void *params,
		struct answer **out, struct wire_error *error)
{
	const struct wire_start_request *wire = params;
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	struct session_request request;
	int r = query_request(peer->uid, wire, &request, error);

	if (!answer)
		return -ENOMEM;
	if (!r && recorder->is_serve_only)
		r = wire_error_set(error, -ENOTSUP, ERROR_NOT_SUPPORTED, wire->probe, "%s",
				   recorder_serves_only);
	query_stored_skip_numbers(recorder);
	if (r)
		return r;
	r = sessions_start(recorder->sessions, &request, &answer->session, error);
	if (r)
		return r;
	answer->reply.start.missed = WIRE_ABSENT;
	answer->kernel_addresses = peer->is_root;
	r = query_stored_note(recorder, answer->session, wire);
	if (r)
		return r;
	r = answer_session(answer->arena, answer->session, &answer->reply.start.session);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}

int answer_start_refresh(struct answer *answer)
{
	return answer_session(answer->step, answer->session, &answer->reply.start.session);
}

bool answer_start_has_calls(struct answer *answer)
{
	struct call_stream *calls = session_calls(answer->session);

	return calls && answer->position < call_stream_position(calls);
}

int answer_start_calls(struct answer *answer, size_t *n_out)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	struct call_stream *calls = session_calls(answer->session);
	struct wire_start_reply *reply = &answer->reply.start;
	size_t i;
	int r;

	*n_out = 0;
	reply->calls = (struct wire_calls){};
	answer_step_fini(answer);
	answer->step = arena_new();
	if (!answer->step)
		return -ENOMEM;
	if (!calls)
		return 0;
	real_offset_renew(&answer->real_offset_ns);
	answer->n_taken = call_stream_take(calls, &answer->position, now - SETTLE_NS, answer->taken,
					   CALLS_A_REPLY, &answer->missed);
	for (i = 0; i < answer->n_taken; i++)
		answer->taken[i].time_ns += answer->real_offset_ns;
	r = answer_calls(answer->step, answer->taken, answer->n_taken, answer->kernel_addresses,
			 &reply->calls);
	if (r)
		reply->calls = (struct wire_calls){};
	reply->missed = answer->missed ? (int64_t)answer->missed : WIRE_ABSENT;
	*n_out = answer->n_taken;
	return r;
}

void answer_start_clear_missed(struct answer *answer)
{
	answer->missed = 0;
}

bool answer_start_runs(const struct answer *answer)
{
	return session_ended(answer->session) == INT64_MAX;
}

void answer_start_end(struct answer *answer)
{
	session_stop(answer->session);
}

void answer_start_give_up(struct answer *answer)
{
	session_stop_untold(answer->session);
}

static int stop_refused(const struct session_info *info, struct wire_error *error)
{
	if (info->is_always)
		return wire_error_set(error, -EPERM, ERROR_NOT_SUPPORTED, info->id_text,
				      "%s is always on: [probe.%s] enabled = no turns it off",
				      info->id_text, info->id_text);
	return wire_error_set(error, -EPERM, ERROR_PERMISSION_DENIED, "root",
			      "session %s is of uid %u", info->id_text, (unsigned int)info->uid);
}

static int stop(struct session *session, const struct query_peer *peer, struct wire_error *error)
{
	const struct session_info *info = session_info(session);
	int r;

	if (info->is_always || (!peer->is_root && peer->uid != info->uid))
		return stop_refused(info, error);
	r = session_stop(session);
	if (r == -EALREADY)
		return wire_error_set(error, r, ERROR_UNKNOWN_SESSION, info->id_text,
				      "session %s has ended already", info->id_text);
	return r;
}

int query_stop(struct recorder *recorder, const struct query_peer *peer, const void *params,
	       struct answer **out, struct wire_error *error)
{
	const struct wire_stop_request *request = params;
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	int r;

	if (!answer)
		return -ENOMEM;
	r = query_session_find(recorder, answer, request->session, error);
	if (r)
		return r;
	r = stop(answer->session, peer, error);
	if (r)
		return r;
	r = answer_session(answer->arena, answer->session, &answer->reply.stop.session);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}
