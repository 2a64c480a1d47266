/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_OPEN_FILE_H
#define STACKD_DAEMON_HOST_OPEN_FILE_H

/*
 * Opens files of other processes safely, so that a process cannot trick stackd into opening another
 * file: by a path in another root directory, by an O_PATH descriptor that was checked first, or by
 * inode. The caller owns the returned descriptors. No state; any thread.
 *
 * The files of this room that open files, or help with it, form layers, listed here from the lowest
 * to the highest; each calls only files of lower layers: proc_maps, open_here, fd_message,
 * helper_process < procfs, remote_mounts < opener < open_file < open_local.
 */

#include <stdint.h>

struct stat;

/*
 * Opens a path below the directory root_fd with O_PATH and `flags`. Symbolic links cannot lead
 * outside root_fd, and magic links of /proc are not followed. `resolve` has further RESOLVE_* flags
 * for openat2(). Returns an fd or a negative errno.
 */
int open_path_in_root(int root_fd, const char *path, int flags, uint64_t resolve);

/*
 * Opens the file of path_fd, a descriptor opened with O_PATH, for reading. `flags` has further
 * flags for open(). path_fd stays open. Does not wait for the other end of a FIFO. Returns an fd or
 * a negative errno.
 */
int open_path_fd(int path_fd, int flags);

/*
 * Opens the file with this inode and generation on the file system with the device number `dev`
 * (major << 20 | minor), even if no process has the file open or mapped. May wait for the disk.
 * Writes the path that the file has in this mount namespace to `path`. Returns 0; -EOPNOTSUPP if
 * this type of file system cannot open files by inode; -ENOENT if the file system is not mounted
 * here; or an error of the kernel: -EPERM without CAP_DAC_READ_SEARCH, -ESTALE if the file is
 * deleted.
 */
int open_by_inode(uint32_t dev, uint64_t inode, uint32_t generation, char path[static 4096],
		  int *fd_out);

/*
 * Sets st_dev, st_ino, st_mode, st_uid, st_size and st_mtim of *out, and all others to 0. Unlike
 * fstat(), does not wait for the server of a remote file: takes what the kernel has in memory.
 * Returns 0 or a negative errno.
 */
int open_file_stat(int fd, struct stat *out);

#endif
