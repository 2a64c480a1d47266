/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_SOCKET_H
#define STACKD_DAEMON_SERVICE_SOCKET_H

/*
 * System calls on Unix sockets: opens a listening socket at a path, and finds out who is at the
 * other end of a connection. Logs what goes wrong. No state; any thread.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Who is at the other end of a connection. The kernel recorded pid, uid and groups when it
 * connected. id is the connection's, and never used twice. The handler sets is_bound, on any
 * thread, while a session must end with the exchange: then the connection is not closed to make
 * room.
 */
struct server_peer {
	uint64_t id;
	atomic_bool is_bound;
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* the supplementary groups, malloc'ed */
	size_t n_groups;
};

/*
 * Binds a socket at path and listens. Its mode is 0660 and it belongs to `group` where that group
 * exists (NULL: to our own). A stale socket, which no process answers, is removed first. Returns 0
 * with *fd_out, which the caller owns; -EADDRINUSE where a process answers; -EEXIST where path is
 * not a socket; -ENAMETOOLONG; or another errno of the kernel. Of several daemons that start at
 * once one gets the path; the file PATH.lock exists meanwhile.
 */
int server_socket_listen(const char *path, const char *group, int *fd_out);

/* Returns 0 if fd is a Unix stream socket that listens, else a negative errno. */
int server_socket_check(int fd);

/* Fills all members but id and is_bound. */
int server_peer_get(int fd, struct server_peer *out);
void server_peer_fini(struct server_peer *peer);

/* Finds the number of a group. 0, -ENOENT where there is no such group, or a negative errno. */
int server_group_find(const char *name, gid_t *gid_out);

/* True if the group is the primary or a supplementary group of the peer. */
bool server_peer_in_group(const struct server_peer *peer, gid_t gid);

#endif
