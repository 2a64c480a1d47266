/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_TARGET_BINARY_H
#define STACKD_DAEMON_PROBE_TARGET_BINARY_H

/*
 * Finds the files that a user means by the name or path of a program or library, as the given
 * processes see them. The caller owns the result. No state; any thread.
 */

#include <stddef.h>
#include <sys/types.h>

#include "daemon/probe/target.h"

struct target_file {
	char *path; /* opens it from this process, and shows a user which file it is */
	dev_t dev;
	ino_t inode;
};

struct target_files {
	struct target_file *v;
	size_t n;
	size_t capacity;
};

/*
 * Finds the files, each once even if several links lead to it. A path is looked up in the root of
 * each process; if none of them has it, in that of process 1, then in this process's own. A name is
 * looked up in the files that each process has mapped, deleted ones too, then in the directories of
 * libraries and programs. 0 with at least one file; -ENOENT, -EINVAL or -ENOMEM, the first two with
 * one line in why (size bytes).
 */
int target_files_find(const char *name, const struct target_tasks *tasks, struct target_files *out,
		      char *why, size_t size);
void target_files_fini(struct target_files *files);

#endif
