/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/elf/debug_file.h"
#include "daemon/host/open_file.h"
#include "daemon/module/internal.h"
#include "daemon/unwind/compile_elf.h"

#define BIG_FILE_BYTES (8 * 1024 * 1024) /* reading the rows of a larger file takes over 10 ms */

void module_registry_set_unwind(struct module_registry *registry, struct unwind *unwind)
{
	registry->unwind = unwind;
}

struct unwind *module_registry_unwind(struct module_registry *registry)
{
	return registry->unwind;
}

struct unwind_file *module_unwind(const struct module *module)
{
	return module->unwind;
}

void module_unwind_init(struct module *module)
{
	struct unwind_extent extent;

	if (module->registry->unwind && module->is_elf && compile_elf_extent(&module->elf, &extent))
		module->unwind =
			unwind_file_get(module->registry->unwind, &module->state, extent.base);
}

/*
 * Compiles the unwind rows of the module; only the wanted ones if `wanted` is not NULL. Returns
 * -ESTALE if the file was overwritten, and may have other code than was mapped. Called with
 * load_lock held, so that the file stays open.
 */
static int rows_read(struct module *module, const struct unwind_wanted *wanted,
		     struct unwind_rows *rows, int64_t *cpu_ns)
{
	struct parser *parser = module->registry->parser;
	size_t max_words = unwind_max_words(module->registry->unwind);
	struct parse_file file = module_parse_file(module);
	const struct module_debug debug = { parser, module->owner, module->group, module->path,
					    &module->elf };
	const struct debug_file_choice choice = { module_is_debug_of, &debug };
	_cleanup_(closep) int debug_fd = -1;
	struct file_state state;
	struct stat st;

	file.is_urgent = !module_is_big(module);
	if (module->fd < 0)
		return parse_rows(parser, &file, &module->elf, max_words, wanted, rows, cpu_ns);
	if (open_file_stat(module->fd, &st) < 0)
		return -errno;
	state = file_state_of(&st);
	if (memcmp(&state, &module->state, sizeof(state)))
		return -ESTALE;
	file.debug_fd = debug_fd =
		debug_file_open_host(module->registry->mounts, &module->elf, &choice);
	return parse_rows(parser, &file, &module->elf, max_words, wanted, rows, cpu_ns);
}

/*
 * Compiles and loads the unwind rows of the module. If some of them are loaded already, does so
 * only for those that stack walks have missed. Called with load_lock held.
 */
static void rows_load(struct module *module)
{
	int64_t cpu_ns = 0;
	struct unwind_rows rows = { 0 };
	struct unwind_wanted wanted;
	bool is_partial = unwind_file_missed(module->unwind, &wanted);
	const struct unwind_wanted *some = is_partial ? &wanted : NULL;
	int r = rows_read(module, some, &rows, &cpu_ns);

	unwind_file_load(module->unwind, some, &rows, r, cpu_ns);
	unwind_rows_fini(&rows);
	unwind_wanted_fini(&wanted);
}

void module_unwind_load(struct module *module)
{
	if (!module->unwind)
		return;
	pthread_mutex_lock(&module->load_lock);
	/* The unwind rows of a closed file are read when the file is opened again. */
	if ((module->fd >= 0 || !module->state.inode) && unwind_file_is_wanted(module->unwind))
		rows_load(module);
	pthread_mutex_unlock(&module->load_lock);
}

bool module_needs_file(struct module *module)
{
	bool needs_rows, needs_symbols, is_closed;

	needs_rows = module->unwind && unwind_file_is_needed(module->unwind) &&
		     unwind_file_is_wanted(module->unwind);
	pthread_mutex_lock(&module->registry->lock);
	is_closed = module->fd < 0 && module->state.inode;
	needs_symbols = module->is_elf && module->is_failed && !module->symbols;
	pthread_mutex_unlock(&module->registry->lock);
	return is_closed && (needs_rows || needs_symbols);
}

bool module_is_big(const struct module *module)
{
	return module->state.size > BIG_FILE_BYTES;
}

void module_want_rows(struct module *module)
{
	struct module_registry *registry = module->registry;
	bool is_big = module_is_big(module);
	struct module **list = &registry->wanting[is_big];

	if (!module->unwind || !unwind_file_is_wanted(module->unwind))
		return;
	/*
	 * The unwind rows of a big program, such as a compiler, would take the memory of all other
	 * rows. So they are read only after a stack walk has ended because they were missing.
	 */
	if (is_big && !unwind_file_is_needed(module->unwind))
		return;
	pthread_mutex_lock(&registry->lock);
	if (!module->is_wanting) {
		module->is_wanting = true;
		module->refs++;
		module->next_wanting = *list;
		*list = module;
	}
	pthread_mutex_unlock(&registry->lock);
}

/*
 * Removes from the list the module that is mapped by the most live processes, such as libc, and
 * returns it; NULL if the list is empty. Called with registry.lock held.
 */
static struct module *wanting_take(struct module **list)
{
	struct module **most = list, *module;

	for (struct module **p = list; *p; p = &(*p)->next_wanting) {
		if ((*p)->live > (*most)->live)
			most = p;
	}
	module = *most;
	if (module) {
		*most = module->next_wanting;
		module->is_wanting = false;
	}
	return module;
}

struct module_work module_registry_work(struct module_registry *registry)
{
	struct module_work work;

	pthread_mutex_lock(&registry->lock);
	work = (struct module_work){
		.has_small_files = registry->wanting[0],
		.has_big_files = registry->wanting[1],
		.has_unused_files = registry->settling,
	};
	pthread_mutex_unlock(&registry->lock);
	return work;
}

bool module_registry_load_rows(struct module_registry *registry, bool is_small_only)
{
	struct module *module;

	pthread_mutex_lock(&registry->lock);
	module = wanting_take(&registry->wanting[0]);
	if (!module && !is_small_only)
		module = wanting_take(&registry->wanting[1]);
	pthread_mutex_unlock(&registry->lock);
	if (!module)
		return false;
	module_unwind_load(module);
	module_unref(module);
	return true;
}
