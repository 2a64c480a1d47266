/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_SERVE_GATEWAY_H
#define STACKD_FLEET_SERVE_GATEWAY_H

/*
 * The gateway of a fleet: speaks io.stackd on a Unix socket, and answers from ClickHouse. It keeps
 * nothing of its own. Main thread; calls are answered on threads of libuv's pool.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/service/server.h"
#include "fleet/serve/limits.h"

struct fleet_config;

/*
 * How many answers are made and sent at the same time. One with HEADERS_MAX headers (see headers.h)
 * and GROUPS_MAX groups (see groups.h) takes some 500 MB; an answer is refused before it has more.
 */
enum { GATEWAY_ANSWERS_MAX = 4 };

struct gateway {
	const struct fleet_config *config;
	int64_t started; /* ns since the epoch */
	bool has_group;
	gid_t group; /* whose members may call */
	struct fleet_limits limits;
};

/* Returns the functions that server_new() takes as its handler. */
struct server_handler gateway_handler(struct gateway *gateway);

/* Runs the gateway until SIGTERM or SIGINT. Returns 0, or a negative errno after a message. */
int gateway_run(const struct fleet_config *config);

#endif
