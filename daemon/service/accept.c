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

static size_t clients_of(const struct server *server, uid_t uid)
{
	size_t n = 0;

	for (const struct client *client = server->clients; client; client = client->next)
		n += client->peer.uid == uid;
	return n;
}

/*
 * True if the client may be disconnected for another: one for which a thread works only if it is
 * not root's and its user has more than the user of the new one would have (`has_more`), and one of
 * root's only if root has more.
 */
static bool is_droppable(const struct client *client, bool has_more)
{
	bool is_working = client->state == CLIENT_WORKING;

	if (atomic_load(&client->peer.is_bound))
		return false;
	if (client->peer.uid == 0)
		return has_more && !is_working;
	return has_more || !is_working;
}

/*
 * Chooses the client to disconnect so that one of the user `uid` can be accepted; NULL if that one
 * has to be refused. Takes it from the user who has most clients, the new one included, so that
 * nobody can keep out or disconnect users with fewer. Counts none for root as the new one's user,
 * so that root can connect whoever works. Of the clients of one user, prefers the first by the
 * order of enum client_state, then the one that has been inactive for longest.
 */
static struct client *client_to_drop(const struct server *server, uid_t uid)
{
	size_t own = uid == 0 ? 0 : clients_of(server, uid) + 1, n = 0, most = 0;
	struct client *found = NULL;

	for (struct client *client = server->clients; client; client = client->next) {
		if (!client->prev || client->prev->peer.uid != client->peer.uid)
			n = clients_of(server, client->peer.uid) + (client->peer.uid == uid);
		if (n < own || n < most || !is_droppable(client, n > own))
			continue;
		if (n > most || client->state < found->state ||
		    (client->state == found->state && client->active_ns < found->active_ns))
			found = client;
		most = n;
	}
	return found;
}

/*
 * Makes sure that the client at `fd` can be accepted: if there are max_clients already, disconnects
 * one. Returns false if none can be disconnected.
 */
static bool room_make(struct server *server, int fd)
{
	struct counters *counters = &server->counters;
	struct client *dropped;
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if ((size_t)atomic_load(&counters->clients) < server->options.max_clients)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	dropped = client_to_drop(server, peer.uid);
	atomic_store(&counters->dropped_uid, dropped ? dropped->peer.uid : peer.uid);
	atomic_fetch_add(&counters->clients_hits, 1);
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
	if (!room_make(server, fd)) {
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
