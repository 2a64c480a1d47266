/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_BROKER_MESSAGE_H
#define STACKD_DAEMON_BROKER_MESSAGE_H

/*
 * Requests and answers between the daemon and the broker's process: bytes of a known size over a
 * SOCK_SEQPACKET socket, and at most one descriptor with them. Used on both sides, by whoever owns
 * the socket.
 */

#include <stddef.h>

/* file goes with it, and stays the caller's; -1: none does. -EIO, or the errno of sendmsg(). */
int broker_message_send(int fd, const void *data, size_t size, int file);

/*
 * file_out: the descriptor that came with it, close-on-exec and the caller's, or -1. -EIO for a
 * message of another size, or the end of the other side; or the errno of recvmsg().
 */
int broker_message_receive(int fd, void *data, size_t size, int *file_out);

#endif
