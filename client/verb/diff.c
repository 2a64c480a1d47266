/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/call/named.h"
#include "client/call/output.h"
#include "client/call/snapshot.h"
#include "client/option/range.h"
#include "client/render/diff.h"
#include "client/render/formats.h"
#include "client/verb/verb.h"
#include "common/base.h"
#include "common/probe_kind.h"
#include "common/text.h"
#include "proto/codec.h"

static const char *const side_names[DIFF_SIDES] = { "base", "new" };

struct comparison {
	struct diff diff;
	enum diff_side side;		  /* the answer that comes next, or is coming */
	bool has_begun;			  /* its first reply has come */
	size_t n;			  /* number of its rows that have come */
	bool is_of_two;			  /* each answer has a call of its own */
	struct arena *arenas[DIFF_SIDES]; /* memory of the first replies */
};

/* Adds a reply. To be used as a reply_handler. */
static int on_reply(const struct varlink_message *message, void *context)
{
	_cleanup_(arena_freep) struct arena *arena = must(arena_new());
	struct comparison *c = context;
	struct wire_snapshot_reply reply;
	bool is_first = !c->has_begun;
	int r = snapshot_reply_decode(message, arena, &reply, NULL);

	if (r < 0)
		return r;
	r = collection_check_reply(&reply);
	if (r < 0)
		return r;
	if (c->side == DIFF_SIDES)
		return -EINVAL;
	diff_add(&c->diff, c->side, &reply, is_first);
	if (is_first)
		c->arenas[c->side] = TAKE(arena);
	c->has_begun = true;
	c->n += reply.rows.n;
	if ((int64_t)c->n >= reply.shown.rows && !c->is_of_two) {
		c->side++;
		c->has_begun = false;
		c->n = 0;
	}
	return 0;
}

static enum exit_code ask(const struct options *options, struct comparison *c,
			  const struct wire_snapshot_request *request)
{
	_cleanup_(text_fini) struct text text = {};

	text_init(&text, VARLINK_MAX_REPLY);
	snapshot_request_encode(request, VARLINK_MORE, &text);
	return call_run_named(options, &text, on_reply, c, NULL);
}

/* Asks for all rows of two ranges of a probe or session, in one call. */
static enum exit_code ask_ranges(const struct options *options, struct comparison *c,
				 struct snapshot_request *request,
				 const struct wire_span spans[static DIFF_SIDES])
{
	enum exit_code code;

	request->ranges[DIFF_BASE] = spans[DIFF_BASE];
	request->ranges[DIFF_NEW] = spans[DIFF_NEW];
	request->request.ranges = (struct wire_spans){ request->ranges, DIFF_SIDES };
	code = ask(options, c, &request->request);
	if (code == EXIT_CODE_OK && c->side != DIFF_SIDES) {
		print_message("the answer is not complete");
		return EXIT_CODE_IO;
	}
	return code;
}

/*
 * Asks for a range, and then for the time as long as its windows that ends where they begin: no
 * window is in both.
 */
static enum exit_code ask_before(const struct options *options, struct comparison *c,
				 struct snapshot_request *request, const struct wire_span *span)
{
	const struct wire_range *used = &c->diff.sides[DIFF_NEW].coverage.used;
	enum exit_code code;
	int64_t length;

	c->is_of_two = true;
	request->request.ranges = (struct wire_spans){ request->ranges, 1 };
	request->ranges[0] = *span;
	c->side = DIFF_NEW;
	code = ask(options, c, &request->request);
	if (code != EXIT_CODE_OK)
		return code;
	length = used->end - used->start;
	request->ranges[0] = (struct wire_span){ used->start - length, used->start };
	c->side = DIFF_BASE;
	c->has_begun = false;
	return ask(options, c, &request->request);
}

/* Asks for all rows of two sessions or probes. */
static enum exit_code ask_two(const struct options *options, struct comparison *c,
			      struct snapshot_request *request)
{
	const char *const names[DIFF_SIDES] = { options->argument, options->function };
	enum exit_code code = EXIT_CODE_OK;

	c->is_of_two = true;
	for (c->side = DIFF_BASE; c->side < DIFF_SIDES && code == EXIT_CODE_OK; c->side++) {
		bool is_probe = snapshot_is_probe(names[c->side]);

		request->request.probe = is_probe ? names[c->side] : NULL;
		request->request.session = is_probe ? NULL : names[c->side];
		c->has_begun = false;
		code = ask(options, c, &request->request);
	}
	return code;
}

/*
 * Checks that there is something to compare. Says so if the threads that the options name were seen
 * in one range only.
 */
static enum exit_code check_sides(const struct options *options, const struct comparison *c)
{
	const struct wire_snapshot_reply *sides = c->diff.sides;
	bool is_empty[DIFF_SIDES];

	for (enum diff_side i = 0; i < DIFF_SIDES; i++) {
		if (!sides[i].missing && c->diff.covered[i] > 0)
			continue;
		print_message("no data in the %s range%s%s", side_names[i],
			      sides[i].missing ? ": " : "",
			      sides[i].missing ? sides[i].missing : "");
		return EXIT_CODE_NO_DATA;
	}
	if (strcmp(sides[DIFF_BASE].probe, sides[DIFF_NEW].probe) != 0) {
		print_message(
			"the one is of the probe %s, the other one of %s: they have no rows in "
			"common",
			sides[DIFF_BASE].probe, sides[DIFF_NEW].probe);
		return EXIT_CODE_USAGE;
	}
	for (enum diff_side i = 0; i < DIFF_SIDES; i++)
		is_empty[i] = snapshot_is_empty(options, &sides[i]);
	if (is_empty[DIFF_BASE] && is_empty[DIFF_NEW]) {
		print_message("no thread of the filter was seen in either range");
		return EXIT_CODE_NO_DATA;
	}
	if (is_empty[DIFF_BASE] || is_empty[DIFF_NEW])
		print_message("no thread of the filter was seen in the %s range",
			      side_names[is_empty[DIFF_BASE] ? DIFF_BASE : DIFF_NEW]);
	return EXIT_CODE_OK;
}

static enum exit_code print(const struct options *options, struct comparison *c, struct view *view,
			    int64_t now)
{
	enum exit_code code, strict = EXIT_CODE_OK;
	struct output output;

	code = output_open(&output, options->output, "diff", options->format->suffix, now);
	if (code != EXIT_CODE_OK)
		return code;
	*view = snapshot_view(options, output.out);
	if (!options->format->is_for_people && !view->top_is_given)
		view->top = 0;
	diff_finish(&c->diff);
	options->format->diff(&c->diff);
	code = output_close(&output);
	for (enum diff_side i = 0; i < DIFF_SIDES && strict == EXIT_CODE_OK; i++)
		strict = snapshot_check_complete(options, side_names[i], &c->diff.sides[i]);
	return code != EXIT_CODE_OK ? code : strict;
}

/*
 * Fills a request for all rows. The ranges are not in it: they are resolved into `spans`, or, of
 * two sessions, not given.
 */
static int prepare(struct options *options, struct snapshot_request *request,
		   struct wire_span spans[static DIFF_SIDES], int64_t now)
{
	bool is_of_two = options->function != NULL;
	int r = 0;

	if (is_of_two &&
	    (options->window || options->since || options->until || options->at || options->base))
		return option_complain(options,
				       "two sessions are compared as a whole: without --%s",
				       options->base	 ? "base"
				       : options->window ? options->window_name
				       : options->since	 ? "since"
				       : options->at	 ? "at"
							 : "until");
	if (!is_of_two)
		r = range_and_base(options, now, &spans[DIFF_NEW], &spans[DIFF_BASE]);
	if (r < 0)
		return r;
	/* They are in `spans` now. The request points into the options. */
	options->window = options->since = options->until = options->at = NULL;
	r = snapshot_request_init(request, options, options->argument, false, now);
	snapshot_request_set_lines(request, options);
	request->request.top = 0;
	request->request.reverse = WIRE_BOOL_ABSENT;
	request->request.groups = WIRE_BOOL_ABSENT;
	return r;
}

/*
 * True if the text or the picture shows sleeps of idle threads, and no other idle waits. The daemon
 * has them only with all idle rows. A session may be about threads that its filter names: all their
 * rows are shown.
 */
static bool shows_sleeps(const struct options *options)
{
	enum probe_kind kind;

	return (options->format->is_for_people || options->format == &format_svg) &&
	       !options->idle && !options->no_idle && !options_name_somebody(options) &&
	       probe_kind_find(options->argument, &kind) && probe_kind_has(kind, PROBE_OPEN_WAITS);
}

/* True if rows have no stacks, or the text shows none. */
static bool is_by_line(const struct options *options, const char *by)
{
	if (!by || strcmp(by, "stack") == 0)
		return false;
	return strcmp(by, "line") == 0 ||
	       (options->format->is_for_people && snapshot_has_lines(options));
}

enum exit_code cmd_diff(struct options *options)
{
	struct wire_span spans[DIFF_SIDES];
	int64_t now = clock_ns(CLOCK_REALTIME);
	struct snapshot_request request;
	struct comparison c = {};
	enum exit_code code;
	struct view view;

	if (!options->argument || options->argument[0] == '\0')
		options->argument = "offcpu";
	if (prepare(options, &request, spans, now) < 0) {
		print_message("%s", options->message);
		return EXIT_CODE_USAGE;
	}
	view = snapshot_view(options, stdout);
	diff_init(&c.diff, &view);
	c.diff.hides_idle = shows_sleeps(options);
	if (c.diff.hides_idle)
		request.request.idle = 1;
	c.diff.has_lines = is_by_line(options, request.request.by);
	c.diff.has_ids = options->by && (strcmp(options->by, "process") == 0 ||
					 strcmp(options->by, "thread") == 0);
	if (options->function)
		code = ask_two(options, &c, &request);
	else if (spans[DIFF_BASE].since_ns == WIRE_ABSENT)
		code = ask_before(options, &c, &request, &spans[DIFF_NEW]);
	else
		code = ask_ranges(options, &c, &request, spans);
	if (code == EXIT_CODE_OK)
		code = check_sides(options, &c);
	if (code == EXIT_CODE_OK)
		code = print(options, &c, &view, now);
	diff_fini(&c.diff);
	for (enum diff_side i = 0; i < DIFF_SIDES; i++)
		arena_free(c.arenas[i]);
	return code;
}
