/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "common/base.h"
#include "daemon/host/open_here.h"
#include "daemon/host/opener.h"
#include "daemon/host/procfs.h"

/* Opens a file in another process if there are such processes, else in this one. */
static int file_open(const struct open_request *request, int at_fd)
{
	return opener_is_on() ? opener_ask(request, at_fd) : open_here(request, at_fd);
}

int open_path_in_root(int root_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_request request = { .kind = OPEN_IN_ROOT, .flags = flags, .resolve = resolve };
	size_t n = strlen(path);

	if (n >= sizeof(request.path))
		return -ENAMETOOLONG;
	memcpy(request.path, path, n + 1);
	/* What is in the kernel's cache is opened without waiting. */
	if (resolve & RESOLVE_CACHED)
		return open_here(&request, root_fd);
	return file_open(&request, root_fd);
}

int open_path_fd(int path_fd, int flags)
{
	const struct open_request request = { .kind = OPEN_FD, .flags = flags };

	return file_open(&request, path_fd);
}

int open_by_inode(uint32_t dev, uint64_t inode, uint32_t generation, char path[static PATH_MAX],
		  int *fd_out)
{
	const struct open_request request = {
		.kind = OPEN_BY_INODE,
		.inode = inode,
		.dev = dev,
		.generation = generation,
	};
	int fd = file_open(&request, -1), r;

	if (fd < 0)
		return fd;
	r = procfs_read_fd(fd, path);
	if (r) {
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}

int open_file_stat(int fd, struct stat *out)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st) < 0)
		return -errno;
	*out = (struct stat){
		.st_dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.st_ino = st.stx_ino,
		.st_mode = st.stx_mode,
		.st_uid = st.stx_uid,
		.st_size = (off_t)st.stx_size,
		.st_mtim = { st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec },
	};
	return 0;
}
