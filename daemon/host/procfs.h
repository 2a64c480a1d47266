/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_PROCFS_H
#define STACKD_DAEMON_HOST_PROCFS_H

/*
 * Reads facts about one process from /proc. A descriptor of /proc/PID stays with its process: when
 * that has exited every read fails with -ESRCH, even if the pid is reused. No state; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/host/proc_maps.h"

struct procfs_stat {
	uint64_t start_ticks; /* clock ticks since boot, see procfs_ticks() */
	bool is_kernel;
	char comm[16];
};

/* Converts a start time to the clock ticks that /proc shows for it. */
uint64_t procfs_ticks(uint64_t start_boot_ns);
/* Returns the earliest start time in ns that /proc shows as these ticks. */
uint64_t procfs_ticks_ns(uint64_t ticks);

/*
 * Opens /proc/PID and reads its stat file. Returns an fd owned by the caller, or a negative errno;
 * -ESRCH when no process has the pid.
 */
int procfs_open(int32_t pid, struct procfs_stat *stat_out);

/* True if the thread exists. On some hosts BPF iterators miss threads that /proc shows. */
bool procfs_has_thread(uint32_t tgid, uint32_t tid);

/* The file that a process executes. path is to be freed by the owner of the struct. */
struct procfs_exe {
	char *path;
	uint64_t dev, inode; /* stay the same when the file is renamed; 0 where unknown */
};

/* Reads /proc/PID/exe. -ENOENT for kernel threads and for processes that are exiting. */
int procfs_read_exe(int dir_fd, struct procfs_exe *exe_out);

/*
 * Reads the path of the process in the cgroup2 hierarchy. Owned by the caller. -ENOENT when there
 * is none.
 */
int procfs_read_cgroup(int dir_fd, char **cgroup_out);

/*
 * Reads the path of the file that a descriptor of this process refers to, even if the file is
 * deleted; path has PATH_MAX bytes.
 */
int procfs_read_fd(int fd, char *path);

/* Reads the executable mappings of the process, see proc_maps_read(). */
int procfs_read_maps(int dir_fd, struct proc_maps *out);

/*
 * Opens the file of a mapping with O_PATH, so that no device driver is called and no FIFO waited
 * for. First by map_files, which reaches deleted files and other mount namespaces, too; else by its
 * path in the root of the process, if the same file is there. Returns an fd owned by the caller, or
 * a negative errno.
 */
int procfs_open_mapped(int dir_fd, const struct proc_mapping *mapping);

#endif
