/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_FETCH_H
#define STACKD_CLIENT_CALL_FETCH_H

/*
 * Calls a method and decodes its reply into the caller's arena. A failure has been reported when a
 * function here returns. Main thread.
 */

#include "client/base/exit_code.h"
#include "common/arena.h"
#include "proto/wire.h"

struct options;

/* Calls any method that is answered by one reply; request is NULL where it has no parameters. */
enum exit_code fetch_reply(const struct options *options, const struct wire_method *method,
			   const void *request, struct arena *arena, void *out);

/* The same, where the compiler checks that out is a struct wire_METHOD_reply *. */
#define FETCH(options, method, request, arena, out)                  \
	fetch_reply((options), &method_##method, (request), (arena), \
		    (struct wire_##method##_reply *){ (out) })

/* Fetches all windows, which may come in several replies. */
enum exit_code fetch_windows(const struct options *options,
			     const struct wire_windows_request *request, struct arena *arena,
			     struct wire_windows_reply *out);

#endif
