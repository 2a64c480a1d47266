/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_OPEN_HERE_H
#define STACKD_DAEMON_HOST_OPEN_HERE_H

/*
 * Opens files in the process that calls, for open_file.c and the processes of opener.c. May wait
 * for a disk or for another computer, also for ever. No state; any thread.
 */

#include <limits.h>
#include <stdint.h>

enum open_kind {
	OPEN_IN_ROOT = 1, /* see open_path_in_root() */
	OPEN_FD,	  /* see open_path_fd() */
	OPEN_BY_INODE,	  /* see open_by_inode() */
};

/* Says what to open. Members that a kind does not need are 0. */
struct open_request {
	uint32_t kind;
	int32_t flags;	  /* OPEN_IN_ROOT, OPEN_FD: further flags of open() */
	uint64_t resolve; /* OPEN_IN_ROOT: further RESOLVE_ flags of openat2() */
	uint64_t inode;	  /* OPEN_BY_INODE */
	uint32_t dev, generation;
	char path[PATH_MAX]; /* OPEN_IN_ROOT */
};

/*
 * Opens a file. at_fd is the root directory of OPEN_IN_ROOT or the descriptor of OPEN_FD, else -1.
 * Returns an fd, which the caller owns, or a negative errno.
 */
int open_here(const struct open_request *request, int at_fd);

#endif
