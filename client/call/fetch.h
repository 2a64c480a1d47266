/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_FETCH_H
#define STACKD_CLIENT_CALL_FETCH_H

/*
 * Calls a method of the daemon and decodes its reply into the caller's arena. A function that fails
 * prints a message on standard error before it returns. Main thread.
 */

#include "client/base/exit_code.h"
#include "common/arena.h"
#include "proto/wire.h"

struct options;

/*
 * Calls a method that is answered by one reply. request may be NULL if the method has no
 * parameters. out points to the method's struct wire_..._reply.
 */
enum exit_code fetch_reply(const struct options *options, const struct wire_method *method,
			   const void *request, struct arena *arena, void *out);

/*
 * Calls fetch_reply() for a method. The macro makes the compiler check that `out` has the type of
 * that method's reply.
 */
#define FETCH(options, method, request, arena, out)                  \
	fetch_reply((options), &method_##method, (request), (arena), \
		    (struct wire_##method##_reply *){ (out) })

/* Fetches all windows in the range of the request; the daemon may send them in several replies. */
enum exit_code fetch_windows(const struct options *options,
			     const struct wire_windows_request *request, struct arena *arena,
			     struct wire_windows_reply *out);

#endif
