/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_CALL_H
#define STACKD_CLIENT_CALL_CALL_H

/*
 * Calls of the daemon: each connects, sends an encoded request, hands every reply to a handler and
 * disconnects. A failure has been reported on standard error when a function returns. Main thread.
 */

#include <stdbool.h>

#include "client/base/exit_code.h"
#include "common/arena.h"
#include "common/text.h"
#include "proto/varlink.h"

struct options;

#define SOCKET_DEFAULT "/run/stackd/stackd.sock"

/*
 * Time limits in seconds: for the connection, for each reply, and for each reply of call_start().
 * In an emulator the kernel may take minutes to load the programs of a session or to attach them to
 * two thousand functions.
 */
enum { CALL_CONNECT_TIMEOUT = 5, CALL_REPLY_TIMEOUT = 60, CALL_START_TIMEOUT = 300 };

/* Handles a reply that is no error. Returns 0, or a negative errno, which ends the call. */
typedef int (*reply_handler)(const struct varlink_message *message, void *context);

/* Makes a call. Returns EXIT_CODE_OK if all replies were handled. */
enum exit_code call_run(const struct options *options, const struct text *request,
			reply_handler handler, void *context);

/* An error that the daemon sent in place of an answer. */
struct call_error {
	char *text;	   /* malloc'ed, not escaped; NULL: the daemon sent no error */
	bool is_of_filter; /* there are windows, but no thread in them matches the filter */
};

/*
 * Makes a call and stores an error that the daemon sends in *error, instead of reporting it. The
 * caller has set *error to zeroes and frees its text.
 */
enum exit_code call_try(const struct options *options, const struct text *request,
			reply_handler handler, void *context, struct call_error *error);

/* Makes a call that starts or stops a session. */
enum exit_code call_start(const struct options *options, const struct text *request,
			  reply_handler handler, void *context);

/*
 * Makes a call without a time limit for replies: hours may pass until a thread does what the
 * request is about. The call ends with the connection.
 */
enum exit_code call_follow(const struct options *options, const struct text *request,
			   reply_handler handler, void *context);

/*
 * Makes SIGINT and SIGTERM end the call that is waiting for a reply, as if that had been the last
 * one, until call_release_signals().
 */
void call_catch_signals(void);

/* True if one of these signals has come since. */
bool call_was_interrupted(void);

/* Makes SIGINT and SIGTERM end the program again. */
void call_release_signals(void);

/* Returns the path of the daemon's socket: from -S, from $STACKD_SOCKET, or the default. */
const char *call_socket_path(const struct options *options);

#endif
