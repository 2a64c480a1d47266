/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_CGROUP_H
#define STACKD_DAEMON_HOST_CGROUP_H

/*
 * Finds the path of a control group (cgroup v2) by the group's number in the kernel. No state; any
 * thread.
 */

#include <stddef.h>
#include <stdint.h>

enum { CGROUP_DEPTH_MAX = 32, CGROUP_PATH_MAX = 2048 };

/*
 * Finds the directory where the hierarchy of cgroup v2 is mounted, which is not always
 * /sys/fs/cgroup. Returns 0, or -ENOENT if it is not mounted.
 */
int cgroup_mount(char *path, size_t size);

/*
 * Returns the number of the control group at the root of the hierarchy as this process sees it; 0
 * if cgroup v2 is not mounted.
 */
uint64_t cgroup_root(void);

/*
 * Finds the path of a control group, relative to the directory where the hierarchy is mounted
 * ("/a/b"). Writes it to `out`, which has room for `size` bytes. Returns 0; -ENOENT if no group has
 * this number, for example because it was removed; or -ENAMETOOLONG.
 */
int cgroup_path(uint64_t id, char *out, size_t size);

#endif
