/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/module/module.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/elf/debug_file.h"
#include "daemon/host/open_file.h"
#include "daemon/module/internal.h"

/*
 * Maximum number of files that are held open. If so many are open, a new file is closed as soon as
 * it was read.
 */
#define FILES_MAX 1024

struct module_registry *module_registry_new(uint64_t max_memory)
{
	struct module_registry *registry = calloc(1, sizeof(*registry));
	struct rlimit files;

	if (!registry)
		return NULL;
	registry->mounts = remote_mounts_new();
	if (!registry->mounts) {
		free(registry);
		return NULL;
	}
	pthread_mutex_init(&registry->lock, NULL);
	registry->max_memory = max_memory;
	registry->files_max = FILES_MAX;
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / 2 < FILES_MAX)
		registry->files_max = files.rlim_cur / 2;
	return registry;
}

void module_registry_set_parser(struct module_registry *registry, struct parser *parser)
{
	registry->parser = parser;
}

struct parser *module_registry_parser(struct module_registry *registry)
{
	return registry->parser;
}

void module_registry_stats(struct module_registry *registry, struct module_stats *out)
{
	pthread_mutex_lock(&registry->lock);
	*out = registry->stats;
	out->modules -= registry->n_unused;
	out->unused = registry->n_unused;
	out->symbol_bytes = module_registry_symbol_bytes(registry);
	pthread_mutex_unlock(&registry->lock);
}

void module_registry_note_unreadable(struct module_registry *registry)
{
	pthread_mutex_lock(&registry->lock);
	registry->stats.unreadable++;
	pthread_mutex_unlock(&registry->lock);
}

void module_registry_read_remote(struct module_registry *registry)
{
	registry->mounts = remote_mounts_free(registry->mounts);
}

struct remote_mounts *module_registry_mounts(struct module_registry *registry)
{
	return registry->mounts;
}

void module_registry_note_remote(struct module_registry *registry)
{
	pthread_mutex_lock(&registry->lock);
	registry->stats.remote++;
	pthread_mutex_unlock(&registry->lock);
}

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

static void module_destroy(struct module *module)
{
	closep(&module->fd);
	closep(&module->debug_fd);
	unwind_file_put(module->unwind);
	elf_file_fini(&module->elf);
	code_file_unref(module->code);
	free(module->path);
	pthread_mutex_destroy(&module->load_lock);
	free(module);
}

static void module_destroyp(struct module **module)
{
	if (*module)
		module_destroy(*module);
}

struct module *module_ref(struct module *module)
{
	pthread_mutex_lock(&module->registry->lock);
	module->refs++;
	pthread_mutex_unlock(&module->registry->lock);
	return module;
}

/*
 * Removes a module without references from the registry. Called with registry.lock held; the caller
 * then calls module_destroy() without the lock.
 */
static void module_remove(struct module *module)
{
	struct module_registry *registry = module->registry;

	HASH_DELETE(hh, registry->modules, module);
	module_codes_forget(module);
	registry->n_unused -= module->unused_ns != 0;
	registry->stats.modules--;
	registry->stats.files -= module_files(module);
	if (module->symbols) {
		module->symbols->modules--;
		module_symbols_drop_unused(registry, module->symbols);
	}
}

struct module *module_unref(struct module *module)
{
	struct module_registry *registry;
	struct module *dropped = NULL;

	if (!module)
		return NULL;
	registry = module->registry;
	pthread_mutex_lock(&registry->lock);
	if (!--module->refs)
		dropped = module_leave(module);
	if (dropped)
		module_remove(dropped);
	pthread_mutex_unlock(&registry->lock);
	module_destroyp(&dropped);
	return NULL;
}

void module_registry_drop_unused(struct module_registry *registry, int64_t before_ns)
{
	struct module *module;

	do {
		pthread_mutex_lock(&registry->lock);
		module = module_unused_before(registry, before_ns);
		if (module)
			module_remove(module);
		pthread_mutex_unlock(&registry->lock);
		module_destroyp(&module);
	} while (module);
}

/*
 * Makes a module of the file with the descriptor fd, or of the vdso if fd is -1. The module owns
 * fd. On failure, fd is closed.
 */
static int module_new(struct module_registry *registry, const struct file_state *state, uid_t owner,
		      int fd, const char *path, struct module **out)
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
	module->file_id = module_identity(&module->elf, state);
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
		module_destroy(module);
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
	const struct module_debug debug = { module->registry->parser, module->path, &module->elf };
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
	r = module_new(registry, &state, st.st_uid, fd, path, &module);
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
	r = module_new(registry, &state, 0, -1, "[vdso]", &module);
	if (r < 0)
		return r;
	*out = module_register(module, &is_crowded_out);
	return *out ? 0 : -ENOMEM;
}

void module_add_live(struct module *module)
{
	pthread_mutex_lock(&module->registry->lock);
	module->live++;
	pthread_mutex_unlock(&module->registry->lock);
}

void module_drop_live(struct module *module)
{
	struct module_registry *registry = module->registry;

	pthread_mutex_lock(&registry->lock);
	if (!--module->live && !module->is_settling && module->fd >= 0) {
		module->is_settling = true;
		module->refs++;
		module->next_settling = registry->settling;
		registry->settling = module;
	}
	pthread_mutex_unlock(&registry->lock);
}

const char *module_path(const struct module *module)
{
	return module->path;
}

uint64_t module_file_id(const struct module *module)
{
	return module->file_id;
}

uint64_t module_key(const struct module *module)
{
	return module->key;
}

bool module_is_elf(const struct module *module)
{
	return module->is_elf;
}

struct code_file *module_code(const struct module *module)
{
	return module->code;
}

uint64_t module_address(const struct module *module, uint64_t file_offset)
{
	uint64_t address;

	return elf_file_address(&module->elf, file_offset, &address) ? address : file_offset;
}

struct module_registry *module_registry_free(struct module_registry *registry)
{
	if (!registry)
		return NULL;
	while (registry->settling) {
		struct module *module = registry->settling;

		registry->settling = module->next_settling;
		module_unref(module);
	}
	for (size_t i = 0; i < ARRAY_SIZE(registry->wanting); i++) {
		while (registry->wanting[i]) {
			struct module *module = registry->wanting[i];

			registry->wanting[i] = module->next_wanting;
			module_unref(module);
		}
	}
	module_registry_drop_unused(registry, INT64_MAX);
	pthread_mutex_destroy(&registry->lock);
	remote_mounts_free(registry->mounts);
	free(registry);
	return NULL;
}
