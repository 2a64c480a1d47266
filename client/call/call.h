/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_CALL_H
#define STACKD_CLIENT_CALL_CALL_H

/*
 * One call to the daemon: an encoded request goes in, each reply goes to a handler, and every
 * failure has been reported when it returns. Opens and closes the connection. Main thread.
 */

#include <stdbool.h>

#include "client/base/exit_code.h"
#include "common/arena.h"
#include "common/text.h"
#include "proto/varlink.h"

struct options;

#define SOCKET_DEFAULT "/run/stackd/stackd.sock"

/*
 * Seconds to wait for the connection and for each reply, but for those of call_follow(). The kernel
 * may take minutes for the programs of a session, or for two thousand functions, in an emulator.
 */
enum { CALL_CONNECT_TIMEOUT = 5, CALL_REPLY_TIMEOUT = 60, CALL_START_TIMEOUT = 300 };

/* Gets each reply that is no error; 0, or a negative errno that ends the call. */
typedef int (*reply_handler)(const struct varlink_message *message, void *context);

/* EXIT_CODE_OK when all replies were handled. */
enum exit_code call_run(const struct options *options, const struct text *request,
			reply_handler handler, void *context);

/* What the daemon said instead of an answer. */
struct call_error {
	char *text;	   /* malloc'ed, not escaped; NULL: it did not say anything */
	bool is_of_filter; /* there are windows, and nobody in them who is asked for */
};

/*
 * The same, but what the daemon answers with an error is not reported: it is in *error, which the
 * caller has set to zeroes.
 */
enum exit_code call_try(const struct options *options, const struct text *request,
			reply_handler handler, void *context, struct call_error *error);

/* The same as call_run(), for what starts or stops a session. */
enum exit_code call_start(const struct options *options, const struct text *request,
			  reply_handler handler, void *context);

/*
 * The same as call_run(), with however long a silence between replies: an answer may be hours away,
 * or never come, as nobody does what is asked for. That the daemon is gone ends it.
 */
enum exit_code call_follow(const struct options *options, const struct text *request,
			   reply_handler handler, void *context);

/*
 * From now on SIGINT and SIGTERM end a call that waits for a reply, as if it had its last one.
 */
void call_catch_signals(void);

/* Whether one has come. */
bool call_was_interrupted(void);

/* From now on they end the program again. */
void call_release_signals(void);

/* -S, $STACKD_SOCKET or the default. */
const char *call_socket_path(const struct options *options);

#endif
