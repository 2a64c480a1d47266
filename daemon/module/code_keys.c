/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <limits.h>
#include <string.h>

#include "bpf/unwind_shared.h"
#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/host/open_by_handle.h"
#include "daemon/module/internal.h"

static struct module_code *slot_of(struct module_registry *registry,
				   const struct unwind_code_key *key)
{
	return &registry->codes[hash64(HASH64_SEED, key, sizeof(*key)) % MODULE_CODES];
}

uint64_t module_state(const struct module *module, uint64_t inode, uint64_t base)
{
	return unwind_state_of(inode, module->key.size, module->key.mtime_ns, base);
}

struct module *module_find_code(struct module_registry *registry, const struct unwind_code_key *key)
{
	struct module_code *slot = slot_of(registry, key);
	struct module *module = NULL;

	pthread_mutex_lock(&registry->lock);
	if (slot->module && !memcmp(&slot->key, key, sizeof(*key))) {
		module = slot->module;
		module->refs++;
	}
	pthread_mutex_unlock(&registry->lock);
	return module;
}

void module_learn_code(struct module *module, const struct unwind_code_key *key)
{
	struct module_registry *registry = module->registry;
	struct module_code *slot = slot_of(registry, key);

	/* It may have been written over, or another one be mapped there, since the walk. */
	if (key->size != module->key.size || key->mtime_ns != module->key.mtime_ns)
		return;
	pthread_mutex_lock(&registry->lock);
	*slot = (struct module_code){ .key = *key, .module = module };
	pthread_mutex_unlock(&registry->lock);
	if (registry->unwind && (module->unwind || !module->is_elf))
		unwind_code_learn(registry->unwind, module->unwind, key,
				  module_address(module, key->offset));
}

void module_codes_forget(struct module *module)
{
	struct module_code *codes = module->registry->codes;

	for (size_t i = 0; i < MODULE_CODES; i++)
		if (codes[i].module == module)
			codes[i].module = NULL;
}

struct module *module_open_code(struct module_registry *registry, const struct unwind_code_key *key)
{
	_cleanup_(closep) int fd = -1;
	struct module *module;
	char path[PATH_MAX];

	if (!key->inode || open_by_inode(key->dev, key->inode, key->generation, path, &fd) ||
	    module_get(registry, -1, fd, path, &module))
		return NULL;
	if (key->size != module->key.size || key->mtime_ns != module->key.mtime_ns)
		return module_unref(module);
	module_learn_code(module, key);
	/* Nobody may be left to keep the file open until rows are read in their turn. */
	if (!module_is_big(module))
		module_unwind_load(module);
	return module;
}
