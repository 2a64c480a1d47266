/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_OPEN_IN_ROOT_H
#define STACKD_DAEMON_HOST_OPEN_IN_ROOT_H

/*
 * Files of a process with a root of its own: a path there comes in, a descriptor that nobody waits
 * for goes out (O_PATH), and one for reading once its owner has looked at what it is. Any thread.
 */

#include <stdint.h>

/*
 * Below root_fd, links included, and through nothing of /proc that leads elsewhere. flags beside
 * O_PATH; resolve: RESOLVE_* of openat2() beside these two. An fd or a negative errno.
 */
int open_path_in_root(int root_fd, const char *path, int flags, uint64_t resolve);

/*
 * What path_fd (O_PATH, it stays the caller's) is, opened for reading, not waiting for a FIFO's
 * other end. flags beside. An fd or a negative errno.
 */
int open_path_fd(int path_fd, int flags);

#endif
