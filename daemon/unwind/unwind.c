/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/unwind/internal.h"
#include "daemon/unwind/row_memory.h"

/*
 * If unwind rows could not be loaded, because there was too little room or because the file could
 * not be read, the daemon tries again after this time.
 */
#define RETRY_NS (10 * NS_PER_S)
/*
 * Missed rows are those that a stack walk needed but that were not loaded. If loading the missed
 * rows of a file took a time t, the next missed rows of any file are loaded AGAIN_FACTOR * t later.
 */
#define AGAIN_FACTOR 64
/*
 * The unwind rows of one file may have at least this many words of 8 bytes, even if the memory for
 * the rows of all files is smaller: that memory then holds only some rows of a large file. The rows
 * of libLLVM, a large one, have 500,000 words.
 */
#define MAX_WORDS_MIN (1024 * 1024)

static int room_make(struct unwind *unwind, const struct unwind_memory *memory)
{
	int r;

	unwind->files = calloc(memory->n_tables, sizeof(*unwind->files));
	if (!unwind->files)
		return -ENOMEM;
	r = range_alloc_init(&unwind->heads_alloc, 1, row_memory_heads(unwind));
	if (r)
		return r;
	r = range_alloc_init(&unwind->parts_alloc, row_memory_heads(unwind), memory->n_words);
	if (r)
		return r;
	return range_alloc_init(&unwind->segments_alloc, 0, memory->n_segments);
}

int unwind_new(const struct unwind_memory *memory, struct unwind **out)
{
	struct unwind *unwind = calloc(1, sizeof(*unwind));
	int r;

	if (!unwind)
		return -ENOMEM;
	unwind->memory = *memory;
	pthread_mutex_init(&unwind->lock, NULL);
	r = room_make(unwind, memory);
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
	struct unwind_known_code *code, *next;

	if (!unwind)
		return NULL;
	HASH_CLEAR(hh, unwind->by_state);
	for (uint32_t i = 0; unwind->files && i < unwind->memory.n_tables; i++)
		free(unwind->files[i]);
	while (unwind->row_sets) {
		struct row_set *set = unwind->row_sets;

		unwind->row_sets = set->next;
		free(set->parts);
		free(set);
	}
	HASH_ITER (hh, unwind->codes, code, next) {
		HASH_DELETE(hh, unwind->codes, code);
		free(code);
	}
	while (unwind->dead) {
		struct unwind_dead *dead = unwind->dead;

		unwind->dead = dead->next;
		free(dead);
	}
	range_alloc_fini(&unwind->heads_alloc);
	range_alloc_fini(&unwind->parts_alloc);
	range_alloc_fini(&unwind->segments_alloc);
	pthread_mutex_destroy(&unwind->lock);
	free(unwind->files);
	free(unwind);
	return NULL;
}

size_t unwind_max_words(const struct unwind *unwind)
{
	return unwind->memory.n_words > MAX_WORDS_MIN ? unwind->memory.n_words : MAX_WORDS_MIN;
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
	out->bytes =
		((uint64_t)unwind->heads_alloc.used + unwind->parts_alloc.used) * sizeof(uint64_t);
	out->max_segments = unwind->memory.n_segments;
	out->segments = unwind->segments_alloc.used;
	for (uint32_t i = 1; i < unwind->memory.n_tables; i++)
		out->tables += unwind->files[i] && unwind->files[i]->set;
	pthread_mutex_unlock(&unwind->lock);
}

void unwind_notice(struct unwind *unwind)
{
	pthread_mutex_lock(&unwind->lock);
	row_memory_notice(unwind, clock_ns(CLOCK_MONOTONIC));
	pthread_mutex_unlock(&unwind->lock);
}

static void file_destroy(struct unwind_file *file)
{
	if (file->set)
		row_memory_put(file->unwind, file->set);
	file->unwind->files[file->table] = NULL;
	HASH_DELETE(hh, file->unwind->by_state, file);
	free(file);
}

/* Returns a table number that no file has; 0: there is none. */
static uint32_t number_find(const struct unwind *unwind)
{
	for (uint32_t i = 1; i < unwind->memory.n_tables; i++)
		if (!unwind->files[i])
			return i;
	return 0;
}

/*
 * Removes the least recently used file to which nothing refers. Returns its table number, which the
 * caller can give to another file; 0 if every file has references.
 */
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
	row_memory_hide(oldest);
	unwind->memory.wait(unwind->memory.userdata);
	file_destroy(oldest);
	return number;
}

/* Adds a file without references. Returns NULL if there is no room, or when out of memory. */
static struct unwind_file *file_new(struct unwind *unwind, const struct file_state *state,
				    uint64_t base)
{
	uint32_t number = number_find(unwind);
	struct unwind_file *file;

	if (!number)
		number = file_recycle(unwind);
	if (!number)
		return NULL;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	*file = (struct unwind_file){
		.unwind = unwind,
		.state = *state,
		.base = base,
		.table = number,
	};
	HASH_ADD(hh, unwind->by_state, state, sizeof(file->state), file);
	if (!HASH_HAS(file)) {
		free(file);
		return NULL;
	}
	unwind->memory.tables[number] = (struct unwind_table){ 0 };
	unwind->files[number] = file;
	return file;
}

struct unwind_file *unwind_file_get(struct unwind *unwind, const struct file_state *state,
				    uint64_t base)
{
	struct unwind_file *file;

	pthread_mutex_lock(&unwind->lock);
	HASH_FIND(hh, unwind->by_state, state, sizeof(*state), file);
	if (!file)
		file = file_new(unwind, state, base);
	if (file)
		file->refs++;
	else
		unwind->stats.no_room++;
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

/*
 * A stack walk has needed the row for this address. If the part (32 KiB) of the code with this
 * address has no rows loaded, adds it to the list of missed parts. The caller holds the lock.
 */
static void missed_add(struct unwind_file *file, uint64_t address)
{
	uint64_t part = (address - file->base) >> UNWIND_PART_SHIFT;
	const struct row_set *set = file->set;

	if (address < file->base || part > UINT32_MAX >> UNWIND_PART_SHIFT ||
	    (set && (part >= set->n_parts || set->parts[part].range.n)))
		return;
	for (uint32_t i = 0; i < file->n_missed; i++)
		if (file->missed[i] == part)
			return;
	if (file->n_missed < UNWIND_MISSED_MAX)
		file->missed[file->n_missed++] = (uint32_t)part;
}

/* Called with the lock held. */
static void need(struct unwind_file *file)
{
	if (file->is_needed)
		return;
	file->is_needed = true;
	file->retry_ns = file->is_too_big ? file->retry_ns : 0;
}

void unwind_file_expect(struct unwind_file *file)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	const struct row_set *set;

	pthread_mutex_lock(&file->unwind->lock);
	set = file->set;
	if (!set || (set->n_placed < set->n_all && now >= file->expect_ns)) {
		need(file);
		file->is_expected = set;
		file->expect_ns = now + RETRY_NS;
	}
	for (uint32_t i = 0; file->is_expected && i < set->n_parts; i++)
		missed_add(file, file->base + ((uint64_t)i << UNWIND_PART_SHIFT));
	pthread_mutex_unlock(&file->unwind->lock);
}

void unwind_file_need(struct unwind_file *file, uint64_t address)
{
	pthread_mutex_lock(&file->unwind->lock);
	need(file);
	missed_add(file, address);
	missed_add(file, address - 1); /* for a return address, walks look up the call
					  instruction before it, which may be in another part */
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
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	bool is_wanted;

	pthread_mutex_lock(&file->unwind->lock);
	is_wanted = (!file->set || file->n_missed) && table_of(file)->state != UNWIND_NO_ROWS &&
		    now >= (file->set ? file->unwind->again_ns : 0) && now >= file->retry_ns;
	pthread_mutex_unlock(&file->unwind->lock);
	return is_wanted;
}

enum unwind_rows_loaded unwind_file_loaded(struct unwind_file *file)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	enum unwind_rows_loaded loaded;

	pthread_mutex_lock(&file->unwind->lock);
	if (table_of(file)->state == UNWIND_NO_ROWS)
		loaded = UNWIND_ROWS_NONE;
	else if ((!file->set || file->n_missed) && now < file->retry_ns)
		loaded = UNWIND_ROWS_REFUSED;
	else if (!file->set || file->n_missed)
		loaded = UNWIND_ROWS_AWAITED;
	else
		loaded =
			file->set->n_placed < file->set->n_all ? UNWIND_ROWS_SOME : UNWIND_ROWS_ALL;
	pthread_mutex_unlock(&file->unwind->lock);
	return loaded;
}

/* Makes the file's unwind rows visible to stack walks. */
static void table_show(struct unwind_file *file, const struct unwind_rows *rows)
{
	struct unwind_table *table = table_of(file);

	table->parts = file->set->head.first;
	table->n_parts = rows->n_parts;
	table->n_frames = rows->n_frames;
	table->n_words = rows->n_frames + 2 * rows->n_rules;
	__atomic_store_n(&table->state, UNWIND_LOADED, __ATOMIC_RELEASE);
}

bool unwind_file_missed(struct unwind_file *file, struct unwind_wanted *out)
{
	struct unwind *unwind = file->unwind;
	bool is_partial;

	*out = (struct unwind_wanted){ 0 };
	pthread_mutex_lock(&unwind->lock);
	is_partial = file->set && file->n_missed && !row_memory_has_room(unwind, file->set);
	if (is_partial) {
		out->parts = calloc(file->n_missed, sizeof(*out->parts));
		is_partial = out->parts && !row_memory_frames(unwind, file->set, out);
	}
	if (is_partial) {
		memcpy(out->parts, file->missed, file->n_missed * sizeof(*out->parts));
		out->n = file->n_missed;
	}
	pthread_mutex_unlock(&unwind->lock);
	if (!is_partial)
		unwind_wanted_fini(out);
	return is_partial;
}

/* Drops those parts from the list of missed parts that are loaded by now. */
static void missed_drop_loaded(struct unwind_file *file)
{
	uint32_t n = 0;

	for (uint32_t i = 0; file->set && i < file->n_missed; i++)
		if (file->missed[i] < file->set->n_parts &&
		    !file->set->parts[file->missed[i]].range.n)
			file->missed[n++] = file->missed[i];
	file->n_missed = n;
}

/*
 * Loads as many of the file's unwind rows as fit into memory. Returns false if nothing was loaded,
 * or if a part that stack walks have needed did not fit.
 */
static bool file_fill(struct unwind_file *file, const struct unwind_wanted *wanted,
		      const struct unwind_rows *rows, int64_t now)
{
	struct unwind *unwind = file->unwind;
	bool is_new = !file->set, is_placed;

	/*
	 * The rows that the wanted parts belong to may have been evicted meanwhile. Then they are
	 * all compiled when the next stack walk misses them.
	 */
	if (wanted && (is_new || file->set->hash != wanted->hash))
		return true;
	if (is_new)
		file->set = row_memory_get(unwind, rows, file, now);
	if (!file->set)
		return false;
	if (file->is_needed)
		file->used_ns = file->set->used_ns = now;
	is_placed = row_memory_fill(file, wanted, rows, now);
	if (!file->set->n_placed && !file->is_needed) {
		row_memory_put(unwind, TAKE(file->set));
		return false;
	}
	if (is_new)
		table_show(file, rows);
	missed_drop_loaded(file);
	return is_placed;
}

void unwind_file_load(struct unwind_file *file, const struct unwind_wanted *wanted,
		      const struct unwind_rows *rows, int error, int64_t took_ns)
{
	struct unwind *unwind = file->unwind;
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&unwind->lock);
	if (file->set)
		unwind->again_ns = now + AGAIN_FACTOR * took_ns;
	file->retry_ns = now + RETRY_NS;
	if (error == -ENODATA || error == -ENOEXEC) {
		__atomic_store_n(&table_of(file)->state, UNWIND_NO_ROWS, __ATOMIC_RELEASE);
	} else if (error == -E2BIG) {
		unwind->stats.no_room++;
		file->is_too_big = true;
		file->retry_ns = INT64_MAX;
	} else if (error) {
		unwind->stats.unreadable++;
	} else if (file_fill(file, wanted, rows, now)) {
		file->retry_ns = 0;
		unwind->stats.loads++;
		unwind->stats.load_ns += (uint64_t)took_ns;
	} else if (file->is_needed) {
		unwind->stats.no_room++;
	}
	/* Parts that were only expected may have had to give way to one another. */
	if (file->is_expected)
		file->n_missed = 0;
	file->is_expected = false;
	pthread_mutex_unlock(&unwind->lock);
}
