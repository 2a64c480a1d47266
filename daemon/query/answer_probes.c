/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>

#include "daemon/query/answer.h"
#include "daemon/session/recorder.h"

const char *answer_unread(struct arena *arena, const struct openwait_stats *stats)
{
	if (stats->state == OPENWAIT_FAILED)
		return arena_printf(arena, "user stacks of waits that have not ended: %s",
				    stats->reason);
	if (stats->held_up_by)
		return arena_printf(arena,
				    "user stacks of waits that have not ended: process %" PRIu32
				    " hangs, and so does reading its stacks",
				    stats->held_up_by);
	return "";
}

/*
 * Sets *out to phrases that say what the probe cannot see and what the host hides from all BPF
 * programs.
 */
static int blind_wire(struct arena *arena, struct session *session,
		      const struct probe_status *status, struct wire_strs *out)
{
	const char **blind = arena_array(arena, PROBE_MAX_BLIND + 2, sizeof(*blind)), *unread;
	struct drain_stats drain;
	uint64_t hidden;
	size_t i;

	if (!blind)
		return -ENOMEM;
	for (i = 0; i < status->n_blind; i++)
		blind[i] = status->blind[i];
	*out = (struct wire_strs){ .v = blind, .n = status->n_blind };
	session_stats(session, &drain);
	unread = answer_unread(arena, &drain.openwait);
	if (!unread)
		return -ENOMEM;
	if (unread[0])
		blind[out->n++] = unread;
	hidden = drain_hidden(&drain);
	if (!hidden)
		return 0;
	blind[out->n] =
		arena_printf(arena,
			     "threads that the host hides from BPF while they run (its init or a "
			     "CPU's idle thread), and disk requests that end meanwhile: %" PRIu64
			     " of their context switches were missed",
			     hidden);
	return blind[out->n++] ? 0 : -ENOMEM;
}

static void program_wire(const struct probe_program *program, struct wire_program *out)
{
	*out = (struct wire_program){
		.name = program->name,
		.hook = program->hook,
		.runs = (int64_t)program->runs,
		.run_ns = (int64_t)program->run_ns,
		.missed = (int64_t)program->missed,
		.verified_insns = program->verified_insns,
	};
}

static int probe_wire(struct arena *arena, struct session *session, struct wire_probe *out)
{
	struct wire_program *programs =
		arena_array(arena, PROBE_MAX_PROGRAMS + 1, sizeof(*programs));
	const struct session_info *info = session_info(session);
	bool has_waits = probe_kind_has_waits(info->kind);
	struct probe_status status;
	struct drain_stats drain;
	struct wire_strs blind;
	size_t i;
	int r;

	if (!programs)
		return -ENOMEM;
	session_probe_status(session, &status);
	r = blind_wire(arena, session, &status, &blind);
	if (r)
		return r;
	for (i = 0; i < status.n_programs; i++)
		program_wire(&status.programs[i], &programs[i]);
	session_stats(session, &drain);
	if (drain.openwait.state == OPENWAIT_ON)
		program_wire(&drain.openwait.program, &programs[status.n_programs++]);
	*out = (struct wire_probe){
		.name = probe_kind_name(info->kind),
		.state = status.is_on	      ? "on"
			 : status.is_disabled ? "off"
					      : "failed",
		.hook = status.hook,
		.reason = status.reason,
		.blind = blind,
		.min_wait_ns = status.is_on && has_waits ? info->min_wait_ns : WIRE_ABSENT,
		.period_ns = status.is_on && probe_kind_has(info->kind, PROBE_SAMPLES)
				     ? (int64_t)info->period_ns
				     : WIRE_ABSENT,
		.programs = { .v = programs, .n = status.n_programs },
	};
	return 0;
}

int answer_probe_list(struct recorder *recorder, struct arena *arena, struct wire_probes *out)
{
	struct wire_probe *probes = arena_array(arena, PROBE_KIND_N, sizeof(*probes));
	size_t i;
	int r = probes ? 0 : -ENOMEM;

	for (i = 0; i < PROBE_KIND_N && !r; i++) {
		r = probe_wire(arena, sessions_always(recorder->sessions, (enum probe_kind)i),
			       &probes[i]);
		if (recorder->is_serve_only)
			probes[i].reason = "stackd --serve-only";
	}
	*out = (struct wire_probes){ .v = probes, .n = PROBE_KIND_N };
	return r;
}
