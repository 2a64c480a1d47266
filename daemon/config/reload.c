/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/config/reload.h"

#include <errno.h>
#include <string.h>

#include "common/base.h"
#include "daemon/config/keys.h"
#include "daemon/config/value.h"

/*
 * Returns the value of a key as text, in the form that a configuration file has. The caller frees
 * it. Returns NULL when out of memory.
 */
static char *value_format(const struct config_key *key, const struct config *config)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	config_value_print(key, config, stream);
	if (fclose(stream) == 0)
		return text;
	free(text);
	return NULL;
}

/*
 * Copies the value of a key from `fresh` to `config`, if a change of the key may be applied while
 * stackd runs. The value has 64 bits and is stored in one atomic step, so that another thread sees
 * either the old or the new one.
 */
static void value_copy(const struct config_key *key, struct config *config,
		       const struct config *fresh)
{
	uint64_t *to = (uint64_t *)(void *)((char *)config + key->offset);
	const uint64_t *from = (const uint64_t *)(const void *)((const char *)fresh + key->offset);

	__atomic_store_n(to, *from, __ATOMIC_RELAXED);
}

int config_reload(struct config *config, const struct config *fresh, config_on_change on_change,
		  void *userdata)
{
	int applied = 0;
	size_t i;

	for (i = 0; i < config_n_keys; i++) {
		const struct config_key *key = &config_keys[i];
		_cleanup_(freep) char *old = value_format(key, config);
		_cleanup_(freep) char *new = value_format(key, fresh);

		if (!old || !new)
			return -ENOMEM;
		if (strcmp(old, new) == 0)
			continue;
		if (key->is_live) {
			value_copy(key, config, fresh);
			applied++;
		}
		on_change(userdata, key->section, key->key, new, key->is_live);
	}
	return applied;
}
