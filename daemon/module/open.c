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

/* What is held open by this table. */
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
	int self_fd; /* our own directory in /proc: the namespace is the host's */
};

static bool is_remote(void *userdata, uint64_t dev)
{
	const struct host *host = userdata;

	return module_registry_is_remote(host->registry, host->self_fd, dev);
}

/* Moves a descriptor up; -1 stays. */
static int fd_raise(int fd, int fd_min)
{
	int raised = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, fd_min);

	closep(&fd);
	return raised;
}

/*
 * A file that is at this path now; not touched further where that could hang. In a root that is not
 * ours only below what is mounted as its root.
 */
static int path_open(struct host *host, int root_fd, const char *path)
{
	if (path[0] != '/')
		return -ENOENT;
	return elf_open_regular(root_fd < 0 ? open(path, O_PATH | O_CLOEXEC)
					    : elf_open_in_root(root_fd, path),
				is_remote, host);
}

/* Reads what the file is, and looks for its debug file. False when it is not of this identity. */
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
 * Where the file may be by its path. A unit may hide what others have in /tmp and /home from us,
 * as stackd.service does: it is there for the first process. What is read is by its contents the
 * file that was recorded, and only places in its source are told of it.
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

/* One that is held open may have its debug file in either root. */
static bool held_check(struct host *host, int fd, uint64_t file_id, const char *path, int *debug_fd)
{
	bool is_it = false;

	for (size_t i = 0; i < ARRAY_SIZE(roots) && (!i || (is_it && *debug_fd < 0)); i++) {
		_cleanup_(closep) int root_fd = open(roots[i], O_PATH | O_DIRECTORY | O_CLOEXEC);

		is_it = file_check(host, fd, root_fd, file_id, path, debug_fd);
	}
	return is_it;
}

int module_registry_open(struct module_registry *registry, uint64_t file_id, const char *path,
			 int fd_min, int *fd_out, int *debug_fd_out)
{
	_cleanup_(closep) int self_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct host host = { registry, self_fd };
	_cleanup_(closep) int fd = -1;
	int debug_fd = -1;
	bool is_it;

	held_open(registry, file_id, fd_min, &fd, &debug_fd);
	is_it = fd >= 0 && held_check(&host, fd, file_id, path, &debug_fd);
	if (fd < 0) {
		fd = file_find(&host, file_id, path, &debug_fd);
		is_it = fd >= 0;
	}
	if (!is_it) {
		closep(&debug_fd);
		return -ENOENT;
	}
	*fd_out = fd_raise(module_take_fd(&fd), fd_min);
	*debug_fd_out = fd_raise(debug_fd, fd_min);
	return *fd_out < 0 ? -ENOENT : 0;
}
