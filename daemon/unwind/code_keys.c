/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>

#include "common/base.h"
#include "daemon/unwind/internal.h"
#include "daemon/unwind/unwind.h"

/*
 * Removes an entry from unwind->codes and its key from the BPF map, and frees the entry. The caller
 * holds unwind->lock.
 */
static void code_drop(struct unwind *unwind, struct unwind_known_code *code)
{
	unwind->memory.drop_code(unwind->memory.userdata, &code->key);
	HASH_DELETE(hh, unwind->codes, code);
	free(code);
}

void unwind_codes_forget(struct unwind *unwind, const struct unwind_file *file)
{
	struct unwind_known_code *code, *next;

	HASH_ITER (hh, unwind->codes, code, next)
		if (code->file == file)
			code_drop(unwind, code);
}

/*
 * Makes room for an entry with this key. Drops the entry that has the key already; if there is none
 * and the table is full, drops the oldest entry.
 */
static void code_make_way(struct unwind *unwind, const struct unwind_code_key *key)
{
	struct unwind_known_code *code;

	HASH_FIND(hh, unwind->codes, key, sizeof(*key), code);
	/* The hash table lists its entries in the order in which they were added, the oldest
	 * first. */
	if (!code && HASH_COUNT(unwind->codes) >= unwind->memory.n_codes)
		code = unwind->codes;
	if (code)
		code_drop(unwind, code);
}

/*
 * Adds the entry to the BPF map and to unwind->codes, which then owns it; frees the entry on
 * failure. The caller holds unwind->lock.
 */
static void code_add(struct unwind *unwind, struct unwind_known_code *code,
		     const struct unwind_code *value)
{
	code_make_way(unwind, &code->key);
	if (unwind->memory.put_code(unwind->memory.userdata, &code->key, value)) {
		free(code);
		return;
	}
	HASH_ADD(hh, unwind->codes, key, sizeof(code->key), code);
	if (!HASH_HAS(code)) {
		unwind->memory.drop_code(unwind->memory.userdata, &code->key);
		free(code);
	}
}

void unwind_code_learn(struct unwind *unwind, struct unwind_file *file,
		       const struct unwind_code_key *key, uint64_t address)
{
	struct unwind_code value = { .is_generated = !file };
	struct unwind_known_code *code = calloc(1, sizeof(*code));

	if (!code)
		return;
	code->file = file;
	code->key = *key;
	if (file) {
		value.table = file->table;
		value.from_base = address - file->base;
	}
	value.check = unwind_code_check(key, &value);
	pthread_mutex_lock(&unwind->lock);
	code_add(unwind, code, &value);
	pthread_mutex_unlock(&unwind->lock);
}
