/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/reach.h"

#include <errno.h>
#include <stdio.h>

#include "common/base.h"

/*
 * Minimum time that the windows of a tier must cover. If they cover less, or if there are fewer
 * than RATE_LEAST_WINDOWS windows, the rate at which the tier fills is not computed.
 */
#define RATE_LEAST_NS (300 * NS_PER_S)

enum { RATE_LEAST_WINDOWS = 30, LENGTH_TEXT = 32 };

/*
 * Returns how old a tier's windows would become, in ns, if it used all of its share of the disk;
 * WIRE_ABSENT if that is not known.
 */
static int64_t rate_reach(const struct store_tier_stats *tier)
{
	int64_t covered;
	double reach;

	if (tier->oldest_ns == INT64_MIN || tier->windows < RATE_LEAST_WINDOWS || !tier->bytes)
		return WIRE_ABSENT;
	covered = tier->newest_ns - tier->oldest_ns;
	if (covered < RATE_LEAST_NS)
		return WIRE_ABSENT;
	reach = (double)covered * (double)tier->max_bytes / (double)tier->bytes;
	return reach < (double)(INT64_MAX / 2) ? (int64_t)reach : INT64_MAX / 2;
}

int reach_tiers(struct arena *arena, const struct store_stats *stats, int64_t now,
		struct wire_tiers *out)
{
	struct wire_tier *tiers = arena_array(arena, stats->n_tiers + 1, sizeof(*tiers));
	int64_t oldest = INT64_MAX;
	size_t i;

	if (!tiers)
		return -ENOMEM;
	for (i = 0; i < stats->n_tiers; i++) {
		const struct store_tier_stats *tier = &stats->tiers[i];

		if (tier->oldest_ns != INT64_MIN && tier->oldest_ns < oldest)
			oldest = tier->oldest_ns;
		tiers[i] = (struct wire_tier){
			.length_ns = tier->tier.length_ns,
			.keep_ns = tier->tier.keep_ns,
			.share = tier->tier.share,
			.windows = (int64_t)tier->windows,
			.bytes = (int64_t)tier->bytes,
			.max_bytes = (int64_t)tier->max_bytes,
			.reach_ns = oldest < now ? now - oldest : WIRE_ABSENT,
			.rate_reach_ns = rate_reach(tier),
			.early = tier->early_ns == INT64_MIN ? WIRE_ABSENT : tier->early_ns,
		};
	}
	*out = (struct wire_tiers){ .v = tiers, .n = stats->n_tiers };
	return 0;
}

/*
 * Writes a length of time in the largest unit in which it has at least two digits: "34 s", "95
 * min", "30 h".
 */
static void length_text(int64_t ns, char text[static LENGTH_TEXT])
{
	int64_t s = ns / NS_PER_S;

	if (s < 600)
		snprintf(text, LENGTH_TEXT, "%lld s", (long long)s);
	else if (s < 36000)
		snprintf(text, LENGTH_TEXT, "%lld min", (long long)(s / 60));
	else if (s < 864000)
		snprintf(text, LENGTH_TEXT, "%lld h", (long long)(s / 3600));
	else
		snprintf(text, LENGTH_TEXT, "%lld d", (long long)(s / 86400));
}

static int memory_problem(struct arena *arena, const struct history_stats *history,
			  const struct config *config, int64_t now, const char **problems,
			  size_t *n)
{
	int64_t reach = now - history->evicted_real_ns;
	char has[LENGTH_TEXT], wanted[LENGTH_TEXT];

	/*
	 * `reach` is how long ago the window that was evicted last ended. If it is at least `keep`,
	 * nothing is wrong. If it is less by at most the length of two windows, that is not worth a
	 * message.
	 */
	if (!history->evicted_real_ns || reach < 0 ||
	    reach >= config->window_keep_ns - 2 * config->window_length_ns)
		return 0;
	length_text(reach, has);
	length_text(config->window_keep_ns, wanted);
	problems[*n] = arena_printf(
		arena,
		"windows in memory reach back %s, not %s as [window] keep says: "
		"raise %s",
		has, wanted,
		history->most_bytes < (size_t)config->window_max_memory ? "[budget] memory"
									: "[window] max_memory");
	return problems[(*n)++] ? 0 : -ENOMEM;
}

static int tier_problem(struct arena *arena, const struct wire_tier *tier, bool is_last,
			int64_t now, const char **problems, size_t *n)
{
	char length[LENGTH_TEXT], has[LENGTH_TEXT], wanted[LENGTH_TEXT];

	if (tier->early == WIRE_ABSENT || tier->early > now || now - tier->early >= tier->keep_ns)
		return 0;
	length_text(tier->length_ns, length);
	length_text(now - tier->early, has);
	length_text(tier->keep_ns, wanted);
	problems[*n] =
		arena_printf(arena,
			     "windows of %s on disk reach back %s, not %s as [store] tiers "
			     "says%s: raise [store] max_size",
			     length, has, wanted, is_last ? "" : "; older ones were merged early");
	return problems[(*n)++] ? 0 : -ENOMEM;
}

int reach_problems(struct arena *arena, const struct history_stats *history,
		   const struct config *config, const struct wire_tiers *tiers, int64_t now,
		   bool is_on_disk, const char **problems, size_t *n)
{
	int r = is_on_disk ? 0 : memory_problem(arena, history, config, now, problems, n);
	size_t i;

	for (i = 0; i < tiers->n && !r; i++)
		r = tier_problem(arena, &tiers->v[i], i + 1 == tiers->n, now, problems, n);
	return r;
}
