/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_SOCKET_H
#define STACKD_DAEMON_SERVICE_SOCKET_H

/*
 * Functions for Unix sockets: they make a listening socket at a path, and find out which process is
 * at the other end of a connection. They log failures. No state; any thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The process at the other end of a connection. The members `pid`, `uid` and `groups` are those
 * that the kernel recorded when the process connected. `is_bound` means that the client has started
 * a session that ends together with the client's call; the server never closes such a connection to
 * make room for another. The handler of the call sets `is_bound`, on any thread. The server sets
 * `is_gone` when the connection is closed, so that the handler can give up a call. The handler sets
 * `is_pressed` if others wait until this client has read its answer: the server then closes the
 * connection if a reply is not read within SERVER_PRESSED_NS.
 */
struct server_peer {
	atomic_bool is_bound;
	atomic_bool is_gone;
	atomic_bool is_pressed;
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* the supplementary groups of the process, allocated with malloc() */
	size_t n_groups;
};

/*
 * Binds a socket at `path` and listens. The mode of the socket is 0660. The socket belongs to the
 * group `group`. If there is no such group, or if `group` is NULL, it belongs to the daemon's own
 * group. First removes a stale socket, at which no process answers.
 *
 * If several daemons start at once, only one gets the path: they lock the file PATH.lock, which
 * exists only during this call.
 *
 * Returns 0 with *fd_out, which the caller owns; -EADDRINUSE if a process answers at the path;
 * -EEXIST if a file that is not a socket is there; -ENAMETOOLONG; or another negative errno.
 */
int server_socket_listen(const char *path, const char *group, int *fd_out);

/* Returns 0 if fd is a Unix stream socket that listens, else a negative errno. */
int server_socket_check(int fd);

/*
 * Fills *out with the process at the other end of fd. Does not set the members `id` and is_bound.
 */
int server_peer_get(int fd, struct server_peer *out);
void server_peer_fini(struct server_peer *peer);

/*
 * Finds the number of a group by its name. Returns 0, -ENOENT if there is no such group, or a
 * negative errno.
 */
int server_group_find(const char *name, gid_t *gid_out);

/* True if the group is the primary or a supplementary group of the peer. */
bool server_peer_in_group(const struct server_peer *peer, gid_t gid);

#endif
