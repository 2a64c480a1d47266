/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_FETCH_H
#define STACKD_CLIENT_CALL_FETCH_H

/*
 * The calls that are answered in one piece: options in, a decoded reply in the caller's arena
 * out. Failures have been reported when a function returns. Main thread.
 */

#include <stdint.h>

#include "client/base/exit_code.h"
#include "common/arena.h"
#include "proto/wire.h"

struct options;

enum exit_code fetch_status(const struct options *options, struct arena *arena,
			    struct wire_status_reply *out);
enum exit_code fetch_probes(const struct options *options, struct arena *arena,
			    struct wire_probes_reply *out);
enum exit_code fetch_functions(const struct options *options, struct arena *arena,
			       struct wire_functions_reply *out);
enum exit_code fetch_sessions(const struct options *options, struct arena *arena,
			      struct wire_sessions_reply *out);

/* All windows, which may come in several replies. */
enum exit_code fetch_windows(const struct options *options,
			     const struct wire_windows_request *request, struct arena *arena,
			     struct wire_windows_reply *out);

#endif
