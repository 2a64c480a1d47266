/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_OPEN_LOCAL_H
#define STACKD_DAEMON_HOST_OPEN_LOCAL_H

/*
 * Opens paths without entering remote file systems, whose look-ups may hang for ever. The caller
 * owns the returned descriptors. No state; any thread.
 */

#include "daemon/host/proc_maps.h"
#include "daemon/host/remote_mounts.h"

/*
 * Opens a path below the directory root_fd with O_PATH. root_fd is the root directory of the view's
 * process. Follows symbolic links, which cannot lead outside root_fd, but not those of /proc.
 * Returns an fd; -EREMOTE if the path leads to or through a remote file system; or another negative
 * errno.
 */
int open_local_path(struct mount_view *view, int root_fd, const char *path);

/* Opens a path for reading, as open_local_path() finds it. -EINVAL if it is not a regular file. */
int open_local_file(struct mount_view *view, int root_fd, const char *path);

/*
 * Opens the file of a mapping with O_PATH, which calls no device driver and does not wait for the
 * other end of a FIFO. First tries /proc/PID/map_files, which has also deleted files and files of
 * other mount namespaces; then the path in the root directory of the process, if the same file is
 * there. `view` is that of the process. Returns an fd owned by the caller; -EREMOTE if the file is
 * on a remote file system; or another negative errno.
 */
int open_local_mapped(struct mount_view *view, const struct proc_mapping *mapping);

#endif
