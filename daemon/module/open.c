/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/elf/debug_file.h"
#include "daemon/host/open_file.h"
#include "daemon/host/open_local.h"
#include "daemon/module/internal.h"

/* Number of root directories in which files are looked for. */
enum { PLACES = 2 };

/*
 * Returns the loaded module whose open file is the one that was recorded with this identity and
 * path. The identity says whose file it was, but not which of his: a user can copy a program,
 * change it and run it at the same path in a mount namespace of his own. So NULL is returned if
 * there are several with different content. Called with registry.lock held.
 */
static const struct module *module_recorded(struct module_registry *registry, uint64_t file_id,
					    const char *path)
{
	const struct module *found = NULL;
	struct module *module, *next;

	HASH_ITER (hh, registry->modules, module, next) {
		if (module->file_id != file_id || module->fd < 0 || strcmp(module->path, path) != 0)
			continue;
		if (found && (found->state.size != module->state.size ||
			      found->state.mtime_ns != module->state.mtime_ns))
			return NULL;
		found = module;
	}
	return found;
}

/*
 * If a loaded module has the recorded file open, duplicates the descriptors of that file and of its
 * debug file.
 */
static void held_open(struct module_registry *registry, uint64_t file_id, const char *path,
		      int fd_min, int *fd, int *debug_fd)
{
	const struct module *module;

	pthread_mutex_lock(&registry->lock);
	module = module_recorded(registry, file_id, path);
	if (module) {
		*fd = fcntl(module->fd, F_DUPFD_CLOEXEC, fd_min);
		if (module->debug_fd >= 0)
			*debug_fd = fcntl(module->debug_fd, F_DUPFD_CLOEXEC, fd_min);
	}
	pthread_mutex_unlock(&registry->lock);
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
 * A root directory in which a path is looked for, and the mounts of the process whose root it is.
 */
struct place {
	int proc_fd, root_fd;
	struct mount_view view;
	struct parser *parser; /* parses the files that are found */
};

static void place_fini(struct place *place)
{
	mount_view_fini(&place->view);
	closep(&place->root_fd);
	closep(&place->proc_fd);
}

/*
 * Opens the root directory of stackd if `index` is 0, that of process 1 if `index` is 1. The unit
 * of stackd may hide the /tmp and /home of other programs from the daemon, but process 1 sees them.
 * stackd does not reveal other files by this: the file must have the recorded identity, and only
 * line numbers of its source are shown.
 */
static struct place place_open(struct module_registry *registry, size_t index)
{
	static const char *const processes[PLACES] = { "/proc/self", "/proc/1" };
	struct place place = { .root_fd = -1, .parser = registry->parser };

	place.proc_fd = open(processes[index], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (place.proc_fd >= 0)
		place.root_fd = openat(place.proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	place.view = mount_view_of(registry->mounts, place.proc_fd);
	return place;
}

/*
 * True if the file fd has the identity file_id. If *debug_fd is -1, opens the file's separate debug
 * file and stores its descriptor there.
 */
static bool file_check(struct place *place, int fd, uint64_t file_id, const char *path,
		       int *debug_fd)
{
	_cleanup_(elf_file_fini) struct elf_file elf = { 0 };
	struct parse_file file = { .fd = fd, .debug_fd = -1, .path = path };
	struct stat st;

	if (open_file_stat(fd, &st) < 0)
		return false;
	file.state = file_state_of(&st);
	file.owner = st.st_uid;
	if (parse_elf(place->parser, &file, &elf) < 0 ||
	    module_identity(&elf, &file.state, st.st_uid) != file_id)
		return false;
	if (*debug_fd < 0) {
		const struct module_debug debug = { place->parser, st.st_uid, 0, path, &elf };
		const struct debug_file_choice choice = { module_is_debug_of, &debug };

		*debug_fd = debug_file_open(&place->view, place->root_fd, path, &elf, &choice);
	}
	return true;
}

static int file_find(struct module_registry *registry, uint64_t file_id, const char *path,
		     int *debug_fd)
{
	for (size_t i = 0; i < PLACES && path[0] == '/'; i++) {
		_cleanup_(place_fini) struct place place = place_open(registry, i);
		_cleanup_(closep) int fd = -1;

		if (place.root_fd >= 0)
			fd = open_local_file(&place.view, place.root_fd, path);
		if (fd >= 0 && file_check(&place, fd, file_id, path, debug_fd))
			return module_take_fd(&fd);
	}
	return -1;
}

/*
 * True if fd, the duplicated descriptor of a module's file, has the identity file_id. Looks for the
 * separate debug file in all root directories.
 */
static bool held_check(struct module_registry *registry, int fd, uint64_t file_id, const char *path,
		       int *debug_fd)
{
	bool is_match = false;

	for (size_t i = 0; i < PLACES && (!i || (is_match && *debug_fd < 0)); i++) {
		_cleanup_(place_fini) struct place place = place_open(registry, i);

		is_match = file_check(&place, fd, file_id, path, debug_fd);
	}
	return is_match;
}

int module_registry_open(struct module_registry *registry, uint64_t file_id, const char *path,
			 int fd_min, int *fd_out, int *debug_fd_out)
{
	_cleanup_(closep) int fd = -1;
	int debug_fd = -1;
	bool is_match;

	held_open(registry, file_id, path, fd_min, &fd, &debug_fd);
	is_match = fd >= 0 && held_check(registry, fd, file_id, path, &debug_fd);
	if (fd < 0) {
		fd = file_find(registry, file_id, path, &debug_fd);
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

struct module *module_open_code(struct module_registry *registry, const struct unwind_code_key *key)
{
	_cleanup_(closep) int fd = -1;
	struct module *module;
	char path[PATH_MAX];

	if (!key->inode || open_by_inode(key->dev, key->inode, key->generation, path, &fd) ||
	    module_get(registry, -1, fd, path, &module))
		return NULL;
	if (!module_learn_code(module, key))
		return module_unref(module);
	/*
	 * Read the unwind rows now: if the process has exited, the file will be closed very soon.
	 */
	if (!module_is_big(module))
		module_unwind_load(module);
	return module;
}
