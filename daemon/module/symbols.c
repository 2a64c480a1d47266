/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/host/open_file.h"
#include "daemon/module/internal.h"
#include "daemon/parse/parser.h"
#include "daemon/symbol/symtab.h"

/* Symbols that could not be read for want of memory or of a worker are not tried again for this. */
#define AGAIN_NS NS_PER_S

static bool is_reloadable(const struct module *module)
{
	return module->fd >= 0 || !module->state.inode;
}

static bool is_better_victim(const struct module *a, const struct module *b)
{
	if (!a->refs != !b->refs)
		return !a->refs;
	if (is_reloadable(a) != is_reloadable(b))
		return is_reloadable(a);
	return a->used_ns < b->used_ns;
}

/*
 * Evicts symbol tables until they take no more than max_memory. First evicts tables that no process
 * needs, then tables that can be read again, then the others; of each kind, those that were unused
 * for longest come first. Tables in use are not evicted. Called with registry.lock held.
 */
static void symbols_evict(struct module_registry *registry)
{
	while (module_registry_symbol_bytes(registry) > registry->max_memory) {
		struct module_symbols *symbols;
		struct module *oldest = NULL, *module, *next;

		HASH_ITER (hh, registry->modules, module, next)
			if (module->symbols && !module->symbols->users &&
			    (!oldest || is_better_victim(module, oldest)))
				oldest = module;
		if (!oldest) {
			registry->is_over = true;
			return;
		}
		symbols = TAKE(oldest->symbols);
		symbols->modules--;
		module_symbols_drop_unused(registry, symbols);
		oldest->is_failed = !is_reloadable(oldest);
		registry->stats.evictions++;
	}
	registry->is_over = false;
}

/*
 * Drops symbol tables that were not used since the time before_ns and can be read again. Most such
 * tables are of programs that were busy for a short time. Returns the number of dropped tables.
 */
static size_t symbols_drop_idle(struct module_registry *registry, int64_t before_ns)
{
	struct module *module, *next;
	size_t n = 0;

	HASH_ITER (hh, registry->modules, module, next) {
		struct module_symbols *symbols = module->symbols;

		if (!symbols || symbols->users || !is_reloadable(module) ||
		    module->used_ns >= before_ns)
			continue;
		module->symbols = NULL;
		symbols->modules--;
		module_symbols_drop_unused(registry, symbols);
		n++;
	}
	return n;
}

void module_registry_drop_idle(struct module_registry *registry, int64_t idle_ns)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	bool is_due;
	size_t n = 0;

	pthread_mutex_lock(&registry->lock);
	is_due = now - registry->idle_checked_ns > idle_ns / 8;
	if (is_due) {
		registry->idle_checked_ns = now;
		n = symbols_drop_idle(registry, now - idle_ns);
	}
	pthread_mutex_unlock(&registry->lock);
	if (is_due)
		module_registry_drop_unused(registry, now - idle_ns / 2);
	if (is_due && registry->unwind)
		unwind_notice(registry->unwind);
	if (n)
		malloc_trim(0);
}

/*
 * Adds a symbol table to the registry. If the registry has an equal table already, frees the new
 * one and returns that of the registry. Equal files may exist at several paths, for example in a
 * container image that was unpacked twice. The contents are compared, because anybody can write the
 * same build-id into another file. When out of memory, frees the new table and returns NULL. Called
 * with registry.lock held.
 */
static struct module_symbols *symbols_share(struct module *module, struct symtab *symtab)
{
	struct module_registry *registry = module->registry;
	struct module_symbols *symbols;

	for (symbols = registry->symbols; symbols; symbols = symbols->next) {
		if (symtab_equal(symbols->symtab, symtab)) {
			symtab_free(symtab);
			symbols->modules++;
			return symbols;
		}
	}
	symbols = calloc(1, sizeof(*symbols));
	if (!symbols) {
		symtab_free(symtab);
		return NULL;
	}
	symbols->symtab = symtab;
	symbols->modules = 1;
	symbols->next = registry->symbols;
	registry->symbols = symbols;
	return symbols;
}

/*
 * Returns a reference to the module's symbol table, NULL if it is not loaded. Called with
 * registry.lock held.
 */
static struct symtab *symbols_take(struct module *module)
{
	if (!module->symbols)
		return NULL;
	module->used_ns = clock_ns(CLOCK_MONOTONIC);
	module->symbols->users++;
	return module->symbols->symtab;
}

/*
 * Reads the symbols of a module. Returns -ESTALE if the file was overwritten: its symbols are then
 * not those of the code that was mapped.
 */
static int symbols_read(struct module *module, struct symtab **out)
{
	struct module_registry *registry = module->registry;
	struct parse_file file = module_parse_file(module);
	struct file_state state;
	struct stat st;

	if (module->fd < 0)
		return parse_symbols(registry->parser, &file, registry->max_memory, out);
	if (open_file_stat(module->fd, &st) < 0)
		return -errno;
	state = file_state_of(&st);
	if (memcmp(&state, &module->state, sizeof(state)))
		return -ESTALE;
	file.debug_fd = module->debug_fd;
	return parse_symbols(registry->parser, &file, registry->max_memory, out);
}

/* Notes that a module may be tried again from from_ns on. Called with registry.lock held. */
static void retry_note(struct module_registry *registry, int64_t from_ns)
{
	if (!registry->retry_ns)
		registry->retry_ns = from_ns;
	registry->last_retry_ns = from_ns;
}

/*
 * Reads the symbols of a module and adds them to the registry. Returns a reference to the table,
 * NULL on failure. Called with load_lock held, so that the file stays open and only one thread
 * reads it.
 */
static struct symtab *symbols_load(struct module *module)
{
	struct module_registry *registry = module->registry;
	struct symtab *symtab = NULL, *taken = NULL;
	int r;

	r = symbols_read(module, &symtab);
	if (r == 0 && symtab_bytes(symtab) > registry->max_memory) {
		symtab = symtab_free(symtab);
		r = -E2BIG;
	}
	pthread_mutex_lock(&registry->lock);
	if (r < 0) {
		module->is_failed = r != -ENOMEM && r != -EAGAIN;
		module->symbols_from_ns = clock_ns(CLOCK_MONOTONIC) + AGAIN_NS;
		if (!module->is_failed)
			retry_note(registry, module->symbols_from_ns);
		registry->stats.unreadable++;
	} else {
		module->symbols = symbols_share(module, symtab);
		registry->loads++;
		taken = symbols_take(module);
		symbols_evict(registry);
	}
	pthread_mutex_unlock(&registry->lock);
	return taken;
}

struct symtab *module_get_symbols(struct module *module)
{
	struct module_registry *registry = module->registry;
	struct symtab *symtab;
	bool is_loadable;

	pthread_mutex_lock(&registry->lock);
	symtab = symbols_take(module);
	is_loadable = !module->is_failed;
	pthread_mutex_unlock(&registry->lock);
	if (symtab || !is_loadable)
		return symtab;

	pthread_mutex_lock(&module->load_lock);
	pthread_mutex_lock(&registry->lock);
	symtab = symbols_take(module);
	is_loadable = !module->is_failed && is_reloadable(module);
	pthread_mutex_unlock(&registry->lock);
	if (!symtab && is_loadable)
		symtab = symbols_load(module);
	pthread_mutex_unlock(&module->load_lock);
	return symtab;
}

struct symtab *module_loaded_symbols(struct module *module, bool *is_missing_out)
{
	struct module_registry *registry = module->registry;
	struct symtab *symtab;

	pthread_mutex_lock(&registry->lock);
	symtab = symbols_take(module);
	*is_missing_out = !symtab && !module->is_failed && is_reloadable(module);
	pthread_mutex_unlock(&registry->lock);
	return symtab;
}

bool module_symbols_are_due(struct module *module)
{
	bool is_due;

	pthread_mutex_lock(&module->registry->lock);
	is_due = clock_ns(CLOCK_MONOTONIC) >= module->symbols_from_ns;
	pthread_mutex_unlock(&module->registry->lock);
	return is_due;
}

uint32_t module_registry_loads(struct module_registry *registry)
{
	int64_t retry_ns = registry->retry_ns, now;

	if (!retry_ns)
		return registry->loads;
	now = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_lock(&registry->lock);
	if (registry->retry_ns == retry_ns && now >= retry_ns) {
		registry->loads++;
		registry->retry_ns = now < registry->last_retry_ns ? registry->last_retry_ns : 0;
	}
	pthread_mutex_unlock(&registry->lock);
	return registry->loads;
}

void module_registry_put_symbols(struct module_registry *registry, struct symtab *symtab)
{
	pthread_mutex_lock(&registry->lock);
	for (struct module_symbols **p = &registry->symbols, *s; (s = *p); p = &s->next) {
		if (s->symtab != symtab)
			continue;
		/*
		 * Move the table to the front of the list, because most lookups are in a few
		 * tables.
		 */
		*p = s->next;
		s->next = registry->symbols;
		registry->symbols = s;
		s->users--;
		module_symbols_drop_unused(registry, s);
		break;
	}
	if (registry->is_over)
		symbols_evict(registry);
	pthread_mutex_unlock(&registry->lock);
}

uint64_t module_owner_key(const struct module *module)
{
	return parser_owner_key(module->owner, module->group);
}

void module_close(struct module *module)
{
	struct symtab *symbols = module_get_symbols(module);
	_cleanup_(closep) int fd = -1, debug_fd = -1;

	if (!module_is_big(module) || (module->unwind && unwind_file_is_needed(module->unwind)))
		module_unwind_load(module);
	pthread_mutex_lock(&module->load_lock);
	pthread_mutex_lock(&module->registry->lock);
	module->registry->stats.files -= module_files(module);
	fd = module_take_fd(&module->fd);
	debug_fd = module_take_fd(&module->debug_fd);
	pthread_mutex_unlock(&module->registry->lock);
	pthread_mutex_unlock(&module->load_lock);
	if (symbols)
		module_registry_put_symbols(module->registry, symbols);
}

bool module_registry_settle(struct module_registry *registry)
{
	struct module *module;
	bool is_wanted = false;

	pthread_mutex_lock(&registry->lock);
	module = registry->settling;
	if (module) {
		registry->settling = module->next_settling;
		module->is_settling = false;
		is_wanted = !module->live;
	}
	pthread_mutex_unlock(&registry->lock);
	if (!module)
		return false;
	if (is_wanted)
		module_close(module);
	module_unref(module);
	return true;
}
