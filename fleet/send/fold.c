/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/send/fold.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/arena.h"

typedef int (*order_fn)(const void *x, const void *y);

static int order(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* Compares two texts; an absent one is the same as an empty one. */
static int text_order(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a ? a : "", b ? b : "");
}

/* Compares what rows of waits have in common in every sum: state, reason and idle. */
static int state_order(const struct wire_row *a, const struct wire_row *b)
{
	return text_order(a->state, b->state) ?: order(a->state_bits, b->state_bits)
		?: text_order(a->reason, b->reason) ?: order(a->idle, b->idle);
}

/* Orders rows so that those of one thread name of one process, in one state, are neighbours. */
static int process_order(const void *x, const void *y)
{
	const struct wire_row *a = &((const struct fleet_row *)x)->wire;
	const struct wire_row *b = &((const struct fleet_row *)y)->wire;

	return order(a->process.pid, b->process.pid)
		?: order(a->process.start, b->process.start)
		?: text_order(a->comm, b->comm)
		?: text_order(a->process.comm, b->process.comm)
		?: text_order(a->process.exe, b->process.exe)
		?: text_order(a->process.cgroup, b->process.cgroup)
		?: state_order(a, b);
}

/* Orders rows so that those of one control group, in one state, are neighbours. */
static int cgroup_order(const void *x, const void *y)
{
	const struct wire_row *a = &((const struct fleet_row *)x)->wire;
	const struct wire_row *b = &((const struct fleet_row *)y)->wire;

	return text_order(a->process.cgroup, b->process.cgroup)
		?: order(a->process.kernel, b->process.kernel) ?: state_order(a, b);
}

/* As cgroup_order(), but by unit, and for all bits of a state together. */
static int unit_order(const void *x, const void *y)
{
	const struct wire_row *a = &((const struct fleet_row *)x)->wire;
	const struct wire_row *b = &((const struct fleet_row *)y)->wire;

	return text_order(a->unit, b->unit) ?: order(a->process.kernel, b->process.kernel)
		?: text_order(a->state, b->state) ?: text_order(a->reason, b->reason)
		?: order(a->idle, b->idle);
}

/* Orders rows by time, the most first. Equal ones are ordered by what does not depend on chance. */
static int time_order(const void *x, const void *y)
{
	const struct fleet_row *a = x, *b = y;

	return order(b->wire.total_ns, a->wire.total_ns)
		?: order(b->wire.count, a->wire.count) ?: process_order(x, y);
}

/* Adds a number that may be absent to a sum that may be absent. */
static void add(int64_t *sum, int64_t more)
{
	if (more != WIRE_ABSENT)
		*sum = *sum == WIRE_ABSENT ? more : *sum + more;
}

static int buckets_add(struct int_list *sum, const struct int_list *more, struct arena *arena)
{
	size_t n = sum->n > more->n ? sum->n : more->n;
	int64_t *v;

	if (more->n == 0)
		return 0;
	v = arena_array(arena, n, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		v[i] = (i < sum->n ? sum->v[i] : 0) + (i < more->n ? more->v[i] : 0);
	*sum = (struct int_list){ .v = v, .n = n };
	return 0;
}

/* Adds a row to a sum, which keeps the longest wait of both. */
static int row_add(struct fleet_row *sum, const struct fleet_row *more, struct arena *arena)
{
	struct wire_row *to = &sum->wire;
	const struct wire_row *from = &more->wire;

	sum->of_rows += more->of_rows;
	to->count += from->count;
	to->total_ns += from->total_ns;
	add(&to->blocked_ns, from->blocked_ns);
	add(&to->runnable_ns, from->runnable_ns);
	add(&to->throttled_ns, from->throttled_ns);
	add(&to->sampled, from->sampled);
	add(&to->sampled_ns, from->sampled_ns);
	add(&to->open, from->open);
	add(&to->open_ns, from->open_ns);
	add(&to->unseen, from->unseen);
	add(&to->folded, from->folded);
	if (from->estimated == 1)
		to->estimated = 1;
	if (from->max_ns > to->max_ns) {
		to->max_ns = from->max_ns;
		to->max_end = from->max_end;
		to->max_tid = from->max_tid;
		to->max_comm = from->max_comm;
	}
	return buckets_add(&to->buckets, &from->buckets, arena);
}

/* Makes neighbours that `same` does not tell apart one row. Returns 0 or -ENOMEM. */
static int merge(struct fleet_row *rows, size_t *n, order_fn same, enum fleet_kind kind,
		 struct arena *arena)
{
	size_t kept = 0;
	int r;

	qsort(rows, *n, sizeof(*rows), same);
	for (size_t i = 0; i < *n; i++) {
		if (kept > 0 && same(&rows[kept - 1], &rows[i]) == 0) {
			r = row_add(&rows[kept - 1], &rows[i], arena);
			if (r < 0)
				return r;
			continue;
		}
		rows[kept] = rows[i];
		rows[kept].kind = kind;
		rows[kept].wire.kernel = rows[kept].wire.user = NULL;
		rows[kept].wire.function = rows[kept].wire.module = NULL;
		kept++;
	}
	*n = kept;
	return 0;
}

/* True if the stacks of a row say little for what they cost: it was preempted, or is only counted.
 */
static bool is_without_stacks(const struct wire_row *row)
{
	return row->state && (strcmp(row->state, "R") == 0 || strcmp(row->state, "-") == 0);
}

/*
 * Moves the rows of one kind of idle, in the order of their time, from rows[0] on to the end of
 * *kept, until these hold `share` percent of the time. Returns how many rows it moved.
 */
static size_t keep_largest(const struct fleet_row *rows, size_t n, uint64_t share, uint64_t most,
			   struct fleet_row *kept)
{
	int64_t total = 0, held = 0;
	size_t i;

	for (i = 0; i < n; i++)
		total += rows[i].wire.total_ns;
	for (i = 0; i < n && i < most; i++) {
		if (share < 100 && (double)held >= (double)total * (double)share / 100)
			break;
		held += rows[i].wire.total_ns;
		kept[i] = rows[i];
	}
	return i;
}

/* Removes what belongs to one process from a row that becomes the sum of several. */
static void make_rest(struct fleet_row *row)
{
	const struct wire_process process = { .comm = "",
					      .cgroup = row->wire.process.cgroup,
					      .kernel = row->wire.process.kernel,
					      .replaced = WIRE_BOOL_ABSENT };

	row->wire.process = process;
	row->wire.comm = "";
	row->wire.folded = WIRE_ABSENT;
	row->wire.own = WIRE_BOOL_ABSENT;
	row->wire.key = NULL;
}

/* The rows while they are folded: two arrays with room for all rows. */
struct folding {
	struct fleet_row *all;
	size_t n;
	struct fleet_row *kept;
	size_t n_kept;
};

/* Copies the rows, those without stacks first; these are merged by process. */
static int fold_processes(struct folding *folding, const struct wire_rows *rows,
			  struct arena *arena)
{
	size_t n = 0;
	int r;

	for (size_t i = 0; i < rows->n; i++)
		if (is_without_stacks(&rows->v[i]))
			folding->all[n++] = (struct fleet_row){ FLEET_FOLDED, rows->v[i], 1 };
	r = merge(folding->all, &n, process_order, FLEET_FOLDED, arena);
	if (r < 0)
		return r;
	for (size_t i = 0; i < rows->n; i++)
		if (!is_without_stacks(&rows->v[i]))
			folding->all[n++] = (struct fleet_row){ FLEET_ROW, rows->v[i], 1 };
	folding->n = n;
	return 0;
}

/* Takes the largest rows that are, or are not, idle; the others are added to rest. */
static void keep(struct folding *folding, bool is_idle, uint64_t share, uint64_t most,
		 struct fleet_row *rest, size_t *n_rest)
{
	struct fleet_row *own = rest + *n_rest;
	size_t n = 0, n_kept;

	for (size_t i = 0; i < folding->n; i++)
		if (folding->all[i].wire.idle == is_idle)
			own[n++] = folding->all[i];
	qsort(own, n, sizeof(*own), time_order);
	n_kept = keep_largest(own, n, share, most, folding->kept + folding->n_kept);
	folding->n_kept += n_kept;
	memmove(own, own + n_kept, (n - n_kept) * sizeof(*own));
	*n_rest += n - n_kept;
}

int fold_rows(const struct wire_rows *rows, uint64_t share, uint64_t most, struct arena *arena,
	      struct fleet_rows *out)
{
	struct folding folding = {
		.all = arena_array(arena, rows->n + 1, sizeof(*folding.all)),
		.kept = arena_array(arena, rows->n + 1, sizeof(*folding.kept)),
	};
	struct fleet_row *rest = arena_array(arena, rows->n + 1, sizeof(*rest));
	size_t n_rest = 0;
	int r;

	if (!folding.all || !folding.kept || !rest)
		return -ENOMEM;
	r = fold_processes(&folding, rows, arena);
	if (r < 0)
		return r;
	keep(&folding, false, share, most, rest, &n_rest);
	keep(&folding, true, share, most, rest, &n_rest);
	for (size_t i = 0; i < n_rest; i++)
		make_rest(&rest[i]);
	r = merge(rest, &n_rest, cgroup_order, FLEET_REST, arena);
	if (r < 0)
		return r;
	memcpy(folding.kept + folding.n_kept, rest, n_rest * sizeof(*rest));
	*out = (struct fleet_rows){ .v = folding.kept, .n = folding.n_kept + n_rest };
	return 0;
}

int fold_units(const struct fleet_rows *rows, struct arena *arena, struct fleet_rows *out)
{
	struct fleet_row *units = arena_array(arena, rows->n + 1, sizeof(*units));
	size_t n = rows->n;
	int r;

	if (!units)
		return -ENOMEM;
	if (n > 0)
		memcpy(units, rows->v, n * sizeof(*units));
	r = merge(units, &n, unit_order, FLEET_REST, arena);
	if (r < 0)
		return r;
	*out = (struct fleet_rows){ .v = units, .n = n };
	return 0;
}
