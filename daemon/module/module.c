/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/module/module.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "common/base.h"
#include "daemon/module/internal.h"
#include "daemon/symbol/symtab.h"

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

size_t module_registry_symbol_bytes(struct module_registry *registry)
{
	size_t bytes = 0;

	for (struct module_symbols *s = registry->symbols; s; s = s->next)
		bytes += symtab_bytes(s->symtab);
	return bytes;
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

void module_destroyp(struct module **destroyed)
{
	struct module *module = *destroyed;

	if (!module)
		return;
	closep(&module->fd);
	closep(&module->debug_fd);
	unwind_file_put(module->unwind);
	elf_file_fini(&module->elf);
	code_file_unref(module->code);
	free(module->path);
	pthread_mutex_destroy(&module->load_lock);
	free(module);
}

struct module *module_ref(struct module *module)
{
	pthread_mutex_lock(&module->registry->lock);
	module->refs++;
	pthread_mutex_unlock(&module->registry->lock);
	return module;
}

void module_symbols_drop_unused(struct module_registry *registry, struct module_symbols *symbols)
{
	if (symbols->modules || symbols->users)
		return;
	for (struct module_symbols **p = &registry->symbols; *p; p = &(*p)->next) {
		if (*p == symbols) {
			*p = symbols->next;
			break;
		}
	}
	symtab_free(symbols->symtab);
	free(symbols);
}

/*
 * Removes a module without references from the registry. Called with registry.lock held; the caller
 * then calls module_destroyp() without the lock.
 */
static void module_remove(struct module *module)
{
	struct module_registry *registry = module->registry;

	HASH_DELETE(hh, registry->modules, module);
	module_codes_forget(module);
	module_unused_remove(module);
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
