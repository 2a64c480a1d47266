/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_NAMED_H
#define STACKD_CLIENT_CALL_NAMED_H

/*
 * A call of Snapshot or Overview whose functions get names from the user's debuginfod servers, if
 * the options ask for that (--debuginfod). A function that fails prints a message on standard error
 * before it returns. Main thread.
 */

#include "client/call/call.h"

/*
 * If the options ask for names from servers, checks that these can be asked. To be called before
 * anything is recorded.
 */
enum exit_code call_check_names(const struct options *options);

/*
 * Does what call_try() does or, if `error` is NULL, what call_run() does. With --debuginfod, passes
 * the replies to the handler only after all of them have come and names were fetched; all calls
 * together fetch no longer than --debuginfod-timeout.
 */
enum exit_code call_run_named(const struct options *options, const struct text *request,
			      reply_handler handler, void *context, struct call_error *error);

#endif
