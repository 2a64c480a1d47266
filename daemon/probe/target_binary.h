/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_TARGET_BINARY_H
#define STACKD_DAEMON_PROBE_TARGET_BINARY_H

/*
 * Which file a program or library is: in goes what a user calls it, and the processes that are
 * meant, out come all files that go by that name. Plain values of the caller's, no state; any
 * thread.
 */

#include <stddef.h>
#include <sys/types.h>

#include "daemon/probe/target.h"

struct target_file {
	char *path; /* opens it from here, and tells a user which one it is */
	dev_t dev;
	ino_t inode;
};

struct target_files {
	struct target_file *v;
	size_t n;
};

/*
 * Each file once, by whatever links. A path is that of the processes, in their own root, and what
 * it is for process 1, or here, where they have none such; a name is first what they have mapped,
 * deleted or not. 0 with one at least; -ENOENT, -EINVAL or -ENOMEM, the first two with one line in
 * why (size bytes).
 */
int target_files_find(const char *place, const struct target_tasks *tasks, struct target_files *out,
		      char *why, size_t size);
void target_files_fini(struct target_files *files);

#endif
