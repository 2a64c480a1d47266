/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SEND_LOCAL_H
#define STACKD_FLEET_SEND_LOCAL_H

/* Calls of the daemon on this host. Each function makes one call with a connection of its own. Main
 * thread. */

#include <stdint.h>

#include "proto/wire.h"

struct arena;

/* Why a call failed: one line. */
struct local_error {
	char text[512];
};

/*
 * The functions decode the answer into the arena. They return 0, or with *error:
 *	-ENODATA	there is no window in the range, or no such probe records
 *	-EREMOTEIO	the daemon refused for another reason
 *	-EBADMSG	the daemon is of another version
 *	-ETIMEDOUT, -ECONNREFUSED, -ENOENT and the like: it could not be reached
 *	-ENOMEM
 */
int local_status(const char *socket, struct arena *arena, struct wire_status_reply *out,
		 struct local_error *error);

/* Lists the windows of a probe, from since_ns on, and the gaps between them. */
int local_windows(const char *socket, const char *probe, int64_t since_ns, struct arena *arena,
		  struct wire_windows_reply *out, struct local_error *error);

/* Asks for all rows of a range, by stack, with the names of their groups. */
int local_snapshot(const char *socket, const char *probe, int64_t since_ns, int64_t until_ns,
		   struct arena *arena, struct wire_snapshot_reply *out, struct local_error *error);

#endif
