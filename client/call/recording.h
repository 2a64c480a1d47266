/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_RECORDING_H
#define STACKD_CLIENT_CALL_RECORDING_H

/*
 * Sessions from the command line: options in, the session as the daemon told it last out. Failures
 * have been reported when a function returns. Main thread.
 */

#include <stdbool.h>

#include "client/base/exit_code.h"
#include "common/arena.h"
#include "proto/wire.h"

struct options;

struct recording {
	struct arena *arena; /* of what the session points to; NULL: there is none yet */
	struct wire_session session;
	bool has_session;
	int64_t missed; /* calls that this client was too slow for */
	void (*on_calls)(const struct recording *recording, const struct wire_calls *calls);
	void (*on_progress)(const struct recording *recording); /* may be NULL */
};

/* Of one that is zero but for its handlers, whatever became of it. */
void recording_fini(struct recording *recording);

/* Starts one; is_bound: it ends with this call, which lasts as long as it. */
enum exit_code recording_start(const struct options *options, bool is_bound,
			       struct recording *recording);

/* Without a probe: what would be right. */
enum exit_code recording_report_choice(const char *verb);

#endif
