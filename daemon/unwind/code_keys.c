/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/unwind/internal.h"
#include "daemon/unwind/unwind.h"

static bool is_same(const struct unwind_code_key *a, const struct unwind_code_key *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* Takes the entry out of the list and, in the kernel, out of the map. With the lock held. */
static void code_drop(struct unwind *unwind, struct unwind_known_code **place)
{
	struct unwind_known_code *code = *place;

	unwind->memory.drop_code(unwind->memory.userdata, &code->key);
	*place = code->next;
	unwind->n_codes--;
	free(code);
}

void unwind_codes_forget(struct unwind *unwind, const struct unwind_file *file)
{
	struct unwind_known_code **p = &unwind->codes;

	while (*p) {
		if ((*p)->file == file)
			code_drop(unwind, p);
		else
			p = &(*p)->next;
	}
}

/* One that is there already goes, or the oldest where there is no room. */
static void code_make_way(struct unwind *unwind, const struct unwind_code_key *key)
{
	struct unwind_known_code **p, **last = NULL;

	for (p = &unwind->codes; *p; p = &(*p)->next) {
		if (is_same(&(*p)->key, key)) {
			code_drop(unwind, p);
			return;
		}
		last = p;
	}
	if (unwind->n_codes >= unwind->memory.n_codes && last)
		code_drop(unwind, last);
}

void unwind_code_learn(struct unwind *unwind, struct unwind_file *file,
		       const struct unwind_code_key *key, uint64_t address)
{
	struct unwind_code value = { .is_generated = !file };
	struct unwind_known_code *code = malloc(sizeof(*code));

	if (!code)
		return;
	*code = (struct unwind_known_code){ .file = file, .key = *key };
	if (file) {
		value.table = file->table;
		value.from_base = address - file->base;
	}
	value.check = unwind_code_check(key, &value);
	pthread_mutex_lock(&unwind->lock);
	code_make_way(unwind, key);
	if (unwind->memory.put_code(unwind->memory.userdata, key, &value)) {
		free(code);
	} else {
		code->next = unwind->codes;
		unwind->codes = code;
		unwind->n_codes++;
	}
	pthread_mutex_unlock(&unwind->lock);
}
