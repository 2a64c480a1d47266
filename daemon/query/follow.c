/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/duration.h"
#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"

#define MIN_INTERVAL_NS (500 * NS_PER_MS)
#define MAX_INTERVAL_NS (86400 * NS_PER_S)

struct query_follow {
	struct recorder *recorder;
	struct query_peer peer;
	/* its strings are borrowed from the client's request */
	struct wire_snapshot_request request;
	int64_t interval_ns;
	int64_t due_ns; /* when the next answer is due, on CLOCK_MONOTONIC */
	int64_t from;	/* end of the last window that was reported, ns since the epoch */
};

struct query_follow *query_follow_free(struct query_follow *follow)
{
	free(follow);
	return NULL;
}

static int interval_check(const struct wire_follow_request *request, struct wire_error *error)
{
	char asked[DURATION_TEXT_MAX], least[DURATION_TEXT_MAX], most[DURATION_TEXT_MAX];

	if (request->interval_ns == WIRE_ABSENT ||
	    (request->interval_ns >= MIN_INTERVAL_NS && request->interval_ns <= MAX_INTERVAL_NS))
		return 0;
	duration_format(request->interval_ns, asked);
	duration_format(MIN_INTERVAL_NS, least);
	duration_format(MAX_INTERVAL_NS, most);
	return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "interval_ns",
			      "an answer every %s: from %s to %s", asked, least, most);
}

/*
 * Parses a cursor, by which a client says where its last answer ended: a time in ns since the
 * epoch, which is valid for every session and every run of stackd.
 */
static int cursor_parse(const char *text, int64_t *out, struct wire_error *error)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (errno == 0 && end != text && *end == '\0' && value > 0) {
		*out = value;
		return 0;
	}
	return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "cursor",
			      "%.40s is no cursor of an answer", text);
}

int query_follow_new(struct recorder *recorder, const struct query_peer *peer,
		     const struct wire_follow_request *request, struct query_follow **out,
		     struct wire_error *error)
{
	int64_t from = clock_ns(CLOCK_REALTIME);
	struct query_follow *follow;
	int r = interval_check(request, error);

	if (r)
		return r;
	/* Without a cursor, the stream begins now, and there would never be an answer. */
	if (recorder->is_serve_only && !request->cursor)
		return wire_error_set(error, -ENOTSUP, ERROR_NOT_SUPPORTED, "Follow", "%s",
				      recorder_serves_only);
	if (request->cursor) {
		r = cursor_parse(request->cursor, &from, error);
		if (r)
			return r;
	}
	follow = calloc(1, sizeof(*follow));
	if (!follow)
		return -ENOMEM;
	follow->recorder = recorder;
	follow->peer = *peer;
	follow->peer.is_stream = true;
	follow->from = from;
	follow->interval_ns = request->interval_ns == WIRE_ABSENT
				      ? recorder->config->window_length_ns
				      : request->interval_ns;
	follow->due_ns = clock_ns(CLOCK_MONOTONIC) + (request->cursor ? 0 : follow->interval_ns);
	/* Each answer sets since_ns. */
	follow->request = wire_snapshot_request_absent();
	follow->request.probe = request->probe;
	follow->request.session = request->session;
	follow->request.filter = request->filter;
	follow->request.by = request->by;
	follow->request.sort = request->sort;
	follow->request.top = request->top;
	follow->request.idle = request->idle;
	follow->request.addresses = request->addresses;
	follow->request.fold_own = request->fold_own;
	follow->request.groups = request->groups;
	*out = follow;
	return 0;
}

/* True if a query failed because there is no window yet; there may be one in the next interval. */
static bool is_empty(const struct wire_error *error)
{
	return error->code == ERROR_NO_DATA;
}

static int session_over(const char *name, struct wire_error *error)
{
	return wire_error_set(error, -ENOENT, ERROR_UNKNOWN_SESSION, name,
			      "session %.40s has ended", name);
}

/*
 * Fails if the followed session is unknown, or if it has ended and all of its windows were
 * reported. Otherwise returns 0 and sets *has_ended_out to whether the session has ended.
 */
static int follow_end(const struct query_follow *follow, bool *has_ended_out,
		      struct wire_error *error)
{
	const char *name = follow->request.session;
	struct session *session = name ? sessions_find(follow->recorder->sessions, name) : NULL;
	int64_t ended = session ? session_ended(session) : INT64_MAX;

	if (name && !session)
		return wire_error_set(error, -ENOENT, ERROR_UNKNOWN_SESSION, name,
				      "no session %.40s is running; stackctl sessions lists them",
				      name);
	session_unref(session);
	*has_ended_out = ended != INT64_MAX;
	return follow->from < ended ? 0 : session_over(name, error);
}

/*
 * Handles an interval without a new window; clears the *error of the query. If the session has
 * ended, returns an error, which ends the stream: a query waits until the session's last window is
 * finished, so no window can follow. Otherwise returns 0.
 */
static int follow_nothing(const struct query_follow *follow, bool has_ended,
			  struct wire_error *error)
{
	wire_error_clear(error);
	return has_ended ? session_over(follow->request.session, error) : 0;
}

bool query_follow_is_due(const struct query_follow *follow)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	bool has_ended;
	int r;

	if (clock_ns(CLOCK_MONOTONIC) >= follow->due_ns)
		return true;
	r = follow_end(follow, &has_ended, &error);
	wire_error_clear(&error);
	return r != 0;
}

int query_follow_next(struct query_follow *follow, struct answer **out, struct wire_error *error)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	struct answer *answer;
	bool has_ended = false;
	int r = follow_end(follow, &has_ended, error);

	if (r || now < follow->due_ns)
		return r;
	follow->due_ns = now + follow->interval_ns;
	/*
	 * After the clock was set back, new windows have times that were reported before. Begin one
	 * interval before now, so that they are reported nevertheless.
	 */
	if (follow->from > clock_ns(CLOCK_REALTIME))
		follow->from = clock_ns(CLOCK_REALTIME) - follow->interval_ns;
	follow->request.since_ns = follow->from;
	r = query_snapshot(follow->recorder, &follow->peer, &follow->request, &answer, error);
	if (is_empty(error))
		return follow_nothing(follow, has_ended, error);
	if (r)
		return r;
	if (answer->reply.snapshot.coverage.used.end <= follow->from) {
		answer_free(answer);
		return follow_nothing(follow, has_ended, error);
	}
	follow->from = answer->reply.snapshot.coverage.used.end;
	answer->reply.snapshot.cursor = arena_printf(answer->arena, "%" PRId64, follow->from);
	if (!answer->reply.snapshot.cursor) {
		answer_free(answer);
		return -ENOMEM;
	}
	*out = answer;
	return 1;
}
