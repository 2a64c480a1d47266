/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/flame.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/intern.h"
#include "client/base/term.h"
#include "common/array.h"
#include "common/base.h"

/* It consists of numbers of one size, so that it has no padding. */
struct frame_key {
	size_t parent, name, kind;
};

/*
 * Stores the number of a name, which is added if may_add is true. Returns false if there is no such
 * name.
 */
static bool name_number(struct flame *flame, const char *name, bool may_add, size_t *number_out)
{
	size_t n = strlen(name);

	if (n > FLAME_NAME_MAX)
		for (n = FLAME_NAME_MAX; (name[n] & 0xc0) == 0x80; n--)
			; /* not within a character */
	if (!may_add)
		return intern_find(flame->names, name, n, number_out);
	*number_out = intern_add(flame->names, name, n, NULL);
	return true;
}

void flame_init(struct flame *flame)
{
	*flame = (struct flame){
		.names = intern_new(),
		.keys = intern_new(),
		.frames = must(calloc(ARRAY_LEAST, sizeof(*flame->frames))),
		.n = 1,
		.capacity = ARRAY_LEAST,
		.bytes_max = FLAME_BYTES_MAX,
	};
	name_number(flame, "all", true, &flame->frames[0].name);
}

void flame_fini(struct flame *flame)
{
	intern_free(flame->names);
	intern_free(flame->keys);
	free(flame->frames);
	*flame = (struct flame){ 0 };
}

const char *flame_name(const struct flame *flame, size_t frame)
{
	return intern_key(flame->names, flame->frames[frame].name, NULL);
}

/* True if all that is stored takes as many bytes as it may. */
static bool is_full(const struct flame *flame)
{
	return intern_bytes(flame->names) + intern_bytes(flame->keys) +
		       flame->n * sizeof(*flame->frames) >=
	       flame->bytes_max;
}

size_t flame_child(struct flame *flame, size_t parent, const char *name, enum flame_kind kind)
{
	struct frame_key key = { .parent = parent, .kind = kind };
	bool may_add = !is_full(flame), is_new = false;
	bool has_name = name_number(flame, name, may_add, &key.name);
	size_t number;

	if (may_add)
		number = intern_add(flame->keys, &key, sizeof key, &is_new) + 1;
	else if (has_name && intern_find(flame->keys, &key, sizeof key, &number))
		number++;
	else {
		flame->n_missing++;
		return parent;
	}
	if (!is_new)
		return number;
	if (array_reserve(flame->frames, flame->capacity, flame->n + 1) < 0)
		must(NULL);
	flame->frames[flame->n++] = (struct flame_frame){
		.parent = parent,
		.name = key.name,
		.kind = kind,
		.depth = flame->frames[parent].depth + 1,
	};
	return number;
}

void flame_add(struct flame *flame, size_t frame, enum flame_side side, int64_t value)
{
	flame->frames[frame].value[side] += value;
}

/* A frame in the order in which frames are placed. */
struct place {
	size_t parent, frame;
	const char *name;
};

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int r;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	r = strcmp(x->name, y->name);
	return r != 0 ? r : (x->frame > y->frame) - (x->frame < y->frame);
}

/*
 * A parent has a lower number than the frames below it. When those are placed, in the order of
 * their parents, it is therefore placed already.
 */
void flame_place(struct flame *flame)
{
	struct place *places = must(calloc(flame->n, sizeof(*places)));
	int64_t next[FLAME_SIDES] = { 0 };

	for (size_t i = flame->n - 1; i > 0; i--)
		for (size_t side = 0; side < FLAME_SIDES; side++)
			flame->frames[flame->frames[i].parent].value[side] +=
				flame->frames[i].value[side];
	for (size_t i = 1; i < flame->n; i++)
		places[i] = (struct place){ flame->frames[i].parent, i, flame_name(flame, i) };
	qsort(places + 1, flame->n - 1, sizeof(*places), compare_places);
	for (size_t i = 1; i < flame->n; i++) {
		struct flame_frame *frame = &flame->frames[places[i].frame];

		if (i == 1 || places[i].parent != places[i - 1].parent)
			memcpy(next, flame->frames[frame->parent].start, sizeof next);
		memcpy(frame->start, next, sizeof next);
		for (size_t side = 0; side < FLAME_SIDES; side++)
			next[side] += frame->value[side];
	}
	free(places);
}
