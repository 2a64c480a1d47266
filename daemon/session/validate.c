/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/duration.h"
#include "daemon/broker/broker.h"
#include "daemon/host/cpu_list.h"
#include "daemon/session/filter_fields.h"

enum { MAX_CPUS = 8192 };

#define MAX_PERIOD_NS (10 * NS_PER_S)

static int invalid(struct wire_error *error, const char *field, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int invalid(struct wire_error *error, const char *field, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return wire_error_set(error, -EINVAL, ERROR_INVALID_FILTER, field, "%s", text);
}

/*
 * Returns the pid of the process that the thread with this id belongs to; 0 if there is no such
 * thread. The kernel finds /proc/TID for every thread, not only for the first one of a process.
 */
static int64_t process_of(int64_t tid)
{
	_cleanup_(fclosep) FILE *f = NULL;
	char path[64], line[256];
	int64_t pid = 0;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/status", tid);
	f = fopen(path, "re");
	while (f && !pid && fgets(line, sizeof(line), f))
		if (sscanf(line, "Tgid: %" SCNd64, &pid) != 1)
			pid = 0;
	return pid;
}

int session_check_task(int64_t id, bool is_process, const char *field, struct wire_error *error)
{
	int64_t pid = process_of(id);

	if (!pid)
		return invalid(error, field, "there is no %s %" PRId64,
			       is_process ? "process" : "thread", id);
	if (is_process && pid != id && strcmp(field, "pids") == 0)
		return invalid(error, field,
			       "%" PRId64 " is a thread of process %" PRId64
			       ", not a process: use -t %" PRId64,
			       id, pid, id);
	if (is_process && pid != id)
		return invalid(error, field,
			       "%" PRId64 " is a thread of process %" PRId64 ": ask for that", id,
			       pid);
	return 0;
}

static int tasks_check(const struct int_list *ids, bool is_process, struct wire_error *error)
{
	size_t i;
	int r = 0;

	for (i = 0; i < ids->n && !r; i++)
		r = session_check_task(ids->v[i], is_process, is_process ? "pids" : "tids", error);
	return r;
}

static int cpus_check(const struct int_list *cpus, struct wire_error *error)
{
	_cleanup_(freep) bool *online = calloc(MAX_CPUS, sizeof(*online));
	char list[128] = "";
	FILE *f;
	size_t i;

	if (!online)
		return -ENOMEM;
	if (cpu_list_read("/sys/devices/system/cpu/online", online, MAX_CPUS) < 0)
		return 0;
	for (i = 0; i < cpus->n; i++) {
		if (cpus->v[i] >= 0 && cpus->v[i] < MAX_CPUS && online[cpus->v[i]])
			continue;
		f = fopen("/sys/devices/system/cpu/online", "re");
		if (f && fgets(list, sizeof(list), f))
			list[strcspn(list, "\n")] = '\0';
		fclosep(&f);
		return invalid(error, "cpus", "there is no CPU %" PRId64 "; online are %s",
			       cpus->v[i], list);
	}
	return 0;
}

static uint64_t sample_rate_max(void)
{
	_cleanup_(fclosep) FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "re");
	unsigned long long rate = 100000;

	if (f && fscanf(f, "%llu", &rate) != 1)
		rate = 100000;
	return rate;
}

/* Sets the error of a period that is not between the least and the greatest. Returns -EINVAL. */
static int period_refuse(const struct session *session, uint64_t max, uint64_t kernel_max,
			 struct wire_error *error)
{
	char asked[DURATION_TEXT_MAX], least[DURATION_TEXT_MAX], most[DURATION_TEXT_MAX];

	duration_format((int64_t)session->info.period_ns, asked);
	duration_format((int64_t)((uint64_t)NS_PER_S / max), least);
	duration_format(MAX_PERIOD_NS, most);
	return invalid(
		error, "period_ns",
		"a sample every %s: stackd takes one every %s to %s; the kernel allows up to "
		"%" PRIu64 " a second (sysctl kernel.perf_event_max_sample_rate)",
		asked, least, most, kernel_max);
}

static int period_check(const struct session *session, const struct session_request *request,
			struct wire_error *error)
{
	uint64_t kernel_max = sample_rate_max();
	uint64_t max = kernel_max < BROKER_MAX_FREQUENCY_HZ ? kernel_max : BROKER_MAX_FREQUENCY_HZ;

	if (request->frequency_hz && request->period_ns)
		return invalid(error, "frequency", "give a frequency or a period, not both");
	if (session->info.with_cycles && request->period_ns)
		return invalid(
			error, "period_ns",
			"a period is in time, which cycles are not: give a frequency with cycles");
	if (request->frequency_hz > max)
		return invalid(error, "frequency",
			       "%" PRIu64 " Hz: stackd takes up to %" PRIu64 " samples a second; "
			       "the kernel allows up to %" PRIu64
			       " (sysctl kernel.perf_event_max_sample_rate)",
			       request->frequency_hz, max, kernel_max);
	if (session->info.period_ns < BROKER_MIN_PERIOD ||
	    session->info.period_ns > MAX_PERIOD_NS || NS_PER_S / session->info.period_ns > max)
		return period_refuse(session, max, kernel_max, error);
	return 0;
}

/* Refuses CPU numbers that are too high for the bit mask in the filter of the BPF programs. Kinds
 * that sample have no such limit, because they open a perf event per CPU. */
static int cpus_limit(const struct session *session, struct wire_error *error)
{
	const struct int_list *cpus = &session->filter.wire->cpus;
	size_t i;

	for (i = 0; i < cpus->n; i++)
		if (cpus->v[i] >= FILTER_CPUS)
			return invalid(error, "cpus", "CPU %" PRId64 ": %s takes those below %d",
				       cpus->v[i], probe_kind_name(session->info.kind),
				       FILTER_CPUS);
	return 0;
}

/* Refuses a request with fields that make no sense for its kind of probe. */
static int kind_check(const struct session *session, const struct session_request *request,
		      struct wire_error *error)
{
	const struct wire_filter *wire = session->filter.wire;
	const enum probe_kind kind = session->info.kind;
	char others[64];
	int r = filter_fields_check(wire, kind, FILTER_OF_SESSION, error);

	if (r)
		return r;
	if (probe_kind_has(kind, PROBE_SAMPLES))
		return period_check(session, request, error);
	if (request->frequency_hz || request->period_ns || request->with_idle || request->event) {
		probe_kinds_with(PROBE_SAMPLES, " and ", others, sizeof(others));
		return invalid(error,
			       request->with_idle ? "idle"
			       : request->event	  ? "event"
						  : "frequency",
			       "%s samples nothing; see %s", probe_kind_name(kind), others);
	}
	if (!wire)
		return 0;
	r = cpus_limit(session, error);
	return r ? r : filter_io_check(wire, error);
}

int session_check(struct session *session, const struct session_request *request,
		  struct wire_error *error)
{
	const struct wire_filter *wire = session->filter.wire;
	int r = kind_check(session, request, error);

	if (r || !wire)
		return r;
	r = tasks_check(&wire->pids, true, error);
	if (r)
		return r;
	r = tasks_check(&wire->tids, false, error);
	if (r)
		return r;
	r = cpus_check(&wire->cpus, error);
	if (r)
		return r;
	return session_find_groups(session, error);
}
