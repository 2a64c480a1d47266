/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/elf/debug_file.h"
#include "daemon/host/open_file.h"
#include "daemon/module/internal.h"

/*
 * Returns the module of the file with this state, NULL if there is none. Called with registry.lock
 * held.
 */
static struct module *module_find(struct module_registry *registry, const struct file_state *state)
{
	struct module *module;

	HASH_FIND(hh, registry->modules, state, sizeof(*state), module);
	return module;
}

static struct module *module_find_ref(struct module_registry *registry,
				      const struct file_state *state)
{
	struct module *module;

	pthread_mutex_lock(&registry->lock);
	module = module_find(registry, state);
	if (module)
		module_use(module);
	pthread_mutex_unlock(&registry->lock);
	return module;
}

/*
 * Makes a module of the file with the descriptor fd, or of the vdso if fd is -1. The module owns
 * fd. On failure, fd is closed.
 */
static int module_new(struct module_registry *registry, const struct file_state *state, uid_t owner,
		      uint64_t group, int fd, const char *path, struct module **out)
{
	struct parse_file file;
	_cleanup_(module_destroyp) struct module *module = calloc(1, sizeof(*module));
	int r;

	if (!module) {
		closep(&fd);
		return -ENOMEM;
	}
	pthread_mutex_init(&module->load_lock, NULL);
	module->registry = registry;
	module->state = *state;
	module->owner = owner;
	module->group = group;
	module->fd = fd;
	module->debug_fd = -1;
	module->refs = 1;
	module->path = strdup(path);
	if (!module->path)
		return -ENOMEM;
	file = module_parse_file(module);
	file.is_urgent = true;
	r = parse_elf(registry->parser, &file, &module->elf);
	if (r == -ENOMEM || r == -EAGAIN)
		return r;
	module->is_elf = r == 0;
	module->is_failed = r < 0;
	/*
	 * Programs also map files that are not ELF files, for example to hold code that they make
	 * at run time. So only a damaged ELF file counts as unreadable.
	 */
	if (r == -EBADMSG || r == -EPROTO)
		module_registry_note_unreadable(registry);
	module->file_id = module_identity(&module->elf, state, owner);
	module->code = module_code_new(&module->elf);
	module->key = hash64_string(hash64(HASH64_SEED, state, sizeof(*state)), path);
	module_unwind_init(module);
	*out = TAKE(module);
	return 0;
}

/*
 * Adds a new module to the registry and returns it. If another thread has added a module of the
 * same file meanwhile, destroys the new module and returns that other one. When out of memory,
 * destroys the new module and returns NULL. Sets *is_crowded_out to true if more than files_max
 * files are open.
 */
static struct module *module_register(struct module *module, bool *is_crowded_out)
{
	struct module_registry *registry = module->registry;
	struct module *known;

	pthread_mutex_lock(&registry->lock);
	known = module_find(registry, &module->state);
	if (known) {
		module_use(known);
	} else {
		HASH_ADD(hh, registry->modules, state, sizeof(module->state), module);
		if (HASH_HAS(module)) {
			known = module;
			registry->stats.modules++;
			registry->stats.files += module_files(module);
		}
	}
	*is_crowded_out = registry->stats.files > registry->files_max;
	pthread_mutex_unlock(&registry->lock);
	if (known != module)
		module_destroyp(&module);
	return known;
}

/* Opens the file of a module again if it was closed, so that its symbols can be read again. */
static void module_reopen(struct module *module, int path_fd)
{
	int fd, spare;

	pthread_mutex_lock(&module->registry->lock);
	fd = module->fd;
	if (fd < 0 && module->registry->stats.files >= module->registry->files_max)
		fd = INT32_MAX;
	pthread_mutex_unlock(&module->registry->lock);
	if (fd >= 0)
		return;
	spare = open_path_fd(path_fd, 0);
	if (spare < 0)
		return;
	pthread_mutex_lock(&module->load_lock);
	pthread_mutex_lock(&module->registry->lock);
	if (module->fd < 0) {
		module->fd = module_take_fd(&spare);
		module->registry->stats.files++;
		module->is_failed = !module->is_elf;
	}
	pthread_mutex_unlock(&module->registry->lock);
	pthread_mutex_unlock(&module->load_lock);
	if (spare >= 0)
		close(spare);
}

/*
 * Opens the separate debug file of a module. This is done while a process that maps the file still
 * runs, because the debug file may be found only in this process's root directory.
 */
static void module_find_debug(struct module *module, int proc_fd)
{
	_cleanup_(mount_view_fini) struct mount_view view =
		mount_view_of(module->registry->mounts, proc_fd);
	const struct module_debug debug = { module->registry->parser, module->owner, module->group,
					    module->path, &module->elf };
	const struct debug_file_choice choice = { module_is_debug_of, &debug };
	_cleanup_(closep) int root_fd = -1;

	if (!module->is_elf || module->elf.has_symtab)
		return;
	if (proc_fd >= 0)
		root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	module->debug_fd = debug_file_open(&view, root_fd, module->path, &module->elf, &choice);
}

int module_get(struct module_registry *registry, int proc_fd, int path_fd, const char *path,
	       struct module **out)
{
	struct file_state state;
	struct module *module;
	bool is_crowded_out;
	struct stat st;
	int fd, r;

	if (open_file_stat(path_fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	state = file_state_of(&st);
	module = module_find_ref(registry, &state);
	if (module) {
		module_reopen(module, path_fd);
		*out = module;
		return 0;
	}
	fd = open_path_fd(path_fd, 0);
	if (fd < 0)
		return fd;
	r = module_new(registry, &state, st.st_uid, parse_group(proc_fd), fd, path, &module);
	if (r < 0)
		return r;
	module_find_debug(module, proc_fd);
	module = module_register(module, &is_crowded_out);
	if (!module)
		return -ENOMEM;
	if (is_crowded_out)
		module_close(module);
	*out = module;
	return 0;
}

int module_get_vdso(struct module_registry *registry, struct module **out)
{
	struct file_state state = { .size = module_vdso_size() };
	struct module *module;
	bool is_crowded_out;
	int r;

	if (!state.size)
		return -ENODATA;
	*out = module_find_ref(registry, &state);
	if (*out)
		return 0;
	r = module_new(registry, &state, 0, 0, -1, "[vdso]", &module);
	if (r < 0)
		return r;
	*out = module_register(module, &is_crowded_out);
	return *out ? 0 : -ENOMEM;
}
