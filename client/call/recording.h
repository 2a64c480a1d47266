/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_RECORDING_H
#define STACKD_CLIENT_CALL_RECORDING_H

/*
 * Starts a session with the options of the command line, and keeps the daemon's latest report about
 * it. A function that fails prints a message on standard error before it returns. Main thread.
 */

#include <stdbool.h>

#include "client/base/exit_code.h"
#include "common/arena.h"
#include "proto/wire.h"

struct options;

struct recording {
	struct arena *arena; /* owns what `session` points to; NULL before the first reply */
	struct wire_session session; /* the session as the last reply described it */
	bool has_session;
	/* Number of calls that the daemon dropped because this client read too slowly. */
	int64_t missed;
	/*
	 * on_calls is called for each reply that has calls of the traced function, on_progress for
	 * each reply. Both may be NULL. They return 0, or a negative errno, which ends the
	 * recording.
	 */
	int (*on_calls)(const struct recording *recording, const struct wire_calls *calls);
	int (*on_progress)(const struct recording *recording);
};

/*
 * Frees the memory of a recording, whether or not it was started. A new recording is all zeroes
 * except for its two functions.
 */
void recording_fini(struct recording *recording);

/*
 * Starts a session. If is_bound is true, the session ends when the connection closes, and this
 * function returns only when the session has ended, or a signal came: see recording_end().
 */
enum exit_code recording_start(const struct options *options, bool is_bound,
			       struct recording *recording);

/*
 * Stops a session. If message_out is not NULL, prints nothing: stores what went wrong there, see
 * call_quiet().
 */
enum exit_code recording_stop(const struct options *options, const char *id, char **message_out);

/*
 * Does the rest after recording_start() of a session that is bound and was started: lets signals
 * end the program again and, if one came, waits until the session has ended. Its connection is
 * closed then, but the daemon may not have seen that yet, and an answer about a session that runs
 * may lack its last part, which is shorter than [window] min_length.
 */
void recording_end(const struct options *options, const struct recording *recording);

/*
 * If options->argument is not the name of a probe, prints a message that says so. Returns
 * EXIT_CODE_OK or EXIT_CODE_USAGE.
 */
enum exit_code recording_check_probe(const struct options *options);

/*
 * Prints the message that the verb needs a probe, with the names of the probes. Returns
 * EXIT_CODE_USAGE.
 */
enum exit_code recording_report_choice(const char *verb);

#endif
