/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/open_in_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int open_path_in_root(int root_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = (unsigned int)(O_PATH | O_CLOEXEC | flags),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve,
	};
	long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int open_path_fd(int path_fd, int flags)
{
	char link[32];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}
