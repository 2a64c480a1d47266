/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_PROCFS_H
#define STACKD_DAEMON_HOST_PROCFS_H

/*
 * One process as /proc shows it: in goes a pid, out come its facts. A handle stays with the
 * process it was opened for, also when the pid is reused: then every read fails with -ESRCH.
 * No state; any thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/host/proc_maps.h"

struct procfs_stat {
	uint64_t start_ticks; /* since boot, see procfs_ticks() */
	bool is_kernel;
	char comm[16];
};

/* The clock ticks /proc shows for a start time. */
uint64_t procfs_ticks(uint64_t start_boot_ns);
/* The earliest time a number of ticks stands for, ns. */
uint64_t procfs_ticks_ns(uint64_t ticks);

/* An fd of /proc/PID, owned by the caller, and what its stat file says; -ESRCH when none has it. */
int procfs_open(int32_t pid, struct procfs_stat *stat_out);

/* Whether such a thread is there. Of programs that tell its end, a host may hide some. */
bool procfs_has_thread(uint32_t tgid, uint32_t tid);

/* The file a process was started from; path is owned by whoever has the struct. */
struct procfs_exe {
	char *path;
	uint64_t dev, inode; /* stay when the path is renamed; 0 where unknown */
};

/* -ENOENT for kernel threads and for processes that are exiting. */
int procfs_read_exe(int dir_fd, struct procfs_exe *exe_out);

/* Owned by the caller. -ENOENT when there is no cgroup2 hierarchy. */
int procfs_read_cgroup(int dir_fd, char **cgroup_out);

/* Where a descriptor's file is, also one that was deleted; path has PATH_MAX bytes. */
int procfs_read_fd(int fd, char *path);

int procfs_read_maps(int dir_fd, struct proc_maps *out);

/*
 * The file of a mapping, opened with O_PATH so that no driver is touched and no FIFO is waited
 * for. By map_files, which also reaches deleted files and other mount namespaces; else by its
 * path in the process's root; where that is the same file. An fd owned by the caller, or -errno.
 */
int procfs_open_mapped(int dir_fd, const struct proc_mapping *mapping);

#endif
