/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_FD_MESSAGE_H
#define STACKD_DAEMON_HOST_FD_MESSAGE_H

/* Passes messages with descriptors through Unix sockets. No state; any thread. */

#include <stddef.h>
#include <sys/types.h>

/*
 * Sends a message with the descriptors in `fds`, at most two. Returns 0 or a negative errno:
 * -EAGAIN if the socket is full and does not block.
 */
int fd_message_send(int fd, const void *data, size_t size, const int *fds, size_t n_fds);

/*
 * Receives the next bytes of a socket, and up to n_fds descriptors, at most two. Sets those that
 * did not come to -1; the caller closes the others. Returns the number of bytes, 0 at the end, or a
 * negative errno.
 */
ssize_t fd_message_receive(int fd, void *data, size_t size, int *fds, size_t n_fds);

#endif
