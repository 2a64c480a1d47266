/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/answer_spawns.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/window/window_spawns.h"

static struct wire_spawn_sums sums_make(const struct spawn_sums *sums)
{
	return (struct wire_spawn_sums){
		.forks = (int64_t)sums->forks,
		.execs = (int64_t)sums->execs,
		.exits = (int64_t)sums->exits,
		.short_lived = (int64_t)sums->shorts,
		.cpu_ns = (int64_t)sums->cpu_ns,
		.life_ns = (int64_t)sums->life_ns,
	};
}

/* Compares rows for qsort(): the one with the most events comes first, then by name. */
static int compare_rows(const void *a, const void *b)
{
	const struct window_spawn *const *x = a, *const *y = b;
	uint64_t first = spawn_events(&(*x)->sums), second = spawn_events(&(*y)->sums);

	return first != second ? (first < second ? 1 : -1) : (*x > *y) - (*x < *y);
}

/* Makes the first rows, and adds the other ones to *others and *n_others. */
static int rows_make(struct arena *arena, const struct window_spawns *spawns,
		     struct spawn_sums *others, uint64_t *n_others, struct wire_spawn_rows *out)
{
	const size_t n = spawns->n < WINDOW_SPAWNS_MAX ? spawns->n : WINDOW_SPAWNS_MAX;
	const struct window_spawn **rows =
		arena_array(arena, spawns->n + 1, sizeof(const struct window_spawn *));
	struct wire_spawn_row *wire = arena_array(arena, n + 1, sizeof(*wire));
	size_t i;

	if (!rows || !wire)
		return -ENOMEM;
	for (i = 0; i < spawns->n; i++)
		rows[i] = &spawns->v[i];
	qsort(rows, spawns->n, sizeof(const struct window_spawn *), compare_rows);
	for (i = 0; i < n; i++) {
		wire[i] = (struct wire_spawn_row){
			.parent = arena_strdup(arena, rows[i]->parent),
			.comm = arena_strdup(arena, rows[i]->comm),
			.sums = sums_make(&rows[i]->sums),
		};
		if (!wire[i].parent || !wire[i].comm)
			return -ENOMEM;
	}
	for (; i < spawns->n; i++, (*n_others)++)
		spawn_sums_add(others, &rows[i]->sums);
	*out = (struct wire_spawn_rows){ .v = wire, .n = n };
	return 0;
}

int answer_spawns(struct arena *arena, const struct window_spawns *spawns,
		  const struct wire_spawns **out)
{
	const struct spawn_sums total = window_spawns_total(spawns);
	struct spawn_sums others = spawns->others;
	uint64_t n_others = spawns->n_others;
	struct wire_spawns *wire;
	int r;

	if (!spawns->ns)
		return 0;
	wire = arena_alloc(arena, sizeof(*wire));
	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_spawns){
		.length_ns = (int64_t)spawns->ns,
		.total = sums_make(&total),
	};
	r = rows_make(arena, spawns, &others, &n_others, &wire->rows);
	if (r)
		return r;
	wire->others = sums_make(&others);
	wire->rows_folded = (int64_t)n_others;
	*out = wire;
	return 0;
}
