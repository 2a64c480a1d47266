/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/health.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/query/moment.h"
#include "daemon/query/reach.h"
#include "daemon/store/store.h"

/* The losses of one probe for one reason, summed over several windows. */
struct recent_loss {
	uint64_t count;
	size_t windows;
	const struct window *newest;
};

static struct recent_loss loss_sum(const struct history_list *list, enum probe_kind kind,
				   unsigned int loss)
{
	struct recent_loss sum = {};
	size_t i;

	for (i = 0; i < list->n; i++) {
		const struct window *window = list->windows[i];

		if (window->session >= SESSION_FIRST_ID || window->kind != kind ||
		    !window->lost[loss])
			continue;
		sum.count += window->lost[loss];
		sum.windows++;
		sum.newest = window;
	}
	return sum;
}

static int loss_problem(struct arena *arena, const struct recent_loss *sum, unsigned int loss,
			int64_t now, const char **out)
{
	char when[MOMENT_TEXT];

	moment_text(sum->newest->start_ns + sum->newest->real_offset_ns, now, when);
	*out = arena_printf(arena,
			    "%s: %" PRIu64 " lost in %zu window%s of the last 10 minutes, the "
			    "newest %" PRIu64 " from %s: %s",
			    probe_kind_name(sum->newest->kind), sum->count, sum->windows,
			    sum->windows == 1 ? "" : "s", sum->newest->seq, when,
			    window_loss_name(loss));
	return *out ? 0 : -ENOMEM;
}

int health_losses(struct arena *arena, const struct history_list *list, int64_t now, bool is_hiding,
		  const char **problems, size_t *n)
{
	struct recent_loss sum;
	unsigned int kind, loss;

	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		for (loss = 0; loss < WINDOW_LOST_N; loss++) {
			sum = loss_sum(list, kind, loss);
			/*
			 * Operations that LOST_IO_PROCESS counts are not lost. They were counted in
			 * a row that several processes share, because the window had no room for
			 * more rows.
			 */
			if (!sum.count || loss == LOST_IO_PROCESS ||
			    (is_hiding && loss == LOST_IO_UNSEEN))
				continue;
			if (loss_problem(arena, &sum, loss, now, &problems[*n]))
				return -ENOMEM;
			(*n)++;
		}
	}
	return 0;
}

bool health_host_is_hiding(struct recorder *recorder)
{
	struct session *session = sessions_always(recorder->sessions, PROBE_OFFCPU);
	struct drain_stats stats;

	if (!session_is_on(session))
		return false;
	session_stats(session, &stats);
	return drain_hidden(&stats) > 0;
}

static int recent_losses(struct recorder *recorder, struct arena *arena, const char **problems,
			 size_t *n)
{
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct history_list list;
	int r = history_lossy(recorder->history, now - HEALTH_LOSS_NS, &list);

	if (r)
		return r;
	r = health_losses(arena, &list, now, health_host_is_hiding(recorder), problems, n);
	history_list_fini(&list);
	return r;
}

static void store_problems(struct recorder *recorder, struct arena *arena, const char **problems,
			   size_t *n)
{
	struct store_stats store;

	if (!recorder->store)
		return;
	store_stats(recorder->store, &store);
	if (store.problem[0])
		problems[(*n)++] = arena_strdup(arena, store.problem);
	if (store.dropped_queue + store.dropped_write)
		problems[(*n)++] = "some windows were not written to disk: see store";
	if (store.damaged && clock_ns(CLOCK_REALTIME) - store.damaged_ns < HEALTH_LOSS_NS)
		problems[(*n)++] = arena_printf(arena,
						"%" PRIu64 " rows of the database could not be "
						"read, the last in the last 10 minutes",
						store.damaged);
}

static int past_problems(struct recorder *recorder, const struct answer *answer,
			 const char **problems, size_t *n)
{
	static const struct wire_tiers none;
	const struct wire_store *store = answer->reply.status.store;
	struct history_stats history;

	if (recorder->is_serve_only)
		return 0;
	history_stats(recorder->history, &history);
	return reach_problems(answer->arena, &history, recorder->config,
			      store ? &store->tiers : &none, clock_ns(CLOCK_REALTIME), problems, n);
}

static void cut_problems(struct recorder *recorder, struct arena *arena, const char **problems,
			 size_t *n)
{
	int64_t due = clock_ns(CLOCK_MONOTONIC) - 3 * recorder->config->window_length_ns;
	struct drain_stats stats;
	unsigned int kind;

	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		struct session *session = sessions_always(recorder->sessions, kind);

		if (!session_is_on(session))
			continue;
		session_stats(session, &stats);
		if (stats.last_ns < due)
			problems[(*n)++] = arena_printf(arena,
							"the open window of %s is overdue: stackd "
							"does not keep up with its events",
							probe_kind_name(kind));
	}
}

int health_problems(struct recorder *recorder, const struct answer *answer, struct wire_strs *out)
{
	const char **problems = arena_array(answer->arena, HEALTH_MAX_PROBLEMS, sizeof(*problems));
	int kernel = recorder->resolver ? resolver_kernel_status(recorder->resolver) : 0;
	size_t n = 0, i;
	int r;

	if (!problems)
		return -ENOMEM;
	for (i = 0; i < answer->reply.status.probes.n; i++) {
		const struct wire_probe *probe = &answer->reply.status.probes.v[i];

		if (strcmp(probe->state, "failed") == 0)
			problems[n++] = arena_printf(
				answer->arena, "the probe %s could not attach: %s", probe->name,
				probe->reason ? probe->reason : "unknown");
	}
	cut_problems(recorder, answer->arena, problems, &n);
	if (kernel)
		problems[n++] = arena_printf(answer->arena,
					     "no names of kernel functions: /proc/kallsyms: %s",
					     strerror(-kernel));
	store_problems(recorder, answer->arena, problems, &n);
	r = past_problems(recorder, answer, problems, &n);
	if (!r)
		r = recent_losses(recorder, answer->arena, problems, &n);
	if (r)
		return r;
	for (i = 0; i < n; i++)
		if (!problems[i])
			return -ENOMEM;
	*out = (struct wire_strs){ .v = problems, .n = n };
	return 0;
}
