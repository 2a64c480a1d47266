/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/serve/gateway.h"

#include <errno.h>
#include <signal.h>

#include "common/base.h"
#include "common/inherited.h"
#include "daemon/base/log.h"
#include "daemon/base/notify.h"
#include "daemon/service/loop.h"
#include "daemon/service/socket.h"
#include "fleet/base/config.h"
#include "fleet/base/directory.h"

/* A client is disconnected after this time without a call. */
#define IDLE_NS (600 * NS_PER_S)

enum { CLIENTS_MAX = 64, MESSAGE_MAX = 256 * 1024 };

static void on_stop(int signo, void *userdata)
{
	notify_stopping();
	loop_stop(userdata);
}

static void group_find(struct gateway *gateway)
{
	const char *name = gateway->config->group;
	int r = name && name[0] ? server_group_find(name, &gateway->group) : -ENOENT;

	if (r && r != -ENOENT)
		log_err(r, "cannot find the group '%s', so its members are refused", name);
	gateway->has_group = r == 0;
}

/*
 * Makes the server listen: on the socket that the service manager passed, if n is 1, or on its own.
 */
static int listen_start(const struct gateway *gateway, struct server *server, int n)
{
	const struct fleet_config *config = gateway->config;
	int r;

	if (n < 0)
		return log_err(n, "cannot take the socket of the service manager");
	if (n > 1)
		return log_err(-EINVAL, "%d sockets were passed, but only one is needed", n);
	if (n == 0 && (r = directory_make(config->listen)) < 0)
		return log_err(r, "cannot make the directory of %s", config->listen);
	r = n ? server_listen_fd(server, NOTIFY_FDS_START)
	      : server_listen(server, config->listen, config->group);
	return r ? log_err(r, "cannot listen on %s",
			   n ? "the socket that was passed" : config->listen)
		 : 0;
}

static int gateway_start(struct gateway *gateway, struct loop *loop, int n_passed,
			 struct server **server)
{
	const struct server_options options = {
		.max_clients = CLIENTS_MAX,
		.max_message = MESSAGE_MAX,
		.max_output = SERVER_MAX_OUTPUT,
		.idle_timeout_ns = IDLE_NS,
		.message_timeout_ns = SERVER_TIMEOUT_S * NS_PER_S,
		.write_timeout_ns = SERVER_TIMEOUT_S * NS_PER_S,
	};
	const struct server_handler handler = gateway_handler(gateway);
	int r = loop_signal_add(loop, SIGTERM, on_stop, loop);

	if (!r)
		r = loop_signal_add(loop, SIGINT, on_stop, loop);
	if (!r)
		r = server_new(loop, &options, &handler, server);
	return r ? log_err(r, "cannot start the server") : listen_start(gateway, *server, n_passed);
}

int gateway_run(const struct fleet_config *config)
{
	struct gateway gateway = { .config = config, .started = clock_ns(CLOCK_REALTIME) };
	struct server *server = NULL;
	struct loop *loop = NULL;
	int n_passed = notify_listen_fds(), r;

	inherited_leave(NOTIFY_FDS_START + (n_passed > 0 ? n_passed : 0));
	log_setup(LOG_TARGET_AUTO, LOG_INFO);
	group_find(&gateway);
	r = loop_new(&loop);
	if (r)
		return log_err(r, "cannot start the event loop");
	r = gateway_start(&gateway, loop, n_passed, &server);
	if (!r) {
		notify_ready();
		r = loop_run(loop);
	}
	server_free(server);
	loop_free(loop);
	return r;
}
