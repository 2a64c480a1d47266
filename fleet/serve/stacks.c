/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/serve/stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/arena.h"
#include "common/base.h"
#include "common/text.h"
#include "fleet/base/config.h"
#include "fleet/base/stack_hash.h"
#include "fleet/base/tsv.h"
#include "fleet/serve/shards.h"
#include "proto/stacks_once.h"

/* STACKS_AT_ONCE: how many stacks one query asks for. */
enum { FIELDS = 7, STACKS_AT_ONCE = 2000 };

int stacks_want(struct stacks *stacks, uint64_t id)
{
	struct stack_entry *entry;

	HASH_FIND(hh, stacks->table, &id, sizeof(id), entry);
	if (entry || !id)
		return 0;
	entry = arena_alloc(stacks->arena, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->id = id;
	HASH_ADD(hh, stacks->table, id, sizeof(entry->id), entry);
	return HASH_HAS(entry) ? 0 : -ENOMEM;
}

/* Returns a stack of one frame that says something. NULL when out of memory. */
static const struct wire_frame *pseudo_frame(struct arena *arena, const char *name)
{
	struct wire_frame *frame = arena_alloc(arena, sizeof(*frame));

	if (!frame)
		return NULL;
	*frame = wire_frame_absent();
	frame->kind = "pseudo";
	frame->name = name;
	return frame;
}

/* Shows that two stacks have the id, as the daemon does. Returns 0 or -ENOMEM. */
static int make_ambiguous(struct stacks *stacks, struct stack_entry *entry)
{
	static const char *const flags[] = { "ambiguous" };
	const struct wire_frame *frame = pseudo_frame(stacks->arena, "[two stacks with one id]");

	if (!frame)
		return -ENOMEM;
	entry->wire.frames = (struct wire_frames){ .v = frame, .n = 1 };
	entry->wire.flags = (struct wire_strs){ .v = (const char **)flags, .n = 1 };
	entry->is_forged = true;
	stacks->n_ambiguous++;
	return 0;
}

static const char *known_kind(const char *kind)
{
	static const char *const kinds[] = { "native", "kernel", "jit", "interpreted", "pseudo" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i], kind) == 0)
			return kinds[i];
	return NULL;
}

/* Makes frames of the lists of a row. Returns 0, -EINVAL if the lists do not fit together, -ENOMEM.
 */
static int frames_make(struct arena *arena, char **fields, struct wire_frames *out)
{
	struct wire_strs kinds, names, modules;
	struct int_list offsets;
	struct wire_frame *frames;
	size_t i;
	int r = tsv_strings(fields[2], arena, &kinds);

	if (r)
		return r;
	r = tsv_strings(fields[3], arena, &names);
	if (r)
		return r;
	r = tsv_strings(fields[4], arena, &modules);
	if (r)
		return r;
	r = tsv_ints(fields[5], arena, &offsets);
	if (r)
		return r;
	if (names.n != kinds.n || modules.n != kinds.n || offsets.n != kinds.n)
		return -EINVAL;
	frames = arena_array(arena, kinds.n + 1, sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	for (i = 0; i < kinds.n; i++) {
		frames[i] = wire_frame_absent();
		frames[i].kind = known_kind(kinds.v[i]);
		frames[i].name = names.v[i][0] ? names.v[i] : NULL;
		frames[i].module = modules.v[i][0] ? modules.v[i] : NULL;
		if (offsets.v[i] >= 0)
			frames[i].offset = offsets.v[i];
		if (!frames[i].kind)
			return -EINVAL;
	}
	*out = (struct wire_frames){ .v = frames, .n = kinds.n };
	return 0;
}

/* Adds a stack. One whose text is not what the id is a hash of was forged or damaged. */
static int on_stack(void *user, size_t shard, char **fields, size_t n)
{
	struct wire_stack stack = { .scheduler = WIRE_ABSENT };
	struct stacks *stacks = user;
	struct stack_entry *entry;
	uint64_t id, host_id, hash;
	int r;

	if (n != FIELDS || tsv_uint(fields[0], &id) || tsv_uint(fields[1], &host_id))
		return -EPROTO;
	HASH_FIND(hh, stacks->table, &id, sizeof(id), entry);
	if (!entry || (entry->wire.id && !entry->is_forged))
		return 0;
	r = frames_make(stacks->arena, fields, &stack.frames);
	if (!r)
		r = tsv_strings(fields[6], stacks->arena, &stack.flags);
	if (r == -ENOMEM)
		return r;
	if (!r && stack_is_brief(&stack))
		r = -EINVAL;
	stack.id = arena_printf(stacks->arena, "0x%" PRIx64, host_id);
	if (!stack.id)
		return -ENOMEM;
	hash = r ? 0 : stack_hash(&stack);
	if (!r && !hash)
		return -ENOMEM;
	if (!r && hash == id) {
		stacks->n_ambiguous -= entry->is_forged;
		entry->is_forged = false;
		entry->wire = stack;
		return 0;
	}
	if (entry->wire.id)
		return 0;
	entry->wire.id = stack.id;
	return make_ambiguous(stacks, entry);
}

/* Appends the query of stacks that begins with `entry`. Returns the first entry after them. */
static struct stack_entry *put_query(struct text *sql, const struct fleet_config *config,
				     struct stack_entry *entry)
{
	size_t n;

	text_put_str(sql, "SELECT id, host_id, kinds, frames, modules, offsets, flags FROM ");
	text_put_str(sql, config->database);
	text_put_str(sql, ".stacks WHERE id IN (");
	for (n = 0; entry && n < STACKS_AT_ONCE; n++, entry = entry->hh.next) {
		text_put_str(sql, n ? "," : "");
		tsv_put_uint(sql, entry->id);
	}
	text_put_str(sql, ")");
	text_put(sql, "", 1);
	return entry;
}

int stacks_read(struct stacks *stacks, struct shards *shards, const struct fleet_config *config)
{
	_cleanup_(text_fini) struct text sql = {};
	struct stack_entry *entry = stacks->table;
	int r;

	text_init(&sql, SIZE_MAX);
	while (entry) {
		text_reset(&sql);
		entry = put_query(&sql, config, entry);
		r = sql.error ? sql.error : shards_ask(shards, sql.data, on_stack, stacks);
		if (r)
			return r;
	}
	for (entry = stacks->table; entry; entry = entry->hh.next) {
		if (entry->wire.id)
			continue;
		entry->wire.id = "0x0";
		entry->wire.frames = (struct wire_frames){
			.v = pseudo_frame(stacks->arena, "[the stack was not sent]"),
			.n = 1,
		};
		if (!entry->wire.frames.v)
			return -ENOMEM;
	}
	return 0;
}

const struct wire_stack *stacks_get(const struct stacks *stacks, uint64_t id)
{
	struct stack_entry *entry;

	HASH_FIND(hh, stacks->table, &id, sizeof(id), entry);
	return entry ? &entry->wire : NULL;
}

void stacks_fini(struct stacks *stacks)
{
	HASH_CLEAR(hh, stacks->table);
}
