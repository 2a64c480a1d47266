/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_PROCFS_H
#define STACKD_DAEMON_HOST_PROCFS_H

/*
 * Reads facts about one process from /proc. dir_fd is always a descriptor of /proc/PID. The
 * descriptor is tied to one process: after the process has exited, every read fails with -ESRCH,
 * even if its pid is reused. No state; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/host/proc_maps.h"

struct procfs_stat {
	uint64_t start_ticks; /* time at which the process started, in clock ticks since boot */
	bool is_kernel;	      /* the process is a kernel thread */
	char comm[16];
};

/* Converts a start time, in ns since boot, to the clock ticks that /proc shows for it. */
uint64_t procfs_ticks(uint64_t start_boot_ns);
/* Returns the earliest start time, in ns since boot, that /proc shows as this many ticks. */
uint64_t procfs_ticks_ns(uint64_t ticks);

/* Returns the memory of this process (RSS) in bytes, 0 if /proc does not say. */
size_t procfs_own_rss(void);

/*
 * Opens /proc/PID and reads its stat file. Returns an fd owned by the caller, or a negative errno;
 * -ESRCH when no process has the pid.
 */
int procfs_open(int32_t pid, struct procfs_stat *stat_out);

/* True if /proc shows the thread. Used because BPF iterators miss threads on some hosts. */
bool procfs_has_thread(uint32_t tgid, uint32_t tid);

/* The file that a process executes. The owner of the struct frees the string `path`. */
struct procfs_exe {
	char *path;
	uint64_t dev, inode; /* device and inode of the file; 0: not known */
};

/*
 * Reads the path, device and inode of the file that the process executes (/proc/PID/exe). Returns
 * -ENOENT for kernel threads and for processes that are exiting.
 */
int procfs_read_exe(int dir_fd, struct procfs_exe *exe_out);

/*
 * Reads the path of the process in the cgroup2 hierarchy. The caller owns the path. Returns -ENOENT
 * when there is none.
 */
int procfs_read_cgroup(int dir_fd, char **cgroup_out);

/*
 * Finds the path of the file that fd refers to, even if the file is deleted. fd is a descriptor of
 * stackd itself. Writes the path to `path`, which has room for PATH_MAX bytes. Returns 0 or a
 * negative errno.
 */
int procfs_read_fd(int fd, char *path);

/* Reads the executable mappings of the process, see proc_maps_read(). */
int procfs_read_maps(int dir_fd, struct proc_maps *out);

#endif
