/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_TARGET_BINARY_H
#define STACKD_DAEMON_PROBE_TARGET_BINARY_H

/*
 * Finds the files that a user means by the name or path of a program or library, among the files
 * that certain processes see. The caller owns the result. No state; any thread.
 */

#include <stddef.h>
#include <sys/types.h>

#include "daemon/host/remote_mounts.h"
#include "daemon/probe/target.h"

struct target_file {
	char *path; /* path by which this process can open the file; also shown to users */
	dev_t dev;
	ino_t inode;
};

struct target_files {
	struct target_file *v;
	size_t n;
	size_t capacity;
};

/*
 * Finds the files that `name` stands for. A file is found once, even if several links lead to it.
 * If `name` begins with /, it is a path. Any other name is looked up among the files that a task
 * has mapped, which includes deleted files, then in the directories of libraries and programs.
 *
 * Leaves out files on remote file systems, unless `mounts` is NULL, because opening them may hang.
 * Searches the files that the tasks see. If there are none with this name, searches those that
 * process 1 sees, and then those that this process sees.
 *
 * Returns 0 and at least one file, or -ENOMEM. On -ENOENT or -EINVAL, `why` (size bytes) gets one
 * line that says what is wrong.
 */
int target_files_find(const char *name, struct remote_mounts *mounts,
		      const struct target_tasks *tasks, struct target_files *out, char *why,
		      size_t size);
void target_files_fini(struct target_files *files);

/*
 * Opens a path of this process with O_PATH. A path like /proc/PID/root/usr/bin/bash or
 * /proc/PID/exe leads to the files of that process. Returns an fd owned by the caller; -EREMOTE if
 * the file is on a remote file system and `mounts` is not NULL; or another negative errno.
 */
int target_path_open(struct remote_mounts *mounts, const char *path);

#endif
