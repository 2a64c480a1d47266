/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/process/internal.h"

/* By the program a process runs; what found no room is counted under no name. */
static struct process_walks *walks_find(struct process_table *table, const char *exe)
{
	struct process_walks *walks = table->walks;
	size_t i;

	for (i = 0; i < table->n_walks; i++)
		if (exe && strcmp(walks[i].exe, exe) == 0)
			return &walks[i];
	if (!exe || i == PROCESS_WALKS_MAX)
		return &table->other_walks;
	walks[i].exe = strdup(exe);
	if (!walks[i].exe)
		return &table->other_walks;
	table->n_walks++;
	return &walks[i];
}

void process_walks_note(struct process *process, unsigned int ends)
{
	struct process_walks *walks;

	if (!process->walks || process->walks_exe != process->exe) {
		process->walks = walks_find(process->table, process->exe);
		process->walks_exe = process->exe;
	}
	walks = process->walks;
	walks->stacks++;
	for (size_t i = 0; i < WALK_ENDS; i++)
		walks->ends[i] += ends >> i & 1;
}

static int walks_compare(const void *a, const void *b)
{
	const struct process_walks *x = a, *y = b;
	uint64_t cut_x = x->stacks - x->ends[WALK_WHOLE], cut_y = y->stacks - y->ends[WALK_WHOLE];

	if (cut_x != cut_y)
		return cut_x < cut_y ? 1 : -1;
	return x->stacks < y->stacks ? 1 : x->stacks > y->stacks ? -1 : 0;
}

size_t process_table_walks(struct process_table *table, struct process_walks *out, size_t max)
{
	size_t n;

	pthread_mutex_lock(&table->lock);
	for (n = 0; n < table->n_walks && n < max; n++)
		out[n] = table->walks[n];
	if (n < max && table->other_walks.stacks)
		out[n++] = table->other_walks;
	pthread_mutex_unlock(&table->lock);
	if (n)
		qsort(out, n, sizeof(*out), walks_compare);
	return n;
}

void process_walks_free(struct process_table *table)
{
	for (size_t i = 0; i < table->n_walks; i++)
		free((char *)(uintptr_t)table->walks[i].exe);
}
