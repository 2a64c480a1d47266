/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/process/internal.h"

/* Returns process->held, and makes it if it is NULL; NULL when out of memory. */
static struct process_held *held_get(struct process *process)
{
	if (!process->held)
		process->held = calloc(1, sizeof(*process->held));
	return process->held;
}

/*
 * Appends the mappings `maps` to held->maps and takes a reference to them. Does nothing if they are
 * the last entry there already. Called with table.lock held. Returns 0 or -ENOMEM.
 */
static int maps_add(struct process *process, struct process_maps *maps)
{
	struct process_held *held = held_get(process);

	if (!held)
		return -ENOMEM;
	if (held->n_maps && held->maps[held->n_maps - 1] == maps)
		return 0;
	if (array_reserve(held->maps, held->maps_capacity, held->n_maps + 1))
		return -ENOMEM;
	held->maps[held->n_maps++] = process_maps_ref(maps);
	return 0;
}

const struct process_maps *process_hold_maps(struct process *process, uint64_t mappings,
					     uint64_t address, bool *is_final_out)
{
	struct process_maps *maps;

	*is_final_out = false;
	pthread_mutex_lock(&process->table->lock);
	maps = mappings ? maps_history_find(process, mappings, address, is_final_out)
			: process->maps;
	if (maps && maps_add(process, maps))
		maps = NULL;
	pthread_mutex_unlock(&process->table->lock);
	return maps;
}

static struct symtab *symbols_find(const struct process_held *held, const struct module *module)
{
	for (size_t i = 0; held && i < held->n_symbols; i++) {
		if (held->symbols[i].module == module)
			return held->symbols[i].symtab;
	}
	return NULL;
}

struct symtab *process_hold_loaded(struct process *process, struct module *module,
				   struct symtab *spare)
{
	struct process_table *table = process->table;
	struct process_held *held;
	struct symtab *symtab;

	pthread_mutex_lock(&table->lock);
	held = held_get(process);
	symtab = symbols_find(held, module); /* another thread may have added the module's
						symbols meanwhile */
	if (held && !symtab &&
	    !array_reserve(held->symbols, held->symbols_capacity, held->n_symbols + 1)) {
		symtab = TAKE(spare);
		held->symbols[held->n_symbols++] = (struct held_symbols){ module, symtab };
	}
	pthread_mutex_unlock(&table->lock);
	if (spare)
		module_registry_put_symbols(table->registry, spare);
	return symtab;
}

struct symtab *process_hold_symbols(struct process *process, struct module *module,
				    bool *is_missing_out)
{
	struct symtab *symtab;

	*is_missing_out = false;
	pthread_mutex_lock(&process->table->lock);
	symtab = symbols_find(process->held, module);
	pthread_mutex_unlock(&process->table->lock);
	if (symtab)
		return symtab;
	symtab = module_loaded_symbols(module, is_missing_out);
	return symtab ? process_hold_loaded(process, module, symtab) : NULL;
}

void process_hold_due(struct process *process, struct module *module)
{
	struct process_held *held;

	pthread_mutex_lock(&process->table->lock);
	held = held_get(process);
	if (held && !held->due)
		held->due = module_ref(module);
	pthread_mutex_unlock(&process->table->lock);
}

struct module *process_take_due(struct process *process)
{
	struct module *module = NULL;

	pthread_mutex_lock(&process->table->lock);
	if (process->held)
		module = TAKE(process->held->due);
	pthread_mutex_unlock(&process->table->lock);
	return module;
}

const struct perf_map *process_hold_perf_map(struct process *process)
{
	struct process_held *held;
	struct perf_map *map;

	pthread_mutex_lock(&process->table->lock);
	held = process->perf ? held_get(process) : NULL;
	map = held ? process->perf : NULL;
	if (map && (!held->n_perf_maps || held->perf_maps[held->n_perf_maps - 1] != map)) {
		if (array_reserve(held->perf_maps, held->perf_maps_capacity, held->n_perf_maps + 1))
			map = NULL;
		else
			held->perf_maps[held->n_perf_maps++] = perf_map_ref(map);
	}
	pthread_mutex_unlock(&process->table->lock);
	return map;
}

const char *process_hold_name(struct process *process, const char *path, uint64_t start)
{
	struct process_held *held;
	const char *slash = strrchr(path, '/');
	char *name;
	int r;

	if (asprintf(&name, "%s+fn_%" PRIx64, slash ? slash + 1 : path, start) < 0)
		return NULL;
	pthread_mutex_lock(&process->table->lock);
	held = held_get(process);
	r = held ? array_reserve(held->names, held->names_capacity, held->n_names + 1) : -ENOMEM;
	if (!r)
		held->names[held->n_names++] = name;
	pthread_mutex_unlock(&process->table->lock);
	if (r)
		free(name);
	return r ? NULL : name;
}

struct process_held process_held_take(struct process *process)
{
	struct process_held *held = TAKE(process->held), taken = { 0 };

	if (held)
		taken = *held;
	free(held);
	return taken;
}

void process_held_put(struct process_table *table, struct process_held *held)
{
	for (size_t i = 0; i < held->n_symbols; i++)
		module_registry_put_symbols(table->registry, held->symbols[i].symtab);
	for (size_t i = 0; i < held->n_maps; i++)
		process_maps_unref(held->maps[i]);
	for (size_t i = 0; i < held->n_perf_maps; i++)
		perf_map_unref(held->perf_maps[i]);
	for (size_t i = 0; i < held->n_names; i++)
		free(held->names[i]);
	module_unref(held->due);
	free(held->symbols);
	free(held->maps);
	free(held->perf_maps);
	free(held->names);
}

void process_release_symbols(struct process *process)
{
	struct process_table *table = process->table;
	struct process_held held;

	pthread_mutex_lock(&table->lock);
	held = process_held_take(process);
	pthread_mutex_unlock(&table->lock);
	process_held_put(table, &held);
}
