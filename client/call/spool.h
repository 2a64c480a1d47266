/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_CLIENT_CALL_SPOOL_H
#define STACKD_CLIENT_CALL_SPOOL_H

/*
 * A stream that writes to a pipe or terminal without waiting long for its reader, such as less. The
 * daemon disconnects a client that does not take its replies, so an answer that is printed while it
 * arrives must not wait for a person. Main thread.
 */

#include <stdio.h>

/*
 * Returns a stream that writes to the descriptor fd, which must stay open. If the reader takes
 * nothing for two seconds, the rest is kept in a temporary file and written when the stream is
 * closed. NULL with errno set on failure.
 */
FILE *spool_open(int fd);

#endif
