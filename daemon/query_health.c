/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query_health.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/query_who.h"

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
		if (!list->windows[i]->lost[loss])
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
	int r = history_range(recorder->history, now - HEALTH_LOSS_NS, INT64_MAX, &list);

	if (r)
		return r;
	r = health_losses(arena, &list, now, problems, n);
	history_list_fini(&list);
	return r;
}

/* Healthy: everything enabled is on, the drain is on time, names can be had, nothing gets lost. */
int health_problems(struct recorder *recorder, struct arena *arena, const struct drain_stats *drain,
		    struct wire_strs *out)
{
	const char **problems = arena_array(arena, HEALTH_MAX_PROBLEMS, sizeof(*problems));
	int64_t late = 3 * recorder->config->window_length_ns;
	int kernel = resolver_kernel_status(recorder->resolver);
	struct probe_status status;
	size_t n = 0;
	int r;

	if (!problems)
		return -ENOMEM;
	probe_status(recorder->probe, &status);
	if (!status.is_on && !status.is_disabled)
		problems[n++] = arena_printf(arena, "the probe offcpu could not attach: %s",
					     status.reason ? status.reason : "unknown");
	if (recorder->drain && clock_ns(CLOCK_MONOTONIC) - drain->last_ns > late)
		problems[n++] = "the last cut is overdue: the drain does not keep up";
	if (kernel)
		problems[n++] = arena_printf(arena, "no kernel names: /proc/kallsyms: %s",
					     strerror(-kernel));
	r = recent_losses(recorder, arena, problems, &n);
	if (r)
		return r;
	*out = (struct wire_strs){ .v = problems, .n = n };
	return 0;
}
