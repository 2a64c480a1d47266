/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/process/internal.h"

/*
 * Returns the statistics of a program. Programs beyond the first WALK_STATS_MAX, and programs whose
 * path is not known, share one entry.
 */
static struct walk_stats *stats_of(struct process_table *table, const char *exe)
{
	struct walk_stats *walks = table->walks;
	size_t i;

	for (i = 0; i < table->n_walks; i++)
		if (exe && strcmp(walks[i].exe, exe) == 0)
			return &walks[i];
	if (!exe || i == WALK_STATS_MAX)
		return &table->other_walks;
	walks[i].exe = strdup(exe);
	if (!walks[i].exe)
		return &table->other_walks;
	table->n_walks++;
	return &walks[i];
}

void walk_stats_note(struct process *process, unsigned int ends)
{
	struct walk_stats *walks;

	if (!process->walks || process->walks_exe != process->exe) {
		process->walks = stats_of(process->table, process->exe);
		process->walks_exe = process->exe;
	}
	walks = process->walks;
	walks->stacks++;
	for (size_t i = 0; i < WALK_ENDS; i++)
		walks->ends[i] += ends >> i & 1;
}

static int stats_compare(const void *a, const void *b)
{
	const struct walk_stats *x = a, *y = b;
	uint64_t partial_x = x->stacks - x->ends[WALK_WHOLE];
	uint64_t partial_y = y->stacks - y->ends[WALK_WHOLE];

	if (partial_x != partial_y)
		return partial_x < partial_y ? 1 : -1;
	return x->stacks < y->stacks ? 1 : x->stacks > y->stacks ? -1 : 0;
}

size_t process_table_walk_stats(struct process_table *table, struct walk_stats *out, size_t max)
{
	size_t n;

	pthread_mutex_lock(&table->lock);
	for (n = 0; n < table->n_walks && n < max; n++)
		out[n] = table->walks[n];
	if (n < max && table->other_walks.stacks)
		out[n++] = table->other_walks;
	pthread_mutex_unlock(&table->lock);
	if (n)
		qsort(out, n, sizeof(*out), stats_compare);
	return n;
}

void walk_stats_free(struct process_table *table)
{
	for (size_t i = 0; i < table->n_walks; i++)
		free((char *)(uintptr_t)table->walks[i].exe);
}
