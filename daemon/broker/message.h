/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_MESSAGE_H
#define STACKD_DAEMON_BROKER_MESSAGE_H

/*
 * Sends and receives the messages between the daemon and the broker process: structs of a known
 * size over a SOCK_SEQPACKET socket, with at most one descriptor. Both sides use it. The caller
 * owns the socket and lets only one thread use it at a time.
 */

#include <stddef.h>

/*
 * Sends size bytes and, unless it is -1, the descriptor `file`, which the caller keeps. Returns 0,
 * -EIO or the errno of sendmsg().
 */
int broker_message_send(int fd, const void *data, size_t size, int file);

/*
 * Receives a message of size bytes. *file_out is the descriptor that came with it, which is
 * close-on-exec and owned by the caller, or -1. Returns 0; -EIO for a message of another size, or
 * when the other side is closed; or the errno of recvmsg().
 */
int broker_message_receive(int fd, void *data, size_t size, int *file_out);

#endif
