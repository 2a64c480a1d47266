/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_SOCKET_H
#define STACKD_DAEMON_SERVICE_SOCKET_H

/*
 * The Unix socket itself: a path in, a listening descriptor out; a connection in, who is at its
 * other end out. System calls only, no loop. What goes wrong is logged here.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Who is at the other end, as the kernel says it was when it connected. id is the connection's,
 * never given twice. is_bound, set by the handler on any thread while it has an exchange:
 * something lives as long as that, so the connection is not closed to make room.
 */
struct server_peer {
	uint64_t id;
	atomic_bool is_bound;
	pid_t pid;
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* supplementary ones, malloc'ed */
	size_t n_groups;
};

/*
 * Binds path with mode 0660, of group where that exists (NULL: of ours), and listens. A socket
 * nobody answers on is removed first. -EADDRINUSE when somebody does, -EEXIST when path is
 * something else, -ENAMETOOLONG, or what the kernel says. *fd_out is the caller's. Of several
 * daemons that start at once one gets the path; path.lock is there meanwhile.
 */
int server_socket_listen(const char *path, const char *group, int *fd_out);

/* 0 when fd is a Unix stream socket that listens, -EINVAL. */
int server_socket_check(int fd);

/* Fills all but id and is_bound. */
int server_peer_get(int fd, struct server_peer *out);
void server_peer_fini(struct server_peer *peer);
/* The number of a group. 0, -ENOENT, or why that cannot be told. */
int server_group_find(const char *name, gid_t *gid_out);

bool server_peer_in_group(const struct server_peer *peer, gid_t gid);

#endif
