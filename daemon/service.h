/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_H
#define STACKD_DAEMON_SERVICE_H

/*
 * What is offered over the socket: calls come in as text, are answered by the queries of
 * daemon/query.h, replies go out as text. Owned by main; runs on threads of the pool.
 */

#include "daemon/server.h"

struct recorder;
struct service;

/*
 * group: whose members may ask (NULL: none but root and our own user). recorder is borrowed and
 * must outlive the service, the service must outlive loop_free().
 */
int service_new(struct recorder *recorder, const char *group, struct service **out);
struct service *service_free(struct service *service);
void service_freep(struct service **service);

/* What to give to server_new(). */
struct server_handler service_handler(struct service *service);

/* Whose limits Status reports; before the loop runs. */
void service_set_server(struct service *service, struct server *server);

#endif
