/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_RANGE_H
#define STACKD_CLIENT_OPTION_RANGE_H

/*
 * Turns --window, --since, --until and --at into one range of time for a request, and the values
 * of --range into one range each. The result depends on the present time, which the caller passes,
 * and on the time zone in TZ. Prints a message if it had to choose the day of a time of day. Main
 * thread.
 */

#include <stdint.h>

struct options;

/*
 * A range of time: a length up to now in ns (window_ns), or a start and an end in ns since 1970. A
 * member is WIRE_ABSENT if its option was not given. Without any, the daemon uses its default
 * range; without an end, the range ends now.
 */
struct range {
	int64_t window_ns;
	int64_t since_ns;
	int64_t until_ns;
};

/*
 * Stores the range that the options ask for in *out. `now` is the present time in ns since 1970.
 * Returns 0, or -EINVAL with a message in options->message.
 */
int range_resolve(struct options *options, int64_t now, struct range *out);

struct wire_span;

/*
 * Stores the range that the options ask for (30 s up to now without any) in *range_out, and the one
 * that --base compares it with in *base_out. The end of a range is WIRE_ABSENT if it is now; so is
 * the start of *base_out if --base was not given. Returns 0, or -EINVAL with a message in
 * options->message.
 */
int range_and_base(struct options *options, int64_t now, struct wire_span *range_out,
		   struct wire_span *base_out);

/*
 * Stores the ranges of options->ranges in out[OPTION_RANGES_MAX], in the same order. Returns 0, or
 * -EINVAL with a message in options->message.
 */
int ranges_resolve(struct options *options, int64_t now, struct wire_span *out);

#endif
