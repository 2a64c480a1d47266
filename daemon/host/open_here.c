/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/open_here.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "common/base.h"

enum { DEV_MINOR_BITS = 20, FILEID_INO32_GEN = 1 };

/* A file handle of type FILEID_INO32_GEN, see include/linux/exportfs.h of the kernel. */
union handle {
	struct file_handle head;
	struct {
		unsigned int bytes;
		int type;
		uint32_t inode, generation;
	};
};

/* True if a file on this type of file system can be opened by a handle of type FILEID_INO32_GEN. */
static bool has_handles(const char *type)
{
	static const char *const types[] = { "ext2", "ext3", "ext4", "f2fs", "xfs" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

/*
 * Opens the mount point that a line of mountinfo names. Returns an fd; -ENOENT if the line is of
 * another device.
 */
static int mount_open(const char *line, uint32_t dev)
{
	unsigned int major, minor;
	char point[PATH_MAX], type[64];
	const char *rest = strstr(line, " - ");
	int fd;

	if (!rest || sscanf(line, "%*d %*d %u:%u %*s %4095s", &major, &minor, point) != 3 ||
	    (major << DEV_MINOR_BITS | minor) != dev || sscanf(rest, " - %63s", type) != 1)
		return -ENOENT;
	if (!has_handles(type))
		return -EOPNOTSUPP;
	/*
	 * Opening fails if the mount point is a file, or has a blank in its path, which mountinfo
	 * escapes. Another line of the same device may work.
	 */
	fd = open(point, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -ENOENT : fd;
}

/* Opens a mount point of the device, no matter which. */
static int mount_find(uint32_t dev)
{
	_cleanup_(fclosep) FILE *in = fopen("/proc/self/mountinfo", "re");
	char line[3 * PATH_MAX];
	int fd = -ENOENT;

	while (in && fd == -ENOENT && fgets(line, sizeof(line), in))
		fd = mount_open(line, dev);
	return fd;
}

static int root_open(const struct open_request *request, int root_fd)
{
	struct open_how how = {
		.flags = (unsigned int)(O_PATH | O_CLOEXEC | request->flags),
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | request->resolve,
	};
	long fd = syscall(SYS_openat2, root_fd, request->path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int fd_open(const struct open_request *request, int path_fd)
{
	char link[32];
	int fd;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | request->flags);
	return fd < 0 ? -errno : fd;
}

static int inode_open(const struct open_request *request)
{
	_Alignas(struct file_handle) union handle handle = {
		.bytes = 2 * sizeof(uint32_t),
		.type = FILEID_INO32_GEN,
		.inode = (uint32_t)request->inode,
		.generation = request->generation,
	};
	_cleanup_(closep) int mount_fd = -1;
	int fd;

	if (request->inode > UINT32_MAX)
		return -EOPNOTSUPP;
	mount_fd = mount_find(request->dev);
	if (mount_fd < 0)
		return mount_fd;
	fd = open_by_handle_at(mount_fd, &handle.head,
			       O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int open_here(const struct open_request *request, int at_fd)
{
	switch (request->kind) {
	case OPEN_IN_ROOT:
		return root_open(request, at_fd);
	case OPEN_FD:
		return fd_open(request, at_fd);
	case OPEN_BY_INODE:
		return inode_open(request);
	}
	return -EINVAL;
}
