/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/base/log.h"
#include "daemon/service/client.h"

/*
 * Connections are taken by us and not by uv_listen(), which tries again at once, for ever and
 * without returning, when accept() fails for want of memory (libuv 1.44, uv__server_io()).
 */
enum { ACCEPTS_PER_ROUND = 16, COMPLAIN_EVERY_S = 60 };

/*
 * Idle ones before those that do not read, these before streams between two answers; one that is
 * being answered, or that something is bound to, is left alone.
 */
static struct client *longest_idle(const struct server *server)
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

/* Counts the limit when it is reached; false when nobody can go. */
static bool room_make(struct server *server)
{
	struct client *idle;

	if ((size_t)atomic_load(&server->counters.clients) < server->options.max_clients)
		return true;
	atomic_fetch_add(&server->counters.clients_hits, 1);
	idle = longest_idle(server);
	if (!idle)
		return false;
	client_close(idle);
	return true;
}

/* Out of descriptors or memory: those who wait in the queue wait a little longer. */
static void accept_failed(struct server *server, int r)
{
	uint64_t now = uv_hrtime();

	atomic_fetch_add(&server->counters.accept_failures, 1);
	if (server->complained_ns == 0 ||
	    now - server->complained_ns > COMPLAIN_EVERY_S * (uint64_t)NS_PER_S) {
		log_err(r, "cannot take a connection, trying again");
		server->complained_ns = now;
	}
	uv_poll_stop(&server->listener);
	server->is_paused = true;
}

/* What is wrong with this one connection is no reason to pause. */
static bool is_passing(int error)
{
	return error == EINTR || error == ECONNABORTED || error == EPROTO || error == EPERM;
}

/* One connection: 1 taken (or turned away), 0 none waits, or a negative errno. */
static int accept_one(struct server *server)
{
	int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int r;

	if (fd < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (fd < 0)
		return is_passing(errno) ? 1 : -errno;
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
