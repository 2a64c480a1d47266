/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_MESSAGE_H
#define STACKD_DAEMON_BROKER_MESSAGE_H

/*
 * Sends and receives the messages between the daemon and the broker process: structs of a fixed
 * size over a SOCK_SEQPACKET socket, each with at most one file descriptor. Both processes use it.
 * The caller owns the socket and lets only one thread use it at a time.
 */

#include <stddef.h>

/*
 * Sends `size` bytes of `data`, and the descriptor `file`, which remains with the caller. If `file`
 * is -1, no descriptor is sent. Returns 0, -EIO or the negative errno of sendmsg().
 */
int broker_message_send(int fd, const void *data, size_t size, int file);

/*
 * Receives a message, which must have `size` bytes. Sets *file_out to the descriptor that came with
 * it, or to -1 if none did. The descriptor is close-on-exec and owned by the caller. Returns 0;
 * -EIO for a message of another size or with several descriptors, which are closed, or if the other
 * end is closed; or the negative errno of
 * recvmsg().
 */
int broker_message_receive(int fd, void *data, size_t size, int *file_out);

#endif
