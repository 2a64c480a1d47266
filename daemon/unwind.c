/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/hash.h"
#include "daemon/unwind_room.h"
#include "proto/base.h"

/* A table that found no room, or could not be read, is tried again after this long. */
#define RETRY_NS (30 * NS_PER_S)
/* Tables of live processes that were walked through since this long are not dropped for others. */
#define KEEP_USED_NS (60 * NS_PER_S)

int unwind_new(const struct unwind_memory *memory, struct unwind **out)
{
	struct unwind *unwind = calloc(1, sizeof(*unwind));
	int r;

	if (!unwind)
		return -ENOMEM;
	unwind->memory = *memory;
	unwind->files = calloc(memory->n_tables, sizeof(*unwind->files));
	r = unwind->files ? 0 : -ENOMEM;
	if (!r)
		r = unwind_space_init(&unwind->words_space, 0, memory->n_words);
	if (!r)
		r = unwind_space_init(&unwind->segments_space, 0, memory->n_segments);
	pthread_mutex_init(&unwind->lock, NULL);
	if (r) {
		unwind_free(unwind);
		return r;
	}
	memory->tables[0].state = UNWIND_NO_ROWS;
	*out = unwind;
	return 0;
}

struct unwind *unwind_free(struct unwind *unwind)
{
	if (!unwind)
		return NULL;
	for (uint32_t i = 0; unwind->files && i < unwind->memory.n_tables; i++)
		free(unwind->files[i]);
	while (unwind->words) {
		struct unwind_words *words = unwind->words;

		unwind->words = words->next;
		free(words);
	}
	while (unwind->codes) {
		struct unwind_known_code *code = unwind->codes;

		unwind->codes = code->next;
		free(code);
	}
	while (unwind->dead) {
		struct unwind_dead *dead = unwind->dead;

		unwind->dead = dead->next;
		free(dead);
	}
	unwind_space_fini(&unwind->words_space);
	unwind_space_fini(&unwind->segments_space);
	pthread_mutex_destroy(&unwind->lock);
	free(unwind->files);
	free(unwind);
	return NULL;
}

size_t unwind_max_words(const struct unwind *unwind)
{
	return unwind->memory.n_words;
}

static struct unwind_table *table_of(const struct unwind_file *file)
{
	return &file->unwind->memory.tables[file->table];
}

void unwind_stats(struct unwind *unwind, struct unwind_stats *out)
{
	pthread_mutex_lock(&unwind->lock);
	*out = unwind->stats;
	out->max_bytes = (uint64_t)unwind->memory.n_words * sizeof(uint64_t);
	out->bytes = (uint64_t)unwind->words_space.used * sizeof(uint64_t);
	out->max_segments = unwind->memory.n_segments;
	out->segments = unwind->segments_space.used;
	for (uint32_t i = 1; i < unwind->memory.n_tables; i++)
		out->tables += unwind->files[i] && unwind->files[i]->words;
	pthread_mutex_unlock(&unwind->lock);
}

/* Notices walks since the last time: the programs only say that there were some. */
static void used_notice(struct unwind *unwind, int64_t now)
{
	for (uint32_t i = 1; i < unwind->memory.n_tables; i++) {
		struct unwind_table *table = &unwind->memory.tables[i];

		if (!unwind->files[i] || !table->used)
			continue;
		table->used = 0;
		unwind->files[i]->used_ns = now;
	}
}

/* What the words hold is dropped when the last file that has them is. The caller waits first. */
static void words_put(struct unwind *unwind, struct unwind_words *words)
{
	if (--words->refs)
		return;
	for (struct unwind_words **p = &unwind->words; *p; p = &(*p)->next) {
		if (*p == words) {
			*p = words->next;
			break;
		}
	}
	unwind_space_give(&unwind->words_space, words->first, words->n);
	free(words);
}

static void table_hide(struct unwind_file *file)
{
	__atomic_store_n(&table_of(file)->state, UNWIND_ABSENT, __ATOMIC_RELEASE);
}

static void file_destroy(struct unwind_file *file)
{
	if (file->words)
		words_put(file->unwind, file->words);
	file->unwind->files[file->table] = NULL;
	free(file);
}

/* Of those never walked through the biggest first. */
static bool is_better_victim(const struct unwind_file *a, const struct unwind_file *b)
{
	if (!b || !a->refs != !b->refs)
		return !b || !a->refs;
	if (a->used_ns == b->used_ns)
		return a->words->n > b->words->n;
	return a->used_ns < b->used_ns;
}

/*
 * What no walk has asked for takes the place of nothing that may be of use: neither of what live
 * processes have, nor of programs that are started again and again.
 */
static bool may_replace(const struct unwind_file *file, const struct unwind_file *by, int64_t now)
{
	bool is_used = file->used_ns && now - file->used_ns < KEEP_USED_NS;

	if (!file->refs)
		return by->is_needed || !is_used;
	return by->is_needed && !is_used;
}

/* The table to drop first for this one; NULL when all are of more use. */
static struct unwind_file *victim_find(struct unwind *unwind, const struct unwind_file *except,
				       int64_t now)
{
	struct unwind_file *victim = NULL;

	for (uint32_t i = 1; i < unwind->memory.n_tables; i++) {
		struct unwind_file *file = unwind->files[i];

		if (!file || !file->words || file == except || !may_replace(file, except, now))
			continue;
		if (is_better_victim(file, victim))
			victim = file;
	}
	return victim;
}

/* Drops tables until there may be room for n words in a row. With the lock held. */
static bool room_make(struct unwind *unwind, const struct unwind_file *except, uint32_t n)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	struct unwind_words *dropped[32];
	uint32_t freed = 0;
	size_t n_dropped = 0;

	used_notice(unwind, now);
	while (freed < n && n_dropped < ARRAY_SIZE(dropped)) {
		struct unwind_file *victim = victim_find(unwind, except, now);

		if (!victim)
			break;
		table_hide(victim);
		freed += victim->words->refs == 1 ? victim->words->n : 0;
		dropped[n_dropped++] = TAKE(victim->words);
		unwind->stats.evictions++;
	}
	if (!n_dropped)
		return false;
	unwind->memory.wait(unwind->memory.userdata);
	while (n_dropped)
		words_put(unwind, dropped[--n_dropped]);
	return true;
}

static struct unwind_file *file_find(struct unwind *unwind, const struct unwind_key *key,
				     uint32_t *free_out)
{
	*free_out = 0;
	for (uint32_t i = 1; i < unwind->memory.n_tables; i++) {
		struct unwind_file *file = unwind->files[i];

		if (!file) {
			if (!*free_out)
				*free_out = i;
		} else if (!memcmp(&file->key, key, sizeof(*key))) {
			return file;
		}
	}
	return NULL;
}

/* A table number that nobody has any more, when all are given out. */
static uint32_t file_recycle(struct unwind *unwind)
{
	struct unwind_file *oldest = NULL;
	uint32_t number;

	for (uint32_t i = 1; i < unwind->memory.n_tables; i++) {
		struct unwind_file *file = unwind->files[i];

		if (!file->refs && (!oldest || file->used_ns < oldest->used_ns))
			oldest = file;
	}
	if (!oldest)
		return 0;
	number = oldest->table;
	unwind_codes_forget(unwind, oldest);
	table_hide(oldest);
	unwind->memory.wait(unwind->memory.userdata);
	file_destroy(oldest);
	return number;
}

struct unwind_file *unwind_file_get(struct unwind *unwind, const struct unwind_key *key,
				    uint64_t base)
{
	struct unwind_file *file;
	uint32_t number;

	pthread_mutex_lock(&unwind->lock);
	file = file_find(unwind, key, &number);
	if (file) {
		file->refs++;
	} else {
		if (!number)
			number = file_recycle(unwind);
		file = number ? calloc(1, sizeof(*file)) : NULL;
		if (file) {
			*file = (struct unwind_file){
				.unwind = unwind,
				.key = *key,
				.base = base,
				.table = number,
				.refs = 1,
			};
			unwind->memory.tables[number] = (struct unwind_table){ 0 };
			unwind->files[number] = file;
		} else {
			unwind->stats.no_room++;
		}
	}
	pthread_mutex_unlock(&unwind->lock);
	return file;
}

void unwind_file_put(struct unwind_file *file)
{
	if (!file)
		return;
	pthread_mutex_lock(&file->unwind->lock);
	file->refs--;
	pthread_mutex_unlock(&file->unwind->lock);
}

void unwind_file_need(struct unwind_file *file)
{
	pthread_mutex_lock(&file->unwind->lock);
	if (!file->is_needed) {
		file->is_needed = true;
		file->retry_ns = file->is_too_big ? file->retry_ns : 0;
	}
	pthread_mutex_unlock(&file->unwind->lock);
}

bool unwind_file_is_needed(struct unwind_file *file)
{
	bool is_needed;

	pthread_mutex_lock(&file->unwind->lock);
	is_needed = file->is_needed;
	pthread_mutex_unlock(&file->unwind->lock);
	return is_needed;
}

bool unwind_file_is_wanted(struct unwind_file *file)
{
	bool is_wanted;

	pthread_mutex_lock(&file->unwind->lock);
	is_wanted = !file->words && table_of(file)->state == UNWIND_ABSENT &&
		    clock_ns(CLOCK_MONOTONIC) >= file->retry_ns;
	pthread_mutex_unlock(&file->unwind->lock);
	return is_wanted;
}

static bool words_are_equal(struct unwind *unwind, const struct unwind_words *words,
			    const struct unwind_rows *rows)
{
	const struct unwind_memory *memory = &unwind->memory;
	uint64_t *mapped = memory->map(memory->userdata, words->first, words->n);
	bool are_equal;

	if (!mapped)
		return false;
	are_equal = !memcmp(mapped, rows->words, rows->n_words * sizeof(*rows->words));
	memory->unmap(memory->userdata, mapped, words->first, words->n);
	return are_equal;
}

static bool words_write(struct unwind *unwind, const struct unwind_words *words,
			const struct unwind_rows *rows)
{
	const struct unwind_memory *memory = &unwind->memory;
	uint64_t *mapped = memory->map(memory->userdata, words->first, words->n);

	if (!mapped)
		return false;
	memcpy(mapped, rows->words, rows->n_words * sizeof(*rows->words));
	memory->unmap(memory->userdata, mapped, words->first, words->n);
	return true;
}

/* Equal rows are kept once. The hash only proposes. */
static struct unwind_words *words_find(struct unwind *unwind, const struct unwind_rows *rows,
				       uint64_t hash)
{
	for (struct unwind_words *w = unwind->words; w; w = w->next) {
		if (w->hash == hash && w->n == rows->n_words && words_are_equal(unwind, w, rows))
			return w;
	}
	return NULL;
}

static struct unwind_words *words_place(struct unwind *unwind, struct unwind_file *file,
					const struct unwind_rows *rows)
{
	uint64_t hash = hash64(HASH64_SEED, rows->words, rows->n_words * sizeof(*rows->words));
	struct unwind_words *words = words_find(unwind, rows, hash);
	uint32_t n = (uint32_t)rows->n_words;

	if (words) {
		words->refs++;
		return words;
	}
	words = calloc(1, sizeof(*words));
	if (!words)
		return NULL;
	*words = (struct unwind_words){ .n = n, .hash = hash, .refs = 1 };
	while (unwind_space_take(&unwind->words_space, n, &words->first)) {
		if (!room_make(unwind, file, n)) {
			free(words);
			return NULL;
		}
	}
	if (!words_write(unwind, words, rows)) {
		unwind_space_give(&unwind->words_space, words->first, n);
		free(words);
		return NULL;
	}
	words->next = unwind->words;
	unwind->words = words;
	return words;
}

static void table_show(struct unwind_file *file, const struct unwind_rows *rows)
{
	struct unwind_table *table = table_of(file);

	table->pages = 2 * file->words->first;
	table->n_pages = rows->n_pages;
	table->rows = table->pages + rows->n_pages + 1;
	table->frames = file->words->first + (uint32_t)unwind_rows_frames(rows);
	table->n_frames = rows->n_frames;
	table->n_words = rows->n_frames + 2 * rows->n_rules;
	__atomic_store_n(&table->state, UNWIND_LOADED, __ATOMIC_RELEASE);
}

void unwind_file_load(struct unwind_file *file, const struct unwind_rows *rows, int error,
		      int64_t took_ns)
{
	struct unwind *unwind = file->unwind;
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&unwind->lock);
	file->retry_ns = now + RETRY_NS;
	if (file->words) {
		/* another thread was faster */
	} else if (error == -ENODATA || error == -ENOEXEC) {
		__atomic_store_n(&table_of(file)->state, UNWIND_NO_ROWS, __ATOMIC_RELEASE);
	} else if (error == -E2BIG) {
		unwind->stats.no_room++;
		file->is_too_big = true;
		file->retry_ns = INT64_MAX;
	} else if (error) {
		unwind->stats.unreadable++;
	} else {
		file->words = words_place(unwind, file, rows);
		file->used_ns = file->is_needed ? now : 0;
		if (file->words) {
			table_show(file, rows);
			unwind->stats.loads++;
			unwind->stats.load_ns += (uint64_t)took_ns;
		} else if (file->is_needed) {
			unwind->stats.no_room++;
		}
	}
	pthread_mutex_unlock(&unwind->lock);
}
