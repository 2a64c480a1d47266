/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_SANDBOX_H
#define STACKD_DAEMON_HOST_SANDBOX_H

/*
 * Takes from a process that parses files of strangers what it does not need, so that a file that
 * takes it over gains nothing. For processes with one thread.
 */

#include <stdint.h>

struct sandbox_limits {
	uint64_t memory_bytes; /* address space */
	uint64_t file_bytes;   /* largest file that may be written */
	uint64_t cpu_s;	       /* CPU time of each process, in seconds */
	uint64_t files;	       /* number of descriptors; 0: as before */
};

/*
 * Limits this process and those that it forks: no capabilities, a user of its own instead of root,
 * no core dump, no file opened (where the kernel has Landlock), and the limits given. Returns 0 or
 * a negative errno.
 */
int sandbox_enter(const struct sandbox_limits *limits);

/*
 * Allows this process only to read and write what it has open, to receive messages, to allocate
 * memory and to exit; every other system call fails with EPERM. Returns 0 or a negative errno.
 */
int sandbox_close(void);

/*
 * Allows this process, which opens files for others, what sandbox_close() does, and to open the
 * files of all users: it keeps CAP_DAC_READ_SEARCH and no other capability. Where the kernel has
 * Landlock, files can be opened for reading only. Returns 0 or a negative errno.
 */
int sandbox_open_only(void);

#endif
