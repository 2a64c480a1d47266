/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_RECORDING_H
#define STACKD_CLIENT_RECORDING_H

/*
 * Sessions from the command line: options in, the session as the daemon told it last out. Failures
 * have been reported when a function returns. Main thread.
 */

#include <stdbool.h>

#include "client/exit_code.h"
#include "proto/arena.h"
#include "proto/wire.h"

struct options;

struct recording {
	struct arena *arena; /* of what the session points to */
	struct wire_session session;
	bool has_session;
	void (*on_progress)(const struct recording *recording); /* may be NULL */
};

/* Starts one; is_bound: it ends with this call, which lasts as long as it. */
enum exit_code recording_start(const struct options *options, bool is_bound,
			       struct recording *recording);

/* Without a probe: what would be right. */
enum exit_code recording_report_choice(const char *verb);

#endif
