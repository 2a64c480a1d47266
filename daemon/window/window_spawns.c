/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/window/window_spawns.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/search.h"

/* The names of a row, by which rows are sorted. */
enum { KEY_BYTES = 2 * COMM_LEN };

_Static_assert(offsetof(struct window_spawn, sums) == KEY_BYTES, "the names are together");

void spawn_sums_add(struct spawn_sums *sum, const struct spawn_sums *other)
{
	sum->forks += other->forks;
	sum->execs += other->execs;
	sum->exits += other->exits;
	sum->shorts += other->shorts;
	sum->cpu_ns += other->cpu_ns;
	sum->life_ns += other->life_ns;
}

uint64_t spawn_events(const struct spawn_sums *sums)
{
	return sums->forks + sums->execs + sums->exits;
}

/* Returns the index of the first row that does not sort before these names. */
static size_t row_place(const struct window_spawns *spawns, const struct window_spawn *key)
{
	return SEARCH(spawns->n, i, memcmp(&spawns->v[i], key, KEY_BYTES) < 0);
}

/* Adds a row to those with the same names. Returns false if there is no room for another row. */
static bool row_add(struct window_spawns *spawns, const struct window_spawn *row)
{
	size_t at = row_place(spawns, row);

	if (at < spawns->n && !memcmp(&spawns->v[at], row, KEY_BYTES)) {
		spawn_sums_add(&spawns->v[at].sums, &row->sums);
		return true;
	}
	if (spawns->n == WINDOW_SPAWNS_SUM_MAX ||
	    array_reserve(spawns->v, spawns->capacity, spawns->n + 1))
		return false;
	memmove(&spawns->v[at + 1], &spawns->v[at], (spawns->n - at) * sizeof(*spawns->v));
	spawns->v[at] = *row;
	spawns->n++;
	return true;
}

void window_spawns_count(struct window_spawns *spawns, const char *parent, const char *comm,
			 const struct spawn_sums *sums)
{
	struct window_spawn row = { .sums = *sums };

	memcpy(row.parent, parent, strnlen(parent, COMM_LEN - 1));
	memcpy(row.comm, comm, strnlen(comm, COMM_LEN - 1));
	if (!row_add(spawns, &row))
		spawn_sums_add(&spawns->others, sums);
}

void window_spawns_exit(struct window_spawns *spawns, const char *parent, const char *comm,
			uint64_t cpu_ns, uint64_t life_ns)
{
	struct spawn_sums sums = { .exits = 1 };

	if (life_ns < SPAWN_SHORT_NS) {
		sums.shorts = 1;
		sums.cpu_ns = cpu_ns;
		sums.life_ns = life_ns;
	}
	window_spawns_count(spawns, parent, comm, &sums);
}

void window_spawns_add(struct window_spawns *sum, const struct window_spawns *other)
{
	size_t i;

	sum->ns += other->ns;
	spawn_sums_add(&sum->others, &other->others);
	sum->n_others += other->n_others;
	for (i = 0; i < other->n; i++) {
		if (row_add(sum, &other->v[i]))
			continue;
		spawn_sums_add(&sum->others, &other->v[i].sums);
		sum->n_others++;
	}
}

/* Compares numbers for qsort(), the larger one first. */
static int compare_events(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x < *y) - (*x > *y);
}

/* Moves the rows beyond the first `max` to `others`. They are those with the least events. */
static void rows_drop(struct window_spawns *spawns, size_t max)
{
	uint64_t events[WINDOW_SPAWNS_SUM_MAX], least, n;
	size_t i, kept = 0, equal = 0;

	for (i = 0; i < spawns->n; i++)
		events[i] = spawn_events(&spawns->v[i].sums);
	qsort(events, spawns->n, sizeof(*events), compare_events);
	least = events[max - 1];
	/* Several rows may have the least number of events that is kept. */
	for (i = 0; i < max; i++)
		equal += events[i] == least;
	for (i = 0; i < spawns->n; i++) {
		n = spawn_events(&spawns->v[i].sums);
		if (n > least || (n == least && equal)) {
			equal -= n == least;
			spawns->v[kept++] = spawns->v[i];
			continue;
		}
		spawn_sums_add(&spawns->others, &spawns->v[i].sums);
		spawns->n_others++;
	}
	spawns->n = kept;
}

void window_spawns_limit(struct window_spawns *spawns, size_t max)
{
	struct window_spawn *trimmed;

	if (spawns->n > max)
		rows_drop(spawns, max);
	if (!spawns->n)
		return;
	trimmed = reallocarray(spawns->v, spawns->n, sizeof(*spawns->v));
	if (!trimmed)
		return;
	spawns->v = trimmed;
	spawns->capacity = spawns->n;
}

struct spawn_sums window_spawns_total(const struct window_spawns *spawns)
{
	struct spawn_sums total = spawns->others;
	size_t i;

	for (i = 0; i < spawns->n; i++)
		spawn_sums_add(&total, &spawns->v[i].sums);
	return total;
}

size_t window_spawns_bytes(const struct window_spawns *spawns)
{
	return spawns->capacity * sizeof(*spawns->v);
}

void window_spawns_fini(struct window_spawns *spawns)
{
	free(spawns->v);
	*spawns = (struct window_spawns){};
}
