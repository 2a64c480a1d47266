/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_SERVICE_H
#define STACKD_DAEMON_SERVICE_SERVICE_H

/*
 * What is offered over the socket: calls come in as text, are answered by the queries of
 * daemon/query/query.h, replies go out as text. Owned by main; runs on threads of the pool.
 */

#include "daemon/service/server.h"

struct recorder;
struct service;

/* Groups whose members may, besides root and our own user; NULL: none. Both borrowed. */
struct service_groups {
	const char *query;   /* ask */
	const char *control; /* start and stop sessions, if they may ask at all */
};

/* recorder is borrowed and must outlive the service, the service must outlive loop_free(). */
int service_new(struct recorder *recorder, const struct service_groups *groups,
		struct service **out);
struct service *service_free(struct service *service);

/* What to give to server_new(). */
struct server_handler service_handler(struct service *service);

/* Whose limits Status reports; before the loop runs. */
void service_set_server(struct service *service, struct server *server);

#endif
