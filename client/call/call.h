/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_CALL_H
#define STACKD_CLIENT_CALL_CALL_H

/*
 * Calls of the daemon. Each call connects to the daemon's socket, sends an encoded request, passes
 * every reply to a handler and disconnects. A function that fails prints a message on standard
 * error before it returns. Main thread.
 *
 * The source files of this room form layers, listed here from the lowest to the highest; each calls
 * only files of lower layers: call, pager, snapshot, spool < fetch, named, output, recording <
 * answers < overview, snapshot_run.
 */

#include <stdbool.h>
#include <time.h>

#include "client/base/exit_code.h"
#include "common/arena.h"
#include "common/text.h"
#include "proto/varlink.h"

struct options;

#define SOCKET_DEFAULT "/run/stackd/stackd.sock"

/* The socket of the gateway of a fleet, see stackd-fleet(1). */
#define FLEET_SOCKET_DEFAULT "/run/stackd-fleet/fleet.sock"

/*
 * Time limits in seconds: for connecting, for each reply, and for each reply to call_start(). The
 * last limit is long because in an emulator the kernel may take minutes to load the programs of a
 * session, or to attach them to two thousand functions.
 */
enum { CALL_CONNECT_TIMEOUT = 5, CALL_REPLY_TIMEOUT = 60, CALL_START_TIMEOUT = 300 };

/* How many seconds after SIGINT or SIGTERM the program ends if it is not done, see below. */
enum { CALL_LEAVE_TIMEOUT = 2 };

/*
 * A reply may take up to this number of seconds as long as the daemon answers other calls: an
 * answer with many rows has to wait until those of other clients are sent.
 */
enum { CALL_PATIENCE = 600 };

/*
 * Handles a reply that is not an error. Returns 0, or a negative errno, which ends the call. -EIO
 * means that the output could not be written, and that output_flush() has reported it.
 */
typedef int (*reply_handler)(const struct varlink_message *message, void *context);

/*
 * Makes a call: sends the request and passes each reply to the handler. Returns EXIT_CODE_OK if no
 * reply was an error and the handler accepted all of them.
 */
enum exit_code call_run(const struct options *options, const struct text *request,
			reply_handler handler, void *context);

/* An error that the daemon sent in place of an answer. */
struct call_error {
	char *text; /* the message, malloc'ed, not escaped; NULL: there was no error */
};

/*
 * Makes a call like call_run(). But if the daemon sends an error, stores it in *error and does not
 * report it. The caller has set *error to zeroes, and frees error->text. If `error` is NULL, the
 * call is one of call_run().
 */
enum exit_code call_try(const struct options *options, const struct text *request,
			reply_handler handler, void *context, struct call_error *error);

/*
 * Makes a call like call_run(), but prints nothing: stores what went wrong in *message_out,
 * malloc'ed and not escaped. The caller has set *message_out to NULL. May be called on another
 * thread than the main one, if only one at a time makes calls.
 */
enum exit_code call_quiet(const struct options *options, const struct text *request,
			  reply_handler handler, void *context, char **message_out);

/*
 * Makes a call that starts or stops a session. If is_stream is true, the call lasts as long as the
 * session does; it ends earlier, with EXIT_CODE_IO, if the program that reads standard output
 * exits.
 */
enum exit_code call_start(const struct options *options, const struct text *request, bool is_stream,
			  reply_handler handler, void *context);

/*
 * Makes a call without a time limit for replies, because hours may pass until a thread does what
 * the request asks to trace. The call ends when the daemon closes the connection, or with
 * EXIT_CODE_IO when the program that reads standard output has exited. After `patience` seconds
 * without a reply it says on standard error whether the daemon answers other calls, and waits on.
 */
enum exit_code call_follow(const struct options *options, const struct text *request,
			   time_t patience, reply_handler handler, void *context);

/* True if the daemon accepts a connection and answers a call at once. Prints nothing. */
bool call_is_answered(const struct options *options);

/*
 * From now on until call_release_signals(), SIGINT and SIGTERM do not end the program at once.
 * Instead, they end a call that waits for a reply: it returns as it does after its last reply. If
 * the signals are not released within CALL_LEAVE_TIMEOUT then, the program ends: it waits for
 * something else, such as a reader of its output.
 */
void call_catch_signals(void);

/* True if SIGINT or SIGTERM has arrived since call_catch_signals(). */
bool call_was_interrupted(void);

/* Makes SIGINT and SIGTERM end the program again. */
void call_release_signals(void);

#endif
