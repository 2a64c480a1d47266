/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/base/hash.h"
#include "daemon/process/internal.h"
#include "daemon/symbol/symtab.h"

#define USER_ADDRESS_MIN UINT64_C(0x1000)

/*
 * Returns the path by which the process mapped the file. If the mapping `map` was found by a stack
 * walk, its path is only guessed. The path is then taken from the current mappings if these have
 * the file.
 */
static const char *path_of(struct process *process, const struct process_map *map)
{
	const struct process_maps *maps = NULL;
	const char *path = NULL;
	bool is_final;

	if (map->is_name_guessed)
		maps = process_hold_maps(process, 0, map->start, &is_final);
	if (maps)
		path = process_maps_name_of(maps, map->module);
	return path ? path : process_map_name(map);
}

/*
 * Finds the name of code that was made at run time. Looks for it in the perf map as that was last
 * read. The hash symbol->file_id then covers the name, too, because the program may later make
 * other code at the same address.
 */
static enum process_miss jit_name(struct process *process, uint64_t address, bool is_call,
				  struct symbol *symbol)
{
	const struct perf_map *map = process_hold_perf_map(process);
	uint64_t start;

	symbol->kind = FRAME_JIT;
	symbol->name = map ? perf_map_lookup(map, address, &start) : NULL;
	if (symbol->name) {
		symbol->name_offset = address + is_call - start;
		symbol->file_id = hash64_string(symbol->file_id, symbol->name);
	}
	return process_perf_is_due(process, !symbol->name) ? PROCESS_MISS_JIT : PROCESS_NO_MISS;
}

/*
 * Finds the symbol of code without a file. Sets symbol->file_id to a hash of the process's id,
 * because another process has other code at the same address.
 */
static enum process_miss symbol_of_generated(struct process *process, const struct process_map *map,
					     uint64_t address, bool is_call, struct symbol *symbol)
{
	struct process_id id;

	pthread_mutex_lock(&process->table->lock);
	id = process->id;
	pthread_mutex_unlock(&process->table->lock);
	symbol->file_id = hash64(HASH64_SEED, &id, sizeof(id));
	symbol->module = process_map_name(map);
	return jit_name(process, address, is_call, symbol);
}

/*
 * Finds the symbol of an address in a mapped file that is not an ELF file. Such a file holds code
 * made at run time.
 */
static enum process_miss symbol_of_data(struct process *process, const struct process_map *map,
					uint64_t offset, uint64_t address, bool is_call,
					struct symbol *symbol)
{
	symbol->module = path_of(process, map);
	symbol->file_id = module_file_id(map->module);
	symbol->file_offset = offset + is_call;
	return jit_name(process, address, is_call, symbol);
}

static enum process_miss symbol_of_module(struct process *process, const struct process_map *map,
					  uint64_t offset, bool is_call, struct symbol *symbol)
{
	uint64_t address = module_address(map->module, offset), start;
	struct symtab *symtab;
	bool is_missing;

	symbol->module = path_of(process, map);
	symbol->file_id = module_file_id(map->module);
	symbol->file_offset = address + is_call;
	symbol->code = module_code(map->module);
	symtab = process_hold_symbols(process, map->module, &is_missing);
	if (is_missing) {
		process_hold_due(process, map->module);
		return PROCESS_MISS_SYMBOLS;
	}
	if (symtab && symtab_lookup(symtab, address, &symbol->name, &start)) {
		if (!symbol->name)
			symbol->name = process_hold_name(process, symbol->module, start);
		symbol->name_offset = symbol->file_offset - start;
	}
	symbol->is_signal = symtab && symtab_is_signal(symtab, address);
	return PROCESS_NO_MISS;
}

/*
 * Fills in the symbol of an address in a file that is not open: only the file's path and the offset
 * in it.
 */
static void symbol_of_path(const struct process_map *map, uint64_t offset, struct symbol *symbol)
{
	uint64_t words[] = { map->dev, map->inode,
			     map->kind == MAP_SPECIAL ? map->end - map->start : 0 };

	symbol->file_id =
		hash64_string(hash64(HASH64_SEED, words, sizeof(words)), process_map_name(map));
	symbol->file_offset = offset;
	symbol->module = process_map_name(map);
}

/*
 * Returns the mapping that contained the address `at` when the stack was walked; NULL if none is
 * known. A reference in process->held keeps the mapping valid.
 */
static const struct process_map *map_find(struct process *process, uint64_t mappings, uint64_t at)
{
	bool is_final;
	const struct process_maps *maps = process_hold_maps(process, mappings, at, &is_final);
	const struct process_map *map = maps ? process_maps_find(maps, at) : NULL;

	if (map && is_final && map->is_gone)
		return NULL;
	if (map || is_final)
		return map;
	/*
	 * The unwinder had no mappings of the process when the stack was walked: use the current
	 * ones.
	 */
	maps = process_hold_maps(process, 0, at, &is_final);
	return maps ? process_maps_find(maps, at) : NULL;
}

/* Does the same as map_find(), but takes no reference. Called with table.lock held. */
static const struct process_map *map_find_locked(const struct process *process, uint64_t mappings,
						 uint64_t at)
{
	bool is_final = false;
	const struct process_maps *maps =
		mappings ? maps_history_find(process, mappings, at, &is_final) : process->maps;
	const struct process_map *map = maps ? process_maps_find(maps, at) : NULL;

	if (map && is_final && map->is_gone)
		return NULL;
	if (map || is_final || !process->maps)
		return map;
	return process_maps_find(process->maps, at);
}

static void place_find(const struct process *process, uint64_t mappings, uint64_t at,
		       struct code_place *place)
{
	const struct process_map *map;

	place->file = 0;
	map = at < USER_ADDRESS_MIN ? NULL : map_find_locked(process, mappings, at);
	if (!map || !map->module || map->is_name_guessed || map->kind == MAP_GENERATED ||
	    !module_is_elf(map->module))
		return;
	place->file = module_key(map->module);
	if (map->name)
		place->file = hash64_string(place->file, map->name);
	place->offset = module_address(map->module, at - map->start + map->pgoff);
}

void code_places(struct process *process, uint64_t mappings, const uint64_t *addresses, size_t n,
		 struct code_place *places_out)
{
	pthread_mutex_lock(&process->table->lock);
	for (size_t i = 0; i < n; i++) {
		places_out[i].is_call = i > 0;
		place_find(process, mappings, addresses[i] - (i > 0), &places_out[i]);
	}
	pthread_mutex_unlock(&process->table->lock);
}

enum process_miss process_lookup(struct process *process, uint64_t mappings, uint64_t address,
				 bool is_call, struct symbol *symbol_out)
{
	/*
	 * A return address may be just after the end of the calling function, and even of its
	 * mapping, so the byte before it is looked up.
	 */
	uint64_t at = address - is_call, offset;
	const struct process_map *map;

	*symbol_out = (struct symbol){ .kind = FRAME_NATIVE, .file_offset = address };
	if (address < USER_ADDRESS_MIN)
		return PROCESS_NO_MISS;
	map = map_find(process, mappings, at);
	if (!map) /* no process can have a mapping in the upper half of the address space */
		return address >> 63 ? PROCESS_NO_MISS : PROCESS_MISS_MAPPING;
	offset = at - map->start + map->pgoff;
	if (map->kind == MAP_GENERATED)
		return symbol_of_generated(process, map, at, is_call, symbol_out);
	if (map->module && !module_is_elf(map->module))
		return symbol_of_data(process, map, offset, at, is_call, symbol_out);
	if (map->module)
		return symbol_of_module(process, map, offset, is_call, symbol_out);
	symbol_of_path(map, offset + is_call, symbol_out);
	return PROCESS_NO_MISS;
}
