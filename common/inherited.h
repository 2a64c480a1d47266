/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_COMMON_INHERITED_H
#define STACKD_COMMON_INHERITED_H

/*
 * Puts in order what a process inherits from its parent. Called first in main(), before there are
 * other threads, files or sockets.
 */

/*
 * Opens /dev/null as each of the descriptors 0 to 2 that is closed: else the next file or socket
 * would get the number, and what is printed would go there. Reading 0 and writing to 1 and 2 still
 * fail with EBADF. Unblocks all signals; SIGTERM and SIGCHLD are not ignored any more; SIGPIPE and
 * SIGXFSZ are, so that writing fails with EPIPE and EFBIG. Leaves SIGHUP, SIGINT and SIGQUIT as
 * they are, for nohup(1) and for jobs in the background.
 */
void inherited_settle(void);

/*
 * For a program that runs for long: closes the descriptors from first_fd on, as others may wait
 * until all copies of them are closed, or hold a lock with them. Takes care that the umask leaves
 * the program its own files.
 */
void inherited_leave(int first_fd);

#endif
