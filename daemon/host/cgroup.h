/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_CGROUP_H
#define STACKD_DAEMON_HOST_CGROUP_H

/*
 * Finds the paths of control groups (unified hierarchy) by the numbers that the kernel has for
 * them. No state; any thread.
 */

#include <stddef.h>
#include <stdint.h>

enum { CGROUP_DEPTH_MAX = 32, CGROUP_PATH_MAX = 2048 };

/*
 * Finds where the hierarchy is mounted; on hybrid hosts that is not /sys/fs/cgroup. -ENOENT where
 * it is not.
 */
int cgroup_mount(char *path, size_t size);

/*
 * Finds the path of a group below the mount ("/a/b") and writes at most size bytes. -ENOENT where
 * no group has this number (any more), -ENAMETOOLONG.
 */
int cgroup_path(uint64_t id, char *out, size_t size);

#endif
