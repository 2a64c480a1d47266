/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/option/range.h"

#include <errno.h>
#include <stdbool.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/option/options.h"
#include "common/base.h"
#include "common/duration.h"
#include "common/when.h"
#include "proto/wire.h"

#define NS_PER_DAY (86400 * NS_PER_S)

static int read_window(struct options *options, int64_t now, int64_t *ns)
{
	int r = duration_parse(options->window, NS_PER_S, ns);

	if (r == -EINVAL)
		return option_complain(
			options,
			"--window %s: not a length of time; 30s, 5min or 1h 30min would be",
			options->window);
	if (r < 0 || *ns > now)
		return option_complain(options, "--window %s: too long", options->window);
	if (*ns == 0)
		return option_complain(options, "--window %s: has to be more than 0",
				       options->window);
	return 0;
}

static int read_when(struct options *options, const char *name, const char *text,
		     const struct when_context *context, int64_t *ns)
{
	int r = when_parse(text, context, ns);

	if (r == -EINVAL)
		return option_complain(options, "--%s %s: not a time; %s would be", name, text,
				       when_grammar());
	if (r < 0 || *ns < 0)
		return option_complain(options, "--%s %s: too far away", name, text);
	return 0;
}

static int refuse_future(struct options *options, const char *name, const char *text, int64_t ns,
			 int64_t now)
{
	char when[TERM_TIME_MAX], present[TERM_TIME_MAX];

	if (ns <= now)
		return 0;
	time_format(ns, TIME_FULL, when);
	time_format(now, TIME_FULL, present);
	return option_complain(options, "--%s %s: %s is in the future, it is %s now", name, text,
			       when, present);
}

/*
 * Prints a message if a time of day was taken to be on another day than today. For example, at
 * 06:30 the time 07:00 is taken to be yesterday's, but the user may have meant today's.
 */
static void note_day(const char *name, const char *text, int64_t ns, int64_t now)
{
	char when[TERM_TIME_MAX];

	if (!when_is_clock(text) || time_same_day(ns, now))
		return;
	time_format(ns, TIME_FULL, when);
	if (time_same_day(ns + NS_PER_DAY, now))
		print_message("--%s %s was taken as yesterday %s (%s)", name, text, text, when);
	else
		print_message("--%s %s was taken as %s", name, text, when);
}

static int read_at(struct options *options, int64_t now, struct range *out)
{
	const struct when_context context = { WHEN_AT, now, INT64_MIN };
	int64_t ns;
	int r;

	r = read_when(options, "at", options->at, &context, &ns);
	if (r < 0)
		return r;
	r = refuse_future(options, "at", options->at, ns, now);
	if (r < 0)
		return r;
	note_day("at", options->at, ns, now);
	/*
	 * A range must not be empty: this one is 1 ns long. The daemon extends it to the window
	 * that contains it.
	 */
	out->since_ns = ns;
	out->until_ns = ns + 1;
	return 0;
}

static int refuse_order(struct options *options, int64_t since, int64_t until)
{
	char from[TERM_TIME_MAX], to[TERM_TIME_MAX];

	time_format(since, TIME_FULL, from);
	time_format(until, TIME_FULL, to);
	return option_complain(options, "--since %s is %s, and --until %s is %s: not after it",
			       options->since, from, options->until, to);
}

/*
 * Refuses --until if it is not after --since. If --until is a time of day, it means the first such
 * time after --since. If that time is on a future day and more than half a day after --since, the
 * user has probably swapped the two options, and it is refused, too.
 */
static int check_until(struct options *options, int64_t now, int64_t since, int64_t until)
{
	const struct when_context latest = { WHEN_SINCE, now, INT64_MIN };
	int64_t today;

	if (until <= since)
		return refuse_order(options, since, until);
	if (!when_is_clock(options->until) || until <= now || time_same_day(until, now) ||
	    until - since <= NS_PER_DAY / 2)
		return 0;
	return when_parse(options->until, &latest, &today) < 0
		       ? 0
		       : refuse_order(options, since, today);
}

static int read_until(struct options *options, int64_t now, int64_t since, struct range *out)
{
	const struct when_context context = { WHEN_UNTIL, now, since };
	int64_t until;
	int r;

	r = read_when(options, "until", options->until, &context, &until);
	if (r < 0)
		return r;
	r = check_until(options, now, since, until);
	if (r < 0)
		return r;
	if (until > now)
		print_message("--until %s is in the future: up to now", options->until);
	else
		out->until_ns = until;
	return 0;
}

static int read_since(struct options *options, int64_t now, struct range *out)
{
	const struct when_context context = { WHEN_SINCE, now, INT64_MIN };
	int64_t since;
	int r;

	r = read_when(options, "since", options->since, &context, &since);
	if (r < 0)
		return r;
	if (since <= now && options->until) {
		r = read_until(options, now, since, out);
		if (r < 0)
			return r;
	}
	r = refuse_future(options, "since", options->since, since, now);
	if (r < 0)
		return r;
	note_day("since", options->since, since, now);
	out->since_ns = since;
	return 0;
}

int range_resolve(struct options *options, int64_t now, struct range *out)
{
	struct range range = { WIRE_ABSENT, WIRE_ABSENT, WIRE_ABSENT };
	int r = 0;

	if (!!options->window + !!options->since + !!options->at > 1)
		return option_complain(options,
				       "--window, --since and --at exclude each other: each "
				       "says where the range begins");
	if (options->until && !options->since)
		return option_complain(options,
				       "--until needs --since: from when on? The window of one "
				       "moment is --at %s",
				       options->until);
	if (options->window)
		r = read_window(options, now, &range.window_ns);
	else if (options->since)
		r = read_since(options, now, &range);
	else if (options->at)
		r = read_at(options, now, &range);
	if (r < 0)
		return r;
	*out = range;
	return 0;
}
