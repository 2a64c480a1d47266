/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/service/client.h"

/*
 * This file accepts connections without uv_listen(): if accept() fails for lack of memory, libuv
 * 1.44 retries it for ever and never returns to the caller (uv__server_io()).
 */
enum { ACCEPTS_PER_ROUND = 16, COMPLAIN_EVERY_S = 60 };

/*
 * Chooses the client to disconnect so that another can be accepted. Prefers the client that has
 * been idle for longest, then one that does not read its reply, then one whose next reply is not
 * due yet. NULL if every client is being answered or has a session bound to it.
 */
static struct client *client_to_drop(const struct server *server)
{
	struct client *found = NULL;

	for (struct client *client = server->clients; client; client = client->next) {
		if (client->state == CLIENT_WORKING || atomic_load(&client->peer.is_bound))
			continue;
		if (!found || client->state < found->state ||
		    (client->state == found->state && client->active_ns < found->active_ns))
			found = client;
	}
	return found;
}

/*
 * Makes sure that one more client can connect: if there are max_clients already, disconnects one.
 * Returns false if none can be disconnected.
 */
static bool room_make(struct server *server)
{
	struct client *dropped;

	if ((size_t)atomic_load(&server->counters.clients) < server->options.max_clients)
		return true;
	atomic_fetch_add(&server->counters.clients_hits, 1);
	dropped = client_to_drop(server);
	if (!dropped)
		return false;
	client_close(dropped);
	return true;
}

/*
 * Stops accepting connections until the next sweep (a timer), because descriptors or memory are
 * short. Clients that connect meanwhile wait in the queue of the kernel.
 */
static void accept_failed(struct server *server, int r)
{
	uint64_t now = uv_hrtime();

	atomic_fetch_add(&server->counters.accept_failures, 1);
	if (server->complained_ns == 0 ||
	    now - server->complained_ns > COMPLAIN_EVERY_S * (uint64_t)NS_PER_S) {
		log_err(r, "cannot accept connections, will try again");
		server->complained_ns = now;
	}
	uv_poll_stop(&server->listener);
	server->is_paused = true;
}

/*
 * True if the error of accept() is about a single connection, and the next connection can still be
 * accepted.
 */
static bool is_of_connection(int error)
{
	return error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM;
}

/*
 * Accepts one connection. Returns 1 if one was accepted or turned away, 0 if no client waits, or a
 * negative errno.
 */
static int accept_one(struct server *server)
{
	int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int r;

	if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (fd < 0)
		return is_of_connection(errno) ? 1 : -errno;
	if (!room_make(server)) {
		close(fd);
		return 1;
	}
	r = client_open(server, fd);
	return r < 0 ? r : 1;
}

void server_accept(struct server *server)
{
	int r = 1;

	for (int i = 0; i < ACCEPTS_PER_ROUND && r > 0; i++)
		r = accept_one(server);
	if (r < 0)
		accept_failed(server, r);
}
