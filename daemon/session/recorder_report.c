/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/session/governor.h"
#include "daemon/session/recorder.h"

/* Returns how many events per second the probe has counted since the last status line; 0 for the
 * first status line. */
static uint64_t event_rate(struct recorder_rates *rates, enum probe_kind kind, uint64_t events,
			   int64_t now)
{
	const int64_t ms = (now - rates->at_ns) / NS_PER_MS;
	const uint64_t grown = events - rates->events[kind];

	rates->events[kind] = events;
	if (rates->at_ns == 0 || ms <= 0)
		return 0;
	return grown * 1000 / (uint64_t)ms;
}

static uint64_t losses_sum(const struct drain_stats *drain)
{
	uint64_t lost = 0;
	unsigned int i;

	for (i = 0; i < WINDOW_LOST_N; i++)
		lost += drain->lost[i];
	return lost;
}

/* Writes text such as "offcpu 5230 switches/s, lost 0; ". Returns its length, or 0 if the text does
 * not fit. */
static size_t probe_line(struct recorder *recorder, enum probe_kind kind, int64_t now, char *out,
			 size_t size)
{
	struct session *session = sessions_always(recorder->sessions, kind);
	const char *name = probe_kind_name(kind);
	struct drain_stats drain;
	uint64_t rate;
	int n;

	if (!session_is_on(session)) {
		n = snprintf(out, size, "%s off; ", name);
	} else {
		session_stats(session, &drain);
		rate = event_rate(&recorder->rates, kind, session_events(session, &drain), now);
		n = snprintf(out, size, "%s %" PRIu64 " %s/s, lost %" PRIu64 "; ", name, rate,
			     probe_kind_events(kind), losses_sum(&drain));
	}
	return n < 0 || (size_t)n >= size ? 0 : (size_t)n;
}

void recorder_status_line(struct recorder *recorder, char *out, size_t size)
{
	const int64_t now = clock_ns(CLOCK_MONOTONIC);
	struct history_stats history;
	struct drain_stats drain;
	enum probe_kind kind;
	size_t n = 0;

	history_stats(recorder->history, &history);
	session_stats(sessions_always(recorder->sessions, PROBE_OFFCPU), &drain);
	for (kind = 0; kind < PROBE_KIND_N; kind++)
		n += probe_line(recorder, kind, now, out + n, size - n);
	snprintf(out + n, size - n, "%zu windows, %" PRIu64 " threads", history.windows,
		 drain.threads);
	recorder->rates.at_ns = now;
}

/* Logs that a probe is off: as information if the settings disable it, else as a warning. */
static void log_probe_off(const struct session_info *info, const struct probe_status *status,
			  const char **fields)
{
	log_event(status->is_disabled ? LOG_INFO : LOG_WARNING, LOG_ID_PROBE_OFF, fields,
		  "%s is off: %s", info->id_text, status->reason ? status->reason : "unknown");
}

static void log_probe(struct session *session)
{
	const struct session_info *info = session_info(session);
	char probe[64], hook[128];
	const char *fields[] = { probe, NULL, NULL };
	struct probe_status status;

	session_probe_status(session, &status);
	snprintf(probe, sizeof(probe), "STACKD_PROBE=%s", info->id_text);
	if (!status.is_on) {
		log_probe_off(info, &status, fields);
		return;
	}
	snprintf(hook, sizeof(hook), "STACKD_HOOK=%s", status.hook);
	fields[1] = hook;
	if (probe_kind_has(info->kind, PROBE_WAITS))
		log_event(LOG_INFO, LOG_ID_RECORDING, fields,
			  "recording %s, stacks by %s, waits from %lld us", info->id_text,
			  status.hook, (long long)(info->min_wait_ns / NS_PER_US));
	else if (probe_kind_has(info->kind, PROBE_SAMPLES))
		log_event(LOG_INFO, LOG_ID_RECORDING, fields,
			  "recording %s, samples by %s, one every %lld us", info->id_text,
			  status.hook, (long long)info->period_ns / NS_PER_US);
	else
		log_event(LOG_INFO, LOG_ID_RECORDING, fields, "recording %s: %s", info->id_text,
			  status.hook);
}

void recorder_log_probes(struct recorder *recorder)
{
	enum probe_kind kind;

	if (recorder->is_serve_only) {
		log_info("recording nothing, only answering queries from disk");
		return;
	}
	for (kind = 0; kind < PROBE_KIND_N; kind++)
		if (!probe_kind_has(kind, PROBE_CLIENTS))
			log_probe(sessions_always(recorder->sessions, kind));
}

uint64_t recorder_map_bytes(struct recorder *recorder)
{
	struct session **list;
	uint64_t bytes = 0;
	size_t n, i;

	if (sessions_list(recorder->sessions, &list, &n))
		return 0;
	for (i = 0; i < n; i++)
		bytes += session_map_bytes(list[i]);
	sessions_list_free(list, n);
	if (recorder->unwind_maps)
		bytes += unwind_maps_bytes(recorder->unwind_maps);
	return bytes;
}

uint64_t recorder_budget(const struct recorder *recorder)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const uint64_t ppm = __atomic_load_n(&recorder->config->budget_ppm, __ATOMIC_RELAXED);

	return ppm ? governor_limit(ppm, cpus > 0 ? (unsigned int)cpus : 1) : 0;
}

bool recorder_unwind_stats(struct recorder *recorder, struct unwind_stats *out)
{
	if (!recorder->unwind)
		return false;
	unwind_stats(recorder->unwind, out);
	return true;
}
