/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOLDER_UNIX_DIAG_H
#define STACKD_DAEMON_HOLDER_UNIX_DIAG_H

/* Asks the kernel about one Unix socket, over a netlink socket (sock_diag). One thread at a time.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

struct unix_socket {
	uint32_t peer; /* inode of the other end; 0: none, or one that was not accepted yet */
	bool has_peer;
	bool is_listening;
	char name[sizeof(((struct sockaddr_un *)0)->sun_path) +
		  2]; /* "@name": abstract; "": none */
};

/* Returns a netlink socket for the network namespace of this process, or a negative errno. */
int unix_diag_open(void);

/* True if the descriptor is such a socket. */
bool unix_diag_is(int fd);

/*
 * Asks about the socket with an inode. Returns 0; -ENOENT if the network namespace of `fd` has no
 * such socket; or another negative errno.
 */
int unix_diag_ask(int fd, uint32_t inode, struct unix_socket *out);

#endif
