/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/open_by_handle.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/host/procfs.h"

enum { DEV_MINOR_BITS = 20, FILEID_INO32_GEN = 1 };

/* struct file_handle with the two words of FILEID_INO32_GEN, include/linux/exportfs.h. */
union handle {
	struct file_handle head;
	struct {
		unsigned int bytes;
		int type;
		uint32_t inode, generation;
	};
};

/* Which have these handles. */
static bool has_handles(const char *type)
{
	static const char *const types[] = { "ext2", "ext3", "ext4", "f2fs", "xfs" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(type, types[i]))
			return true;
	return false;
}

/* One line of mountinfo: a directory on this device, opened; -ENOENT for another one. */
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
	/* A file that is mounted, or a name with an escaped blank in it: another line may do. */
	fd = open(point, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -ENOENT : fd;
}

static int mount_find(uint32_t dev)
{
	_cleanup_(fclosep) FILE *in = fopen("/proc/self/mountinfo", "re");
	char line[3 * PATH_MAX];
	int fd = -ENOENT;

	while (in && fd == -ENOENT && fgets(line, sizeof(line), in))
		fd = mount_open(line, dev);
	return fd;
}

int open_by_inode(uint32_t dev, uint64_t inode, uint32_t generation, char path[static PATH_MAX],
		  int *fd_out)
{
	_Alignas(struct file_handle) union handle handle = {
		.bytes = 2 * sizeof(uint32_t),
		.type = FILEID_INO32_GEN,
		.inode = (uint32_t)inode,
		.generation = generation,
	};
	_cleanup_(closep) int mount_fd = -1;
	int fd, r;

	if (inode > UINT32_MAX)
		return -EOPNOTSUPP;
	mount_fd = mount_find(dev);
	if (mount_fd < 0)
		return mount_fd;
	fd = open_by_handle_at(mount_fd, &handle.head,
			       O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = procfs_read_fd(fd, path);
	if (r) {
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}
