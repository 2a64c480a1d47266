/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/row_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"

/*
 * Unwind rows that a stack walk has used within this time count as recently used. Such rows are
 * evicted only if no process maps their file, and only after all other rows.
 */
#define KEEP_USED_NS (5 * NS_PER_S)

/*
 * To evict rows, all parts of all files have to be looked at. So that this is not done for each
 * part that is loaded, an eviction frees one of SPARE_SHARE words of the memory in addition.
 */
#define SPARE_SHARE 128

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

/*
 * Returns the range of words with the frames and rules. They are in the head of the row set, behind
 * one word for each part of the code.
 */
static struct unwind_range frames_of(const struct row_set *set)
{
	return (struct unwind_range){ set->head.first + set->n_parts, set->head.n - set->n_parts };
}

static bool set_equals(struct unwind *unwind, const struct row_set *set,
		       const struct unwind_rows *rows)
{
	uint32_t n;

	if (set->n_parts != rows->n_parts || set->head.n != unwind_rows_head(rows) ||
	    !range_equals(unwind, frames_of(set), rows->words + unwind_rows_frames(rows)))
		return false;
	for (uint32_t i = 0; i < set->n_parts; i++) {
		size_t first = unwind_rows_part(rows, i, &n);

		if (set->parts[i].range.n &&
		    (set->parts[i].range.n != n ||
		     !range_equals(unwind, set->parts[i].range, rows->words + first)))
			return false;
	}
	return true;
}

static void set_free(struct row_set *set)
{
	free(set->parts);
	free(set);
}

void row_memory_put(struct unwind *unwind, struct row_set *set)
{
	if (--set->refs)
		return;
	for (struct row_set **p = &unwind->row_sets; *p; p = &(*p)->next) {
		if (*p == set) {
			*p = set->next;
			break;
		}
	}
	for (uint32_t i = 0; i < set->n_parts; i++) {
		struct unwind_range range = set->parts[i].range;

		if (range.n)
			range_alloc_give(&unwind->parts_alloc, range.first, range.n);
	}
	range_alloc_give(&unwind->heads_alloc, set->head.first, set->head.n);
	set_free(set);
}

void row_memory_notice(struct unwind *unwind, int64_t now)
{
	for (struct row_set *set = unwind->row_sets; set; set = set->next)
		set->is_used = false;
	for (uint32_t i = 1; i < unwind->memory.n_tables; i++) {
		struct unwind_table *table = &unwind->memory.tables[i];

		if (!unwind->files[i] || !table->used)
			continue;
		table->used = 0;
		unwind->files[i]->used_ns = now;
		if (unwind->files[i]->set)
			unwind->files[i]->set->is_used = true;
	}
	for (struct row_set *set = unwind->row_sets; set; set = set->next) {
		struct unwind_range range = { set->head.first, set->n_parts };
		struct unwind_part *parts;

		parts = set->is_used ? (struct unwind_part *)words_map(unwind, range) : NULL;
		if (!parts)
			continue;
		set->used_ns = now;
		for (uint32_t i = 0; i < set->n_parts; i++) {
			if (!parts[i].used)
				continue;
			parts[i].used = 0;
			set->parts[i].used_ns = now;
		}
		words_unmap(unwind, (uint64_t *)parts, range);
	}
}

/*
 * What can be evicted, in the order of eviction. A row set has all unwind rows of a file, or of
 * several files with equal rows. A part of it has the rows of 32 KiB of code.
 */
enum victim_rank {
	UNMAPPED_UNUSED, /* a row set whose files no process maps, not used recently */
	PART_NEVER_USED, /* a part of a row set that no stack walk has ever used */
	PART_UNUSED,	 /* a part of a row set that stack walks have used, but not recently */
	UNMAPPED_USED,	 /* a row set whose files no process maps, used recently */
};

/* Says how much memory is wanted, and which rows may be evicted to make room. */
struct demand {
	uint64_t n;	       /* number of words of memory that are wanted */
	uint64_t spare;	       /* number of words that are freed in addition, if this evicts
				  nothing but parts that were not used recently */
	enum victim_rank most; /* last kind of rows, in the order of enum victim_rank, that may
				  be evicted */
	/* true: memory for the head of a row set (see struct row_set); false: memory for rows */
	bool is_head;
};

#define WHOLE_SET UINT32_MAX

struct victim {
	struct row_set *set;
	uint32_t part; /* number of the part of the row set that is evicted, or WHOLE_SET */
	enum victim_rank rank;
	int64_t used_ns;
	uint32_t n; /* number of words of memory that evicting this victim frees */
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

static bool is_recent(int64_t used_ns, int64_t now)
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

static void victims_add_parts(struct victims *victims, struct row_set *set,
			      const struct unwind_file *by, int64_t now)
{
	for (uint32_t i = 0; i < set->n_parts; i++) {
		const struct row_part *part = &set->parts[i];

		if (!part->range.n || is_recent(part->used_ns, now) ||
		    (by->set == set && is_missed(by, i)))
			continue;
		victims->v[victims->n++] = (struct victim){
			.set = set,
			.part = i,
			.rank = part->used_ns ? PART_UNUSED : PART_NEVER_USED,
			.used_ns = part->used_ns,
			.n = part->range.n,
		};
	}
}

/*
 * Adds to the list of victims what may be evicted of this row set to meet the demand. This is the
 * whole set if no process maps its files. If a process does, or if the set was used recently, it is
 * each part that was not used recently. demand->most sets a limit: if no stack walk has needed the
 * demanded rows yet, only whole sets are evicted that no process maps and that were not used
 * recently.
 */
static void victims_add(struct victims *victims, struct row_set *set, const struct unwind_file *by,
			const struct demand *demand, int64_t now)
{
	bool is_used = is_recent(set->used_ns, now);

	if (!set->live && by->set != set && (!is_used || demand->most >= UNMAPPED_USED))
		victims->v[victims->n++] = (struct victim){
			.set = set,
			.part = WHOLE_SET,
			.rank = is_used ? UNMAPPED_USED : UNMAPPED_UNUSED,
			.used_ns = set->used_ns,
			.n = demand->is_head ? set->head.n : set->n_placed,
		};
	if ((set->live || is_used) && demand->most >= PART_NEVER_USED && !demand->is_head)
		victims_add_parts(victims, set, by, now);
}

static void live_count(struct unwind *unwind)
{
	for (struct row_set *set = unwind->row_sets; set; set = set->next)
		set->live = 0;
	for (uint32_t i = 1; i < unwind->memory.n_tables; i++)
		if (unwind->files[i] && unwind->files[i]->set)
			unwind->files[i]->set->live += unwind->files[i]->refs;
}

static int victims_find(struct unwind *unwind, const struct unwind_file *by,
			const struct demand *demand, int64_t now, struct victims *out)
{
	size_t n = 0;

	row_memory_notice(unwind, now);
	live_count(unwind);
	for (struct row_set *set = unwind->row_sets; set; set = set->next)
		n += set->n_parts + 1;
	*out = (struct victims){ .v = calloc(n + 1, sizeof(*out->v)) };
	if (!out->v)
		return -ENOMEM;
	for (struct row_set *set = unwind->row_sets; set; set = set->next)
		victims_add(out, set, by, demand, now);
	qsort(out->v, out->n, sizeof(*out->v), victim_compare);
	return 0;
}

void row_memory_hide(struct unwind_file *file)
{
	struct unwind_table *table = &file->unwind->memory.tables[file->table];

	__atomic_store_n(&table->state, UNWIND_ABSENT, __ATOMIC_RELEASE);
}

/* Makes the victim's rows invisible to stack walks that begin later. False when out of memory. */
static bool victim_hide(struct unwind *unwind, const struct victim *victim)
{
	struct row_set *set = victim->set;
	struct unwind_range range = { set->head.first + victim->part, 1 };
	struct unwind_part *part;

	if (victim->part == WHOLE_SET) {
		for (uint32_t i = 1; i < unwind->memory.n_tables; i++) {
			if (unwind->files[i] && unwind->files[i]->set == set)
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
	struct row_set *set = victim->set;
	struct row_part *part;

	unwind->stats.evictions++;
	if (victim->part == WHOLE_SET) {
		set->refs = 1;
		for (uint32_t i = 1; i < unwind->memory.n_tables; i++)
			if (unwind->files[i] && unwind->files[i]->set == set)
				unwind->files[i]->set = NULL;
		row_memory_put(unwind, set);
		return;
	}
	part = &set->parts[victim->part];
	range_alloc_give(&unwind->parts_alloc, part->range.first, part->range.n);
	set->n_placed -= part->range.n;
	*part = (struct row_part){ 0 };
}

static uint64_t free_words(const struct unwind *unwind)
{
	return unwind->memory.n_words - row_memory_heads(unwind) - unwind->parts_alloc.used;
}

/* True if the demand is met when `dropped` words are freed, so that the victim is not evicted. */
static bool is_met(const struct demand *demand, uint64_t dropped, const struct victim *victim)
{
	return dropped >= demand->n &&
	       (victim->rank > PART_UNUSED || dropped >= demand->n + demand->spare);
}

/*
 * Evicts rows until the demand is met or nothing else may be evicted. Returns false if nothing was
 * evicted. May wait some 10 ms for running BPF programs to end.
 */
static bool evict(struct unwind *unwind, const struct unwind_file *by, const struct demand *demand,
		  int64_t now)
{
	struct victims victims;
	uint64_t dropped = 0;
	size_t hidden = 0;

	if (victims_find(unwind, by, demand, now, &victims))
		return false;
	for (size_t i = 0; i < victims.n && !is_met(demand, dropped, &victims.v[i]); i++) {
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

/*
 * Allocates range->n words for the file `by`, and stores the index of the first one in
 * range->first. Evicts rows if too few words are free. False if there is not enough room even then.
 */
static bool range_take(struct unwind *unwind, const struct unwind_file *by, bool is_head,
		       int64_t now, struct unwind_range *range)
{
	struct range_alloc *space = is_head ? &unwind->heads_alloc : &unwind->parts_alloc;
	struct demand demand = {
		.n = range->n,
		.spare = is_head ? 0 : unwind->memory.n_words / SPARE_SHARE,
		.is_head = is_head,
		.most = by->is_needed ? UNMAPPED_USED : UNMAPPED_UNUSED,
	};

	while (range_alloc_take(space, range->n, &range->first))
		if (!evict(unwind, by, &demand, now))
			return false;
	return true;
}

static bool head_write(struct unwind *unwind, const struct row_set *set,
		       const struct unwind_rows *rows)
{
	struct unwind_range parts = { set->head.first, set->n_parts };
	uint64_t *mapped = words_map(unwind, parts);

	if (!mapped)
		return false;
	memset(mapped, 0, parts.n * sizeof(*mapped));
	words_unmap(unwind, mapped, parts);
	return range_write(unwind, frames_of(set), rows->words + unwind_rows_frames(rows));
}

struct row_set *row_memory_get(struct unwind *unwind, const struct unwind_rows *rows,
			       const struct unwind_file *file, int64_t now)
{
	uint64_t hash = hash64(HASH64_SEED, rows->words, rows->n_words * sizeof(*rows->words));
	struct row_set *set;

	for (set = unwind->row_sets; set; set = set->next) {
		/* Different rows may have the same hash, so compare the rows themselves, too. */
		if (set->hash == hash && set_equals(unwind, set, rows)) {
			set->refs++;
			return set;
		}
	}
	set = calloc(1, sizeof(*set));
	if (!set)
		return NULL;
	*set = (struct row_set){
		.hash = hash,
		.refs = 1,
		.n_parts = rows->n_parts,
		.n_frames = rows->n_frames,
		.n_all = rows->n_words - unwind_rows_head(rows),
	};
	set->parts = calloc(set->n_parts, sizeof(*set->parts));
	set->head.n = (uint32_t)unwind_rows_head(rows);
	if (set->parts && range_take(unwind, file, true, now, &set->head)) {
		if (head_write(unwind, set, rows)) {
			set->next = unwind->row_sets;
			unwind->row_sets = set;
			return set;
		}
		range_alloc_give(&unwind->heads_alloc, set->head.first, set->head.n);
	}
	set_free(set);
	return NULL;
}

/* The state while unwind rows of one file are copied to the memory that BPF programs read. */
struct filling {
	struct unwind_file *file;
	struct row_set *set;
	const struct unwind_rows *rows;
	struct unwind_part *parts; /* array in shared memory that says where the rows of each
				      part of the code are */
	int64_t now;
};

/*
 * Makes part i of the unwind rows visible to stack walks. The words of the part must have been
 * written to `range` before.
 */
static void part_show(const struct filling *filling, uint32_t i, struct unwind_range range)
{
	filling->set->parts[i].range = range;
	filling->set->n_placed += range.n;
	filling->parts[i].used = 0;
	__atomic_store_n(&filling->parts[i].at, 2 * range.first, __ATOMIC_RELEASE);
}

/*
 * Writes the words of part i of the unwind rows to `range`, and makes the part visible to stack
 * walks. On failure, frees the range and returns false.
 */
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

/*
 * Loads the parts with these numbers, which stack walks have needed but did not find. False if one
 * of them did not fit into memory.
 */
static bool missed_place(const struct filling *filling, const uint32_t *missed, size_t n)
{
	struct row_set *set = filling->set;
	struct unwind_file *file = filling->file;
	struct unwind_range range;
	bool is_placed = true;

	for (size_t i = 0; i < n; i++) {
		uint32_t part = missed[i];

		if (part >= set->n_parts || set->parts[part].range.n)
			continue;
		unwind_rows_part(filling->rows, part, &range.n);
		if (range_take(file->unwind, file, false, filling->now, &range) &&
		    part_place(filling, part, range))
			set->parts[part].used_ns = filling->now;
		else
			is_placed = false;
	}
	return is_placed;
}

/* Loads the wanted parts of the unwind rows. False if one of them did not fit into memory. */
static bool wanted_place(struct filling *filling, const struct unwind_wanted *wanted)
{
	struct unwind *unwind = filling->file->unwind;
	struct unwind_range parts = { filling->set->head.first, filling->set->n_parts };
	bool is_placed;

	filling->parts = (struct unwind_part *)words_map(unwind, parts);
	if (!filling->parts)
		return false;
	is_placed = missed_place(filling, wanted->parts, wanted->n);
	words_unmap(unwind, (uint64_t *)filling->parts, parts);
	return is_placed;
}

/* Returns the number of words that all parts which are not loaded take together. */
static uint64_t absent_words(const struct row_set *set, const struct unwind_rows *rows)
{
	uint64_t sum = 0;
	uint32_t n;

	for (uint32_t i = 0; i < set->n_parts; i++) {
		unwind_rows_part(rows, i, &n);
		if (!set->parts[i].range.n)
			sum += n;
	}
	return sum;
}

/*
 * Loads into one range of memory all parts of the unwind rows that are not loaded yet. This is
 * fast. False if no free range is large enough, which is rare.
 */
static bool absent_place_at_once(const struct filling *filling)
{
	struct unwind *unwind = filling->file->unwind;
	uint64_t all = absent_words(filling->set, filling->rows);
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
	for (uint32_t i = 0; i < filling->set->n_parts; i++) {
		size_t first = unwind_rows_part(filling->rows, i, &n);

		if (filling->set->parts[i].range.n)
			continue;
		memcpy(mapped + at, filling->rows->words + first, n * sizeof(*mapped));
		part_show(filling, i, (struct unwind_range){ range.first + at, n });
		at += n;
	}
	words_unmap(unwind, mapped, range);
	return true;
}

/*
 * Loads, one by one, the parts of the unwind rows that are not loaded yet, until one of them does
 * not fit into memory.
 */
static void absent_place(const struct filling *filling)
{
	struct range_alloc *space = &filling->file->unwind->parts_alloc;
	struct unwind_range range;

	for (uint32_t i = 0; i < filling->set->n_parts; i++) {
		if (filling->set->parts[i].range.n)
			continue;
		unwind_rows_part(filling->rows, i, &range.n);
		if (range_alloc_take(space, range.n, &range.first) ||
		    !part_place(filling, i, range))
			return;
	}
}

int row_memory_frames(struct unwind *unwind, const struct row_set *set, struct unwind_wanted *out)
{
	struct unwind_range range = frames_of(set);
	uint64_t *mapped = words_map(unwind, range);

	if (!mapped)
		return -ENOMEM;
	out->frames = malloc(range.n * sizeof(*out->frames));
	if (out->frames)
		memcpy(out->frames, mapped, range.n * sizeof(*mapped));
	words_unmap(unwind, mapped, range);
	if (!out->frames)
		return -ENOMEM;
	out->n_frames = set->n_frames;
	out->n_rules = (range.n - set->n_frames) / 2;
	out->hash = set->hash;
	return 0;
}

bool row_memory_has_room(const struct unwind *unwind, const struct row_set *set)
{
	return set->n_all - set->n_placed <= free_words(unwind);
}

bool row_memory_fill(struct unwind_file *file, const struct unwind_wanted *wanted,
		     const struct unwind_rows *rows, int64_t now)
{
	struct unwind *unwind = file->unwind;
	struct row_set *set = file->set;
	struct unwind_range parts = { set->head.first, set->n_parts };
	struct filling filling = { .file = file, .set = set, .rows = rows, .now = now };
	struct demand demand = {
		.most = file->is_needed ? PART_NEVER_USED : UNMAPPED_UNUSED,
	};
	bool is_first = !set->n_placed, is_placed;
	uint64_t n, n_free = free_words(unwind);

	if (wanted)
		return wanted_place(&filling, wanted);
	n = absent_words(set, rows);
	demand.n = n - n_free;
	/*
	 * When unwind rows of a file are loaded for the first time, it is not known which of them
	 * stack walks will use. Make room for all of them by evicting rows of other files that are
	 * not in use.
	 */
	if (is_first && n > n_free)
		evict(unwind, file, &demand, now);
	filling.parts = (struct unwind_part *)words_map(unwind, parts);
	if (!filling.parts)
		return false;
	is_placed = missed_place(&filling, file->missed, file->n_missed);
	n = absent_words(set, rows);
	if (n <= free_words(unwind) ? !absent_place_at_once(&filling) : is_first && file->is_needed)
		absent_place(&filling);
	words_unmap(unwind, (uint64_t *)filling.parts, parts);
	return is_placed;
}
