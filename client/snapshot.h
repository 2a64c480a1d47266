/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_SNAPSHOT_H
#define STACKD_CLIENT_SNAPSHOT_H

/*
 * A Snapshot call from options to output, which the verbs snapshot and stuck share. Failures
 * have been reported when a function returns. Main thread.
 */

#include <stdbool.h>

#include "client/exit_code.h"
#include "proto/wire.h"

struct options;

/* What a request points to; it lives as long as the request. */
struct snapshot_request {
	struct wire_snapshot_request request;
	struct wire_filter filter;
	const char *states[32];
};

/* The request for these options at the present `now`; 0, or -EINVAL with options->message. */
int snapshot_request_init(struct snapshot_request *request, struct options *options,
			  const char *probe, bool is_stuck, int64_t now);

/* Asks, and prints as the options say. */
enum exit_code snapshot_run(struct options *options, const char *probe, bool is_stuck);

#endif
