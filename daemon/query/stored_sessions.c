/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/stored_sessions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/query/session_request.h"
#include "daemon/store/store.h"
#include "proto/codec.h"

void query_stored_skip_numbers(struct recorder *recorder)
{
	struct store_stats stats;

	if (!recorder->store)
		return;
	store_stats(recorder->store, &stats);
	sessions_skip(recorder->sessions, stats.last_session);
}

int query_stored_note(struct recorder *recorder, struct session *session,
		      const struct wire_start_request *request)
{
	const struct session_info *info = session_info(session);
	struct store_session note = {
		.number = info->id,
		.name = info->name,
		.since_ns = info->since_real_ns,
		.uid = info->uid,
		.min_wait_ns = info->min_wait_ns,
		.period_ns = info->period_ns,
	};
	_cleanup_(text_fini) struct text text = {};
	int r;

	text_init(&text, SIZE_MAX);
	r = start_request_encode(request, 0, &text);
	if (r)
		return r;
	note.request = text.data;
	store_add_session(recorder->store, &note);
	return 0;
}

static int session_make(const struct store_session *stored, const struct wire_start_request *wire,
			struct session **out)
{
	struct session_request request;
	struct session_past past = {
		.request = &request,
		.id = stored->number,
		.run = stored->run,
		.since_real_ns = stored->since_ns,
		.ended_real_ns = stored->ended_ns,
		.min_wait_ns = stored->min_wait_ns,
		.period_ns = stored->period_ns,
	};
	_cleanup_(wire_error_clear) struct wire_error error = {};
	int r = query_request(stored->uid, wire, &request, &error);

	if (r)
		return r;
	return session_new_past(&past, out, &error);
}

/*
 * Makes a session object from a session in the store, which has the parameters of the Start request
 * as JSON.
 */
static int session_decode(const struct store_session *stored, struct session **out)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	struct wire_start_request wire;
	int r;

	if (!arena)
		return -ENOMEM;
	r = varlink_call_parse(stored->request, strlen(stored->request), &message);
	if (r)
		return r;
	r = start_request_decode(message, arena, &wire, NULL);
	if (r)
		return r;
	return session_make(stored, &wire, out);
}

static int past_find(struct recorder *recorder, struct answer *answer, const char *text,
		     struct session **out)
{
	struct store_reader *reader = answer_reader(answer, recorder->store);
	struct store_session stored;
	uint64_t number;
	char *end;
	int r;

	if (!reader)
		return -ENOENT;
	errno = 0;
	number = strtoull(text, &end, 10);
	if (*end || errno || number > INT64_MAX || (text[0] && !number))
		number = 0;
	r = store_reader_session(reader, number, text, &stored);
	if (r)
		return r;
	r = stored.ended_ns == INT64_MIN ? -ENOENT : session_decode(&stored, out);
	store_session_fini(&stored);
	return r;
}

int query_session_find(struct recorder *recorder, struct answer *answer, const char *text,
		       struct wire_error *error)
{
	int r = 0;

	answer->session = sessions_find(recorder->sessions, text);
	if (!answer->session)
		r = past_find(recorder, answer, text, &answer->session);
	if (r == -ENOMEM)
		return r;
	return r ? query_unknown_session(text, error) : 0;
}

/*
 * Argument of is_known(): the sessions of the run `run` of stackd that are in the list already.
 * Sessions of different runs may have the same number.
 */
struct known {
	struct session *const *sessions;
	size_t n;
	uint64_t run;
};

static bool is_known(void *userdata, const struct store_session *session)
{
	const struct known *known = userdata;
	size_t i;

	for (i = 0; i < known->n && session->run == known->run; i++)
		if (session_info(known->sessions[i])->id == session->number)
			return true;
	return false;
}

int query_stored_list(struct recorder *recorder, struct answer *answer, struct session *const *own,
		      size_t n_own, struct session ***list_out, size_t *n_out)
{
	struct known known = { own, n_own, store_current_run(recorder->store) };
	struct store_reader *reader = answer_reader(answer, recorder->store);
	_cleanup_(freep) struct store_session *stored =
		calloc(QUERY_STORED_MAX, sizeof(struct store_session));
	struct session **list = calloc(QUERY_STORED_MAX, sizeof(struct session *));
	size_t n = 0;
	int i, found;

	if (!stored || !list) {
		free(list);
		return -ENOMEM;
	}
	found = reader ? store_reader_sessions(reader, is_known, &known, stored, QUERY_STORED_MAX)
		       : 0;
	for (i = found; i-- > 0;) {
		n += session_decode(&stored[i], &list[n]) == 0;
		store_session_fini(&stored[i]);
	}
	*list_out = list;
	*n_out = n;
	return 0;
}

void query_stored_losses(struct answer *answer, const struct session_info *info, uint64_t *lost)
{
	struct store_select select = { .run = info->run, .session = info->id };
	struct store_entry *entries;
	unsigned int k;
	size_t n, i;

	if (store_reader_list(answer->reader, &select, INT64_MIN, INT64_MAX, STORE_LIST_MAX,
			      &entries, &n))
		return;
	for (i = 0; i < n; i++)
		for (k = 0; k < WINDOW_LOST_N; k++)
			lost[k] += entries[i].lost[k];
	free(entries);
}
