/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_OPEN_BY_HANDLE_H
#define STACKD_DAEMON_HOST_OPEN_BY_HANDLE_H

/*
 * Files by inode, where nobody is left who has them mapped: in go numbers as the kernel has them,
 * out comes a descriptor. No state; any thread, but it may read a disk.
 */

#include <stdint.h>

/*
 * Opens the file of an inode and its generation on the file system of dev (major << 20 | minor);
 * *fd_out is the caller's. path gets where it is in this mount namespace. -EOPNOTSUPP where file
 * systems of this kind have other handles, -ENOENT where the file system is not mounted here, or
 * what the kernel said: -EPERM without CAP_DAC_READ_SEARCH, -ESTALE when the file is gone.
 */
int open_by_inode(uint32_t dev, uint64_t inode, uint32_t generation, char path[static 4096],
		  int *fd_out);

#endif
