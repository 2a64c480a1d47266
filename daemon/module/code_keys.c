/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <utlist.h>

#include "daemon/module/internal.h"

uint64_t module_state(const struct module *module, uint64_t inode, uint64_t base)
{
	return unwind_state_of(inode, module->state.size, module->state.mtime_ns, base);
}

/* True if the key has the same size and time of change as the file of the module. */
static bool is_same_state(const struct module *module, const struct unwind_code_key *key)
{
	return key->size == module->state.size && key->mtime_ns == module->state.mtime_ns;
}

struct module *module_find_code(struct module_registry *registry, const struct unwind_code_key *key)
{
	struct module *module = NULL;
	struct module_code *code;

	pthread_mutex_lock(&registry->lock);
	HASH_FIND(hh, registry->codes, key, sizeof(*key), code);
	if (code) {
		module = code->module;
		module_use(module);
	}
	pthread_mutex_unlock(&registry->lock);
	return module;
}

static void code_forget(struct module_registry *registry, struct module_code *code)
{
	DL_DELETE(code->module->codes, code);
	HASH_DELETE(hh, registry->codes, code);
	free(code);
}

/*
 * Records in registry->codes that the key belongs to this module. Does nothing when out of memory:
 * a later walk reports the key again. Called with registry.lock held.
 */
static void code_remember(struct module *module, const struct unwind_code_key *key)
{
	struct module_registry *registry = module->registry;
	struct module_code *code;

	HASH_FIND(hh, registry->codes, key, sizeof(*key), code);
	/* uthash keeps the entries in the order in which they were added, the oldest first. */
	if (!code && HASH_COUNT(registry->codes) >= MODULE_CODES_MAX)
		code = registry->codes;
	if (code)
		code_forget(registry, code);
	code = calloc(1, sizeof(*code));
	if (!code)
		return;
	code->key = *key;
	code->module = module;
	HASH_ADD(hh, registry->codes, key, sizeof(code->key), code);
	if (HASH_HAS(code))
		DL_APPEND(module->codes, code);
	else
		free(code);
}

bool module_learn_code(struct module *module, const struct unwind_code_key *key)
{
	struct module_registry *registry = module->registry;

	if (!is_same_state(module, key))
		return false;
	pthread_mutex_lock(&registry->lock);
	code_remember(module, key);
	pthread_mutex_unlock(&registry->lock);
	if (registry->unwind && (module->unwind || !module->is_elf))
		unwind_code_learn(registry->unwind, module->unwind, key,
				  module_address(module, key->offset));
	return true;
}

void module_codes_forget(struct module *module)
{
	while (module->codes)
		code_forget(module->registry, module->codes);
}
