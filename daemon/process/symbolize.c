/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/process/internal.h"
#include "daemon/symbol/symtab.h"

#define USER_ADDRESS_MIN UINT64_C(0x1000)

/* Reading again: 100 ms after the first time, doubled up to 25.6 s, anew after 5 s of quiet. */
#define READ_AGAIN_NS	  (100 * NS_PER_MS)
#define READ_ATTEMPTS_MAX 8
#define READ_QUIET_NS	  (5 * NS_PER_S)

/*
 * The maps of the walk, else as they are now, held until the symbols are released; NULL when not
 * read. *is_told_out: where at is not in them it is in nothing else that is known.
 */
static const struct process_maps *maps_hold(struct process *process, uint64_t mappings, uint64_t at,
					    bool *is_told_out)
{
	struct process_maps *maps, **held;

	*is_told_out = false;
	pthread_mutex_lock(&process->table->lock);
	maps = mappings ? process_version_maps(process, mappings, at, is_told_out) : process->maps;
	if (maps &&
	    (!process->held.n_maps || process->held.maps[process->held.n_maps - 1] != maps)) {
		held = reallocarray(process->held.maps, process->held.n_maps + 1, sizeof(*held));
		if (held) {
			process->held.maps = held;
			held[process->held.n_maps++] = process_maps_ref(maps);
		} else {
			maps = NULL;
		}
	}
	pthread_mutex_unlock(&process->table->lock);
	return maps;
}

static struct symtab *symbols_held(struct process *process, const struct module *module)
{
	for (size_t i = 0; i < process->held.n_symbols; i++) {
		if (process->held.symbols[i].module == module)
			return process->held.symbols[i].symtab;
	}
	return NULL;
}

/* The symbols of a module, held likewise; NULL where it has none. */
static struct symtab *symbols_hold(struct process *process, struct module *module)
{
	struct process_table *table = process->table;
	struct symtab *symtab, *spare = NULL;
	struct held_symbols *held;

	pthread_mutex_lock(&table->lock);
	symtab = symbols_held(process, module);
	pthread_mutex_unlock(&table->lock);
	if (symtab)
		return symtab;
	spare = module_get_symbols(module);
	if (!spare)
		return NULL;
	pthread_mutex_lock(&table->lock);
	symtab = symbols_held(process, module); /* another thread may have been faster */
	held = symtab ? NULL
		      : reallocarray(process->held.symbols, process->held.n_symbols + 1,
				     sizeof(*held));
	if (held) {
		symtab = TAKE(spare);
		process->held.symbols = held;
		held[process->held.n_symbols++] = (struct held_symbols){ module, symtab };
	}
	pthread_mutex_unlock(&table->lock);
	if (spare)
		module_registry_put_symbols(table->registry, spare);
	return symtab;
}

/* Of a function without a name: by its file, as the process knows it, and where it starts. */
static const char *name_hold(struct process *process, const char *path, uint64_t start)
{
	const char *slash = strrchr(path, '/');
	char **names = NULL, *name;

	if (asprintf(&name, "%s+fn_%" PRIx64, slash ? slash + 1 : path, start) < 0)
		return NULL;
	pthread_mutex_lock(&process->table->lock);
	names = reallocarray(process->held.names, process->held.n_names + 1, sizeof(*names));
	if (names) {
		process->held.names = names;
		names[process->held.n_names++] = name;
	}
	pthread_mutex_unlock(&process->table->lock);
	if (!names)
		free(name);
	return names ? name : NULL;
}

struct process_held process_held_take(struct process *process)
{
	struct process_held held = process->held;

	process->held = (struct process_held){ 0 };
	return held;
}

void process_held_put(struct process_table *table, struct process_held *held)
{
	for (size_t i = 0; i < held->n_symbols; i++)
		module_registry_put_symbols(table->registry, held->symbols[i].symtab);
	for (size_t i = 0; i < held->n_maps; i++)
		process_maps_unref(held->maps[i]);
	for (size_t i = 0; i < held->n_perfs; i++)
		perf_map_unref(held->perfs[i]);
	for (size_t i = 0; i < held->n_names; i++)
		free(held->names[i]);
	free(held->symbols);
	free(held->maps);
	free(held->perfs);
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

bool process_should_read(struct process *process, int64_t now)
{
	bool is_due = false;

	if (!process->has_exited && !process->is_kernel && process_is_newest(process)) {
		if (now - process->missed_ns > READ_QUIET_NS) {
			process->attempts = 0;
			process->next_read_ns = 0;
		}
		process->missed_ns = now;
		is_due = now >= process->next_read_ns;
	}
	if (is_due) {
		process->next_read_ns = now + (READ_AGAIN_NS << process->attempts);
		if (process->attempts < READ_ATTEMPTS_MAX)
			process->attempts++;
	}
	return is_due;
}

static bool should_read(struct process *process)
{
	bool is_due;

	pthread_mutex_lock(&process->table->lock);
	is_due = process_should_read(process, clock_ns(CLOCK_MONOTONIC));
	pthread_mutex_unlock(&process->table->lock);
	return is_due;
}

/* By which of its paths a file was mapped /proc tells, perhaps later than what was mapped. */
static const char *name_of(struct process *process, const struct process_map *map)
{
	const struct process_maps *maps = NULL;
	const char *name = NULL;
	bool is_told;

	if (map->is_name_guessed)
		maps = maps_hold(process, 0, map->start, &is_told);
	if (maps)
		name = process_maps_name_of(maps, map->module);
	return name ? name : process_map_name(map);
}

/* Code made at run time, which may be replaced by other code: one with its name is another. */
static void symbol_name_jit(struct process *process, uint64_t address, bool is_call,
			    struct symbol *symbol)
{
	uint64_t start;

	symbol->kind = FRAME_JIT;
	symbol->name = process_lookup_jit(process, address, &start);
	if (!symbol->name)
		return;
	symbol->name_offset = address + is_call - start;
	symbol->file_id = hash64_string(symbol->file_id, symbol->name);
}

/* Code without a file is that of this image only: equal addresses elsewhere are other code. */
static void symbol_generated(struct process *process, const struct process_map *map,
			     uint64_t address, bool is_call, struct symbol *symbol)
{
	struct process_id id;

	pthread_mutex_lock(&process->table->lock);
	id = process->id;
	pthread_mutex_unlock(&process->table->lock);
	symbol->file_id = hash64(HASH64_SEED, &id, sizeof(id));
	symbol->module = map->name;
	symbol_name_jit(process, address, is_call, symbol);
}

/* Nothing is known but where it came from, which still tells it from other files. */
static void symbol_of_path(const struct process_map *map, uint64_t offset, struct symbol *symbol)
{
	uint64_t place[] = { map->dev, map->inode,
			     map->kind == MAP_SPECIAL ? map->end - map->start : 0 };

	symbol->file_id = hash64_string(hash64(HASH64_SEED, place, sizeof(place)), map->name);
	symbol->file_offset = offset;
	symbol->module = map->name;
}

static void symbol_of_module(struct process *process, const struct process_map *map,
			     uint64_t offset, bool is_call, struct symbol *symbol)
{
	uint64_t address = module_address(map->module, offset), start;
	struct symtab *symtab;

	symbol->module = name_of(process, map);
	symbol->file_id = module_file_id(map->module);
	symbol->file_offset = address + is_call;
	symtab = symbols_hold(process, map->module);
	if (symtab && symtab_lookup(symtab, address, &symbol->name, &start)) {
		if (!symbol->name)
			symbol->name = name_hold(process, symbol->module, start);
		symbol->name_offset = symbol->file_offset - start;
	}
	symbol->is_signal = symtab && symtab_is_signal(symtab, address);
}

/* A file that holds no program: code was made into it. */
static void symbol_of_data(struct process *process, const struct process_map *map, uint64_t offset,
			   uint64_t address, bool is_call, struct symbol *symbol)
{
	symbol->module = name_of(process, map);
	symbol->file_id = module_file_id(map->module);
	symbol->file_offset = offset + is_call;
	symbol_name_jit(process, address, is_call, symbol);
}

/* What was mapped at an address, held likewise; NULL where nothing is known to have been. */
static const struct process_map *map_hold(struct process *process, uint64_t mappings, uint64_t at)
{
	bool is_told;
	const struct process_maps *maps = maps_hold(process, mappings, at, &is_told);
	const struct process_map *map = maps ? process_maps_find(maps, at) : NULL;

	if (map || is_told)
		return map && is_told && map->is_gone ? NULL : map;
	/* Of an image that was only just made what is not found is what it has now. */
	maps = maps_hold(process, 0, at, &is_told);
	return maps ? process_maps_find(maps, at) : NULL;
}

bool process_lookup(struct process *process, uint64_t mappings, uint64_t address, bool is_call,
		    struct symbol *symbol_out)
{
	/* A return address may lie behind the function, and the mapping, that made the call. */
	uint64_t at = address - is_call, offset;
	const struct process_map *map;

	*symbol_out = (struct symbol){ .kind = FRAME_NATIVE, .file_offset = address };
	if (address < USER_ADDRESS_MIN)
		return false;
	map = map_hold(process, mappings, at);
	/* The upper half is the kernel's; nothing a process maps appears there later. */
	if (!map && !(address >> 63)) {
		if (should_read(process))
			process_read(process);
		pthread_mutex_lock(&process->table->lock);
		process_version_settle(process, mappings);
		pthread_mutex_unlock(&process->table->lock);
		map = map_hold(process, mappings, at);
	}
	if (!map)
		return false;
	offset = at - map->start + map->pgoff;
	if (map->kind == MAP_GENERATED)
		symbol_generated(process, map, at, is_call, symbol_out);
	else if (map->module && !module_is_elf(map->module))
		symbol_of_data(process, map, offset, at, is_call, symbol_out);
	else if (map->module)
		symbol_of_module(process, map, offset, is_call, symbol_out);
	else
		symbol_of_path(map, offset + is_call, symbol_out);
	return true;
}
