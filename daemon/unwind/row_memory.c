/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/row_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"

/* What was walked through since this long is not dropped for what others have missed. */
#define KEEP_USED_NS (5 * NS_PER_S)

uint32_t row_memory_heads(const struct unwind *unwind)
{
	return unwind->memory.n_words / 8;
}

static uint64_t *words_map(struct unwind *unwind, struct unwind_range range)
{
	return unwind->memory.map(unwind->memory.userdata, range.first, range.n);
}

static void words_unmap(struct unwind *unwind, uint64_t *mapped, struct unwind_range range)
{
	unwind->memory.unmap(unwind->memory.userdata, mapped, range.first, range.n);
}

static bool range_write(struct unwind *unwind, struct unwind_range range, const uint64_t *from)
{
	uint64_t *mapped = words_map(unwind, range);

	if (!mapped)
		return false;
	memcpy(mapped, from, range.n * sizeof(*from));
	words_unmap(unwind, mapped, range);
	return true;
}

static bool range_equals(struct unwind *unwind, struct unwind_range range, const uint64_t *to)
{
	uint64_t *mapped = words_map(unwind, range);
	bool is_equal;

	if (!mapped)
		return false;
	is_equal = !memcmp(mapped, to, range.n * sizeof(*to));
	words_unmap(unwind, mapped, range);
	return is_equal;
}

/* Frames and rules, without the parts before them. */
static struct unwind_range frames_of(const struct row_set *words)
{
	return (struct unwind_range){ words->head.first + words->n_parts,
				      words->head.n - words->n_parts };
}

static bool words_are_equal(struct unwind *unwind, const struct row_set *words,
			    const struct unwind_rows *rows)
{
	uint32_t n;

	if (words->n_parts != rows->n_parts || words->head.n != unwind_rows_head(rows) ||
	    !range_equals(unwind, frames_of(words), rows->words + unwind_rows_frames(rows)))
		return false;
	for (uint32_t i = 0; i < words->n_parts; i++) {
		size_t first = unwind_rows_part(rows, i, &n);

		if (words->places[i].range.n &&
		    (words->places[i].range.n != n ||
		     !range_equals(unwind, words->places[i].range, rows->words + first)))
			return false;
	}
	return true;
}

static void words_free(struct row_set *words)
{
	free(words->places);
	free(words);
}

void row_memory_put(struct unwind *unwind, struct row_set *words)
{
	if (--words->refs)
		return;
	for (struct row_set **p = &unwind->words; *p; p = &(*p)->next) {
		if (*p == words) {
			*p = words->next;
			break;
		}
	}
	for (uint32_t i = 0; i < words->n_parts; i++) {
		struct unwind_range range = words->places[i].range;

		if (range.n)
			range_alloc_give(&unwind->parts_alloc, range.first, range.n);
	}
	range_alloc_give(&unwind->heads_alloc, words->head.first, words->head.n);
	words_free(words);
}

void row_memory_notice(struct unwind *unwind, int64_t now)
{
	for (struct row_set *words = unwind->words; words; words = words->next)
		words->is_used = false;
	for (uint32_t i = 1; i < unwind->memory.n_tables; i++) {
		struct unwind_table *table = &unwind->memory.tables[i];

		if (!unwind->files[i] || !table->used)
			continue;
		table->used = 0;
		unwind->files[i]->used_ns = now;
		if (unwind->files[i]->words)
			unwind->files[i]->words->is_used = true;
	}
	for (struct row_set *words = unwind->words; words; words = words->next) {
		struct unwind_range range = { words->head.first, words->n_parts };
		struct unwind_part *parts;

		parts = words->is_used ? (struct unwind_part *)words_map(unwind, range) : NULL;
		if (!parts)
			continue;
		words->used_ns = now;
		for (uint32_t i = 0; i < words->n_parts; i++) {
			if (!parts[i].used)
				continue;
			parts[i].used = 0;
			words->places[i].used_ns = now;
		}
		words_unmap(unwind, (uint64_t *)parts, range);
	}
}

/* What may go for others: all of what nobody has, or one part of it. The lowest rank goes first. */
enum victim_rank { FORGOTTEN, NEVER_USED, NOT_USED_LATELY, NOBODYS };

/* So many words, of a head or of parts, and what may go for them at most. */
struct demand {
	uint64_t n;
	enum victim_rank most;
	bool is_head;
};

struct victim {
	struct row_set *words;
	uint32_t part;
	enum victim_rank rank;
	int64_t used_ns;
	uint32_t n; /* words of it */
};

static int victim_compare(const void *a, const void *b)
{
	const struct victim *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->used_ns != y->used_ns)
		return x->used_ns < y->used_ns ? -1 : 1;
	return x->n > y->n ? -1 : x->n < y->n;
}

static bool is_lately(int64_t used_ns, int64_t now)
{
	return used_ns && now - used_ns < KEEP_USED_NS;
}

static bool is_missed(const struct unwind_file *file, uint32_t part)
{
	for (uint32_t i = 0; i < file->n_missed; i++)
		if (file->missed[i] == part)
			return true;
	return false;
}

struct victims {
	struct victim *v;
	size_t n;
};

static void victims_add_parts(struct victims *victims, struct row_set *words,
			      const struct unwind_file *by, int64_t now)
{
	for (uint32_t i = 0; i < words->n_parts; i++) {
		const struct row_part *place = &words->places[i];

		if (!place->range.n || is_lately(place->used_ns, now) ||
		    (by->words == words && is_missed(by, i)))
			continue;
		victims->v[victims->n++] = (struct victim){
			.words = words,
			.part = i,
			.rank = place->used_ns ? NOT_USED_LATELY : NEVER_USED,
			.used_ns = place->used_ns,
			.n = place->range.n,
		};
	}
}

/*
 * What no walk has asked for takes the place of nothing that may be of use: neither of what live
 * processes have, nor of programs that are started again and again.
 */
static void victims_add(struct victims *victims, struct row_set *words,
			const struct unwind_file *by, const struct demand *demand, int64_t now)
{
	bool is_used = is_lately(words->used_ns, now);

	if (!words->live && by->words != words && (!is_used || demand->most >= NOBODYS))
		victims->v[victims->n++] = (struct victim){
			.words = words,
			.part = UINT32_MAX,
			.rank = is_used ? NOBODYS : FORGOTTEN,
			.used_ns = words->used_ns,
			.n = demand->is_head ? words->head.n : words->n_placed,
		};
	if ((words->live || is_used) && demand->most >= NEVER_USED && !demand->is_head)
		victims_add_parts(victims, words, by, now);
}

static void live_count(struct unwind *unwind)
{
	for (struct row_set *words = unwind->words; words; words = words->next)
		words->live = 0;
	for (uint32_t i = 1; i < unwind->memory.n_tables; i++)
		if (unwind->files[i] && unwind->files[i]->words)
			unwind->files[i]->words->live += unwind->files[i]->refs;
}

static int victims_find(struct unwind *unwind, const struct unwind_file *by,
			const struct demand *demand, int64_t now, struct victims *out)
{
	size_t n = 0;

	row_memory_notice(unwind, now);
	live_count(unwind);
	for (struct row_set *words = unwind->words; words; words = words->next)
		n += words->n_parts + 1;
	*out = (struct victims){ .v = calloc(n + 1, sizeof(*out->v)) };
	if (!out->v)
		return -ENOMEM;
	for (struct row_set *words = unwind->words; words; words = words->next)
		victims_add(out, words, by, demand, now);
	qsort(out->v, out->n, sizeof(*out->v), victim_compare);
	return 0;
}

void row_memory_hide(struct unwind_file *file)
{
	struct unwind_table *table = &file->unwind->memory.tables[file->table];

	__atomic_store_n(&table->state, UNWIND_ABSENT, __ATOMIC_RELEASE);
}

/* Walks do not find it any more: but those that run now may have. */
static bool victim_hide(struct unwind *unwind, const struct victim *victim)
{
	struct row_set *words = victim->words;
	struct unwind_range range = { words->head.first + victim->part, 1 };
	struct unwind_part *part;

	if (victim->part == UINT32_MAX) {
		for (uint32_t i = 1; i < unwind->memory.n_tables; i++) {
			if (unwind->files[i] && unwind->files[i]->words == words)
				row_memory_hide(unwind->files[i]);
		}
		return true;
	}
	part = (struct unwind_part *)words_map(unwind, range);
	if (!part)
		return false;
	__atomic_store_n(&part->at, 0, __ATOMIC_RELEASE);
	words_unmap(unwind, (uint64_t *)part, range);
	return true;
}

static void victim_drop(struct unwind *unwind, const struct victim *victim)
{
	struct row_set *words = victim->words;
	struct row_part *place;

	unwind->stats.evictions++;
	if (victim->part == UINT32_MAX) {
		words->refs = 1;
		for (uint32_t i = 1; i < unwind->memory.n_tables; i++)
			if (unwind->files[i] && unwind->files[i]->words == words)
				unwind->files[i]->words = NULL;
		row_memory_put(unwind, words);
		return;
	}
	place = &words->places[victim->part];
	range_alloc_give(&unwind->parts_alloc, place->range.first, place->range.n);
	words->n_placed -= place->range.n;
	*place = (struct row_part){ 0 };
}

static uint64_t free_words(const struct unwind *unwind)
{
	return unwind->memory.n_words - row_memory_heads(unwind) - unwind->parts_alloc.used;
}

/* Drops n words at least, or what it can. False when there was nothing to drop. */
static bool room_make(struct unwind *unwind, const struct unwind_file *by,
		      const struct demand *demand, int64_t now)
{
	struct victims victims;
	uint64_t dropped = 0;
	size_t hidden = 0;

	if (victims_find(unwind, by, demand, now, &victims))
		return false;
	for (size_t i = 0; i < victims.n && dropped < demand->n; i++) {
		if (!victim_hide(unwind, &victims.v[i]))
			continue;
		dropped += victims.v[i].n;
		victims.v[hidden++] = victims.v[i];
	}
	if (hidden)
		unwind->memory.wait(unwind->memory.userdata);
	for (size_t i = 0; i < hidden; i++)
		victim_drop(unwind, &victims.v[i]);
	free(victims.v);
	return hidden;
}

static bool range_take(struct unwind *unwind, const struct unwind_file *by, bool is_head,
		       int64_t now, struct unwind_range *range)
{
	struct range_alloc *space = is_head ? &unwind->heads_alloc : &unwind->parts_alloc;
	struct demand demand = {
		.n = range->n,
		.is_head = is_head,
		.most = by->is_needed ? NOBODYS : FORGOTTEN,
	};

	while (range_alloc_take(space, range->n, &range->first))
		if (!room_make(unwind, by, &demand, now))
			return false;
	return true;
}

static bool head_write(struct unwind *unwind, const struct row_set *words,
		       const struct unwind_rows *rows)
{
	struct unwind_range parts = { words->head.first, words->n_parts };
	uint64_t *mapped = words_map(unwind, parts);

	if (!mapped)
		return false;
	memset(mapped, 0, parts.n * sizeof(*mapped));
	words_unmap(unwind, mapped, parts);
	return range_write(unwind, frames_of(words), rows->words + unwind_rows_frames(rows));
}

struct row_set *row_memory_get(struct unwind *unwind, const struct unwind_rows *rows,
			       const struct unwind_file *file, int64_t now)
{
	uint64_t hash = hash64(HASH64_SEED, rows->words, rows->n_words * sizeof(*rows->words));
	struct row_set *words;

	for (words = unwind->words; words; words = words->next) {
		/* Equal rows are kept once. The hash only proposes. */
		if (words->hash == hash && words_are_equal(unwind, words, rows)) {
			words->refs++;
			return words;
		}
	}
	words = calloc(1, sizeof(*words));
	if (!words)
		return NULL;
	*words = (struct row_set){ .hash = hash, .refs = 1, .n_parts = rows->n_parts };
	words->places = calloc(words->n_parts, sizeof(*words->places));
	words->head.n = (uint32_t)unwind_rows_head(rows);
	if (words->places && range_take(unwind, file, true, now, &words->head)) {
		if (head_write(unwind, words, rows)) {
			words->next = unwind->words;
			unwind->words = words;
			return words;
		}
		range_alloc_give(&unwind->heads_alloc, words->head.first, words->head.n);
	}
	words_free(words);
	return NULL;
}

/* One look of a thread at what it places. */
struct filling {
	struct unwind_file *file;
	struct row_set *words;
	const struct unwind_rows *rows;
	struct unwind_part *parts; /* as walks see them */
	int64_t now;
};

/* The part's words are at their place: walks find it from now on. */
static void part_show(const struct filling *filling, uint32_t i, struct unwind_range range)
{
	filling->words->places[i].range = range;
	filling->words->n_placed += range.n;
	filling->parts[i].used = 0;
	__atomic_store_n(&filling->parts[i].at, 2 * range.first, __ATOMIC_RELEASE);
}

static bool part_place(const struct filling *filling, uint32_t i, struct unwind_range range)
{
	struct unwind *unwind = filling->file->unwind;
	uint32_t n;
	size_t first = unwind_rows_part(filling->rows, i, &n);

	if (!range_write(unwind, range, filling->rows->words + first)) {
		range_alloc_give(&unwind->parts_alloc, range.first, range.n);
		return false;
	}
	part_show(filling, i, range);
	return true;
}

static bool missed_place(const struct filling *filling)
{
	struct row_set *words = filling->words;
	struct unwind_file *file = filling->file;
	struct unwind_range range;
	bool is_placed = true;

	for (uint32_t i = 0; i < file->n_missed; i++) {
		uint32_t part = file->missed[i];

		if (part >= words->n_parts || words->places[part].range.n)
			continue;
		unwind_rows_part(filling->rows, part, &range.n);
		if (range_take(file->unwind, file, false, filling->now, &range) &&
		    part_place(filling, part, range))
			words->places[part].used_ns = filling->now;
		else
			is_placed = false;
	}
	return is_placed;
}

static uint64_t absent_words(const struct row_set *words, const struct unwind_rows *rows)
{
	uint64_t sum = 0;
	uint32_t n;

	for (uint32_t i = 0; i < words->n_parts; i++) {
		unwind_rows_part(rows, i, &n);
		if (!words->places[i].range.n)
			sum += n;
	}
	return sum;
}

/* All others, where there is room for them in a row: that is most often so, and fast. */
static bool others_place_at_once(const struct filling *filling)
{
	struct unwind *unwind = filling->file->unwind;
	uint64_t all = absent_words(filling->words, filling->rows);
	struct unwind_range range = { .n = (uint32_t)all };
	uint64_t *mapped;
	uint32_t at = 0, n;

	if (!all)
		return true;
	if (all > UINT32_MAX || range_alloc_take(&unwind->parts_alloc, range.n, &range.first))
		return false;
	mapped = words_map(unwind, range);
	if (!mapped) {
		range_alloc_give(&unwind->parts_alloc, range.first, range.n);
		return false;
	}
	for (uint32_t i = 0; i < filling->words->n_parts; i++) {
		size_t first = unwind_rows_part(filling->rows, i, &n);

		if (filling->words->places[i].range.n)
			continue;
		memcpy(mapped + at, filling->rows->words + first, n * sizeof(*mapped));
		part_show(filling, i, (struct unwind_range){ range.first + at, n });
		at += n;
	}
	words_unmap(unwind, mapped, range);
	return true;
}

/* As many of the others as there is room for. */
static void others_place(const struct filling *filling)
{
	struct range_alloc *space = &filling->file->unwind->parts_alloc;
	struct unwind_range range;

	for (uint32_t i = 0; i < filling->words->n_parts; i++) {
		if (filling->words->places[i].range.n)
			continue;
		unwind_rows_part(filling->rows, i, &range.n);
		if (range_alloc_take(space, range.n, &range.first) ||
		    !part_place(filling, i, range))
			return;
	}
}

bool row_memory_fill(struct unwind_file *file, const struct unwind_rows *rows, int64_t now)
{
	struct unwind *unwind = file->unwind;
	struct row_set *words = file->words;
	struct unwind_range parts = { words->head.first, words->n_parts };
	struct filling filling = { .file = file, .words = words, .rows = rows, .now = now };
	uint64_t n = absent_words(words, rows), room = free_words(unwind);
	struct demand demand = {
		.n = n - room,
		.most = file->is_needed ? NEVER_USED : FORGOTTEN,
	};
	bool is_first = !words->n_placed, is_placed;

	/* Which of it are of use only walks will tell: all that was never used makes room for it.
	 */
	if (is_first && n > room)
		room_make(unwind, file, &demand, now);
	filling.parts = (struct unwind_part *)words_map(unwind, parts);
	if (!filling.parts)
		return false;
	is_placed = missed_place(&filling);
	n = absent_words(words, rows);
	if (n <= free_words(unwind) ? !others_place_at_once(&filling) : is_first && file->is_needed)
		others_place(&filling);
	words_unmap(unwind, (uint64_t *)filling.parts, parts);
	return is_placed;
}
