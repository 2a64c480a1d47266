/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/elf/debug_file.h"
#include "daemon/module/internal.h"

static struct module *module_of(struct module_registry *registry, uint64_t file_id)
{
	struct module *module, *next;

	HASH_ITER (hh, registry->modules, module, next)
		if (module->file_id == file_id && module->fd >= 0)
			return module;
	return NULL;
}

/*
 * If a loaded module has the file with this identity open, duplicates the descriptors of that file
 * and of its debug file.
 */
static void held_open(struct module_registry *registry, uint64_t file_id, int fd_min, int *fd,
		      int *debug_fd)
{
	const struct module *module;

	pthread_mutex_lock(&registry->lock);
	module = module_of(registry, file_id);
	if (module) {
		*fd = fcntl(module->fd, F_DUPFD_CLOEXEC, fd_min);
		if (module->debug_fd >= 0)
			*debug_fd = fcntl(module->debug_fd, F_DUPFD_CLOEXEC, fd_min);
	}
	pthread_mutex_unlock(&registry->lock);
}

struct host {
	struct module_registry *registry;
	int self_fd; /* descriptor of /proc/self, where mountinfo shows the mounts that the
			daemon sees */
};

static bool is_remote(void *userdata, uint64_t dev)
{
	const struct host *host = userdata;

	return module_registry_is_remote(host->registry, host->self_fd, dev);
}

/*
 * Duplicates a descriptor to a number of at least fd_min, and closes the old one. Returns the new
 * one, -1 on failure or if fd is -1.
 */
static int fd_raise(int fd, int fd_min)
{
	int raised = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, fd_min);

	closep(&fd);
	return raised;
}

/*
 * Opens a file by its path, unless it is on a remote file system, where opening could hang. If
 * root_fd is not -1, it is the root directory of another process: `path` is looked up there, and
 * only files on the same file system as this directory are opened.
 */
static int path_open(struct host *host, int root_fd, const char *path)
{
	if (path[0] != '/')
		return -ENOENT;
	return elf_open_regular(root_fd < 0 ? open(path, O_PATH | O_CLOEXEC)
					    : elf_open_in_root(root_fd, path),
				is_remote, host);
}

/*
 * True if the file fd has the identity file_id. If *debug_fd is -1, opens the file's separate debug
 * file and stores its descriptor there. Closes *debug_fd and sets it to -1 if it is not the debug
 * file of this file.
 */
static bool file_check(struct host *host, int fd, int root_fd, uint64_t file_id, const char *path,
		       int *debug_fd)
{
	_cleanup_(elf_file_fini) struct elf_file elf = { 0 };
	struct elf_source source = { .fd = fd };
	struct file_state state;
	struct stat st;

	if (fstat(fd, &st) < 0 || elf_file_read(&source, &elf) < 0)
		return false;
	state = file_state_of(&st);
	if (module_identity(&elf, &state) != file_id)
		return false;
	if (*debug_fd < 0)
		*debug_fd = debug_file_open(root_fd, path, &elf, is_remote, host);
	if (*debug_fd >= 0 && !debug_file_is_of(*debug_fd, &elf)) {
		close(*debug_fd);
		*debug_fd = -1;
	}
	return true;
}

/*
 * The root directories in which a path is looked for. The unit of stackd may hide the /tmp and
 * /home of other programs from the daemon, but process 1 sees them. stackd does not reveal other
 * files by this: the file must have the recorded identity, and only line numbers of its source are
 * shown.
 */
static const char *const roots[] = { "/", "/proc/1/root" };

static int file_find(struct host *host, uint64_t file_id, const char *path, int *debug_fd)
{
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		_cleanup_(closep) int root_fd = open(roots[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		_cleanup_(closep) int fd = -1;

		if (root_fd >= 0)
			fd = path_open(host, i ? root_fd : -1, path);
		if (fd >= 0 && file_check(host, fd, root_fd, file_id, path, debug_fd))
			return module_take_fd(&fd);
	}
	return -1;
}

/*
 * True if fd, the duplicated descriptor of a module's file, has the identity file_id. Looks for the
 * separate debug file in all root directories.
 */
static bool held_check(struct host *host, int fd, uint64_t file_id, const char *path, int *debug_fd)
{
	bool is_match = false;

	for (size_t i = 0; i < ARRAY_SIZE(roots) && (!i || (is_match && *debug_fd < 0)); i++) {
		_cleanup_(closep) int root_fd = open(roots[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		is_match = file_check(host, fd, root_fd, file_id, path, debug_fd);
	}
	return is_match;
}

int module_registry_open(struct module_registry *registry, uint64_t file_id, const char *path,
			 int fd_min, int *fd_out, int *debug_fd_out)
{
	_cleanup_(closep) int self_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct host host = { registry, self_fd };
	_cleanup_(closep) int fd = -1;
	int debug_fd = -1;
	bool is_match;

	held_open(registry, file_id, fd_min, &fd, &debug_fd);
	is_match = fd >= 0 && held_check(&host, fd, file_id, path, &debug_fd);
	if (fd < 0) {
		fd = file_find(&host, file_id, path, &debug_fd);
		is_match = fd >= 0;
	}
	if (!is_match) {
		closep(&debug_fd);
		return -ENOENT;
	}
	*fd_out = fd_raise(module_take_fd(&fd), fd_min);
	*debug_fd_out = fd_raise(debug_fd, fd_min);
	return *fd_out < 0 ? -ENOENT : 0;
}
