/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/base/key_table.h"
#include "daemon/window/fold_internal.h"

enum {
	/*
	 * At most this many like processes keep their sums apart: those of a pool would need a row
	 * for each stack and process.
	 */
	LIKES_MAX = 4,
	/* Threads of a process with the same comm have a sum apart if it is this part of all. */
	COMM_SHARE = 8,
};

/* The time of an entry of in.images that is to be folded, and what it has in common with others. */
struct own_entry {
	uint64_t key;
	uint64_t ns;
	uint32_t image;
};

/* Entries with the same key: n of them, from `first` on. */
struct own_sum {
	uint64_t key;
	uint64_t ns;
	size_t first;
	size_t n;
};

struct own_sums {
	struct own_sum *sums;
	size_t n;
	struct own_entry *entries;
	size_t n_entries;
};

static int entry_compare(const void *x, const void *y)
{
	const struct own_entry *a = x, *b = y;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->image < b->image ? -1 : a->image > b->image;
}

static int sum_compare(const void *x, const void *y)
{
	const struct own_sum *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return a->key < b->key ? -1 : a->key > b->key;
}

/* Sorts the entries by key, and sets `sums` to their sums, those with the most time first. */
static void sums_make(struct own_sums *own)
{
	struct own_sum *sum = own->sums;
	size_t i;

	own->n = 0;
	if (!own->n_entries)
		return;
	qsort(own->entries, own->n_entries, sizeof(*own->entries), entry_compare);
	for (i = 0; i < own->n_entries; i++) {
		const struct own_entry *entry = &own->entries[i];

		if (!own->n || sum->key != entry->key) {
			sum = &own->sums[own->n++];
			*sum = (struct own_sum){ .key = entry->key, .first = i };
		}
		sum->ns += entry->ns;
		sum->n++;
	}
	qsort(own->sums, own->n, sizeof(*own->sums), sum_compare);
}

static void entry_add(struct own_sums *own, uint64_t key, uint32_t image, uint64_t ns)
{
	own->entries[own->n_entries++] = (struct own_entry){ key, ns, image };
}

/* Lets what is folded of the entry be added up for its process alone, under the name `comm`. */
static void own_set(struct fold_image *image, uint64_t process, const char *comm)
{
	memset(image->own_comm, 0, sizeof(image->own_comm));
	memcpy(image->own_comm, comm, strnlen(comm, COMM_LEN));
	image->own = hash64(process, image->own_comm, sizeof(image->own_comm));
}

/* Sets `own` in the n entries of one process, whose key and time are those of `process`. */
static void process_own(struct fold *fold, struct own_entry *entries, const struct own_sum *process)
{
	const struct window_image *images = fold->in->images;
	size_t i, k;

	for (i = 0; i < process->n; i++)
		entries[i].key = hash64(process->key, images[entries[i].image].comm, COMM_LEN);
	qsort(entries, process->n, sizeof(*entries), entry_compare);
	for (i = 0; i < process->n; i = k) {
		uint64_t ns = 0;

		for (k = i; k < process->n && entries[k].key == entries[i].key; k++)
			ns += entries[k].ns;
		for (size_t j = i; j < k; j++) {
			struct fold_image *image = &fold->images[entries[j].image];
			bool is_large = ns >= process->ns / COMM_SHARE;

			own_set(image, process->key,
				is_large ? images[entries[j].image].comm : image->process.comm);
		}
	}
}

/* How many processes with the same fold_image.name keep their sums apart. */
struct name_count {
	uint64_t key;
	size_t n;
};

/*
 * Sets `own` in the entries of the processes with the most time, but of few in each pool. 0 or
 * -ENOMEM.
 */
static int processes_choose(struct fold *fold, struct own_sums *own, struct key_table *names)
{
	size_t i, n = 0;
	bool is_new;

	for (i = 0; i < own->n && n < fold->limits->max_sums && own->sums[i].ns; i++) {
		const struct own_sum *process = &own->sums[i];
		struct own_entry *entries = own->entries + process->first;
		struct name_count *likes =
			key_table_get(names, &fold->images[entries->image].name, &is_new);

		if (!likes)
			return -ENOMEM;
		if (likes->n++ >= LIKES_MAX)
			continue;
		process_own(fold, entries, process);
		n++;
	}
	return 0;
}

static int processes_find(struct fold *fold, struct own_sums *own, const uint64_t *rest_ns)
{
	struct key_table names = KEY_TABLE(struct name_count);
	uint32_t i;
	int r;

	for (i = 0; i < fold->in->n_images; i++) {
		const struct fold_image *image = &fold->images[i];
		const struct process_id *id = &image->process.id;
		const uint64_t words[] = { (uint64_t)id->pid, id->start_boot_ns, id->exec_gen };

		/* Also those without such time: their threads' times belong to the process. */
		if (!image->is_alone && !image->process.is_folded)
			entry_add(own, hash64(HASH64_SEED, words, sizeof(words)), i, rest_ns[i]);
	}
	sums_make(own);
	r = processes_choose(fold, own, &names);
	key_table_fini(&names);
	return r;
}

/* Sets keeps_sum in the entries of the names with the most time, without those that have `own`. */
static void names_find(struct fold *fold, struct own_sums *own, const uint64_t *rest_ns)
{
	uint32_t i;
	size_t k, n;

	own->n_entries = 0;
	for (i = 0; i < fold->in->n_images; i++) {
		const struct fold_image *image = &fold->images[i];

		if (!image->is_alone && !image->is_others && !image->own)
			entry_add(own, image->hash, i, rest_ns[i]);
	}
	sums_make(own);
	for (n = 0; n < own->n && n < fold->limits->max_sums && own->sums[n].ns; n++)
		for (k = 0; k < own->sums[n].n; k++)
			fold->images[own->entries[own->sums[n].first + k].image].keeps_sum = true;
}

int fold_own_find(struct fold *fold, const uint64_t *rest_ns)
{
	const size_t n = fold->in->n_images;
	_cleanup_(freep) struct own_sum *sums = calloc(n + 1, sizeof(*sums));
	_cleanup_(freep) struct own_entry *entries = calloc(n + 1, sizeof(*entries));
	struct own_sums own = { .sums = sums, .entries = entries };
	int r;

	if (!fold->limits->max_sums)
		return 0;
	if (!sums || !entries)
		return -ENOMEM;
	r = processes_find(fold, &own, rest_ns);
	if (r)
		return r;
	names_find(fold, &own, rest_ns);
	return 0;
}
