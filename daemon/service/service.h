/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_SERVICE_H
#define STACKD_DAEMON_SERVICE_SERVICE_H

/*
 * Answers the calls that arrive at the socket: checks who may call, decodes the call, has
 * daemon/query/ answer it, and encodes the replies. Owned by main; runs on threads of the pool.
 */

#include "daemon/service/server.h"

struct recorder;
struct service;

/* Groups whose members may do what only root and our own user may else; NULL: none. Borrowed. */
struct service_groups {
	const char *query;   /* may query */
	const char *control; /* may start and stop sessions; only members of both groups */
};

/* The recorder is borrowed and must outlive the service, which must outlive loop_free(). */
int service_new(struct recorder *recorder, const struct service_groups *groups,
		struct service **out);
struct service *service_free(struct service *service);

/* Returns the handler that server_new() takes. */
struct server_handler service_handler(struct service *service);

/* Sets the server whose limits Status reports. Must be called before the loop runs. */
void service_set_server(struct service *service, struct server *server);

#endif
