/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_CGROUP_H
#define STACKD_DAEMON_HOST_CGROUP_H

/*
 * Control groups of the unified hierarchy: in go the numbers that the kernel has of them, out come
 * their paths. No state; any thread.
 */

#include <stddef.h>
#include <stdint.h>

enum { CGROUP_DEPTH_MAX = 32, CGROUP_PATH_MAX = 2048 };

/* Where it is mounted; on hybrid hosts that is not the top. -ENOENT where it is not. */
int cgroup_mount(char *path, size_t size);

/* "/a/b" below the mount, size bytes at most. -ENOENT where there is none of that number (any
 * more). */
int cgroup_path(uint64_t id, char *out, size_t size);

#endif
