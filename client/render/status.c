/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/status.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/local_times.h"
#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/head.h"
#include "client/render/pressure.h"
#include "common/base.h"

enum { LABEL_WIDTH = 11, WALKS_SHOWN = 5 };

/*
 * The time in ns that the daemon may take to read a window after the window has ended. If the
 * newest window ended longer ago than the length of a window plus this time, the next window is
 * late.
 */
#define LATE_NS NS_PER_S

/* Writes a size in bytes as "34.2 MiB". Returns the text. */
static const char *size_text(int64_t bytes, char text[static 32])
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
		value /= 1024;
		unit++;
	}
	snprintf(text, 32, unit == 0 || value >= 100 ? "%.0f %s" : "%.1f %s", value, units[unit]);
	return text;
}

static int64_t limits_hit(const struct wire_limits *limits)
{
	int64_t n = 0;

	for (size_t i = 0; i < limits->n; i++)
		n += limits->v[i].hits > 0;
	return n;
}

enum check_code status_check(const struct wire_status_reply *reply)
{
	for (size_t i = 0; i < reply->probes.n; i++)
		if (strcmp(reply->probes.v[i].state, "failed") == 0)
			return CHECK_CRITICAL;
	if (!reply->healthy || reply->problems.n > 0)
		return CHECK_WARNING;
	return CHECK_OK;
}

static void render_programs(const struct page *page, const struct wire_probe *probe)
{
	for (size_t i = 0; i < probe->programs.n; i++) {
		const struct wire_program *p = &probe->programs.v[i];
		_cleanup_(freep) char *name = name_escape(p->name), *hook = name_escape(p->hook);

		if (p->runs > 0)
			page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH + 2,
				  "%s at %s: %s runs, %s each%s%s", name, hook, count_text(p->runs),
				  ns_text(p->run_ns / p->runs), p->missed > 0 ? ", missed " : "",
				  p->missed > 0 ? count_text(p->missed) : "");
		else
			page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH + 2, "%s at %s%s%s", name,
				  hook, p->missed > 0 ? ", missed " : "",
				  p->missed > 0 ? count_text(p->missed) : "");
	}
}

/* Returns the name of a probe as a label. If it fills the label's column, a space is appended. */
static char *probe_label(const struct wire_probe *probe)
{
	_cleanup_(freep) char *name = name_escape(probe->name);
	char *label = NULL;

	if (asprintf(&label, "%s%s", name, strlen(name) < LABEL_WIDTH ? "" : " ") < 0)
		label = NULL;
	return must(label);
}

static void render_probe(const struct page *page, const struct wire_probe *probe,
			 bool with_programs)
{
	_cleanup_(freep) char *name = probe_label(probe), *state = name_escape(probe->state);
	_cleanup_(freep) char *hook = name_escape(probe->hook ? probe->hook : "");
	_cleanup_(freep) char *reason = name_escape(probe->reason ? probe->reason : "");
	bool is_on = strcmp(probe->state, "on") == 0;

	page_wrap(page, is_on ? STYLE_PLAIN : STYLE_WARN, name, LABEL_WIDTH, "%s%s%s%s%s%s%s",
		  state, hook[0] ? ", hook " : "", hook,
		  probe->min_wait_ns != WIRE_ABSENT ? ", stacks of waits from " : "",
		  probe->min_wait_ns != WIRE_ABSENT ? ns_text(probe->min_wait_ns) : "",
		  reason[0] ? ": " : "", reason);
	for (size_t i = 0; i < probe->blind.n; i++) {
		_cleanup_(freep) char *blind = name_escape(probe->blind.v[i]);

		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH + 2, "cannot see: %s", blind);
	}
	if (with_programs)
		render_programs(page, probe);
}

static void render_probe_list(const struct page *page, const struct wire_probes *probes,
			      bool with_programs)
{
	for (size_t i = 0; i < probes->n; i++)
		render_probe(page, &probes->v[i], with_programs);
	if (probes->n == 0)
		page_wrap(page, STYLE_WARN, "", 0, "no probes");
}

void render_probes(const struct page *page, const struct wire_probes_reply *reply)
{
	render_probe_list(page, &reply->probes, true);
}

static void render_list(const struct page *page, const struct wire_strs *list, const char *between)
{
	for (size_t i = 0; i < list->n; i++) {
		_cleanup_(freep) char *text = name_escape(list->v[i]);

		fprintf(page->out, "%s%s", i ? between : "", text);
	}
}

void render_settled(const struct page *page, int64_t pid, const struct wire_settled_reply *reply)
{
	_cleanup_(freep) char *comm = name_escape(reply->comm);

	fprintf(page->out, "%s (%" PRId64 "): %s", comm, pid,
		reply->settled ? "settled: " : "not settled: ");
	render_list(page, &reply->awaited, ", ");
	if (reply->settled)
		fprintf(page->out, "%s file%s%s", count_text(reply->files),
			reply->files == 1 ? "" : "s",
			reply->files && !reply->lacks.n ? ", all with unwind rows" : "");
	fputc('\n', page->out);
	if (!reply->lacks.n)
		return;
	fputs("  lacks: ", page->out);
	render_list(page, &reply->lacks, "; ");
	fputc('\n', page->out);
}

/* Prints one name per line and nothing else, so that scripts can read it. */
void render_functions(const struct page *page, const struct wire_functions_reply *reply)
{
	for (size_t i = 0; i < reply->functions.n; i++) {
		_cleanup_(freep) char *name = name_escape(reply->functions.v[i]);

		fprintf(page->out, "%s\n", name);
	}
}

static void render_health(const struct page *page, const struct wire_status_reply *s, int64_t now)
{
	_cleanup_(freep) char *version = name_escape(s->version), *kernel = name_escape(s->kernel);
	char started[TERM_TIME_MAX], late[64] = "", hosts[32] = "";

	/* Senders are some time behind: the gateway of a fleet names the hosts that are late. */
	if (!s->fleet && s->newest != WIRE_ABSENT && now - s->newest > s->window_ns + LATE_NS)
		snprintf(late, sizeof late, ", newest window %s old", ns_text(now - s->newest));
	time_format(s->started, TIME_FULL, started);
	if (s->fleet)
		snprintf(hosts, sizeof(hosts), ", %s host%s", count_text(s->fleet->hosts),
			 s->fleet->hosts == 1 ? "" : "s");
	page_wrap(page, s->healthy && !late[0] ? STYLE_BOLD : STYLE_WARN,
		  s->fleet ? "fleet" : "stackd", LABEL_WIDTH, "%s%s%s",
		  s->healthy ? "healthy" : "NOT healthy", hosts, late);
	for (size_t i = 0; i < s->problems.n; i++) {
		_cleanup_(freep) char *local = local_times(s->problems.v[i], now);
		_cleanup_(freep) char *problem = name_escape(local);

		page_wrap(page, STYLE_WARN, "problem", LABEL_WIDTH, "%s", problem);
	}
	page_wrap(page, STYLE_PLAIN, "running", LABEL_WIDTH,
		  "since %s; version %s, pid %" PRId64 ", kernel %s", started, version, s->pid,
		  kernel);
}

/* True if the daemon records nothing, and only answers from the database. */
static bool store_is_served(const struct wire_store *store)
{
	return store && strcmp(store->state, "serving") == 0;
}

/* Prints the range of the windows that a daemon serves which records nothing. */
static void render_stored(const struct page *page, const struct wire_store *store)
{
	char oldest[TERM_TIME_MAX], newest[TERM_TIME_MAX];

	time_format(store->oldest, TIME_FULL, oldest);
	time_format(store->newest,
		    time_same_day(store->oldest, store->newest) ? TIME_CLOCK : TIME_FULL, newest);
	page_wrap(page, STYLE_PLAIN, "windows", LABEL_WIDTH,
		  "%s on disk, none in memory, nothing is recorded: %s to %s",
		  count_text(store->windows), oldest, newest);
}

static void render_history(const struct page *page, const struct wire_status_reply *s)
{
	char oldest[TERM_TIME_MAX] = "", newest[TERM_TIME_MAX] = "";
	bool is_on_disk =
		s->store && s->store->oldest != WIRE_ABSENT && s->store->newest != WIRE_ABSENT;

	if (s->oldest != WIRE_ABSENT && s->newest != WIRE_ABSENT) {
		time_format(s->oldest, TIME_FULL, oldest);
		time_format(s->newest, time_same_day(s->oldest, s->newest) ? TIME_CLOCK : TIME_FULL,
			    newest);
	}
	if (!oldest[0] && is_on_disk && store_is_served(s->store))
		render_stored(page, s->store);
	else if (!oldest[0])
		page_wrap(page, STYLE_PLAIN, "windows", LABEL_WIDTH, "none%s",
			  is_on_disk ? " in memory" : "");
	else
		page_wrap(page, STYLE_PLAIN, "windows", LABEL_WIDTH,
			  "the last %s of at most %s%s, %s windows of all probes, each "
			  "of %s or shorter: %s to %s",
			  ns_text(s->newest - s->oldest), ns_text(s->keep_ns),
			  s->fleet ? "" : " in memory", count_text(s->windows),
			  ns_text(s->window_ns), oldest, newest);
}

/* True if windows that the tier should still have were merged or deleted early. */
static bool tier_is_short(const struct wire_tier *tier, int64_t now)
{
	return tier->early != WIRE_ABSENT && tier->early <= now &&
	       now - tier->early < tier->keep_ns;
}

/*
 * Prints how far the windows of a tier reach back, and what they take of the disk. `length` says
 * how long they are.
 */
static void render_tier(const struct page *page, const struct wire_tier *tier, const char *length,
			int64_t now)
{
	char size[32], max[32];

	if (tier->windows == 0) {
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "windows of %s: none yet (%s are for them)", length,
			  size_text(tier->max_bytes, max));
		return;
	}
	page_wrap(page, tier_is_short(tier, now) ? STYLE_WARN : STYLE_PLAIN, "", LABEL_WIDTH,
		  "windows of %s: back %s of %s%s%s; %s (%s are for them in any case)", length,
		  tier->reach_ns == WIRE_ABSENT ? "0s" : ns_text(tier->reach_ns),
		  ns_text(tier->keep_ns),
		  tier->rate_reach_ns == WIRE_ABSENT ? "" : ", at this rate ",
		  tier->rate_reach_ns == WIRE_ABSENT	 ? ""
		  : tier->rate_reach_ns >= tier->keep_ns ? "all of it"
							 : ns_text(tier->rate_reach_ns),
		  size_text(tier->bytes, size), size_text(tier->max_bytes, max));
}

/* Prints the notice of the store, unless it is among the problems. */
static void render_notice(const struct page *page, const struct wire_status_reply *s)
{
	_cleanup_(freep) char *notice = NULL;

	if (!s->store->notice)
		return;
	for (size_t i = 0; i < s->problems.n; i++)
		if (strcmp(s->problems.v[i], s->store->notice) == 0)
			return;
	notice = name_escape(s->store->notice);
	page_wrap(page, STYLE_WARN, "", LABEL_WIDTH, "%s", notice);
}

static void render_store(const struct page *page, const struct wire_status_reply *reply,
			 int64_t now)
{
	const struct wire_store *s = reply->store;
	_cleanup_(freep) char *path = NULL;
	char oldest[TERM_TIME_MAX] = "", size[32], max[32];

	if (!s)
		return;
	path = name_escape(s->path);
	if (s->oldest != WIRE_ABSENT)
		time_format(s->oldest, TIME_FULL, oldest);
	page_wrap(page, strcmp(s->state, "failed") == 0 ? STYLE_WARN : STYLE_PLAIN, "disk",
		  LABEL_WIDTH, "%s: %s, %s windows, %s of %s%s%s", path,
		  strcmp(s->state, "serving") == 0   ? "only read"
		  : strcmp(s->state, "writing") == 0 ? "written"
						     : "not written",
		  count_text(s->windows), size_text(s->bytes, size), size_text(s->max_bytes, max),
		  oldest[0] ? ", since " : "", oldest);
	for (size_t i = 0; i < s->tiers.n; i++) {
		_cleanup_(freep) char *length = must_printf("%s%s", i == 0 ? "at most " : "",
							    ns_text(s->tiers.v[i].length_ns));

		render_tier(page, &s->tiers.v[i], length, now);
	}
	if (s->dropped > 0)
		page_wrap(page, STYLE_WARN, "", LABEL_WIDTH, "%s window%s did not get there",
			  count_text(s->dropped), s->dropped == 1 ? "" : "s");
	if (s->damaged > 0)
		page_wrap(page, STYLE_WARN, "", LABEL_WIDTH, "%s row%s could not be read",
			  count_text(s->damaged), s->damaged == 1 ? "" : "s");
	render_notice(page, reply);
}

/* Says what is done to keep within the budget; nothing if all is recorded and it is kept. */
static void render_budget(const struct page *page, const struct wire_budget *budget, int64_t now)
{
	char since[TERM_TIME_MAX];

	if (budget->sample_below_ns != WIRE_ABSENT) {
		moment_text(budget->since, now, since);
		page_wrap(page, STYLE_WARN, "", LABEL_WIDTH,
			  "waits are sampled since %s, now those under %s: all their stacks would "
			  "cost more than the budget leaves",
			  since, ns_text(budget->sample_below_ns));
	}
	if (budget->braked > 0)
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "%s short waits and operations were left to chance in bursts, as a CPU "
			  "took too many stacks at once",
			  count_text(budget->braked));
	for (size_t i = 0; i < budget->shed.n; i++) {
		const struct wire_shed *shed = &budget->shed.v[i];
		char when[2 * TERM_TIME_MAX];

		moment_text(shed->since, now, since);
		snprintf(when, sizeof(when), "not recorded since %s", since);
		render_shed(page, shed, when, LABEL_WIDTH);
	}
	if (budget->put_off > 0)
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "%s processes lived less than a second, and their files were not looked "
			  "at to keep within the budget",
			  count_text(budget->put_off));
}

/*
 * Writes what the last minute cost beside the budget: only such an average is compared with it, as
 * a start or a question costs more than that in the seconds that it takes. The first minute, that
 * of the start, does not count.
 */
static void minute_text(const struct wire_status_reply *s, char *out, size_t size)
{
	char burst[48] = "", limit[80];

	snprintf(limit, sizeof(limit), "%.3g %%", (double)s->budget_ns / 1e7);
	if (s->budget && s->budget->asked_ns != WIRE_ABSENT)
		snprintf(limit, sizeof(limit), "%.3g %%, the least, not %.3g %%",
			 (double)s->budget_ns / 1e7, (double)s->budget->asked_ns / 1e7);
	if (s->budget && s->budget->burst_ns > 0)
		snprintf(burst, sizeof(burst), ", and %.1f %% for a burst",
			 (double)s->budget->burst_ns / 1e7);
	if (s->budget_ns == WIRE_ABSENT)
		snprintf(out, size, "no budget");
	else if (!s->budget || s->budget->minute_ns == WIRE_ABSENT)
		snprintf(out, size, "by minute: from 2 min after start (budget %s)", limit);
	else
		snprintf(out, size, "%.1f %% of a CPU in the last minute (budget %s%s)",
			 (double)s->budget->minute_ns / 1e7, limit, burst);
}

/* Returns what stackd cost since its start, without a budget: that holds each minute for itself. */
static struct wire_cost cost_since_start(const struct wire_status_reply *s, int64_t now)
{
	struct wire_cost cost = wire_cost_absent();

	cost.length_ns = now > s->started ? now - s->started : 0;
	cost.cpu_ns = s->user_ns + s->system_ns;
	cost.bpf_ns = s->bpf_ns != WIRE_ABSENT ? s->bpf_ns : 0;
	cost.answers_ns = s->answers_ns != WIRE_ABSENT ? s->answers_ns : 0;
	cost.sessions_ns = s->sessions_ns != WIRE_ABSENT ? s->sessions_ns : 0;
	return cost;
}

/* Prints what the gateway of a fleet took, which records nothing. */
static void render_gateway(const struct page *page, const struct wire_status_reply *s)
{
	char rss[32];

	page_wrap(page, STYLE_PLAIN, "cost", LABEL_WIDTH,
		  "the gateway took %s user, %s system; at most %s of memory", ns_text(s->user_ns),
		  ns_text(s->system_ns), size_text(s->rss_bytes, rss));
}

static void render_costs(const struct page *page, const struct wire_status_reply *s, int64_t now)
{
	const struct wire_cost cost = cost_since_start(s, now);
	char rss[32], maps[32], minute[128];
	int64_t bpf_ns = 0;

	if (s->fleet) {
		render_gateway(page, s);
		return;
	}
	minute_text(s, minute, sizeof(minute));
	render_cost(page, &cost, WIRE_ABSENT, LABEL_WIDTH);
	page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "that is since the start; %s", minute);
	if (s->budget)
		render_budget(page, s->budget, now);
	page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH,
		  "threads: %s user, %s system; %s of memory, %s of BPF maps", ns_text(s->user_ns),
		  ns_text(s->system_ns), size_text(s->rss_bytes, rss),
		  size_text(s->map_bytes, maps));
	page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH,
		  "reading a window, while the next one is recorded, takes %s, at most %s",
		  ns_text(s->cut_ns), ns_text(s->cut_max_ns));
	for (size_t i = 0; i < s->probes.n; i++)
		for (size_t j = 0; j < s->probes.v[i].programs.n; j++)
			bpf_ns += s->probes.v[i].programs.v[j].run_ns;
	if (s->stats_enabled)
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH,
			  "the kernel measured %s in the programs", ns_text(bpf_ns));
}

/* Writes a value of the limit, as a size, a time or a number. Returns the text. */
static const char *limit_text(const struct wire_limit *limit, int64_t value, char text[static 32])
{
	if (limit->unit && strcmp(limit->unit, "bytes") == 0)
		return size_text(value, text);
	snprintf(text, 32, "%s",
		 limit->unit && strcmp(limit->unit, "ns") == 0 ? ns_text(value)
							       : count_text(value));
	return text;
}

static void render_limits(const struct page *page, const struct wire_limits *limits)
{
	size_t shown = 0;

	for (size_t i = 0; i < limits->n; i++) {
		const struct wire_limit *limit = &limits->v[i];
		_cleanup_(freep) char *name = NULL, *effect = NULL;
		char value[32], used[32];

		if (limit->hits == 0)
			continue;
		name = name_escape(limit->name);
		effect = name_escape(limit->effect ? limit->effect : "");
		/* Some limits have no value: they count something that is always refused. */
		page_wrap(page, STYLE_WARN, shown++ == 0 ? "limits" : "", LABEL_WIDTH,
			  "%s%s%s: reached %s time%s%s%s%s%s", name, limit->value ? " of " : "",
			  limit->value ? limit_text(limit, limit->value, value) : "",
			  count_text(limit->hits), limit->hits == 1 ? "" : "s",
			  limit->used ? ", in use " : "",
			  limit->used ? limit_text(limit, limit->used, used) : "",
			  effect[0] ? ": " : "", effect);
	}
	if (shown == 0)
		page_wrap(page, STYLE_PLAIN, "limits", LABEL_WIDTH, "none was reached");
}

static double percent_of(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 100.0;
}

/*
 * Prints a line about the user stacks of one program: which share of them was walked to the root,
 * and how many were cut short for each reason.
 */
static void render_walks(const struct page *page, const struct wire_walk *walks)
{
	const struct {
		int64_t n;
		const char *flag;
	} reasons[] = {
		{ walks->no_mapping, "no_mapping" },
		{ walks->no_table, "no_table" },
		{ walks->no_row, "no_row" },
		{ walks->fault, "fault" },
		{ walks->truncated, "truncated" },
		{ walks->compat, "compat" },
		{ walks->shed, "shed" },
	};
	_cleanup_(freep) char *name = name_escape(walks->binary ? walks->binary : "not known");
	char why[160] = "";
	size_t used = 0;

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].n > 0 && used < sizeof(why))
			used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%s %s",
						 used ? ", " : "", reasons[i].flag,
						 count_text(reasons[i].n));
	page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "%s: %.1f %% of %s; %s cut: %s", name,
		  percent_of(walks->whole, walks->stacks), count_text(walks->stacks),
		  count_text(walks->stacks - walks->whole), why);
}

/*
 * Prints one line for all programs that have no line of their own: how many stacks they have, and
 * how many of these were walked to their root.
 */
static void render_other_walks(const struct page *page, int64_t programs, int64_t whole,
			       int64_t stacks)
{
	if (programs > 0)
		page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "%s more programs: %.1f %% of %s",
			  count_text(programs), percent_of(whole, stacks), count_text(stacks));
}

/* Returns the number of user stacks of all programs, and sets *whole_out to how many are whole. */
static int64_t unwind_stacks(const struct wire_unwind *unwind, int64_t *whole_out)
{
	int64_t stacks = 0;

	*whole_out = 0;
	for (size_t i = 0; i < unwind->binaries.n; i++) {
		stacks += unwind->binaries.v[i].stacks;
		*whole_out += unwind->binaries.v[i].whole;
	}
	return stacks;
}

static void render_unwind(const struct page *page, const struct wire_unwind *unwind)
{
	int64_t stacks, whole, other_stacks = 0, other_whole = 0;
	char used[32], most[32];
	size_t i, shown = 0;

	if (!unwind)
		return;
	stacks = unwind_stacks(unwind, &whole);
	page_wrap(page, STYLE_PLAIN, "unwinding", LABEL_WIDTH,
		  "%.1f %% of %s user stacks end at the thread's first function",
		  percent_of(whole, stacks), count_text(stacks));
	page_wrap(page, STYLE_PLAIN, "", LABEL_WIDTH, "rows of %s files: %s of %s",
		  count_text(unwind->files), size_text(unwind->bytes, used),
		  size_text(unwind->max_bytes, most));
	for (i = 0; i < unwind->binaries.n; i++) {
		const struct wire_walk *walks = &unwind->binaries.v[i];

		if (shown < WALKS_SHOWN && walks->whole < walks->stacks) {
			render_walks(page, walks);
			shown++;
			continue;
		}
		other_stacks += walks->stacks;
		other_whole += walks->whole;
	}
	render_other_walks(page, (int64_t)(unwind->binaries.n - shown), other_whole, other_stacks);
}

/* Prints how many processes parse files, and which files made them fail. */
static void render_parser(const struct page *page, const struct wire_parser *parser)
{
	if (!parser)
		return;
	page_wrap(page, parser->hanging > 0 ? STYLE_WARN : STYLE_PLAIN, "parsing", LABEL_WIDTH,
		  "%s worker processes, %s requests in %s of CPU time; replaced %s times, hanging "
		  "%s",
		  count_text(parser->workers), count_text(parser->requests),
		  ns_text(parser->cpu_ns), count_text(parser->replaced),
		  count_text(parser->hanging));
	for (size_t i = 0; i < parser->files.n; i++) {
		_cleanup_(freep) char *path = name_escape(parser->files.v[i].path);
		_cleanup_(freep) char *reason = name_escape(parser->files.v[i].reason);

		page_wrap(page, STYLE_WARN, "", LABEL_WIDTH, "%s is not read: %s", path, reason);
	}
	if (parser->given_up > (int64_t)parser->files.n && parser->files.n)
		page_wrap(page, STYLE_WARN, "", LABEL_WIDTH, "%s files before that",
			  count_text(parser->given_up - (int64_t)parser->files.n));
}

void render_status(const struct page *page, const struct wire_status_reply *reply, int64_t now)
{
	render_health(page, reply, now);
	render_probe_list(page, &reply->probes, false);
	render_history(page, reply);
	render_store(page, reply, now);
	render_costs(page, reply, now);
	render_pressure_source(page, reply->pressure, LABEL_WIDTH);
	render_unwind(page, reply->unwind);
	render_parser(page, reply->parser);
	render_lost(page, &reply->lost, LABEL_WIDTH);
	render_fold(page, reply->folded, LABEL_WIDTH);
	render_limits(page, &reply->limits);
}

/* Prints one line for a probe: whether it records, by which hook, and how much it cannot see. */
static void brief_probe(const struct page *page, const struct wire_probe *probe)
{
	_cleanup_(freep) char *label = probe_label(probe), *state = name_escape(probe->state);
	_cleanup_(freep) char *hook = name_escape(probe->hook ? probe->hook : "");
	_cleanup_(freep) char *reason = name_escape(probe->reason ? probe->reason : "");
	bool is_on = strcmp(probe->state, "on") == 0;
	char blind[64] = "";

	if (probe->blind.n > 0)
		snprintf(blind, sizeof blind, "; %zu kind%s of events not seen (-v)",
			 probe->blind.n, probe->blind.n == 1 ? "" : "s");
	head_line(page, is_on ? STYLE_PLAIN : STYLE_WARN, label, "%s%s%s%s%s%s", state,
		  hook[0] ? ", " : "", hook, reason[0] ? ": " : "", reason, blind);
}

/* Names in one line. The caller frees `text` after names_end(). */
struct names {
	FILE *out;
	char *text;
	size_t size, n;
};

static void names_begin(struct names *names)
{
	*names = (struct names){};
	names->out = must(open_memstream(&names->text, &names->size));
}

static void names_add(struct names *names, const char *name)
{
	_cleanup_(freep) char *escaped = name_escape(name);

	fprintf(names->out, "%s%s", names->n++ > 0 ? ", " : "", escaped);
}

static void names_end(struct names *names)
{
	must(fclose(names->out) == 0 ? names->text : NULL);
}

/* Prints the names of the probes that are off in one line; `stackctl probes` says why each is. */
static void brief_off(const struct page *page, const struct wire_probes *probes, bool is_of_fleet)
{
	struct names names;

	names_begin(&names);
	for (size_t i = 0; i < probes->n; i++)
		if (strcmp(probes->v[i].state, "off") == 0)
			names_add(&names, probes->v[i].name);
	names_end(&names);
	if (names.n > 0)
		head_line(page, STYLE_PLAIN, "off", "%s%s", names.text,
			  is_of_fleet ? "" : "; for a while: stackctl record PROBE");
	free(names.text);
}

static void brief_history(const struct page *page, const struct wire_status_reply *s)
{
	const struct wire_store *store = s->store;
	_cleanup_(freep) char *path = name_escape(store ? store->path : "");
	char oldest[TERM_TIME_MAX] = "", size[32], max[32], missing[48] = "";

	if (s->oldest != WIRE_ABSENT && s->newest != WIRE_ABSENT)
		head_line(page, STYLE_PLAIN, s->fleet ? "windows" : "memory",
			  "the last %s of %s, in windows of %s%s", ns_text(s->newest - s->oldest),
			  ns_text(s->keep_ns), ns_text(s->window_ns),
			  s->fleet ? " or shorter" : "");
	else
		head_line(page, STYLE_PLAIN, s->fleet ? "windows" : "memory", "no window");
	if (!store)
		return;
	if (store->oldest != WIRE_ABSENT)
		time_format(store->oldest, TIME_FULL, oldest);
	if (store->dropped > 0)
		snprintf(missing, sizeof(missing), ", %s missing", count_text(store->dropped));
	head_line(page,
		  strcmp(store->state, "failed") == 0 || missing[0] ? STYLE_WARN : STYLE_PLAIN,
		  "disk", "%s%s%s%s, %s of %s in %s",
		  store_is_served(store)		 ? "only read, "
		  : strcmp(store->state, "writing") == 0 ? ""
							 : "not written, ",
		  oldest[0] ? "windows since " : "no window", oldest, missing,
		  size_text(store->bytes, size), size_text(store->max_bytes, max), path);
	render_notice(page, s);
}

/* Prints what is not recorded now to keep within the budget, in one line. */
static void brief_shed(const struct page *page, const struct wire_sheds *sheds)
{
	struct names names;

	names_begin(&names);
	for (size_t i = 0; i < sheds->n; i++)
		names_add(&names, shed_brief(sheds->v[i].name));
	names_end(&names);
	if (names.n > 0)
		head_line(page, STYLE_WARN, "", "left out to keep it: %s", names.text);
	free(names.text);
}

static void brief_cost(const struct page *page, const struct wire_status_reply *s, int64_t now)
{
	const struct wire_cost cost = cost_since_start(s, now);
	char minute[128], clients[96], rss[32], maps[32], since[TERM_TIME_MAX];

	if (s->fleet) {
		render_gateway(page, s);
		return;
	}
	minute_text(s, minute, sizeof(minute));
	page_wrap(page, STYLE_PLAIN, "cost", LABEL_WIDTH, "%s", minute);
	head_line(page, STYLE_PLAIN, "", "%.1f %% since start; %s, BPF maps %s",
		  cpu_percent(cost_held_ns(&cost), cost.length_ns), size_text(s->rss_bytes, rss),
		  size_text(s->map_bytes, maps));
	if (cost_clients_text(&cost, clients, sizeof(clients)))
		head_line(page, STYLE_PLAIN, "", "%s", clients);
	if (s->budget && s->budget->sample_below_ns != WIRE_ABSENT) {
		moment_text(s->budget->since, now, since);
		head_line(page, STYLE_WARN, "", "waits are sampled since %s, now under %s", since,
			  ns_text(s->budget->sample_below_ns));
	}
	if (s->budget)
		brief_shed(page, &s->budget->shed);
}

static void brief_unwind(const struct page *page, const struct wire_unwind *unwind)
{
	int64_t whole = 0, stacks = unwind ? unwind_stacks(unwind, &whole) : 0;

	if (stacks > 0)
		head_line(page, STYLE_PLAIN, "stacks", "%.1f %% of %s user stacks are whole",
			  percent_of(whole, stacks), count_text(stacks));
}

/* Prints which limits were reached in one line. */
static void brief_limits(const struct page *page, const struct wire_limits *limits)
{
	struct names names;

	names_begin(&names);
	for (size_t i = 0; i < limits->n; i++)
		if (limits->v[i].hits > 0)
			names_add(&names, limits->v[i].name);
	names_end(&names);
	if (names.n > 0)
		head_line(page, STYLE_WARN, "limits", "%zu reached (-v): %s", names.n, names.text);
	else
		head_line(page, STYLE_PLAIN, "limits", "none was reached");
	free(names.text);
}

void render_status_brief(const struct page *page, const struct wire_status_reply *reply,
			 int64_t now)
{
	const struct wire_parser *parser = reply->parser;

	render_health(page, reply, now);
	for (size_t i = 0; i < reply->probes.n; i++)
		if (strcmp(reply->probes.v[i].state, "off") != 0)
			brief_probe(page, &reply->probes.v[i]);
	brief_off(page, &reply->probes, reply->fleet);
	brief_history(page, reply);
	brief_cost(page, reply, now);
	brief_unwind(page, reply->unwind);
	if (parser && (parser->hanging > 0 || parser->files.n > 0))
		render_parser(page, parser);
	render_lost(page, &reply->lost, LABEL_WIDTH);
	head_folded(page, reply->folded);
	brief_limits(page, &reply->limits);
	head_line(page, STYLE_PLAIN, "more", "stackctl status -v, stackctl %s",
		  reply->fleet ? "snapshot offcpu --by host" : "probes");
}

static bool has_probe(const struct wire_probes *probes)
{
	for (size_t i = 0; i < probes->n; i++)
		if (strcmp(probes->v[i].state, "on") == 0)
			return true;
	return false;
}

void render_check(const struct page *page, const struct wire_status_reply *reply)
{
	static const char *const words[] = { "OK", "WARNING", "CRITICAL" };
	bool is_serving = store_is_served(reply->store);
	int64_t windows = is_serving ? reply->store->windows : reply->windows;
	const char *first = reply->problems.n > 0 ? reply->problems.v[0]
			    : is_serving	  ? "serving what is on disk"
			    : reply->fleet	  ? "all hosts of the last hour send windows"
			    : has_probe(&reply->probes)
				    ? "recording"
				    : "all probes are off, so that nothing is recorded";
	_cleanup_(freep) char *local = local_times(first, clock_ns(CLOCK_REALTIME));
	_cleanup_(freep) char *said = name_escape(local);

	fprintf(page->out, "%s: %s", words[status_check(reply)], said);
	if (reply->problems.n > 1)
		fprintf(page->out, " and %zu more problem%s", reply->problems.n - 1,
			reply->problems.n == 2 ? "" : "s");
	fprintf(page->out, "; %s window%s, %s lost, %s limit%s reached\n", count_text(windows),
		windows == 1 ? "" : "s", count_text(lost_count(&reply->lost)),
		count_text(limits_hit(&reply->limits)), limits_hit(&reply->limits) == 1 ? "" : "s");
}

static void render_gap(const struct page *page, const struct wire_gap *gap)
{
	_cleanup_(freep) char *reason = name_escape(gap->reason);
	_cleanup_(freep) char *whose = gap->session ? name_escape(gap->session) : NULL;
	char start[TERM_TIME_MAX];

	time_format(gap->start, TIME_DAY_MILLI, start);
	page_wrap(page, STYLE_WARN, "", 8, "%s%sgap from %s for %s: %s", whose ? whose : "",
		  whose ? ": " : "", start, ns_text(gap->end - gap->start), reason);
}

/*
 * The steps by which lines of windows are made to fit where they would be too wide: each leaves out
 * one column more, or the date.
 */
enum windows_fit { FIT_ALL, FIT_NO_MEMORY, FIT_NO_OPEN, FIT_NO_ROWS, FIT_NO_DATE, FIT_NO_THREADS };

/* Returns the first step at which the lines fit into the page. */
static enum windows_fit windows_fit(const struct page *page)
{
	static const size_t columns[] = {
		[FIT_ALL] = 79,	    [FIT_NO_MEMORY] = 70, [FIT_NO_OPEN] = 64,
		[FIT_NO_ROWS] = 57, [FIT_NO_DATE] = 46,
	};
	size_t fit = 0;

	while (page->cuts_names && fit < ARRAY_SIZE(columns) && page->width < columns[fit])
		fit++;
	return (enum windows_fit)fit;
}

/*
 * Prints one line of the list of windows: its head, or a window. The last cell is the host, empty
 * where the windows are those of this host.
 */
static void render_cells(const struct page *page, enum style style, const char *const cells[9])
{
	enum windows_fit fit = windows_fit(page);
	char line[256];
	int n = snprintf(line, sizeof line, "%6s %-10.10s %-*s %7s", cells[0], cells[1],
			 fit >= FIT_NO_DATE ? 12 : 23, cells[2], cells[3]);

	if (fit < FIT_NO_THREADS)
		n += snprintf(line + n, sizeof line - (size_t)n, " %7s", cells[4]);
	if (fit < FIT_NO_ROWS)
		n += snprintf(line + n, sizeof line - (size_t)n, " %6s", cells[5]);
	if (fit < FIT_NO_OPEN)
		n += snprintf(line + n, sizeof line - (size_t)n, " %5s", cells[6]);
	if (fit < FIT_NO_MEMORY)
		n += snprintf(line + n, sizeof line - (size_t)n, " %8s", cells[7]);
	if (cells[8][0])
		snprintf(line + n, sizeof line - (size_t)n, " %.64s", cells[8]);
	page_name(page, style, 0, "", line);
}

static void render_window(const struct page *page, const struct wire_window *w)
{
	int64_t lost = lost_count(&w->lost);
	_cleanup_(freep) char *probe = name_escape(w->probe ? w->probe : "");
	_cleanup_(freep) char *host = name_escape(w->host ? w->host : "");
	char start[TERM_TIME_MAX], size[32], seq[24];
	enum time_style style = windows_fit(page) >= FIT_NO_DATE ? TIME_MILLI : TIME_DAY_MILLI;

	time_format(w->start, style, start);
	snprintf(seq, sizeof seq, "%" PRId64, w->seq);
	render_cells(page, STYLE_PLAIN,
		     (const char *const[]){ seq, probe, start, ns_text(w->length_ns),
					    count_text(w->threads), count_text(w->rows),
					    count_text(w->open), size_text(w->bytes, size), host });
	if (lost > 0)
		render_lost(page, &w->lost, 8);
}

void render_windows(const struct page *page, const struct wire_windows_reply *reply)
{
	size_t gap = 0;

	if (reply->windows.n > 0)
		render_cells(page, STYLE_BOLD,
			     (const char *const[]){ "window", "probe", "start", "length", "threads",
						    "rows", "open", "memory",
						    reply->windows.v[0].host ? "host" : "" });
	for (size_t i = 0; i < reply->windows.n; i++) {
		while (gap < reply->gaps.n && reply->gaps.v[gap].start < reply->windows.v[i].start)
			render_gap(page, &reply->gaps.v[gap++]);
		render_window(page, &reply->windows.v[i]);
	}
	while (gap < reply->gaps.n)
		render_gap(page, &reply->gaps.v[gap++]);
	if (reply->windows.n == 0)
		page_wrap(page, STYLE_PLAIN, "", 0, "no windows in that range");
}
