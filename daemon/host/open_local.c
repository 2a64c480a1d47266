/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/host/open_local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/openat2.h>

#include "common/base.h"
#include "daemon/host/open_file.h"
#include "daemon/host/procfs.h"

enum { STEPS_MAX = 1024, LINKS_MAX = 40 };

/*
 * A look-up in progress. It goes from directory to directory, so that it notices each mount point
 * before it enters it.
 */
struct walk {
	struct mount_view *view;
	int root_fd;
	int fd;		     /* the directory that was reached */
	char done[PATH_MAX]; /* path of fd without symbolic links; empty for the root */
	char rest[PATH_MAX]; /* path that is still to be walked from fd */
	unsigned links, steps;
};

static int root_again(struct walk *walk)
{
	closep(&walk->fd);
	walk->done[0] = '\0';
	walk->fd = fcntl(walk->root_fd, F_DUPFD_CLOEXEC, 0);
	return walk->fd < 0 ? -errno : 0;
}

/* Puts `path`, and then what was left to walk, before the rest of the walk. */
static int rest_set(struct walk *walk, const char *path, const char *left)
{
	char rest[PATH_MAX];
	int n = snprintf(rest, sizeof(rest), "%s/%s", path, left);

	if (n >= (int)sizeof(rest))
		return -ENAMETOOLONG;
	memcpy(walk->rest, rest, (size_t)n + 1);
	return 0;
}

/* Goes to the parent directory: walks again from the root, since the parent may be in a mount. */
static int step_up(struct walk *walk, const char *left)
{
	char parent[PATH_MAX], *slash;
	int r;

	memcpy(parent, walk->done, sizeof(parent));
	slash = strrchr(parent, '/');
	if (slash)
		*slash = '\0';
	r = rest_set(walk, parent, left);
	return r ? r : root_again(walk);
}

/* Continues where a symbolic link leads. */
static int step_link(struct walk *walk, int link_fd, const char *left)
{
	char target[PATH_MAX];
	ssize_t n = readlinkat(link_fd, "", target, sizeof(target) - 1);
	int r;

	if (n < 0)
		return -errno;
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	target[n] = '\0';
	r = rest_set(walk, target, left);
	return r || target[0] != '/' ? r : root_again(walk);
}

/* Opens one component of the path in walk.fd. Enters only mounts of local file systems. */
static int component_open(struct walk *walk, const char *name, const char *path)
{
	int fd = open_path_in_root(walk->fd, name, O_NOFOLLOW, RESOLVE_NO_XDEV);

	if (fd != -EXDEV)
		return fd;
	if (mount_view_is_remote_point(walk->view, path))
		return -EREMOTE;
	fd = open_path_in_root(walk->fd, name, O_NOFOLLOW, 0);
	if (fd >= 0 && mount_view_is_remote(walk->view, fd)) {
		close(fd);
		return -EREMOTE;
	}
	return fd;
}

static int step_down(struct walk *walk, const char *name, const char *left)
{
	char path[PATH_MAX];
	struct statx st;
	int fd, r;

	if (snprintf(path, sizeof(path), "%s/%s", walk->done, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = component_open(walk, name, path);
	if (fd < 0)
		return fd;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0) {
		r = -errno;
	} else if (S_ISLNK(st.stx_mode)) {
		r = step_link(walk, fd, left);
	} else {
		closep(&walk->fd);
		walk->fd = fd;
		memcpy(walk->done, path, strlen(path) + 1);
		return rest_set(walk, "", left);
	}
	close(fd);
	return r;
}

/* Walks one component. Returns 1 at the end of the path, else 0 or a negative errno. */
static int step(struct walk *walk)
{
	char name[NAME_MAX + 1];
	const char *rest = walk->rest + strspn(walk->rest, "/"), *left;
	size_t n = strcspn(rest, "/");
	char tail[PATH_MAX];

	if (!n)
		return 1;
	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	if (++walk->steps > STEPS_MAX)
		return -ELOOP;
	memcpy(name, rest, n);
	name[n] = '\0';
	left = rest + n + strspn(rest + n, "/");
	memcpy(tail, left, strlen(left) + 1);
	if (!strcmp(name, "."))
		return rest_set(walk, "", tail);
	return strcmp(name, "..") ? step_down(walk, name, tail) : step_up(walk, tail);
}

static int walk_run(struct walk *walk, const char *path)
{
	int r = rest_set(walk, "", path);

	if (!r)
		r = root_again(walk);
	while (!r)
		r = step(walk);
	return r < 0 ? r : 0;
}

int open_local_path(struct mount_view *view, int root_fd, const char *path)
{
	struct walk walk = { .view = view, .root_fd = root_fd, .fd = -1 };
	int fd, r;

	if (!view->mounts)
		return open_path_in_root(root_fd, path, 0, 0);
	if (mount_view_is_remote(view, root_fd))
		return -EREMOTE;
	/* Most paths enter no other mount: one call opens them. */
	fd = open_path_in_root(root_fd, path, 0, RESOLVE_NO_XDEV);
	if (fd != -EXDEV)
		return fd;
	r = walk_run(&walk, path);
	if (r < 0)
		closep(&walk.fd);
	return r < 0 ? r : walk.fd;
}

int open_local_file(struct mount_view *view, int root_fd, const char *path)
{
	_cleanup_(closep) int path_fd = open_local_path(view, root_fd, path);
	struct statx st;

	if (path_fd < 0)
		return path_fd;
	if (statx(path_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &st) < 0)
		return -errno;
	return S_ISREG(st.stx_mode) ? open_path_fd(path_fd, 0) : -EINVAL;
}

/*
 * True if the file with the descriptor fd is at `path`. If not, another file was mapped after
 * /proc/PID/maps was read.
 */
static bool is_at_path(int fd, const char *path)
{
	char found[PATH_MAX];

	/* The path of a file cannot be read if it is too long. Then assume that it is `path`. */
	return procfs_read_fd(fd, found) || !strcmp(found, path);
}

static bool is_inode(int fd, const struct proc_mapping *mapping)
{
	struct stat st;

	return open_file_stat(fd, &st) == 0 && st.st_dev == mapping->dev &&
	       st.st_ino == mapping->inode;
}

/* Opens the path of the mapping in the root directory of the process. */
static int path_open(struct mount_view *view, const struct proc_mapping *mapping)
{
	_cleanup_(closep) int root_fd =
		openat(view->proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = root_fd < 0 ? -errno : open_local_path(view, root_fd, mapping->path);

	if (fd >= 0 && !is_inode(fd, mapping)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

int open_local_mapped(struct mount_view *view, const struct proc_mapping *mapping)
{
	/* Since Linux 6.2 shared memory may have a name that is not a path: [anon_shmem:NAME]. */
	bool has_path = mapping->path[0] == '/';
	char path[64];
	int fd, r;

	if (mount_view_is_remote_dev(view, mapping->dev))
		return -EREMOTE;
	snprintf(path, sizeof(path), "map_files/%" PRIx64 "-%" PRIx64, mapping->start,
		 mapping->end);
	fd = openat(view->proc_fd, path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return has_path ? path_open(view, mapping) : -errno;
	/*
	 * The device may be that of a layer of an overlay; what is opened is the overlay. The
	 * descriptor shows which.
	 */
	if (mount_view_is_remote(view, fd))
		r = -EREMOTE;
	else
		r = (has_path ? is_at_path(fd, mapping->path) : is_inode(fd, mapping)) ? fd
										       : -ESTALE;
	if (r < 0)
		close(fd);
	return r;
}
