/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_OPTION_RANGE_H
#define STACKD_CLIENT_OPTION_RANGE_H

/*
 * --window, --since, --until and --at together: in go the options and the present, out comes
 * one range for the wire. Pure but for TZ. Main thread.
 */

#include <stdint.h>

struct options;

/* Members that are not asked for are WIRE_ABSENT: the daemon's default, or now. */
struct range {
	int64_t window_ns;
	int64_t since_ns;
	int64_t until_ns;
};

/* 0, or -EINVAL with options->message. now is in ns since the epoch. */
int range_resolve(struct options *options, int64_t now, struct range *out);

#endif
