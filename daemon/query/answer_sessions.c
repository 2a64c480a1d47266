/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <pwd.h>

#include "daemon/query/answer.h"
#include "daemon/session/session.h"

/*
 * Fills the fields that only sessions of function calls have; in other sessions these fields are
 * absent.
 */
static void session_calls_wire(struct session *session, const struct drain_stats *stats,
			       struct wire_session *out)
{
	const struct session_info *info = session_info(session);
	const struct cpu_counts *counts = &stats->counts;
	bool is_running = out->ended == WIRE_ABSENT;

	out->regexp = WIRE_BOOL_ABSENT;
	out->functions = out->calls_per_s = out->load = out->every = out->rate = out->held =
		WIRE_ABSENT;
	if (!info->function)
		return;
	out->function = info->function;
	out->file = session_file(session);
	/* The number of traced functions is not known for a session of an earlier run of stackd. */
	if (session_functions(session))
		out->functions = (int64_t)session_functions(session);
	out->count = (int64_t)(counts->samples - counts->filtered);
	if (info->is_regex)
		out->regexp = 1;
	if (is_running) {
		out->calls_per_s = (int64_t)stats->calls_per_s;
		out->load = (int64_t)stats->load_percent;
	}
	if (stats->every > 1)
		out->every = (int64_t)stats->every;
	if (!probe_kind_has(info->kind, PROBE_STREAMS) || !session_functions(session))
		return;
	out->rate = (int64_t)info->rate;
	out->held = out->count - (int64_t)(counts->streamed + counts->lost[LOST_CALL_NESTED] +
					   counts->lost[LOST_CALL_RING]);
}

static const char *owner_name(struct arena *arena, const struct session_info *info)
{
	struct passwd entry, *found = NULL;
	char buffer[4096];

	if (info->is_always)
		return "stackd";
	getpwuid_r(info->uid, &entry, buffer, sizeof(buffer), &found);
	return found ? arena_strdup(arena, found->pw_name)
		     : arena_printf(arena, "%u", (unsigned int)info->uid);
}

int answer_session(struct arena *arena, struct session *session, struct wire_session *out)
{
	const struct session_info *info = session_info(session);
	bool has_waits = probe_kind_has_waits(info->kind);
	int64_t ended = session_ended(session);
	struct drain_stats stats;
	int r;

	session_stats(session, &stats);
	*out = (struct wire_session){
		.id = arena_strdup(arena, info->id_text),
		.probe = probe_kind_name(info->kind),
		.name = info->name ? arena_strdup(arena, info->name) : NULL,
		.owner = owner_name(arena, info),
		.since = info->since_real_ns,
		.until = info->until_real_ns == INT64_MAX ? WIRE_ABSENT : info->until_real_ns,
		.ended = ended == INT64_MAX ? WIRE_ABSENT : ended,
		.always = info->is_always,
		.filter = info->filter->wire,
		.min_wait_ns = has_waits ? info->min_wait_ns : WIRE_ABSENT,
		.period_ns = probe_kind_has(info->kind, PROBE_SAMPLES) ? (int64_t)info->period_ns
								       : WIRE_ABSENT,
		.count = (int64_t)session_events(session, &stats),
	};
	session_calls_wire(session, &stats, out);
	if (!out->id || !out->owner)
		return -ENOMEM;
	r = session_note(session, arena, &out->note);
	if (r)
		return r;
	return answer_losses(arena, stats.lost, &out->lost);
}
