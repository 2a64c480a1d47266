/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_RANGE_H
#define STACKD_CLIENT_OPTION_RANGE_H

/*
 * Makes --window, --since, --until and --at into one range for a request. Depends on the time that
 * it is given and on the time zone in TZ; prints a message when it had to choose a day. Main
 * thread.
 */

#include <stdint.h>

struct options;

/* WIRE_ABSENT: not given; the daemon takes its default, or now for the end. */
struct range {
	int64_t window_ns;
	int64_t since_ns;
	int64_t until_ns;
};

/* now: ns since 1970. Returns 0, or -EINVAL with options->message. */
int range_resolve(struct options *options, int64_t now, struct range *out);

#endif
