/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/base/thread.h"
#include "daemon/drain/tick.h"
#include "daemon/probe/kernel_btf.h"

/* Maximum number of ended sessions that are kept in the list, so that clients can query their
 * windows by the session's name. */
enum { ENDED_MAX = 64 };

struct sessions {
	struct sessions_options options;
	uint64_t hash_seed; /* seed for the ids of stacks; shared, so that a stack has the same id
			       in all probes */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	bool is_stopping;
	struct session *always[PROBE_KIND_N];
	struct session **list; /* sessions that clients started, oldest first */
	size_t n;
	size_t capacity;
	/*
	 * number of sessions that are being started: they count against the limit of sessions, but
	 * are not in the list yet
	 */
	size_t starting;
	uint64_t next_id;
	uint64_t refused;
};

static bool session_runs(struct session *session)
{
	return session_ended(session) == INT64_MAX;
}

/* True if a session takes more CPU than its budget, although it already records as small a share of
 * its events as it can. */
static bool session_is_over(struct session *session)
{
	struct drain_stats stats;

	if (!probe_kind_has(session->info.kind, PROBE_FUNCTIONS))
		return false;
	session_stats(session, &stats);
	return stats.is_over;
}

/*
 * Returns a reference to a session that has to end now. If there is none, returns NULL, and makes
 * sure that *next_out is not later than the time at which the first session has to end.
 */
static struct session *session_due(struct sessions *sessions, int64_t now, int64_t *next_out)
{
	struct session *session;
	size_t i;

	for (i = 0; i < sessions->n; i++) {
		session = sessions->list[i];
		if (!session_runs(session))
			continue;
		if (session_is_over(session))
			return session_ref(session);
		if (session->due_ns <= now)
			return session_ref(session);
		if (session->due_ns < *next_out)
			*next_out = session->due_ns;
	}
	return NULL;
}

static void *sessions_run(void *data)
{
	struct sessions *sessions = data;
	struct session *session;
	int64_t next;

	pthread_mutex_lock(&sessions->lock);
	while (!sessions->is_stopping) {
		next = clock_ns(CLOCK_MONOTONIC) + NS_PER_S;
		session = session_due(sessions, clock_ns(CLOCK_MONOTONIC), &next);
		if (session) {
			pthread_mutex_unlock(&sessions->lock);
			if (session_is_over(session))
				session_stop_over(session,
						  sessions->options.config->stackcount_max_cpu);
			else
				session_stop(session);
			session_unref(session);
			pthread_mutex_lock(&sessions->lock);
			continue;
		}
		thread_wait_until(&sessions->changed, &sessions->lock, next);
	}
	pthread_mutex_unlock(&sessions->lock);
	return NULL;
}

int sessions_new(const struct sessions_options *options, struct sessions **out)
{
	struct sessions *sessions = calloc(1, sizeof(*sessions));
	int r;

	if (!sessions)
		return -ENOMEM;
	sessions->options = *options;
	sessions->next_id = SESSION_FIRST_ID;
	pthread_mutex_init(&sessions->lock, NULL);
	pthread_cond_init(&sessions->changed, NULL);
	if (getrandom(&sessions->hash_seed, sizeof(sessions->hash_seed), 0) !=
	    sizeof(sessions->hash_seed)) {
		r = -errno;
		sessions_free(sessions);
		return r;
	}
	r = tick_start(&sessions->options.tick);
	if (!r)
		r = thread_start(&sessions->thread, "sessions", sessions_run, sessions);
	if (r) {
		sessions_free(sessions);
		return r;
	}
	sessions->has_thread = true;
	*out = sessions;
	return 0;
}

void sessions_end(struct sessions *sessions)
{
	size_t i;

	if (!sessions || !sessions->has_thread)
		return;
	/* From now on, no session can be started: the list stays as it is. */
	pthread_mutex_lock(&sessions->lock);
	sessions->is_stopping = true;
	pthread_cond_signal(&sessions->changed);
	pthread_mutex_unlock(&sessions->lock);
	pthread_join(sessions->thread, NULL);
	sessions->has_thread = false;
	for (i = 0; i < PROBE_KIND_N; i++)
		session_end_always(sessions->always[i]);
	for (i = 0; i < sessions->n; i++)
		session_stop(sessions->list[i]);
}

struct sessions *sessions_free(struct sessions *sessions)
{
	size_t i;

	if (!sessions)
		return NULL;
	sessions_end(sessions);
	for (i = 0; i < sessions->n; i++)
		session_unref(sessions->list[i]);
	for (i = 0; i < PROBE_KIND_N; i++)
		session_unref(sessions->always[i]);
	tick_stop(sessions->options.tick);
	free(sessions->list);
	pthread_cond_destroy(&sessions->changed);
	pthread_mutex_destroy(&sessions->lock);
	free(sessions);
	return NULL;
}

static bool has_cycles(const char *event)
{
	return strcmp(event, "cycles") == 0;
}

/*
 * True if an always-on session reports fork, exec and exit, so that no other session has to.
 * Considers only kinds of probe that come before `end` in the enum.
 */
static bool processes_are_followed(const struct sessions *sessions, enum probe_kind end)
{
	enum probe_kind kind;

	for (kind = 0; kind < end; kind++)
		if (probe_kind_has(kind, PROBE_FOLLOWS) && session_is_on(sessions->always[kind]))
			return true;
	return false;
}

/* True if no session of a kind that comes before `end` in the enum is always on. */
static bool is_first(const struct sessions *sessions, enum probe_kind end)
{
	enum probe_kind kind;

	for (kind = 0; kind < end; kind++)
		if (session_is_on(sessions->always[kind]))
			return false;
	return true;
}

static int always_start(struct sessions *sessions, enum probe_kind kind, char *reason, size_t size)
{
	const struct config *config = sessions->options.config;
	struct session_request request = { .kind = kind };
	struct session *session;
	struct wire_error error;
	int r = session_new(&request, (uint64_t)kind + 1, &session, &error);

	if (r)
		return r;
	session->hash_seed = sessions->hash_seed;
	session->info.min_wait_ns = probe_min_wait(kind, config);
	session->info.period_ns = NS_PER_S / config->oncpu_frequency;
	session->info.with_cycles = has_cycles(config->oncpu_event);
	session->info.until_real_ns = INT64_MAX;
	session->notes_processes = !processes_are_followed(sessions, kind);
	session->reads_units = is_first(sessions, kind);
	sessions->always[kind] = session;
	return session_begin(session, &sessions->options, reason, size);
}

int sessions_start_always(struct sessions *sessions, char *reason, size_t size)
{
	enum probe_kind kind;
	int r = 0;

	kernel_btf_hold();
	for (kind = 0; kind < PROBE_KIND_N && !r; kind++)
		r = always_start(sessions, kind, reason, size);
	kernel_btf_release();
	return r;
}

/* Drops the oldest ended session from the list if the list has more than ENDED_MAX ended sessions.
 * The caller holds the lock. */
static void ended_forget(struct sessions *sessions)
{
	size_t i, ended = 0, first = 0;

	for (i = sessions->n; i-- > 0;) {
		if (session_runs(sessions->list[i]))
			continue;
		ended++;
		first = i;
	}
	if (ended <= ENDED_MAX)
		return;
	session_unref(sessions->list[first]);
	sessions->n--;
	memmove(sessions->list + first, sessions->list + first + 1,
		(sessions->n - first) * sizeof(struct session *));
}

static size_t sessions_running(const struct sessions *sessions)
{
	size_t i, n = sessions->starting;

	for (i = 0; i < sessions->n; i++)
		n += session_runs(sessions->list[i]);
	return n;
}

/* Counts a new session against the limit of sessions and gives it an id. Called before the session
 * opens anything in the kernel. */
static int slot_reserve(struct sessions *sessions, uint64_t *id_out, struct wire_error *error)
{
	uint64_t max = sessions->options.config->control_max_sessions;
	int r = 0;

	pthread_mutex_lock(&sessions->lock);
	if (sessions_running(sessions) >= max) {
		sessions->refused++;
		r = -EUSERS;
	} else {
		sessions->starting++;
		*id_out = sessions->next_id++;
	}
	pthread_mutex_unlock(&sessions->lock);
	if (!r)
		return 0;
	wire_error_set(error, r, ERROR_TOO_MANY_SESSIONS, NULL,
		       "%" PRIu64 " sessions run already, which is [control] max_sessions: stop "
		       "one (stackctl sessions)",
		       max);
	error->limit = (int64_t)max;
	return r;
}

/*
 * Called when the start of a session is finished. Adds the session to the list. If `session` is
 * NULL, the start has failed, and the session no longer counts against the limit.
 */
static int slot_settle(struct sessions *sessions, struct session *session)
{
	int r = 0;

	pthread_mutex_lock(&sessions->lock);
	sessions->starting--;
	if (session && sessions->is_stopping) {
		r = -ESHUTDOWN;
	} else if (session) {
		ended_forget(sessions);
		r = array_reserve(sessions->list, sessions->capacity, sessions->n + 1);
		if (!r)
			sessions->list[sessions->n++] = session_ref(session);
		pthread_cond_signal(&sessions->changed);
	}
	pthread_mutex_unlock(&sessions->lock);
	return r;
}

/* Sets the minimum wait, the sampling period and the call rate of a client's session. Takes them
 * from the request or, if it does not give them, from the settings. */
static void info_fill(const struct sessions *sessions, const struct session_request *request,
		      struct session *session)
{
	const struct config *config = sessions->options.config;
	struct session_info *info = &session->info;

	info->min_wait_ns = session->filter.min_ns ? session->filter.min_ns
						   : probe_min_wait(info->kind, config);
	if (probe_kind_has(info->kind, PROBE_STREAMS))
		info->rate = request->rate ? request->rate : config->stacksnoop_rate;
	if (!probe_kind_has(info->kind, PROBE_SAMPLES))
		return;
	info->period_ns = request->period_ns
				  ? request->period_ns
				  : NS_PER_S / (request->frequency_hz ? request->frequency_hz
								      : config->oncpu_frequency);
	/* A requested period is a time in ns, which excludes sampling by CPU cycles. */
	info->with_cycles = request->event ? has_cycles(request->event)
					   : !request->period_ns && has_cycles(config->oncpu_event);
}

static int attach_failed(const struct session *session, int r, const char *reason,
			 struct wire_error *error)
{
	const char *name = probe_kind_name(session->info.kind);

	if (!r && session->status.reason)
		reason = session->status.reason;
	return wire_error_set(error, -EIO, ERROR_ATTACH_FAILED, name,
			      "the probe %s could not attach: %s", name,
			      reason[0] ? reason : strerror(-r));
}

static int session_open(struct sessions *sessions, const struct session_request *request,
			uint64_t id, struct session **out, struct wire_error *error)
{
	_cleanup_(session_unrefp) struct session *session = NULL;
	char reason[512] = "";
	int r = session_new(request, id, &session, error);

	if (r)
		return r;
	session->hash_seed = sessions->hash_seed;
	session->notes_processes = !processes_are_followed(sessions, PROBE_KIND_N);
	info_fill(sessions, request, session);
	r = session_check(session, request, error);
	if (r)
		return r;
	r = session_targets(session, request, &sessions->options, error);
	if (r)
		return r;
	r = session_begin(session, &sessions->options, reason, sizeof(reason));
	if (r == -ENOMEM)
		return r;
	if (r || !session_is_on(session))
		return attach_failed(session, r, reason, error);
	session->info.until_real_ns = request->duration_ns
					      ? session->info.since_real_ns + request->duration_ns
					      : INT64_MAX;
	if (request->duration_ns)
		session->due_ns = clock_ns(CLOCK_MONOTONIC) + request->duration_ns -
				  (clock_ns(CLOCK_REALTIME) - session->info.since_real_ns);
	*out = TAKE(session);
	return 0;
}

int sessions_start(struct sessions *sessions, const struct session_request *request,
		   struct session **out, struct wire_error *error)
{
	_cleanup_(session_unrefp) struct session *session = NULL;
	uint64_t id;
	int r = slot_reserve(sessions, &id, error);

	if (r)
		return r;
	r = session_open(sessions, request, id, &session, error);
	if (r) {
		slot_settle(sessions, NULL);
		return r;
	}
	r = slot_settle(sessions, session);
	if (r == -ESHUTDOWN)
		return attach_failed(session, r, "stackd is stopping", error);
	if (r)
		return r;
	log_info("session %s, started by uid %u: %s%s%s", session->info.id_text, request->uid,
		 probe_kind_name(request->kind), request->name ? ", " : "",
		 request->name ? request->name : "");
	*out = TAKE(session);
	return 0;
}

void sessions_skip(struct sessions *sessions, uint64_t id)
{
	pthread_mutex_lock(&sessions->lock);
	if (sessions->next_id <= id)
		sessions->next_id = id + 1;
	pthread_mutex_unlock(&sessions->lock);
}

static bool session_is_called(const struct session *session, const char *text)
{
	return strcmp(session->info.id_text, text) == 0 ||
	       (session->info.name && strcmp(session->info.name, text) == 0);
}

struct session *sessions_find(struct sessions *sessions, const char *text)
{
	struct session *found = NULL, *session;
	size_t i;

	/* If several sessions have the name, prefer the newest running one, else the newest one. */
	pthread_mutex_lock(&sessions->lock);
	for (i = 0; i < PROBE_KIND_N && !found; i++)
		if (strcmp(sessions->always[i]->info.id_text, text) == 0)
			found = sessions->always[i];
	for (i = sessions->n; i-- > 0;) {
		session = sessions->list[i];
		if (session_is_called(session, text) &&
		    (!found || (!session_runs(found) && session_runs(session))))
			found = session;
	}
	if (found)
		session_ref(found);
	pthread_mutex_unlock(&sessions->lock);
	return found;
}

struct session *sessions_always(struct sessions *sessions, enum probe_kind kind)
{
	return sessions->always[kind];
}

int sessions_list(struct sessions *sessions, struct session ***list_out, size_t *n_out)
{
	struct session **list;
	size_t n = 0, i;

	pthread_mutex_lock(&sessions->lock);
	list = calloc(sessions->n + PROBE_KIND_N, sizeof(struct session *));
	for (i = 0; list && i < PROBE_KIND_N; i++)
		if (session_is_on(sessions->always[i]))
			list[n++] = session_ref(sessions->always[i]);
	for (i = 0; list && i < sessions->n; i++)
		list[n++] = session_ref(sessions->list[i]);
	pthread_mutex_unlock(&sessions->lock);
	if (!list)
		return -ENOMEM;
	*list_out = list;
	*n_out = n;
	return 0;
}

void sessions_list_free(struct session **list, size_t n)
{
	while (n > 0)
		session_unref(list[--n]);
	free(list);
}

void sessions_follow_groups(struct sessions *sessions)
{
	struct session **list;
	size_t n, i;

	if (sessions_list(sessions, &list, &n))
		return;
	for (i = 0; i < n; i++)
		session_follow_groups(list[i]);
	sessions_list_free(list, n);
}

int sessions_catch_up(struct sessions *sessions, int64_t timeout_ns)
{
	struct session **list;
	size_t n, i;
	int r = sessions_list(sessions, &list, &n);

	if (r)
		return r;
	for (i = 0; i < n && !r; i++)
		r = session_catch_up(list[i], timeout_ns);
	sessions_list_free(list, n);
	return r;
}

void sessions_count(struct sessions *sessions, size_t *running_out, uint64_t *refused_out)
{
	pthread_mutex_lock(&sessions->lock);
	*running_out = sessions_running(sessions);
	*refused_out = sessions->refused;
	pthread_mutex_unlock(&sessions->lock);
}

int64_t sessions_last_drained_ns(struct sessions *sessions)
{
	struct drain_stats stats;
	int64_t last = INT64_MAX;
	size_t i;

	for (i = 0; i < PROBE_KIND_N; i++) {
		if (!session_is_on(sessions->always[i]))
			continue;
		session_stats(sessions->always[i], &stats);
		if (stats.last_ns < last)
			last = stats.last_ns;
	}
	return last;
}

int64_t sessions_built_ns(struct sessions *sessions)
{
	struct drain_stats stats;
	struct session **list;
	int64_t built = INT64_MAX, cut;
	size_t n, i;

	if (sessions_list(sessions, &list, &n))
		return 0;
	for (i = 0; i < n; i++) {
		if (!session_runs(list[i]))
			continue;
		session_stats(list[i], &stats);
		cut = stats.last_ns - stats.cut_ns; /* the time at which the last cut began */
		if (cut < built)
			built = cut;
	}
	sessions_list_free(list, n);
	return built;
}
