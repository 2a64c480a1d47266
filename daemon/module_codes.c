/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "bpf/unwind_shared.h"
#include "daemon/hash.h"
#include "daemon/module_registry.h"

static struct module_code *slot_of(struct module_registry *registry,
				   const struct unwind_code_key *key)
{
	return &registry->codes[hash64(HASH64_SEED, key, sizeof(*key)) % MODULE_CODES];
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
