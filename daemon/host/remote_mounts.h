/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_REMOTE_MOUNTS_H
#define STACKD_DAEMON_HOST_REMOTE_MOUNTS_H

/*
 * Finds out whether a file is on a local file system, so that opening and reading it cannot hang
 * for ever. A file system is local if its type is in a list of types that the kernel serves from
 * disk or memory. An overlay can have a layer of any type, so it is local only if root has mounted
 * it: every user can mount one in a user namespace of his own. A file system in a loop device that
 * was mounted for a user is not local, since the file behind it may lie anywhere. All others, and
 * file systems that are mounted nowhere, count as remote.
 *
 * Reads /proc/PID/mountinfo and the mount id of descriptors, and never asks the file system itself.
 * Mount ids and device numbers are used again after an unmount. Therefore an answer about a
 * descriptor is certain, because the descriptor keeps its mount; an answer about a device or a path
 * is certain only as long as nothing is mounted.
 */

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/* The mounts that process 1 and stackd itself see. Any thread. */
struct remote_mounts;

/* Reads nothing yet; NULL when out of memory. */
struct remote_mounts *remote_mounts_new(void);
struct remote_mounts *remote_mounts_free(struct remote_mounts *mounts);

struct mount_table;

/*
 * The mounts that one process sees, which are read when they are needed first, if those of process
 * 1 and of stackd do not suffice. One thread; must not be kept for long, because it holds the mount
 * namespace of the process.
 */
struct mount_view {
	struct remote_mounts *mounts; /* NULL: nothing counts as remote */
	int proc_fd;		      /* the directory /proc/PID; -1: the view of stackd itself */
	struct mount_table *table;    /* NULL: not read yet, or not needed */
};

/* Makes a view. `mounts` and proc_fd must outlive it. */
struct mount_view mount_view_of(struct remote_mounts *mounts, int proc_fd);
void mount_view_fini(struct mount_view *view);

/* True if the descriptor, which may be opened with O_PATH, is on a remote file system. */
bool mount_view_is_remote(struct mount_view *view, int fd);

/* True if the device number is not that of a local file system. */
bool mount_view_is_remote_dev(struct mount_view *view, dev_t dev);

/*
 * True if the mount point `path`, an absolute path without symbolic links in the root directory of
 * the process, is one of a remote file system, or is not a mount point.
 */
bool mount_view_is_remote_point(struct mount_view *view, const char *path);

/*
 * Sets the mounts of the view to the lines of `in`, which is in the format of mountinfo. is_roots:
 * only root could mount them. Returns 0 or -ENOMEM. Public for tests.
 */
int mount_view_read(struct mount_view *view, FILE *in, bool is_roots);

#endif
