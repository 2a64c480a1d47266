/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "build_config.h"
#include "common/base.h"
#include "common/duration.h"
#include "common/probe_kind.h"
#include "fleet/serve/answer.h"
#include "fleet/serve/headers.h"

/* A list of windows without a range is about this long. */
#define LIST_NS (3600 * NS_PER_S)

struct fleet_answer *fleet_answer_new(const struct fleet_config *config, struct shards *shards,
				      struct fleet_limits *limits)
{
	struct fleet_answer *answer = calloc(1, sizeof(*answer));

	if (!answer)
		return NULL;
	answer->config = config;
	answer->shards = shards;
	answer->limits = limits;
	answer->arena = arena_new();
	if (!answer->arena)
		return fleet_answer_free(answer);
	return answer;
}

struct fleet_answer *fleet_answer_free(struct fleet_answer *answer)
{
	if (!answer)
		return NULL;
	arena_free(answer->arena);
	free(answer);
	return NULL;
}

static int window_order(const void *x, const void *y)
{
	const struct wire_window *a = x, *b = y;

	return (a->start > b->start) - (a->start < b->start)
		?: strcmp(a->host, b->host) ?: strcmp(a->probe, b->probe);
}

/* Appends the windows of the headers to the list, whose memory has room for them. */
static void windows_add(const struct headers *headers, const char *probe, struct wire_window *list,
			size_t *n)
{
	size_t i;

	for (i = 0; i < headers->n; i++) {
		const struct header *header = &headers->v[i];

		if (!header_counts(header))
			continue;
		list[(*n)++] = (struct wire_window){
			.seq = header->seq,
			.start = header->start,
			.end = header->end,
			.length_ns = header->end - header->start,
			.rows = header->of_rows,
			.threads = header->totals.threads,
			.open = header->totals.open_waits,
			.lost = header->lost,
			.probe = probe,
			.session = probe,
			.host = header->host,
		};
	}
}

/* Reads the windows and the gaps of one probe. */
static int probe_read(struct fleet_answer *answer, struct header_question *question,
		      struct headers *headers, struct wire_coverage *coverage)
{
	int r = headers_read(answer->shards, answer->config, question, answer->arena, headers);

	if (r)
		return r;
	if (!headers->n_windows) {
		question->table = "rows60";
		r = headers_read(answer->shards, answer->config, question, answer->arena, headers);
		if (r)
			return r;
	}
	return headers_coverage(headers, answer->shards, question, clock_ns(CLOCK_REALTIME),
				answer->arena, coverage);
}

static int windows_check(const struct wire_windows_request *request, int64_t now,
			 struct wire_error *error)
{
	enum probe_kind kind;

	if (request->session)
		return wire_error_set(error, -EOPNOTSUPP, ERROR_NOT_SUPPORTED, "session",
				      "a fleet has no sessions; ask the host itself");
	if (request->probe && !probe_kind_find(request->probe, &kind))
		return wire_error_set(error, -EINVAL, ERROR_UNKNOWN_PROBE, request->probe,
				      "there is no probe %.40s", request->probe);
	if (request->since_ns != WIRE_ABSENT && request->until_ns != WIRE_ABSENT &&
	    request->since_ns >= request->until_ns)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "since_ns",
				      "since_ns: must be before until_ns");
	if ((request->since_ns != WIRE_ABSENT && request->since_ns < 0) ||
	    (request->until_ns != WIRE_ABSENT && request->until_ns < 0))
		return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "since_ns",
				      "a negative time: nanoseconds since 1970 are wanted");
	if (request->since_ns != WIRE_ABSENT && request->since_ns > now)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "since_ns",
				      "since_ns: is in the future");
	return 0;
}

int fleet_windows(struct fleet_answer *answer, const struct wire_windows_request *request,
		  struct wire_error *error)
{
	static const char *const probes[] = { "offcpu", "oncpu" };
	struct headers headers[ARRAY_SIZE(probes)] = {};
	struct wire_coverage coverage[ARRAY_SIZE(probes)] = {};
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct wire_window *windows;
	struct wire_gap *gaps;
	size_t i, n = 0, n_gaps = 0;
	int r = windows_check(request, now, error);

	if (r)
		return r;
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		struct header_question question = {
			.probe = probes[i],
			.table = "rows",
			.until = request->until_ns == WIRE_ABSENT || request->until_ns > now
					 ? now
					 : request->until_ns,
			.globs = &request->hosts,
		};

		question.since = request->since_ns != WIRE_ABSENT ? request->since_ns
				 : question.until > LIST_NS	  ? question.until - LIST_NS
								  : 0;
		if (request->probe && strcmp(request->probe, probes[i]) != 0)
			continue;
		r = probe_read(answer, &question, &headers[i], &coverage[i]);
		if (r == -E2BIG)
			return fleet_limit_refuse(answer->limits, FLEET_HEADERS, "since_ns", error);
		if (r)
			return r;
		/* A probe that no host records has no gaps, but a shard that fails is one. */
		if (!headers[i].n_windows && !shards_n_failed(answer->shards))
			coverage[i].gaps.n = 0;
		n += headers[i].n_windows;
		n_gaps += coverage[i].gaps.n;
	}
	windows = arena_array(answer->arena, n + 1, sizeof(*windows));
	gaps = arena_array(answer->arena, n_gaps + 1, sizeof(*gaps));
	if (!windows || !gaps)
		return -ENOMEM;
	n = n_gaps = 0;
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		windows_add(&headers[i], probes[i], windows, &n);
		if (coverage[i].gaps.n)
			memcpy(gaps + n_gaps, coverage[i].gaps.v,
			       coverage[i].gaps.n * sizeof(*gaps));
		n_gaps += coverage[i].gaps.n;
	}
	if (n)
		qsort(windows, n, sizeof(*windows), window_order);
	answer->reply.windows.windows = (struct wire_windows){ .v = windows, .n = n };
	answer->reply.windows.gaps = (struct wire_gaps){ .v = gaps, .n = n_gaps };
	return 0;
}

/* A host of which the newest window ended longer ago than this is late. */
#define LATE_NS (5 * 60 * NS_PER_S)

/* Adds a problem. Returns 0 or -ENOMEM. */
static int problem_add(struct wire_strs *problems, const char **v, const char *problem)
{
	v[problems->n++] = problem;
	return problem ? 0 : -ENOMEM;
}

enum { STATUS_PROBES = 2, STATUS_TABLES = 3 };

static const char *const status_probes[STATUS_PROBES] = { "offcpu", "oncpu" };
static const char *const status_tables[STATUS_TABLES] = { "rows", "rows60", "units" };

/* What the tables have of the last hour, by probe and table. */
struct status_source {
	struct headers of[STATUS_PROBES][STATUS_TABLES];
	/* by name, without doubles; `last` is when the newest window ended, -1: there is none */
	struct header_host *hosts;
	size_t n_hosts;
};

/* Reads what each host has sent of the last hour: a host may send one probe to one table alone. */
static int source_read(struct fleet_answer *answer, int64_t now, struct status_source *source)
{
	static const struct wire_strs all = {};
	size_t i, k;

	for (i = 0; i < STATUS_PROBES; i++) {
		for (k = 0; k < STATUS_TABLES; k++) {
			const struct header_question question = {
				.probe = status_probes[i],
				.table = status_tables[k],
				.since = now - LIST_NS,
				.until = now,
				.globs = &all,
				.is_summed = true,
			};
			int r = headers_read(answer->shards, answer->config, &question,
					     answer->arena, &source->of[i][k]);

			if (r)
				return r;
		}
	}
	return 0;
}

static int host_order(const void *x, const void *y)
{
	const struct header_host *a = x, *b = y;

	return strcmp(a->name, b->name);
}

/* Appends the hosts of one probe in one table, with the ends of their newest windows. */
static void hosts_add(struct status_source *source, const struct headers *headers)
{
	size_t i, k;

	for (i = 0; i < headers->n_hosts; i++) {
		struct header_host *host = &source->hosts[source->n_hosts++];

		*host = headers->hosts[i];
		host->last = -1;
		for (k = host->first; k < host->first + host->n; k++)
			if (headers->v[k].end > host->last)
				host->last = headers->v[k].end;
	}
}

/* Lists each host once, with the newest window of all. Returns 0 or -ENOMEM. */
static int hosts_make(struct fleet_answer *answer, struct status_source *source)
{
	const struct headers *headers = &source->of[0][0];
	size_t i, kept = 0, most = 1;

	for (i = 0; i < STATUS_PROBES * STATUS_TABLES; i++)
		most += headers[i].n_hosts;
	source->hosts = arena_array(answer->arena, most, sizeof(*source->hosts));
	if (!source->hosts)
		return -ENOMEM;
	for (i = 0; i < STATUS_PROBES * STATUS_TABLES; i++)
		hosts_add(source, &headers[i]);
	if (source->n_hosts)
		qsort(source->hosts, source->n_hosts, sizeof(*source->hosts), host_order);
	for (i = 0; i < source->n_hosts; i++) {
		struct header_host *host = &source->hosts[i];
		struct header_host *last = kept ? &source->hosts[kept - 1] : NULL;

		if (!last || strcmp(last->name, host->name) != 0)
			source->hosts[kept++] = *host;
		else if (host->last > last->last)
			last->last = host->last;
	}
	source->n_hosts = kept;
	return 0;
}

/* Returns what is wrong with a host. NULL when out of memory. */
static const char *host_problem(struct arena *arena, const struct header_host *host, int64_t now)
{
	int64_t ahead = headers_host_ahead(host, now);
	char text[DURATION_TEXT_MAX];

	duration_format(ahead ? ahead : now - host->last, text);
	if (ahead)
		return arena_printf(arena, "%s: its clock is, or was, ahead by %s", host->name,
				    text);
	return host->last >= 0
		       ? arena_printf(arena, "%s: its newest window ended %s ago", host->name, text)
		       : arena_printf(arena, "%s: no window of the last hour", host->name);
}

/*
 * Says which shards do not answer, and which hosts have sent nothing lately or have a wrong clock,
 * or that none has sent anything.
 */
static int problems_make(struct fleet_answer *answer, const struct status_source *source,
			 int64_t now, struct wire_strs *out)
{
	struct arena *arena = answer->arena;
	size_t i, n = shards_n(answer->shards) + source->n_hosts;
	const char **v = arena_array(arena, n + 1, sizeof(*v));
	int r;

	*out = (struct wire_strs){ .v = v };
	if (!v)
		return -ENOMEM;
	for (i = 0; i < shards_n(answer->shards); i++) {
		if (!shards_failure(answer->shards, i))
			continue;
		r = problem_add(out, v, arena_strdup(arena, shards_failure(answer->shards, i)));
		if (r)
			return r;
	}
	if (!out->n && !source->n_hosts)
		return problem_add(out, v, "no host has sent a window in the last hour");
	for (i = 0; i < source->n_hosts; i++) {
		const struct header_host *host = &source->hosts[i];

		if (now - host->last < LATE_NS && !headers_host_ahead(host, now))
			continue;
		r = problem_add(out, v, host_problem(arena, host, now));
		if (r)
			return r;
	}
	return 0;
}

/* Lists the probes and whether hosts have sent windows of them. Returns 0 or -ENOMEM. */
static int probes_make(struct fleet_answer *answer, const struct status_source *source,
		       struct wire_probes *out)
{
	struct wire_probe *probes = arena_array(answer->arena, STATUS_PROBES, sizeof(*probes));
	size_t i;

	if (!probes)
		return -ENOMEM;
	for (i = 0; i < STATUS_PROBES; i++) {
		bool is_on = false;

		for (size_t k = 0; k < STATUS_TABLES; k++)
			is_on |= source->of[i][k].n_windows > 0;
		probes[i] = (struct wire_probe){
			.name = status_probes[i],
			.state = is_on ? "on" : "off",
			.reason = is_on ? NULL : "no host has sent windows of the last hour",
			.min_wait_ns = WIRE_ABSENT,
			.period_ns = WIRE_ABSENT,
		};
	}
	*out = (struct wire_probes){ .v = probes, .n = STATUS_PROBES };
	return 0;
}

static int header_of_host(const void *host, const void *header)
{
	return strcmp(host, ((const struct header *)header)->host);
}

/* True if one of the first n tables has windows of the host. */
static bool has_windows(const struct headers *of, size_t n, const char *host)
{
	for (size_t i = 0; i < n; i++)
		if (bsearch(host, of[i].v, of[i].n, sizeof(*of[i].v), header_of_host))
			return true;
	return false;
}

/* Adds the windows of one probe in a table, those of hosts that none of the tables before has. */
static void windows_sum(const struct headers *of, size_t table, struct wire_status_reply *reply)
{
	const struct headers *headers = &of[table];
	size_t i;

	for (i = 0; i < headers->n; i++) {
		const struct header *header = &headers->v[i];

		if (has_windows(of, table, header->host))
			continue;
		reply->windows += header->seq;
		if (reply->oldest == WIRE_ABSENT || header->start < reply->oldest)
			reply->oldest = header->start;
		if (header->end > reply->newest)
			reply->newest = header->end;
		if (header->period_ns > reply->window_ns)
			reply->window_ns = header->period_ns;
	}
}

/* Sets what the process itself has used. */
static void status_set_cost(struct wire_status_reply *reply)
{
	struct rusage usage = {};

	getrusage(RUSAGE_SELF, &usage);
	reply->user_ns = usage.ru_utime.tv_sec * NS_PER_S + usage.ru_utime.tv_usec * NS_PER_US;
	reply->system_ns = usage.ru_stime.tv_sec * NS_PER_S + usage.ru_stime.tv_usec * NS_PER_US;
	reply->rss_bytes = usage.ru_maxrss * 1024;
}

const struct wire_fleet *fleet_make(struct fleet_answer *answer, size_t n_hosts)
{
	struct wire_fleet *fleet = arena_alloc(answer->arena, sizeof(*fleet));

	if (fleet)
		fleet->hosts = (int64_t)n_hosts;
	return fleet;
}

int fleet_status(struct fleet_answer *answer, int64_t started, struct wire_error *error)
{
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct wire_status_reply *reply = &answer->reply.status;
	struct status_source source = {};
	struct utsname kernel;
	size_t i;
	int r = source_read(answer, now, &source);

	if (r == -E2BIG)
		return fleet_limit_refuse(answer->limits, FLEET_HEADERS, "status", error);
	if (r || uname(&kernel) < 0)
		return r ? r : -errno;
	r = hosts_make(answer, &source);
	if (r)
		return r;
	*reply = wire_status_reply_absent();
	reply->version = STACKD_VERSION;
	reply->pid = getpid();
	reply->started = started;
	reply->boot_id = "";
	reply->kernel = arena_strdup(answer->arena, kernel.release);
	reply->keep_ns = LIST_NS;
	for (i = 0; i < STATUS_PROBES * STATUS_TABLES; i++)
		windows_sum(source.of[i / STATUS_TABLES], i % STATUS_TABLES, reply);
	status_set_cost(reply);
	reply->fleet = fleet_make(answer, source.n_hosts);
	if (!reply->kernel || !reply->fleet ||
	    fleet_limits_list(answer->limits, answer->arena, &reply->limits) ||
	    problems_make(answer, &source, now, &reply->problems) ||
	    probes_make(answer, &source, &reply->probes))
		return -ENOMEM;
	reply->healthy = !reply->problems.n;
	return 0;
}
