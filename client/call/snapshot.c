/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/call/snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/pager.h"
#include "client/option/options.h"
#include "client/option/range.h"
#include "client/render/coverage.h"
#include "client/render/formats.h"
#include "client/render/iolat.h"
#include "common/array.h"
#include "common/base.h"
#include "common/probe_kind.h"
#include "proto/codec.h"

enum { TOP_DEFAULT = 20, TOP_OF_SLICE = 1, TOP_ALL = 0 };

_Static_assert(ARRAY_SIZE(((struct snapshot_request *)0)->states) == OPTION_STATES_MAX,
	       "a request holds as many states as an option");
_Static_assert(ARRAY_SIZE(((struct snapshot_request *)0)->reasons) == OPTION_REASONS_MAX,
	       "a request holds as many reasons as an option");
_Static_assert(ARRAY_SIZE(((struct snapshot_request *)0)->ranges) == OPTION_RANGES_MAX,
	       "a request holds as many ranges as an option");

/* The fields are the operation in a row of iolat, and the state in a row of waits. */
int collection_check_reply(const struct wire_snapshot_reply *reply)
{
	for (size_t i = 0; i < reply->rows.n; i++)
		if (reply_is_iolat(reply)    ? !reply->rows.v[i].io
		    : reply_has_calls(reply) ? false
					     : !reply->rows.v[i].state && !reply_is_sampled(reply))
			return -EINVAL;
	return 0;
}

bool collection_is_whole(const struct collection *c)
{
	return c->has_reply && (int64_t)c->n >= c->reply.shown.rows;
}

int collection_add_reply(struct collection *c, const struct wire_snapshot_reply *reply)
{
	int r = collection_check_reply(reply);

	if (r < 0)
		return r;
	r = array_reserve(c->rows, c->capacity, c->n + reply->rows.n);
	if (r < 0)
		return r;
	if (reply->rows.n > 0)
		memcpy(c->rows + c->n, reply->rows.v, reply->rows.n * sizeof *reply->rows.v);
	c->n += reply->rows.n;
	if (!c->has_reply)
		c->reply = *reply;
	c->has_reply = true;
	c->reply.rows = (struct wire_rows){ c->rows, c->n };
	return 0;
}

int collection_add(const struct varlink_message *message, void *context)
{
	struct collection *c = context;
	struct wire_snapshot_reply reply;
	int r = snapshot_reply_decode(message, c->arena, &reply, NULL);

	return r < 0 ? r : collection_add_reply(c, &reply);
}

/* Returns the name in a list of one; NULL if there is none, or if there are several. */
static const char *only_name(const struct name_list *names)
{
	return names->n == 1 ? names->v[0] : NULL;
}

/* Returns the names of a list of several; an empty list if there is at most one. */
static struct wire_strs several_names(const struct name_list *names)
{
	return names->n > 1 ? (struct wire_strs){ names->v, names->n } : (struct wire_strs){};
}

void snapshot_filter_init(struct snapshot_request *request, const struct options *options)
{
	for (size_t i = 0; i < options->states.n; i++)
		request->states[i] = options->states.v[i];
	for (size_t i = 0; i < options->reasons.n; i++)
		request->reasons[i] = options->reasons.v[i];
	for (size_t i = 0; i < options->not_states.n; i++)
		request->not_states[i] = options->not_states.v[i];
	for (size_t i = 0; i < options->not_reasons.n; i++)
		request->not_reasons[i] = options->not_reasons.v[i];
	request->filter = (struct wire_filter){
		.pids = { options->pids.v, options->pids.n },
		.tids = { options->tids.v, options->tids.n },
		.user_threads = options->user_threads ? 1 : WIRE_BOOL_ABSENT,
		.kernel_threads = options->kernel_threads ? 1 : WIRE_BOOL_ABSENT,
		.user_stacks = options->user_stacks ? 1 : WIRE_BOOL_ABSENT,
		.kernel_stacks = options->kernel_stacks ? 1 : WIRE_BOOL_ABSENT,
		.min_block_ns = options->min_block_ns,
		.max_block_ns = options->max_block_ns,
		.cpus = { options->cpus.v, options->cpus.n },
		.states = { request->states, options->states.n },
		.reasons = { request->reasons, options->reasons.n },
		.comm = only_name(&options->comms),
		.cgroup = only_name(&options->cgroups),
		.unit = only_name(&options->units),
		.comms = several_names(&options->comms),
		.cgroups = several_names(&options->cgroups),
		.units = several_names(&options->units),
		.not_pids = { options->not_pids.v, options->not_pids.n },
		.not_states = { request->not_states, options->not_states.n },
		.not_reasons = { request->not_reasons, options->not_reasons.n },
		.not_comms = { options->not_comms.v, options->not_comms.n },
		.not_cgroups = { options->not_cgroups.v, options->not_cgroups.n },
		.not_units = { options->not_units.v, options->not_units.n },
		.functions = { options->in_functions.v, options->in_functions.n },
		.not_functions = { options->not_functions.v, options->not_functions.n },
		.callers = { options->callers.v, options->callers.n },
		.hosts = { options->hosts.v, options->hosts.n },
		.layer = options->layer,
		.op = options->op,
		.disk = options->disk,
	};
}

/*
 * Returns how many lines of text a screen shows above the prompt and below the messages that were
 * printed. A pager gets one line less: less -F does not end by itself if the text fills the screen
 * but for one line (version 590).
 */
static size_t screen_lines(void)
{
	size_t lines, columns, others = pager_is_open() ? 2 : 1;

	if (term_is_terminal(STDERR_FILENO))
		others += message_count();
	term_size(STDOUT_FILENO, &lines, &columns);
	return lines > others ? lines - others : 1;
}

/* Returns how many rows to ask for by default: as many as may fit on a screen, if it is one. */
static int64_t screen_rows(const struct options *options)
{
	size_t lines = screen_lines();
	bool is_screen =
		!options->output && snapshot_has_lines(options) && term_is_terminal(STDOUT_FILENO);

	return is_screen && lines > TOP_DEFAULT ? (int64_t)lines : TOP_DEFAULT;
}

/*
 * Returns how many rows to ask the daemon for; TOP_ALL: all. The text of `stackctl stuck` needs all
 * rows, because the client sorts them in an order of its own. Formats for programs have all rows,
 * too, unless --top was given.
 */
static int64_t rows_to_ask(const struct options *options, bool is_stuck)
{
	/* --fail has to see which rows are of waits that may be over. */
	if (options->fail || options->format->has_all_rows || options->breakdown ||
	    options->over_time || (is_stuck && options->format->stuck && !options->by))
		return TOP_ALL;
	if (options->top != WIRE_ABSENT)
		return options->top;
	if (options->each_ns != WIRE_ABSENT && options->format->is_for_people)
		return TOP_OF_SLICE;
	if (!options->format->is_for_people)
		return TOP_ALL;
	return screen_rows(options);
}

bool snapshot_is_probe(const char *text)
{
	enum probe_kind kind;

	return probe_kind_find(text, &kind);
}

bool snapshot_has_lines(const struct options *options)
{
	return !options->stacks && !options->verbose && !options->lines && !options->debuginfod &&
	       !options->offset && !options->annotations && !options->user_stacks &&
	       !options->kernel_stacks && !options->chain && !options->queued &&
	       !options->breakdown && !options->over_time && !options->milliseconds;
}

void snapshot_request_set_lines(struct snapshot_request *request, const struct options *options)
{
	if (!options->by && options->format->is_for_people && snapshot_has_lines(options))
		request->request.by = "line";
}

/*
 * True if one line for stackd's own threads is enough: the text has lines, and none of them is for
 * a control group, in which stackd is with others.
 */
static bool folds_own(const struct options *options)
{
	return options->format->is_for_people && snapshot_has_lines(options) &&
	       (!options->by ||
		(strcmp(options->by, "cgroup") != 0 && strcmp(options->by, "unit") != 0 &&
		 strcmp(options->by, "container") != 0 && strcmp(options->by, "user") != 0));
}

int snapshot_request_init(struct snapshot_request *request, struct options *options,
			  const char *probe, bool is_stuck, int64_t now)
{
	struct range range;
	int r = range_resolve(options, now, &range);

	if (r < 0)
		return r;
	r = ranges_resolve(options, now, request->ranges);
	if (r < 0)
		return r;
	snapshot_filter_init(request, options);
	/*
	 * `stackctl stuck` derives what a thread waits for from both stacks, even if it prints only
	 * one.
	 */
	if (is_stuck && options->format->stuck)
		request->filter.user_stacks = request->filter.kernel_stacks = WIRE_BOOL_ABSENT;
	/*
	 * The newest window contains every wait that has not ended; a longer range would only add
	 * gaps.
	 */
	if (is_stuck && range.window_ns == WIRE_ABSENT && range.since_ns == WIRE_ABSENT)
		range.window_ns = NS_PER_S;
	request->request = (struct wire_snapshot_request){
		.probe = snapshot_is_probe(probe) ? probe : NULL,
		.session = snapshot_is_probe(probe) ? NULL : probe,
		.window_ns = range.window_ns,
		.since_ns = range.since_ns,
		.until_ns = range.until_ns,
		.filter = &request->filter,
		.open = is_stuck ? 1 : WIRE_BOOL_ABSENT,
		.by = options->over_time	 ? "window"
		      : is_stuck && !options->by ? "thread"
						 : options->by,
		.sort = is_stuck ? "max" : options->sort,
		.reverse = options->reverse ? 1 : WIRE_BOOL_ABSENT,
		.top = rows_to_ask(options, is_stuck),
		/*
		 * Idle threads are included in formats that other programs read, where each row
		 * says whether it is idle. In text and pictures, the daemon decides by the filter.
		 */
		.idle = options->no_idle ? 0
			: options->idle	 ? 1
			: options->fail	 ? 0
			: options->format->is_for_people || options->format->leaves_out_idle
				? WIRE_BOOL_ABSENT
				: 1,
		.lines = options->lines ? 1 : WIRE_BOOL_ABSENT,
		.addresses = options->lines || options->verbose || options->offset
				     ? 1
				     : WIRE_BOOL_ABSENT,
		.fold_own = folds_own(options) ? 1 : WIRE_BOOL_ABSENT,
		.build_ids =
			options->build_ids || options->debuginfod || options->format->has_build_ids
				? 1
				: WIRE_BOOL_ABSENT,
		/* JSON has the unit, module and own function of each row with stacks. */
		.groups = strcmp(options->format->name, "json") == 0 ? 1 : WIRE_BOOL_ABSENT,
		.stacks_once = WIRE_BOOL_ABSENT,
		.each_ns = options->each_ns,
		.ranges = { request->ranges, options->ranges.n },
	};
	return 0;
}

struct view snapshot_view(const struct options *options, FILE *out)
{
	bool is_terminal = out == stdout && term_is_terminal(STDOUT_FILENO);
	const char *sort = options->sort ? options->sort : "";

	return (struct view){
		.page = {
			.out = out,
			.width = is_terminal ? (size_t)term_width(STDOUT_FILENO) :
					       TERM_WIDTH_DEFAULT,
			.has_colour = out == stdout && term_has_colour(STDOUT_FILENO),
			.cuts_names = is_terminal,
		},
		.is_short = options->is_short,
		.lines = options->lines,
		.offset = options->offset,
		.verbose = options->verbose,
		.annotations = options->annotations,
		.delimited = options->delimited,
		.chain = options->chain,
		.by_max = strcmp(sort, "max") == 0,
		.milliseconds = options->milliseconds,
		.queued = options->queued,
		.breakdown = options->breakdown,
		.over_time = options->over_time,
		.by_process = options->by && strcmp(options->by, "process") == 0,
		.histograms = options->verbose || options->queued,
		.layer = options->layer,
		.reverse = options->reverse,
		.picks_waits = options_pick_rows(options),
		.has_lines = snapshot_has_lines(options),
		.names_threads = options_name_somebody(options),
		.height = is_terminal && options->top == WIRE_ABSENT ? screen_lines() : 0,
		.has_utf8 = term_has_utf8(),
		.by_stack = !options->by,
		.by = options->by,
		.top = options->top != WIRE_ABSENT ? options->top : TOP_DEFAULT,
		.top_is_given = options->top != WIRE_ABSENT,
	};
}

void snapshot_render(const struct options *options, const struct view *with, bool is_stuck,
		     const struct wire_snapshot_reply *reply)
{
	const struct format *format = options->format;
	struct view view = *with;

	view.hides_kernel = is_stuck && options->user_stacks;
	view.hides_user = is_stuck && options->kernel_stacks;
	if (is_stuck && format->stuck)
		format->stuck(&view, reply);
	else
		format_print(format, &view, reply);
}

enum exit_code snapshot_check_complete(const struct options *options, const char *what,
				       const struct wire_snapshot_reply *reply)
{
	if (!options->strict || reply->coverage.complete)
		return EXIT_CODE_OK;
	print_message("not complete: %s%s%s of %s covered, %zu gap%s, %s lost", what ? what : "",
		      what ? ": " : "", ns_text(reply->coverage.covered_ns),
		      ns_text(reply->coverage.asked_ns), reply->coverage.gaps.n,
		      reply->coverage.gaps.n == 1 ? "" : "s", count_text(lost_count(&reply->lost)));
	return EXIT_CODE_PARTIAL;
}

size_t count_doubtful_rows(const struct wire_rows *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++)
		n += rows->v[i].unseen > 0 && rows->v[i].unseen >= rows->v[i].open;
	return n;
}

bool snapshot_is_empty(const struct options *options, const struct wire_snapshot_reply *reply)
{
	return reply->coverage.windows == 0 ||
	       (options_name_somebody(options) && reply->totals.threads == 0);
}
