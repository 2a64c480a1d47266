/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_OPEN_FILE_H
#define STACKD_DAEMON_HOST_OPEN_FILE_H

/*
 * Opens files that other processes own without being led astray: by a path in another root
 * directory, by an O_PATH descriptor that was checked first, or by inode. Returned descriptors are
 * owned by the caller. No state; any thread.
 */

#include <stdint.h>

/*
 * Opens a path below root_fd with O_PATH and flags. Symbolic links resolve inside that root, and
 * magic links of /proc are not followed. resolve: more RESOLVE_* flags of openat2(). Returns an fd
 * or a negative errno.
 */
int open_path_in_root(int root_fd, const char *path, int flags, uint64_t resolve);

/*
 * Opens for reading what path_fd (opened with O_PATH, stays the caller's) refers to, with more
 * flags. Does not wait for the other end of a FIFO. Returns an fd or a negative errno.
 */
int open_path_fd(int path_fd, int flags);

/*
 * Opens the file with this inode and generation on the file system of dev (major << 20 | minor),
 * even if no process has it open or mapped; may read a disk. path receives its path in this mount
 * namespace. Returns 0, -EOPNOTSUPP where file systems of this kind cannot be opened by inode,
 * -ENOENT where the file system is not mounted here, or the kernel's error: -EPERM without
 * CAP_DAC_READ_SEARCH, -ESTALE when the file is deleted.
 */
int open_by_inode(uint32_t dev, uint64_t inode, uint32_t generation, char path[static 4096],
		  int *fd_out);

#endif
