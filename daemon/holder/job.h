/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOLDER_JOB_H
#define STACKD_DAEMON_HOLDER_JOB_H

/*
 * Defines what the daemon and the process that looks up holders share: a file in memory, which the
 * first message of the daemon brings, with its netlink socket if it has one. Each message after it
 * says that there are questions; the process sends one back when it has looked them all up.
 */

#include <limits.h>
#include <stdatomic.h>

#include "daemon/holder/holder.h"

enum { JOB_UNKNOWN = 160 };

struct job {
	struct holder_question questions[HOLDER_LOOKUPS];
	struct found {
		struct holder_answer answer; /* its pointers mean nothing to the daemon */
		bool has_object, has_unknown;
		char object[PATH_MAX];
		char unknown[JOB_UNKNOWN];
	} found[HOLDER_LOOKUPS];
	size_t n;
	atomic_size_t n_done; /* number of members of `found` that are complete */
	int64_t deadline_ns;  /* of CLOCK_MONOTONIC */
};

#endif
