/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_RECORDING_H
#define STACKD_CLIENT_CALL_RECORDING_H

/*
 * Starts a session as the command line says, and keeps what the daemon has reported about it last.
 * A failure has been reported when a function returns. Main thread.
 */

#include <stdbool.h>

#include "client/base/exit_code.h"
#include "common/arena.h"
#include "proto/wire.h"

struct options;

struct recording {
	struct arena *arena; /* holds what the session points to; NULL before the first reply */
	struct wire_session session; /* as the last reply describes it */
	bool has_session;
	int64_t missed; /* calls that the daemon dropped because this client read too slowly */
	/* Called for each reply with calls, and for each reply; either may be NULL. */
	void (*on_calls)(const struct recording *recording, const struct wire_calls *calls);
	void (*on_progress)(const struct recording *recording);
};

/* Frees what a recording holds, started or not. A new one is zero but for its handlers. */
void recording_fini(struct recording *recording);

/*
 * Starts a session. If it is bound, the call lasts as long as the session, and the session ends
 * with the connection.
 */
enum exit_code recording_start(const struct options *options, bool is_bound,
			       struct recording *recording);

/* Reports that the verb needs a probe, and lists them. */
enum exit_code recording_report_choice(const char *verb);

#endif
