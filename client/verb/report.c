/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/fetch.h"
#include "client/call/named.h"
#include "client/call/output.h"
#include "client/call/snapshot.h"
#include "client/option/range.h"
#include "client/render/formats.h"
#include "client/report/data.h"
#include "client/report/page.h"
#include "client/report/trace.h"
#include "client/verb/verb.h"
#include "common/base.h"
#include "common/text.h"
#include "proto/codec.h"
#include "proto/stacks_once.h"

#define RANGE_DEFAULT	 (5 * 60 * NS_PER_S)
#define MAX_SIZE_DEFAULT (8 << 20)

static const char *const probe_names[REPORT_PROBES] = { "offcpu", "oncpu", "iolat" };

/* A report that is being gathered. */
struct gathering {
	const struct options *options;
	struct report_data *data;
	enum report_probe probe;
	struct wire_span span;
	int64_t each_ns;   /* length of a column; 0: a window */
	size_t n_expected; /* number of columns, to show how far it is */
	/* the answer that is coming: its first reply, in an arena of its own */
	struct arena *arena;
	struct wire_snapshot_reply first;
	int64_t n;		  /* number of its rows that have come */
	struct stacks_kept *kept; /* the stacks of the call, which come once */
	size_t n_answers;	  /* of this probe */
	size_t n_incomplete;
	bool shows_progress;
};

static void show_progress(const struct gathering *g)
{
	if (g->shows_progress)
		fprintf(stderr, "\rstackctl: %s: %zu of about %zu windows", probe_names[g->probe],
			g->n_answers, g->n_expected);
}

static void end_progress(const struct gathering *g)
{
	if (g->shows_progress)
		fputs("\r\033[K", stderr);
}

/* Adds a reply of the answers about the columns. To be used as a reply_handler. */
static int on_reply(const struct varlink_message *message, void *context)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct gathering *g = context;
	struct wire_snapshot_reply reply;
	int r = snapshot_reply_decode(message, arena, &reply, NULL);

	if (r < 0)
		return r;
	r = collection_check_reply(&reply);
	if (r < 0)
		return r;
	if (!g->arena) {
		if (g->n_answers >= 2 * (size_t)REPORT_COLUMNS_MAX)
			return -E2BIG;
		g->first = reply;
		g->n = 0;
		report_data_begin_answer(g->data, g->probe, &reply);
	}
	r = stacks_kept_fill(g->kept, arena, &reply.rows);
	if (r < 0)
		return r;
	report_data_add_rows(g->data, g->probe, &reply.rows);
	g->n += (int64_t)reply.rows.n;
	if (!g->arena)
		g->arena = TAKE(arena);
	if (g->n < g->first.shown.rows)
		return 0;
	report_data_end_answer(g->data, g->probe, &g->first);
	g->n_incomplete += !g->first.coverage.complete;
	g->n_answers++;
	arena_free(TAKE(g->arena));
	show_progress(g);
	return 0;
}

/*
 * Asks for the answers of one probe, a column each. If there are none, the report says why, and it
 * is no error.
 */
static enum exit_code ask_probe(struct gathering *g, struct snapshot_request *request)
{
	_cleanup_(arena_freep) struct arena *stacks = must(arena_new());
	struct call_error error = {};
	_cleanup_(text_fini) struct text text = {};
	enum exit_code code;

	request->request.probe = probe_names[g->probe];
	request->request.stacks_once = 1;
	g->n_answers = 0;
	g->kept = must(stacks_kept_new(stacks));
	text_init(&text, VARLINK_MAX_REPLY);
	snapshot_request_encode(&request->request, VARLINK_MORE, &text);
	code = call_run_named(g->options, &text, on_reply, g, &error);
	end_progress(g);
	arena_free(TAKE(g->arena));
	g->kept = stacks_kept_free(g->kept);
	if (error.text) {
		g->data->missing[g->probe] = name_escape(error.text);
		free(error.text);
		return EXIT_CODE_OK;
	}
	return code;
}

/* Asks for the waits that are open at the end of the range: now, with holders, if it ends now. */
static enum exit_code ask_open(struct gathering *g, struct snapshot_request *request, bool is_now)
{
	struct collection c = { .arena = must(arena_new()) };
	struct wire_snapshot_request *r = &request->request;
	struct call_error error = {};
	_cleanup_(text_fini) struct text text = {};
	enum exit_code code;

	r->probe = probe_names[REPORT_OFFCPU];
	r->each_ns = WIRE_ABSENT;
	r->open = 1;
	r->by = "thread";
	r->sort = "max";
	r->top = REPORT_OPEN_MAX;
	r->idle = WIRE_BOOL_ABSENT;
	r->fold_own = WIRE_BOOL_ABSENT;
	r->groups = WIRE_BOOL_ABSENT;
	r->stacks_once = WIRE_BOOL_ABSENT;
	if (is_now) {
		r->since_ns = r->until_ns = WIRE_ABSENT;
		r->window_ns = NS_PER_S;
	}
	text_init(&text, VARLINK_MAX_REPLY);
	snapshot_request_encode(r, VARLINK_MORE, &text);
	code = call_run_named(g->options, &text, collection_add, &c, &error);
	if (c.has_reply)
		report_data_add_open(g->data, &c.reply, &c.reply.rows);
	if (error.text)
		code = EXIT_CODE_OK;
	free(error.text);
	free(c.rows);
	arena_free(c.arena);
	return code;
}

/*
 * Chooses the length of the columns: that of windows, unless there are more of them than columns.
 * Answers are in rows, of which the report has a limited number, too.
 */
static enum exit_code choose_columns(struct gathering *g, struct snapshot_request *request)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	const struct wire_windows_request windows = {
		.since_ns = g->span.since_ns,
		.until_ns = g->span.until_ns,
		.probe = probe_names[REPORT_OFFCPU],
	};
	int64_t length = g->span.until_ns - g->span.since_ns, rows;
	struct wire_windows_reply reply;
	enum exit_code code = fetch_windows(g->options, &windows, arena, &reply);

	if (code != EXIT_CODE_OK)
		return code;
	g->n_expected = reply.windows.n;
	if (g->n_expected > REPORT_COLUMNS_MAX) {
		g->each_ns = (length / REPORT_COLUMNS_MAX / NS_PER_S + 1) * NS_PER_S;
		g->n_expected = (size_t)(length / g->each_ns) + 1;
	}
	rows = REPORT_ROWS_MAX / (int64_t)(g->n_expected + 1);
	request->request.top = rows > REPORT_ROWS_LEAST ? rows : REPORT_ROWS_LEAST;
	request->request.each_ns = g->each_ns;
	return EXIT_CODE_OK;
}

/* Asks for all that a report has. */
static enum exit_code gather(struct gathering *g, struct snapshot_request *request, bool is_now)
{
	enum exit_code code = choose_columns(g, request);

	for (g->probe = 0; g->probe < REPORT_PROBES && code == EXIT_CODE_OK; g->probe++)
		code = ask_probe(g, request);
	if (code == EXIT_CODE_OK)
		code = ask_open(g, request, is_now);
	return code;
}

static int prepare(struct options *options, struct snapshot_request *request,
		   struct wire_span *span, int64_t now)
{
	struct range range;
	int r = range_resolve(options, now, &range);

	if (r < 0)
		return r;
	if (range.window_ns == WIRE_ABSENT && range.since_ns == WIRE_ABSENT)
		range.window_ns = RANGE_DEFAULT;
	span->until_ns = range.until_ns == WIRE_ABSENT ? now : range.until_ns;
	span->since_ns =
		range.since_ns == WIRE_ABSENT ? span->until_ns - range.window_ns : range.since_ns;
	/* They are in `span` now. */
	options->window = options->since = options->until = options->at = NULL;
	r = snapshot_request_init(request, options, probe_names[REPORT_OFFCPU], false, now);
	request->request.since_ns = span->since_ns;
	request->request.until_ns = span->until_ns;
	request->request.idle = 1;
	request->request.groups = 1;
	return r;
}

/* Writes the words of the command line that select threads, for people. */
static char *filter_words(const struct options *options)
{
	const struct {
		const char *name;
		const struct name_list *values;
	} names[] = {
		{ "comm", &options->comms },	     { "cgroup", &options->cgroups },
		{ "unit", &options->units },	     { "function", &options->in_functions },
		{ "callers", &options->callers },    { "host", &options->hosts },
		{ "not-comm", &options->not_comms }, { "not-cgroup", &options->not_cgroups },
		{ "not-unit", &options->not_units }, { "not-function", &options->not_functions },
	};
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	for (size_t i = 0; i < options->pids.n; i++)
		fprintf(out, "%s%" PRId64, i ? "," : "--pid ", options->pids.v[i]);
	for (size_t i = 0; i < options->tids.n; i++)
		fprintf(out, "%s%" PRId64, i ? "," : "--tid ", options->tids.v[i]);
	for (size_t i = 0; i < options->not_pids.n; i++)
		fprintf(out, "%s%" PRId64, i ? "," : " --not-pid ", options->not_pids.v[i]);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (size_t k = 0; k < names[i].values->n; k++)
			fprintf(out, " --%s %s", names[i].name, names[i].values->v[k]);
	for (size_t i = 0; i < options->reasons.n; i++)
		fprintf(out, "%s%s", i ? "," : " --reason ", options->reasons.v[i]);
	for (size_t i = 0; i < options->not_reasons.n; i++)
		fprintf(out, "%s%s", i ? "," : " --not-reason ", options->not_reasons.v[i]);
	for (size_t i = 0; i < options->not_states.n; i++)
		fprintf(out, "%s%s", i ? "," : " --not-state ", options->not_states.v[i]);
	if (options->user_threads || options->kernel_threads)
		fprintf(out, " --%s-threads", options->user_threads ? "user" : "kernel");
	for (size_t i = 0; i < options->states.n; i++)
		fprintf(out, "%s%s", i ? "," : " --state ", options->states.v[i]);
	if (options->min_block_ns != WIRE_ABSENT)
		fprintf(out, " --min-block-time %s", ns_text(options->min_block_ns));
	if (options->max_block_ns != WIRE_ABSENT)
		fprintf(out, " --max-block-time %s", ns_text(options->max_block_ns));
	if (fclose(out) != 0)
		must(NULL);
	return must(text);
}

/* Says on standard error what the page does not have. */
static void report_cut(const struct report_data *data, const struct report_cut *cut)
{
	if (cut->rows > 0)
		print_message("left out %s small rows with %s (%s of the time), to keep within "
			      "--max-size: they are one row for each window",
			      count_text((long long)cut->rows), ns_text(cut->total),
			      share_text(cut->part, 1000000));
	for (enum report_probe i = 0; i < REPORT_IOLAT; i++)
		if (data->n_unsent[i] > 0)
			print_message(
				"%s small rows of %s are not listed: they are one row for each "
				"window",
				count_text(data->n_unsent[i]), probe_names[i]);
}

/* True if a trace is wanted, not a page. */
static bool is_trace(const struct options *options)
{
	if (options->report_format)
		return strcmp(options->report_format, "perfetto") == 0;
	return options->output && format_is_trace_file(options->output);
}

static enum exit_code write_page(const struct options *options, struct report_data *data,
				 const struct report_head *head)
{
	int64_t max_size = options->max_size == WIRE_ABSENT ? MAX_SIZE_DEFAULT : options->max_size;
	struct report_cut cut;
	struct output output;
	enum exit_code code = output_open(&output, options->output, "report", "html", head->made);

	if (code != EXIT_CODE_OK)
		return code;
	if (report_page_write(data, head, max_size, output.out, &cut) < 0) {
		print_message("--max-size %" PRId64 " is too small even for a page without rows: a "
			      "larger one, or a shorter range",
			      max_size);
		output_discard(&output);
		return EXIT_CODE_USAGE;
	}
	code = output_close(&output);
	if (code == EXIT_CODE_OK)
		report_cut(data, &cut);
	return code;
}

static enum exit_code write_trace(const struct options *options, const struct report_data *data,
				  const struct report_head *head)
{
	struct output output;
	enum exit_code code =
		output_open(&output, options->output, "report", "pftrace", head->made);

	if (code != EXIT_CODE_OK)
		return code;
	report_trace_write(data, head, output.out);
	return output_close(&output);
}

static enum exit_code write_report(const struct options *options, struct report_data *data,
				   const struct wire_span *span, int64_t now)
{
	_cleanup_(freep) char *filter = filter_words(options);
	struct utsname host;
	const struct report_head head = {
		.host = options->fleet	    ? "a fleet of hosts"
			: uname(&host) == 0 ? host.nodename
					    : "",
		.filter = filter,
		.made = now,
		.asked_start = span->since_ns,
		.asked_end = span->until_ns,
	};

	return is_trace(options) ? write_trace(options, data, &head)
				 : write_page(options, data, &head);
}

/* Checks the words that only this verb has. */
static int check(struct options *options)
{
	const char *suffix = options->output ? strrchr(options->output, '.') : NULL;
	bool is_directory = options->output && options->output[strlen(options->output) - 1] == '/';

	if (!options->output && isatty(STDOUT_FILENO))
		return option_complain(options, "a report is no text for a terminal: --output "
						"incident.html");
	if (is_trace(options) && options->max_size != WIRE_ABSENT)
		return option_complain(options, "--max-size is of pages; a trace has the longest "
						"waits only, and is small");
	if (!options->report_format && !is_trace(options) && suffix && !is_directory &&
	    !strchr(suffix, '/') && !format_is_page_file(options->output))
		return option_complain(
			options,
			"--output %s: a report is a page, as in incident.html, or a trace, as in "
			"x.pftrace; for a flame graph alone: stackctl snapshot --output x.svg",
			options->output);
	return 0;
}

enum exit_code cmd_report(struct options *options)
{
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct snapshot_request request;
	struct report_data data;
	struct gathering g = {
		.options = options,
		.data = &data,
		.shows_progress = term_has_escapes(STDERR_FILENO),
	};
	enum exit_code code;
	struct view view;
	bool is_now = !options->until && !options->at;

	if (check(options) < 0 || prepare(options, &request, &g.span, now) < 0) {
		print_message("%s", options->message);
		return EXIT_CODE_USAGE;
	}
	view = snapshot_view(options, stdout);
	report_data_init(&data, &view, g.span.since_ns);
	data.is_of_lengths =
		options->min_block_ns != WIRE_ABSENT || options->max_block_ns != WIRE_ABSENT;
	code = gather(&g, &request, is_now);
	if (code == EXIT_CODE_OK && data.n_columns == 0) {
		print_message("no data in the range%s%s", data.missing[0] ? ": " : "",
			      data.missing[0] ? data.missing[0] : "");
		code = EXIT_CODE_NO_DATA;
	} else if (code == EXIT_CODE_OK && options_name_somebody(options) && data.n_rows == 0 &&
		   data.n_latencies == 0 && data.n_open == 0) {
		print_message("no thread of the filter was seen in the range");
		code = EXIT_CODE_NO_DATA;
	}
	if (code == EXIT_CODE_OK) {
		report_data_finish(&data);
		code = write_report(options, &data, &g.span, now);
	}
	report_data_fini(&data);
	if (code == EXIT_CODE_OK && options->strict && g.n_incomplete > 0) {
		print_message("not complete: %zu windows have gaps or losses", g.n_incomplete);
		code = EXIT_CODE_PARTIAL;
	}
	return code;
}
