/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/health.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/broker/broker.h"
#include "daemon/query/flood.h"
#include "daemon/query/moment.h"
#include "daemon/query/reach.h"
#include "daemon/store/store.h"

/*
 * Where a host hides threads from BPF, requests that no program saw are a problem only if there are
 * at least UNSEEN_MIN, and if they are more than this percentage of all requests.
 */
enum { UNSEEN_MIN = 100, UNSEEN_PERCENT = 5 };

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
			const char **out)
{
	char when[MOMENT_TEXT];
	struct flood flood;

	if (flood_find(sum->newest, arena, &flood))
		return -ENOMEM;
	moment_text(sum->newest->start_ns + sum->newest->real_offset_ns, when);
	*out = arena_printf(arena,
			    "%s: %" PRIu64 " lost in %zu window%s of the last 10 minutes, the "
			    "newest from %s: %s",
			    probe_kind_name(sum->newest->kind), sum->count, sum->windows,
			    sum->windows == 1 ? "" : "s", when, window_loss_name(loss));
	if (*out && flood.cgroup)
		*out = arena_printf(
			arena, "%s; %u %% of that window's rows are of %s", *out, flood.percent,
			strcmp(flood.cgroup, "/") == 0 ? "the root cgroup" : flood.cgroup);
	return *out ? 0 : -ENOMEM;
}

int health_losses(struct arena *arena, const struct history_list *list, bool is_unseen_usual,
		  const char **problems, size_t *n)
{
	struct recent_loss sum;
	unsigned int kind, loss;

	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		for (loss = 0; loss < WINDOW_LOST_N; loss++) {
			sum = loss_sum(list, kind, loss);
			/* LOST_IO_PROCESS counts nothing that is lost, see answer_losses(). */
			if (!sum.count || loss == LOST_IO_PROCESS ||
			    (is_unseen_usual && loss == LOST_IO_UNSEEN))
				continue;
			if (loss_problem(arena, &sum, loss, &problems[*n]))
				return -ENOMEM;
			(*n)++;
		}
	}
	return 0;
}

/*
 * True if the host hides some threads from BPF: it runs no BPF programs in such a thread, see
 * drain_hidden(). iolat then misses disk requests that are issued or end while such a thread is on
 * the CPU.
 */
static bool host_is_hiding(struct recorder *recorder)
{
	struct session *session = sessions_always(recorder->sessions, PROBE_OFFCPU);
	struct drain_stats stats;

	if (!session_is_on(session))
		return false;
	session_stats(session, &stats);
	return drain_hidden(&stats) > 0;
}

bool health_unseen_is_much(uint64_t seen, uint64_t unseen)
{
	return unseen >= UNSEEN_MIN && unseen > (seen + unseen) / 100 * UNSEEN_PERCENT;
}

/*
 * True if the loss of disk requests that no program saw is no problem: the host hides threads from
 * BPF, and only a small part of the requests is lost.
 */
static bool unseen_is_usual(struct recorder *recorder)
{
	struct session *session = sessions_always(recorder->sessions, PROBE_IOLAT);
	struct drain_stats stats;

	session_stats(session, &stats);
	return host_is_hiding(recorder) &&
	       !health_unseen_is_much(stats.counts.ios, stats.lost[LOST_IO_UNSEEN]);
}

static int recent_losses(struct recorder *recorder, struct arena *arena, const char **problems,
			 size_t *n)
{
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct history_list list;
	int r = history_lossy(recorder->history, now - HEALTH_LOSS_NS, &list);

	if (r)
		return r;
	r = health_losses(arena, &list, unseen_is_usual(recorder), problems, n);
	history_list_fini(&list);
	return r;
}

void health_store(struct arena *arena, const struct store_stats *store, int64_t now_ns,
		  const char **problems, size_t *n)
{
	const uint64_t dropped = store->dropped_queue + store->dropped_write;

	for (size_t i = 0; i < STORE_PROBLEMS; i++)
		if (store->problems[i][0])
			problems[(*n)++] = arena_strdup(arena, store->problems[i]);
	for (size_t i = 0; i < STORE_NOTICES; i++)
		if (store->notices[i].text[0] && now_ns - store->notices[i].ns < HEALTH_LOSS_NS)
			problems[(*n)++] = arena_strdup(arena, store->notices[i].text);
	/* Windows are missing because of what keeps the database from being written. */
	if (dropped && !store->problems[STORE_PROBLEM_FILE][0])
		problems[(*n)++] = arena_printf(arena, "%" PRIu64 " window%s not written to disk",
						dropped, dropped == 1 ? " was" : "s were");
	if (store->damaged && now_ns - store->damaged_ns < HEALTH_LOSS_NS)
		problems[(*n)++] = arena_printf(arena,
						"%" PRIu64 " rows of the database could not be "
						"read, the last in the last 10 minutes",
						store->damaged);
}

static void store_problems(struct recorder *recorder, struct arena *arena, const char **problems,
			   size_t *n)
{
	struct store_stats store;

	if (!recorder->store)
		return;
	store_stats(recorder->store, &store);
	health_store(arena, &store, clock_ns(CLOCK_REALTIME), problems, n);
}

static int past_problems(struct recorder *recorder, const struct answer *answer,
			 const char **problems, size_t *n)
{
	static const struct wire_tiers none;
	const struct wire_store *store = answer->reply.status.store;
	bool is_on_disk = store && strcmp(store->state, "writing") == 0;
	struct history_stats history;

	if (recorder->is_serve_only)
		return 0;
	history_stats(recorder->history, &history);
	return reach_problems(answer->arena, &history, recorder->config,
			      store ? &store->tiers : &none, clock_ns(CLOCK_REALTIME), is_on_disk,
			      problems, n);
}

void health_windows(struct arena *arena, const struct health_windows *of, const char **problems,
		    size_t *n)
{
	const int64_t due = of->now_ns - 3 * of->length_ns;
	const char *name = probe_kind_name(of->kind);

	if (of->cut_ns < due)
		problems[(*n)++] = arena_printf(arena,
						"the open window of %s is overdue: stackd does not "
						"keep up with its events",
						name);
	else if (of->newest_ns && of->newest_ns < due)
		problems[(*n)++] = arena_printf(arena,
						"the newest window of %s ended %" PRId64
						" s ago: names are looked up too slowly",
						name, (of->now_ns - of->newest_ns) / NS_PER_S);
	else if (!of->newest_ns && of->since_ns < due)
		problems[(*n)++] = arena_printf(arena,
						"no window of %s is in memory, which has been on "
						"for %" PRId64 " s",
						name, (of->now_ns - of->since_ns) / NS_PER_S);
}

static void window_problems(struct recorder *recorder, struct arena *arena, const char **problems,
			    size_t *n)
{
	const int64_t now = clock_ns(CLOCK_MONOTONIC), real = clock_ns(CLOCK_REALTIME);
	struct drain_stats stats;
	unsigned int kind;

	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		struct session *session = sessions_always(recorder->sessions, kind);

		if (!session_is_on(session))
			continue;
		session_stats(session, &stats);
		health_windows(
			arena,
			&(struct health_windows){
				.kind = kind,
				.now_ns = now,
				.length_ns = recorder->config->window_length_ns,
				.cut_ns = stats.last_ns,
				.newest_ns = history_newest_ns(recorder->history,
							       session_info(session)->id),
				.since_ns = now - (real - session_info(session)->since_real_ns),
			},
			problems, n);
	}
}

void health_stuck(struct arena *arena, const struct activity_stuck *stuck, size_t count,
		  const char **problems, size_t *n)
{
	for (size_t i = 0; i < count; i++)
		problems[(*n)++] =
			arena_printf(arena, "the thread %s (%s) has not come on for %" PRId64 " s",
				     stuck[i].thread, stuck[i].work, stuck[i].ns / NS_PER_S);
}

static void stuck_problems(struct recorder *recorder, struct arena *arena, const char **problems,
			   size_t *n)
{
	struct activity_stuck stuck[HEALTH_STUCK_MAX];
	int64_t least_ns = 3 * recorder->config->window_length_ns;
	size_t count;

	if (least_ns < HEALTH_STUCK_NS)
		least_ns = HEALTH_STUCK_NS;
	count = activity_list_stuck(least_ns, stuck, ARRAY_SIZE(stuck));
	health_stuck(arena, stuck, count, problems, n);
}

void health_openings(struct arena *arena, const struct opener_stats *opening, const char **problems,
		     size_t *n)
{
	if (opening->hanging)
		problems[(*n)++] = arena_printf(arena,
						"a file system does not answer: %u processes hang "
						"that opened files, the last at %s",
						opening->hanging, opening->place);
}

void health_reads(struct arena *arena, const struct process_stats *processes, const char **problems,
		  size_t *n)
{
	if (processes->hanging)
		problems[(*n)++] = arena_printf(
			arena,
			"reading /proc hangs for %u processes, the last pid %" PRId32
			", whose memory map is locked, or very large: their stacks may end "
			"early",
			processes->hanging, processes->last_hanging);
}

static void broker_problems(struct recorder *recorder, const char **problems, size_t *n)
{
	const char *problem = broker_problem(recorder->broker);

	if (problem)
		problems[(*n)++] = problem;
}

void health_parser(struct arena *arena, const struct parser_stats *parser, const char **problems,
		   size_t *n)
{
	if (parser->start_error)
		problems[(*n)++] = arena_printf(arena,
						"programs cannot be read for names and stacks, as "
						"no process can be started for it: %s",
						parser_start_text(parser->start_error));
}

void health_probes(struct arena *arena, const struct wire_probes *probes, const char **problems,
		   size_t *n)
{
	for (size_t i = 0; i < probes->n; i++) {
		const struct wire_probe *probe = &probes->v[i];

		if (strcmp(probe->state, "failed") == 0)
			problems[(*n)++] = arena_printf(arena, "the probe %s could not attach: %s",
							probe->name,
							probe->reason ? probe->reason : "unknown");
	}
}

void health_kernel_names(struct arena *arena, int error, const char **problems, size_t *n)
{
	if (error)
		problems[(*n)++] =
			arena_printf(arena, "no names of kernel functions: /proc/kallsyms: %s",
				     strerror(-error));
}

void health_budget(struct arena *arena, const struct budget_state *state, int64_t now_ns,
		   const char **problems, size_t *n)
{
	const struct governor_cost *cost = &state->minute;
	const uint64_t all = governor_cost_sum(cost) - state->burst_ppm;
	const struct {
		uint64_t ppm;
		const char *what, *setting;
	} parts[] = {
		{ cost->walk_ppm, "stacks of waits", "[probe.offcpu] min_wait" },
		{ cost->hook_ppm, "counters in the kernel", "set a [probe.NAME] enabled = no" },
		{ cost->user_ppm, "its threads", "[window] length" },
	}, *most = parts;
	size_t i;

	if (!state->beyond_since_ns)
		return;
	for (i = 1; i < ARRAY_SIZE(parts); i++)
		if (parts[i].ppm > most->ppm)
			most = &parts[i];
	problems[(*n)++] = arena_printf(
		arena,
		"over [budget] cpu for %" PRId64 " s: stackd took %.1f %% of a CPU in the last "
		"minute%s, %.3g %% are allowed, and %s took %.1f %%; raise [budget] cpu or %s",
		(now_ns - state->beyond_since_ns) / NS_PER_S, (double)all / 1e4,
		state->burst_ppm ? ", without bursts" : "", (double)state->limit_ppm / 1e4,
		most->what, (double)most->ppm / 1e4, most->setting);
}

int health_problems(struct recorder *recorder, const struct answer *answer, struct wire_strs *out)
{
	const char **problems = arena_array(answer->arena, HEALTH_MAX_PROBLEMS, sizeof(*problems));
	int kernel = recorder->resolver ? resolver_kernel_status(recorder->resolver) : 0;
	struct parser_stats parser = {};
	struct process_stats processes;
	struct budget_state budget;
	size_t n = 0, i;
	int r;

	if (!problems)
		return -ENOMEM;
	health_probes(answer->arena, &answer->reply.status.probes, problems, &n);
	window_problems(recorder, answer->arena, problems, &n);
	process_table_stats(recorder->processes, &processes);
	health_openings(answer->arena, &processes.opening, problems, &n);
	health_reads(answer->arena, &processes, problems, &n);
	if (recorder->parser)
		parser_stats(recorder->parser, &parser);
	health_parser(answer->arena, &parser, problems, &n);
	broker_problems(recorder, problems, &n);
	health_kernel_names(answer->arena, kernel, problems, &n);
	store_problems(recorder, answer->arena, problems, &n);
	/* After what may have made them stuck. */
	stuck_problems(recorder, answer->arena, problems, &n);
	budget_state(recorder->budget, &budget);
	health_budget(answer->arena, &budget, clock_ns(CLOCK_REALTIME), problems, &n);
	r = past_problems(recorder, answer, problems, &n);
	if (r)
		return r;
	r = recent_losses(recorder, answer->arena, problems, &n);
	if (r)
		return r;
	for (i = 0; i < n; i++)
		if (!problems[i])
			return -ENOMEM;
	*out = (struct wire_strs){ .v = problems, .n = n };
	return 0;
}
