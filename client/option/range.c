/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/option/range.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/option/options.h"
#include "common/base.h"
#include "common/duration.h"
#include "common/when.h"
#include "proto/wire.h"

#define NS_PER_DAY	 (86400 * NS_PER_S)
#define RANGE_DEFAULT_NS (30 * NS_PER_S)

static int read_window(struct options *options, int64_t now, int64_t *ns)
{
	int r = duration_parse(options->window, NS_PER_S, ns);

	if (r == -EINVAL)
		return option_complain(
			options, "--%s %s: not a length of time; 30s, 5min or 1h 30min would be",
			options->window_name, options->window);
	if (r < 0 || *ns > now)
		return option_complain(options, "--%s %s: too long", options->window_name,
				       options->window);
	if (*ns == 0)
		return option_complain(options, "--%s %s: has to be more than 0",
				       options->window_name, options->window);
	return 0;
}

static int read_when(struct options *options, const char *name, const char *text,
		     const struct when_context *context, int64_t *ns)
{
	int r = when_parse(text, context, ns);
	int64_t length;

	if (r == -EINVAL && duration_parse(text, NS_PER_S, &length) == 0)
		return option_complain(options,
				       "--%s %s: a length of time, not a time; did you mean -%s?",
				       name, text, text);
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

/* The two ends of a range as they were written, and the options that they are values of. */
struct ends {
	const char *since_name;
	const char *since;
	const char *until_name;
	const char *until; /* NULL: the range ends now */
};

static int refuse_order(struct options *options, const struct ends *ends, int64_t since,
			int64_t until)
{
	char from[TERM_TIME_MAX], to[TERM_TIME_MAX];

	time_format(since, TIME_FULL, from);
	time_format(until, TIME_FULL, to);
	if (ends->since_name == ends->until_name)
		return option_complain(options, "--%s %s..%s: %s is %s, and %s is %s: not after it",
				       ends->since_name, ends->since, ends->until, ends->since,
				       from, ends->until, to);
	return option_complain(options, "--since %s is %s, and --until %s is %s: not after it",
			       ends->since, from, ends->until, to);
}

/*
 * Refuses the end of a range if it is not after its start. If the end is a time of day, it means
 * the first such time after the start. If that time is on a future day and more than half a day
 * after the start, the user has probably swapped the two, and it is refused, too.
 */
static int check_until(struct options *options, const struct ends *ends, int64_t now, int64_t since,
		       int64_t until)
{
	const struct when_context latest = { WHEN_SINCE, now, INT64_MIN };
	int64_t today;

	if (until <= since)
		return refuse_order(options, ends, since, until);
	if (!when_is_clock(ends->until) || until <= now || time_same_day(until, now) ||
	    until - since <= NS_PER_DAY / 2)
		return 0;
	return when_parse(ends->until, &latest, &today) < 0
		       ? 0
		       : refuse_order(options, ends, since, today);
}

static int read_until(struct options *options, const struct ends *ends, int64_t now, int64_t since,
		      struct range *out)
{
	const struct when_context context = { WHEN_UNTIL, now, since };
	int64_t until;
	int r;

	r = read_when(options, ends->until_name, ends->until, &context, &until);
	if (r < 0)
		return r;
	r = check_until(options, ends, now, since, until);
	if (r < 0)
		return r;
	if (until > now)
		print_message("--%s %s is in the future: up to now", ends->until_name, ends->until);
	else
		out->until_ns = until;
	return 0;
}

static int read_ends(struct options *options, const struct ends *ends, int64_t now,
		     struct range *out)
{
	const struct when_context context = { WHEN_SINCE, now, INT64_MIN };
	int64_t since;
	int r;

	r = read_when(options, ends->since_name, ends->since, &context, &since);
	if (r < 0)
		return r;
	if (since <= now && ends->until) {
		r = read_until(options, ends, now, since, out);
		if (r < 0)
			return r;
	}
	r = refuse_future(options, ends->since_name, ends->since, since, now);
	if (r < 0)
		return r;
	note_day(ends->since_name, ends->since, since, now);
	out->since_ns = since;
	return 0;
}

/* Parses "T..T", or "T.." for a range up to now: the value of the option `name`. */
static int read_range(struct options *options, const char *name, const char *text, int64_t now,
		      struct range *out)
{
	const char *dots = strstr(text, "..");
	_cleanup_(freep) char *since = dots ? must(strndup(text, (size_t)(dots - text))) : NULL;
	struct ends ends = { name, since, name, dots ? dots + 2 : NULL };

	if (!since || !since[0])
		return option_complain(options,
				       "--%s %s: a range is T..T, as in 14:00..14:05, or T.. up "
				       "to now",
				       name, text);
	if (!ends.until[0])
		ends.until = NULL;
	return read_ends(options, &ends, now, out);
}

int ranges_resolve(struct options *options, int64_t now, struct wire_span *out)
{
	for (size_t i = 0; i < options->ranges.n; i++) {
		struct range range = { WIRE_ABSENT, WIRE_ABSENT, WIRE_ABSENT };
		int r = read_range(options, "range", options->ranges.v[i], now, &range);

		if (r < 0)
			return r;
		out[i] = (struct wire_span){ range.since_ns, range.until_ns };
	}
	return 0;
}

int range_resolve(struct options *options, int64_t now, struct range *out)
{
	const struct ends ends = { "since", options->since, "until", options->until };
	struct range range = { WIRE_ABSENT, WIRE_ABSENT, WIRE_ABSENT };
	int r = 0;

	if (!!options->window + !!options->since + !!options->at > 1)
		return option_complain(options,
				       "--%s, --since and --at exclude each other: each "
				       "says where the range begins",
				       options->window ? options->window_name : "for");
	if (options->until && !options->since)
		return option_complain(options,
				       "--until needs --since: from when on? The window of one "
				       "moment is --at %s",
				       options->until);
	if (options->window)
		r = read_window(options, now, &range.window_ns);
	else if (options->since)
		r = read_ends(options, &ends, now, &range);
	else if (options->at)
		r = read_at(options, now, &range);
	if (r < 0)
		return r;
	*out = range;
	return 0;
}

/* Moves a range into the past by the length of time in the value of --base, such as "-1d". */
static int move_back(struct options *options, int64_t now, const struct wire_span *range,
		     struct wire_span *out)
{
	int64_t until = range->until_ns == WIRE_ABSENT ? now : range->until_ns, ns;
	int r = duration_parse(options->base + 1, NS_PER_S, &ns);

	if (r == -EINVAL)
		return option_complain(
			options,
			"--base %s: a range T..T, as in 14:00..14:05, or a length of "
			"time, as in -1d for the same range a day earlier",
			options->base);
	if (r < 0 || ns > range->since_ns)
		return option_complain(options, "--base %s: too far away", options->base);
	if (ns == 0)
		return option_complain(options, "--base %s: has to be more than 0", options->base);
	*out = (struct wire_span){ range->since_ns - ns, until - ns };
	return 0;
}

int range_and_base(struct options *options, int64_t now, struct wire_span *range_out,
		   struct wire_span *base_out)
{
	struct range range, base = { WIRE_ABSENT, WIRE_ABSENT, WIRE_ABSENT };
	int r = range_resolve(options, now, &range);

	if (r < 0)
		return r;
	if (range.since_ns == WIRE_ABSENT)
		range.since_ns =
			now - (range.window_ns == WIRE_ABSENT ? RANGE_DEFAULT_NS : range.window_ns);
	*range_out = (struct wire_span){ range.since_ns, range.until_ns };
	if (options->base && !strstr(options->base, "..") && options->base[0] == '-')
		return move_back(options, now, range_out, base_out);
	if (options->base) {
		r = read_range(options, "base", options->base, now, &base);
		if (r < 0)
			return r;
	}
	*base_out = (struct wire_span){ base.since_ns, base.until_ns };
	return 0;
}
