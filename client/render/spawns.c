/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/spawns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/table.h"
#include "common/base.h"

/*
 * NAMED_MAX: the maximum number of children that the line of an overview names. CHILDREN_MAX: the
 * maximum that have a line of the table, where that is kept short. LINES_AROUND: the table's head,
 * the lines of all and of others, and the one that says how many parents are left out.
 */
enum { NAMED_MAX = 2, CHILDREN_MAX = 2, LINES_AROUND = 4 };

/* The processes whose parents have one name, summed up. */
struct parent {
	const char *name;
	struct wire_spawn_sums sums;
	size_t children; /* how many names these processes have */
};

static void sums_add(struct wire_spawn_sums *sum, const struct wire_spawn_sums *other)
{
	sum->forks += other->forks;
	sum->execs += other->execs;
	sum->exits += other->exits;
	sum->short_lived += other->short_lived;
	sum->cpu_ns += other->cpu_ns;
	sum->life_ns += other->life_ns;
}

static int64_t events(const struct wire_spawn_sums *sums)
{
	return sums->forks + sums->execs + sums->exits;
}

/* Compares parents for qsort(): the one with the most short-lived children comes first. */
static int compare_parents(const void *a, const void *b)
{
	const struct parent *x = a, *y = b;
	int64_t first = x->sums.short_lived, second = y->sums.short_lived;

	if (first == second) {
		first = events(&x->sums);
		second = events(&y->sums);
	}
	return first != second ? (first < second ? 1 : -1) : strcmp(x->name, y->name);
}

/* Returns the *n_out parents in the rows, sorted. The caller frees the array. */
static struct parent *parents_make(const struct wire_spawn_rows *rows, size_t *n_out)
{
	struct parent *parents = must(calloc(rows->n + 1, sizeof *parents));
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		size_t k = 0;

		while (k < n && strcmp(parents[k].name, rows->v[i].parent) != 0)
			k++;
		if (k == n)
			parents[n++].name = rows->v[i].parent;
		sums_add(&parents[k].sums, &rows->v[i].sums);
		parents[k].children++;
	}
	qsort(parents, n, sizeof *parents, compare_parents);
	*n_out = n;
	return parents;
}

/*
 * Returns the child of a parent with the most short-lived processes, but less than those of
 * `after`; NULL if there is none. Of equal ones, the first is the greater.
 */
static const struct wire_spawn_row *next_child(const struct wire_spawn_rows *rows,
					       const struct parent *parent,
					       const struct wire_spawn_row *after)
{
	const struct wire_spawn_row *best = NULL;

	for (size_t i = 0; i < rows->n; i++) {
		const struct wire_spawn_row *row = &rows->v[i];
		int64_t n = row->sums.short_lived;

		if (n == 0 || strcmp(row->parent, parent->name) != 0)
			continue;
		if (after &&
		    (n > after->sums.short_lived || (n == after->sums.short_lived && row <= after)))
			continue;
		if (!best || n > best->sums.short_lived)
			best = row;
	}
	return best;
}

/* Returns the children of a parent as "3,900 by make: cc1plus, as". The caller frees the text. */
static char *children_text(const struct wire_spawn_rows *rows, const struct parent *parent)
{
	_cleanup_(freep) char *who = name_escape(parent->name);
	const struct wire_spawn_row *row = next_child(rows, parent, NULL);
	char *text = must_printf("%s by %s:", count_text(parent->sums.short_lived), who), *longer;

	for (size_t named = 0; row && named < NAMED_MAX; named++) {
		_cleanup_(freep) char *name = name_escape(row->comm);

		longer = must_printf("%s%s %s", text, named > 0 ? "," : "", name);
		free(text);
		text = longer;
		row = next_child(rows, parent, row);
	}
	return text;
}

char *spawns_line(const struct wire_spawns *spawns)
{
	_cleanup_(freep) struct parent *parents = NULL;
	_cleanup_(freep) char *children = NULL, *life = NULL, *cpu = NULL;
	const struct wire_spawn_sums *total;
	size_t n;

	if (!spawns || spawns->total.short_lived == 0)
		return NULL;
	total = &spawns->total;
	parents = parents_make(&spawns->rows, &n);
	if (n > 0 && parents[0].sums.short_lived > 0)
		children = children_text(&spawns->rows, &parents[0]);
	life = table_time("", total->life_ns / total->short_lived, "");
	cpu = table_time("", total->cpu_ns, "");
	return must_printf("%s short-lived, %s of CPU, life %s%s%s", count_text(total->short_lived),
			   cpu, life, children ? "; " : "", children ? children : "");
}

static const struct table_column columns[] = {
	{ "forks", 0, 0, NULL },       { "execs", 0, 0, NULL }, { "ended", 0, 0, NULL },
	{ "short-lived", 0, 0, NULL }, { "CPU", 0, 0, NULL },	{ "average", 0, 0, NULL },
	{ "process", 16, 0, NULL },
};

/* Adds a line. Takes over `name`, which is escaped. */
static void add_line(struct table *table, enum style style, const struct wire_spawn_sums *sums,
		     char *name)
{
	char **cells = table_add(table, style)->cells;
	const int64_t counts[] = { sums->forks, sums->execs, sums->exits, sums->short_lived };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		*cells++ = must(strdup(count_text(counts[i])));
	*cells++ = sums->short_lived > 0 ? table_time("", sums->cpu_ns, "") : NULL;
	*cells++ = sums->short_lived > 0 ? table_time("", sums->life_ns / sums->short_lived, "")
					 : NULL;
	*cells = name;
}

/* True if each parent has only a few lines: on a screen, or if so many parents were asked for. */
static bool is_short(const struct view *view)
{
	return view->height > 0 || (view->top_is_given && view->top > 0);
}

/* Returns how many lines are for the children of a parent that have lines of their own. */
static size_t children_shown(const struct view *view, const struct parent *parent)
{
	/* The line that sums up the others takes as much room as one of them. */
	return is_short(view) && parent->children > CHILDREN_MAX + 1 ? CHILDREN_MAX
								     : parent->children;
}

/* Adds a line for a parent, one for each kind of child, and one for those that are too many. */
static void add_parent(struct table *table, const struct view *view,
		       const struct wire_spawn_rows *rows, const struct parent *parent)
{
	const size_t shown = children_shown(view, parent);
	struct wire_spawn_sums others = {};
	size_t n = 0;

	add_line(table, STYLE_BOLD, &parent->sums, name_escape(parent->name));
	for (size_t i = 0; i < rows->n; i++) {
		_cleanup_(freep) char *name = NULL;

		if (strcmp(rows->v[i].parent, parent->name) != 0)
			continue;
		if (n++ >= shown) {
			sums_add(&others, &rows->v[i].sums);
			continue;
		}
		name = name_escape(rows->v[i].comm);
		add_line(table, STYLE_PLAIN, &rows->v[i].sums, must_printf("  %s", name));
	}
	if (n > shown)
		add_line(table, STYLE_PLAIN, &others, must_printf("  and %zu more", n - shown));
}

/* Returns how many parents to print: as many as were asked for, and as fit on a screen. */
static size_t parents_shown(const struct view *view, const struct parent *parents, size_t n)
{
	size_t most = view->top > 0 && (uint64_t)view->top < n ? (size_t)view->top : n, i;
	size_t room = view->height > LINES_AROUND ? view->height - LINES_AROUND : 0;

	if (view->height == 0)
		return most;
	for (i = 0; i < most; i++) {
		size_t shown = children_shown(view, &parents[i]);
		size_t lines = 1 + shown + (shown < parents[i].children);

		if (lines > room)
			break;
		room -= lines;
	}
	return i > 0 ? i : most > 0;
}

void render_spawns(const struct view *view, const struct wire_spawns *spawns)
{
	_cleanup_(freep) struct parent *parents = NULL;
	struct table table;
	size_t n, shown;

	if (!spawns) {
		page_line(&view->page, STYLE_PLAIN, "not known: a filter was given");
		return;
	}
	parents = parents_make(&spawns->rows, &n);
	shown = parents_shown(view, parents, n);
	table_init(&table, columns, ARRAY_SIZE(columns));
	add_line(&table, STYLE_PLAIN, &spawns->total, must(strdup("all")));
	for (size_t i = 0; i < shown; i++)
		add_parent(&table, view, &spawns->rows, &parents[i]);
	if (events(&spawns->others) > 0)
		add_line(&table, STYLE_PLAIN, &spawns->others, must(strdup("(others)")));
	table_print(&table, &view->page, true, false);
	table_fini(&table);
	if (shown < n)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%zu more: -n 0 shows all", n - shown);
}
