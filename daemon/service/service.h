/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_SERVICE_H
#define STACKD_DAEMON_SERVICE_SERVICE_H

/*
 * Answers the calls that arrive at the socket: checks whether the caller is allowed to, decodes the
 * call, lets daemon/query/ answer it, and encodes the replies. Owned by main; runs on threads of
 * the pool.
 */

#include "daemon/service/server.h"

struct recorder;
struct service;

/*
 * The groups whose members may call the daemon. Root and the daemon's own user always may. NULL: no
 * group. The strings are borrowed.
 */
struct service_groups {
	/* Group whose members may query the recorded data. */
	const char *query;
	/* Group whose members may start and stop sessions; they must be in the group `query`,
	 * too. */
	const char *control;
};

/*
 * Makes the service. It borrows the recorder, which must outlive it. The service must outlive
 * loop_free().
 */
int service_new(struct recorder *recorder, const struct service_groups *groups,
		struct service **out);
struct service *service_free(struct service *service);

/* Returns the functions of this service that server_new() takes as its handler. */
struct server_handler service_handler(struct service *service);

struct admission_limits;

/* Sets how many answers are made and sent at the same time; without a limit unless it is called. */
void service_set_limits(struct service *service, const struct admission_limits *limits);

/* Sets the server whose limits the method Status reports. Must be called before the loop runs. */
void service_set_server(struct service *service, struct server *server);

#endif
