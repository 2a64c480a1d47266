/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query_health.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/query_who.h"
#include "daemon/store.h"

/* Of one reason, over some windows. */
struct recent_loss {
	uint64_t count;
	size_t windows;
	const struct window *newest;
};

static struct recent_loss loss_sum(const struct history_list *list, unsigned int loss)
{
	struct recent_loss sum = {};
	size_t i;

	for (i = 0; i < list->n; i++) {
		if (list->windows[i]->session >= SESSION_FIRST_ID || !list->windows[i]->lost[loss])
			continue;
		sum.count += list->windows[i]->lost[loss];
		sum.windows++;
		sum.newest = list->windows[i];
	}
	return sum;
}

int health_losses(struct arena *arena, const struct history_list *list, int64_t now,
		  const char **problems, size_t *n)
{
	char when[MOMENT_TEXT];
	struct recent_loss sum;
	unsigned int loss;

	for (loss = 0; loss < WINDOW_LOST_N; loss++) {
		sum = loss_sum(list, loss);
		if (!sum.count)
			continue;
		moment_text(sum.newest->start_ns + sum.newest->real_offset_ns, now, when);
		problems[*n] = arena_printf(arena,
					    "%" PRIu64 " lost in %zu of the last 10 minutes' "
					    "windows, the newest %" PRIu64 " from %s: %s",
					    sum.count, sum.windows, sum.newest->seq, when,
					    window_loss_name(loss));
		if (!problems[(*n)++])
			return -ENOMEM;
	}
	return 0;
}

static int recent_losses(struct recorder *recorder, struct arena *arena, const char **problems,
			 size_t *n)
{
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct history_list list;
	int r = history_range(recorder->history, 0, now - HEALTH_LOSS_NS, INT64_MAX, &list);

	if (r)
		return r;
	r = health_losses(arena, &list, now, problems, n);
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
		problems[(*n)++] = "windows did not get to disk, see store";
}

/* Healthy: everything enabled is on, the drains are on time, names can be had, nothing gets lost. */
int health_problems(struct recorder *recorder, const struct answer *answer, struct wire_strs *out)
{
	const char **problems = arena_array(answer->arena, HEALTH_MAX_PROBLEMS, sizeof(*problems));
	int64_t late = 3 * recorder->config->window_length_ns;
	int kernel = recorder->resolver ? resolver_kernel_status(recorder->resolver) : 0;
	size_t n = 0, i;
	int r;

	if (!problems)
		return -ENOMEM;
	for (i = 0; i < answer->status.probes.n; i++) {
		const struct wire_probe *probe = &answer->status.probes.v[i];

		if (strcmp(probe->state, "failed") == 0)
			problems[n++] = arena_printf(answer->arena,
						     "the probe %s could not attach: %s",
						     probe->name,
						     probe->reason ? probe->reason : "unknown");
	}
	if (clock_ns(CLOCK_MONOTONIC) - late > sessions_last_drained_ns(recorder->sessions))
		problems[n++] = "the last cut is overdue: the drain does not keep up";
	if (kernel)
		problems[n++] = arena_printf(answer->arena, "no kernel names: /proc/kallsyms: %s",
					     strerror(-kernel));
	store_problems(recorder, answer->arena, problems, &n);
	r = recent_losses(recorder, answer->arena, problems, &n);
	if (r)
		return r;
	*out = (struct wire_strs){ .v = problems, .n = n };
	return 0;
}
