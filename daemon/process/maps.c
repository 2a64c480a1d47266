/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/process/maps.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "bpf/unwind_shared.h"
#include "common/array.h"
#include "common/base.h"
#include "common/search.h"
#include "daemon/base/shared_text.h"
#include "daemon/host/open_local.h"
#include "daemon/unwind/unwind.h"

/* maximum number of mappings of one process that are kept after they were unmapped */
#define GONE_MAX 256

struct process_maps {
	atomic_uint refs;
	atomic_uint live;
	struct module_registry *registry; /* registry that opens mapped files; not owned */
	size_t n, capacity;
	struct process_map *items; /* mappings, sorted by start address */
	size_t bytes;		   /* memory of the maps that is counted in maps_memory */
	/* the mappings from this address on were left out because of a limit; 0: none were */
	uint64_t left_out_from;
	struct address_space *space;
};

static atomic_size_t maps_memory; /* memory of all maps, in bytes */

static void map_fini(struct process_map *map)
{
	module_unref(map->module);
	shared_text_unref(map->name);
}

/* Counts the memory of the maps, again if they have changed. Neighbours share a name. */
static void maps_count_bytes(struct process_maps *maps)
{
	size_t bytes = sizeof(*maps) + maps->capacity * sizeof(maps->items[0]);

	for (size_t i = 0; i < maps->n; i++) {
		const char *name = maps->items[i].name;

		if (name && (!i || maps->items[i - 1].name != name))
			bytes += strlen(name) + 1;
	}
	atomic_fetch_add(&maps_memory, bytes - maps->bytes);
	maps->bytes = bytes;
}

struct process_maps *process_maps_ref(struct process_maps *maps)
{
	atomic_fetch_add(&maps->refs, 1);
	return maps;
}

struct process_maps *process_maps_unref(struct process_maps *maps)
{
	if (!maps || atomic_fetch_sub(&maps->refs, 1) > 1)
		return NULL;
	address_space_free(maps->space);
	for (size_t i = 0; i < maps->n; i++)
		map_fini(&maps->items[i]);
	atomic_fetch_sub(&maps_memory, maps->bytes);
	free(maps->items);
	free(maps);
	return NULL;
}

void process_maps_unrefp(struct process_maps **maps)
{
	process_maps_unref(*maps);
}

const char *process_map_name(const struct process_map *map)
{
	if (map->name)
		return map->name;
	return map->module ? module_path(map->module) : "[anon]";
}

const char *process_maps_name_of(const struct process_maps *maps, const struct module *module)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->items[i].module == module && !maps->items[i].is_name_guessed)
			return process_map_name(&maps->items[i]);
	return NULL;
}

struct address_space *process_maps_address_space(const struct process_maps *maps)
{
	return maps->space;
}

size_t process_maps_count(const struct process_maps *maps)
{
	return maps->n;
}

size_t process_maps_bytes(const struct process_maps *maps)
{
	return maps->bytes;
}

size_t process_maps_bytes_all(void)
{
	return atomic_load(&maps_memory);
}

bool process_maps_leave_out(const struct process_maps *maps, uint64_t address)
{
	return maps->left_out_from && address >= maps->left_out_from;
}

void process_maps_want_rows(struct process_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		if (maps->items[i].module && !maps->items[i].is_gone)
			module_want_rows(maps->items[i].module);
	}
}

void process_maps_expect_rows(struct process_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		struct module *module = maps->items[i].module;

		if (module && !maps->items[i].is_gone && module_unwind(module))
			unwind_file_expect(module_unwind(module));
	}
	process_maps_want_rows(maps);
}

static void file_count(const struct process_map *map, struct process_files *out)
{
	struct unwind_file *file = map->module ? module_unwind(map->module) : NULL;

	out->n++;
	if (!map->module) {
		out->refused++;
		return;
	}
	switch (file ? unwind_file_loaded(file) : UNWIND_ROWS_NONE) {
	case UNWIND_ROWS_ALL:
		break;
	case UNWIND_ROWS_SOME:
		out->partial++;
		break;
	case UNWIND_ROWS_NONE:
		out->rowless++;
		break;
	case UNWIND_ROWS_REFUSED:
		out->refused++;
		break;
	case UNWIND_ROWS_AWAITED:
		out->awaited++;
	}
}

void process_maps_files(const struct process_maps *maps, struct process_files *out)
{
	const struct module *last = NULL;

	*out = (struct process_files){ 0 };
	for (size_t i = 0; i < maps->n; i++) {
		const struct process_map *map = &maps->items[i];
		/* A file that is not an ELF file holds code made at run time, as does no file. */
		bool is_code = map->module ? module_is_elf(map->module) : map->kind == MAP_FILE;

		if (map->is_gone || !is_code || (map->module && map->module == last))
			continue;
		last = map->module;
		file_count(map, out);
	}
}

static struct unwind_mapping unwind_mapping_of(const struct process_map *map)
{
	struct unwind_mapping mapping = { .start = map->start, .end = map->end };
	uint64_t base = map->start - map->pgoff;

	if (map->kind == MAP_FILE && map->module)
		mapping.state = module_state(map->module, map->inode, base);
	else if (map->module) /* mappings without a file have no module, except the vdso */
		mapping.state = unwind_state_of(0, map->end - map->start, 0, base);
	if (map->module && module_is_elf(map->module)) {
		mapping.file = module_unwind(map->module);
		mapping.address = module_address(map->module, map->pgoff);
	} else {
		/* A mapped file that is not an ELF file may hold code made at run time. */
		mapping.is_generated = map->kind == MAP_GENERATED || map->module;
	}
	return mapping;
}

/*
 * Makes maps->space, which is a copy of the mappings in the form that the unwinder needs. When out
 * of memory, maps->space stays NULL: stack walks then find no mappings, and the stacks are marked
 * as incomplete.
 */
static void space_make(struct process_maps *maps)
{
	struct unwind *unwind = module_registry_unwind(maps->registry);
	struct unwind_mapping *mappings;
	size_t n = 0;

	mappings = unwind ? calloc(maps->n + 1, sizeof(*mappings)) : NULL;
	if (!mappings)
		return;
	for (size_t i = 0; i < maps->n; i++) {
		if (!maps->items[i].is_gone)
			mappings[n++] = unwind_mapping_of(&maps->items[i]);
	}
	maps->space = address_space_new(unwind, mappings, n);
	free(mappings);
}

void process_maps_add_live(struct process_maps *maps)
{
	/*
	 * A forked child shares these maps with its parent. If the child is reported after the exit
	 * of its parent, maps->space was freed at that exit: make it again.
	 */
	if (!atomic_fetch_add(&maps->live, 1) && !maps->space)
		space_make(maps);
	for (size_t i = 0; i < maps->n; i++) {
		if (maps->items[i].module)
			module_add_live(maps->items[i].module);
	}
}

/*
 * Subtracts one from the number of live processes that use the maps. When the number becomes 0,
 * frees maps->space. The mappings themselves stay as long as they are needed to look up the
 * functions of recorded stacks.
 */
void process_maps_drop_live(struct process_maps *maps)
{
	if (atomic_fetch_sub(&maps->live, 1) == 1)
		maps->space = address_space_free(maps->space);
	for (size_t i = 0; i < maps->n; i++) {
		if (maps->items[i].module)
			module_drop_live(maps->items[i].module);
	}
}

const struct process_map *process_maps_find(const struct process_maps *maps, uint64_t address)
{
	size_t n = SEARCH(maps->n, i, maps->items[i].start <= address);

	return n && address < maps->items[n - 1].end ? &maps->items[n - 1] : NULL;
}

/*
 * Returns the kind of a mapping. Code in [heap], [stack] and the like was made at run time by the
 * program.
 */
static enum map_kind kind_of(const struct proc_mapping *mapping)
{
	const char *path = mapping->path;

	if (mapping->inode)
		return MAP_FILE;
	if (!strcmp(path, "[vdso]") || !strcmp(path, "[vsyscall]") || !strcmp(path, "[uprobes]"))
		return MAP_SPECIAL;
	return MAP_GENERATED;
}

static bool is_same(const struct process_map *map, const struct proc_mapping *mapping)
{
	return map->start == mapping->start && map->end == mapping->end &&
	       map->pgoff == mapping->pgoff && map->dev == mapping->dev &&
	       map->inode == mapping->inode && map->kind == kind_of(mapping) &&
	       (map->kind != MAP_FILE ||
		(!map->is_name_guessed && !strcmp(process_map_name(map), mapping->path)));
}

/* Takes over what is known of the file of `last`, of which `map` is another mapping. */
static void file_copy(const struct process_map *last, struct process_map *map)
{
	if (last->module)
		map->module = module_ref(last->module);
	map->is_skipped = last->is_skipped;
}

/*
 * Opens the mapped file and sets map->module. On errors map->module stays NULL; addresses in the
 * mapping then get a path, but no symbol.
 */
static void map_open(struct module_registry *registry, struct mount_view *view,
		     const struct proc_mapping *mapping, struct process_map *map, bool is_first_try)
{
	int fd, r;

	if (map->kind == MAP_SPECIAL) {
		/*
		 * Leave out the vdso of 32-bit programs, which differs from the daemon's own. It is
		 * mapped below 4 GiB.
		 */
		if (!strcmp(mapping->path, "[vdso]") && mapping->start >> 32 &&
		    mapping->end - mapping->start == module_vdso_size())
			module_get_vdso(registry, &map->module);
		return;
	}
	fd = open_local_mapped(view, mapping);
	r = fd < 0 ? fd : module_get(registry, view->proc_fd, fd, mapping->path, &map->module);
	map->is_skipped = r == -EINVAL || r == -EREMOTE;
	if (r == -EREMOTE && is_first_try)
		module_registry_note_remote(registry);
	else if (r < 0 && !map->is_skipped && is_first_try)
		module_registry_note_unreadable(registry);
	closep(&fd);
}

/* True if `name` is the name of a mapping that has none of its own, as is common. */
static bool is_usual_name(const struct process_map *map, const char *name)
{
	return map->module && !strcmp(module_path(map->module), name);
}

/* True if both are mappings of one file by one path. */
static bool is_file_of(const struct proc_mapping *a, const struct proc_mapping *b)
{
	return a->inode && a->inode == b->inode && a->dev == b->dev && a->path == b->path &&
	       a->is_deleted == b->is_deleted;
}

/*
 * Makes the map of a mapping. `last` is the map of the mapping before it, or NULL: a file that was
 * opened for that is not opened again.
 */
static void map_make(struct module_registry *registry, struct mount_view *view,
		     const struct proc_mapping *mapping, const struct process_map *known,
		     const struct process_map *last, struct process_map *out)
{
	struct process_map map = {
		.start = mapping->start,
		.end = mapping->end,
		.pgoff = mapping->pgoff,
		.dev = mapping->dev,
		.inode = mapping->inode,
		.kind = kind_of(mapping),
	};

	if (known && known->module && !module_needs_file(known->module))
		map.module = module_ref(known->module);
	else if (last && is_file_of(mapping, mapping - 1))
		file_copy(last, &map);
	else if (map.kind != MAP_GENERATED)
		map_open(registry, view, mapping, &map, !known);
	if (*mapping->path && !is_usual_name(&map, mapping->path))
		map.name = shared_text_ref(mapping->path);
	*out = map;
}

static bool is_overlapping(const struct proc_maps *mappings, const struct process_map *map)
{
	/* the first mapping that ends behind the start of `map` */
	size_t first = SEARCH(mappings->n, i, mappings->items[i].end <= map->start);

	return first < mappings->n && mappings->items[first].start < map->end;
}

/* Copies *map to *out, with another reference to the module and the name. */
static void map_copy(const struct process_map *map, struct process_map *out)
{
	*out = *map;
	if (out->module)
		module_ref(out->module);
	if (out->name)
		shared_text_ref(out->name);
}

/*
 * Finds the file mappings in `before` that are no longer mapped. Copies them to `maps`, and marks
 * the copies as gone. Addresses of earlier samples may lie in them: in a library that was unloaded
 * since, or in the program that ran before an exec. Where mappings were left out, another file may
 * be mapped by now.
 */
static void gone_add(struct process_maps *maps, const struct process_maps *before,
		     const struct proc_maps *mappings)
{
	size_t gone = 0;

	for (size_t i = 0; i < before->n && gone < GONE_MAX; i++) {
		const struct process_map *map = &before->items[i];
		struct process_map *copy = &maps->items[maps->n];

		if (!map->module || map->kind != MAP_FILE || is_overlapping(mappings, map) ||
		    process_maps_leave_out(maps, map->end - 1))
			continue;
		map_copy(map, copy);
		copy->is_gone = true;
		maps->n++;
		gone++;
	}
}

static int map_compare(const void *a, const void *b)
{
	const struct process_map *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * True if the maps `before` have exactly these mappings, and every mapped file that can be opened
 * is open.
 */
static bool is_unchanged(const struct process_maps *before, const struct proc_maps *mappings)
{
	size_t present = 0;

	for (size_t i = 0; i < before->n; i++)
		present += !before->items[i].is_gone;
	if (present != mappings->n)
		return false;
	for (size_t i = 0; i < mappings->n; i++) {
		const struct process_map *map = process_maps_find(before, mappings->items[i].start);

		if (!map || map->is_gone || !is_same(map, &mappings->items[i]) ||
		    (map->kind == MAP_FILE &&
		     (map->module ? module_needs_file(map->module) : !map->is_skipped)))
			return false;
	}
	return true;
}

/*
 * Returns the mappings for which there is room: all, or the first ones. The caller does not own
 * them.
 */
static struct proc_maps mappings_within(const struct proc_maps *all)
{
	struct proc_maps few = { .items = all->items, .is_truncated = true };
	size_t bytes = 0;

	if (process_maps_bytes_all() <= MAPS_MEMORY_MAX)
		return *all;
	for (; few.n < all->n; few.n++) {
		bytes += proc_mapping_bytes(all, few.n);
		if (bytes > MAPS_FEW_BYTES)
			return few;
	}
	return *all;
}

/* Returns the address from which on mappings were left out, which may be all; 0: none were. */
static uint64_t first_left_out(const struct proc_maps *within)
{
	if (!within->is_truncated)
		return 0;
	return within->n ? within->items[within->n - 1].end : 1;
}

int process_maps_build(struct module_registry *registry, int dir_fd, const struct proc_maps *all,
		       struct process_maps *before, struct process_maps **out)
{
	_cleanup_(mount_view_fini) struct mount_view view =
		mount_view_of(module_registry_mounts(registry), dir_fd);
	_cleanup_(process_maps_unrefp) struct process_maps *maps = NULL;
	const struct proc_maps within = mappings_within(all), *mappings = &within;
	const uint64_t left_out_from = first_left_out(&within);

	if (before && before->left_out_from == left_out_from && is_unchanged(before, mappings)) {
		*out = process_maps_ref(before);
		return 0;
	}
	maps = calloc(1, sizeof(*maps));
	if (!maps)
		return -ENOMEM;
	atomic_init(&maps->refs, 1);
	maps->registry = registry;
	maps->left_out_from = left_out_from;
	maps->capacity = mappings->n + 1;
	if (before)
		maps->capacity += before->n < GONE_MAX ? before->n : GONE_MAX;
	maps->items = calloc(maps->capacity, sizeof(*maps->items));
	if (!maps->items)
		return -ENOMEM;
	for (size_t i = 0; i < mappings->n; i++) {
		const struct proc_mapping *mapping = &mappings->items[i];
		const struct process_map *known =
			before ? process_maps_find(before, mapping->start) : NULL;
		struct process_map *map = &maps->items[maps->n++];

		if (known && !is_same(known, mapping))
			known = NULL;
		map_make(registry, &view, mapping, known, i ? map - 1 : NULL, map);
	}
	if (before)
		gone_add(maps, before, mappings);
	qsort(maps->items, maps->n, sizeof(maps->items[0]), map_compare);
	maps_count_bytes(maps);
	space_make(maps);
	*out = TAKE(maps);
	return 0;
}

/*
 * Makes the struct process_map of a mapping that a stack walk found. If the walk did not find the
 * path of the file, the path is taken from another mapping of the same file; if there is none, it
 * is guessed. `module` is NULL if no file is mapped, or if only the path of the file is known.
 */
static int found_make(const struct process_maps *before, const struct unwind_mapping_found *found,
		      struct module *module, const char *path, struct process_map *out)
{
	struct process_map map = {
		.start = found->start,
		.end = found->end,
		.pgoff = found->key.offset,
		.dev = makedev(found->key.dev >> 20, found->key.dev & 0xfffff),
		.inode = found->key.inode,
		.kind = MAP_GENERATED,
	};
	const bool is_file = found->key.inode && (module || found->key.size);
	const char *name = is_file ? path : NULL;

	if (!name && module && before)
		name = process_maps_name_of(before, module);
	if (module) {
		map.kind = found->key.inode ? MAP_FILE : MAP_SPECIAL;
		map.module = module_ref(module);
		map.is_name_guessed = !name && map.kind == MAP_FILE;
	} else if (name) {
		map.kind = MAP_FILE;
	}
	if (name && !is_usual_name(&map, name)) {
		map.name = shared_text_new(name);
		if (!map.name) {
			map_fini(&map);
			return -ENOMEM;
		}
	}
	*out = map;
	return 0;
}

/*
 * True if the maps may be changed in place: only one thread can see them, and the unwinder does not
 * have them.
 */
static bool is_private(const struct process_maps *maps)
{
	return maps && atomic_load(&maps->refs) == 1 && !atomic_load(&maps->live) && !maps->space;
}

/* Makes a copy of the maps, or empty maps if `maps` is NULL. NULL when out of memory. */
static struct process_maps *maps_copy(struct module_registry *registry,
				      const struct process_maps *maps)
{
	_cleanup_(process_maps_unrefp) struct process_maps *copy = calloc(1, sizeof(*copy));
	size_t n = maps ? maps->n : 0;

	if (!copy)
		return NULL;
	atomic_init(&copy->refs, 1);
	copy->registry = registry;
	copy->left_out_from = maps ? maps->left_out_from : 0;
	if (array_reserve(copy->items, copy->capacity, n + 1))
		return NULL;
	for (; copy->n < n; copy->n++)
		map_copy(&maps->items[copy->n], &copy->items[copy->n]);
	return TAKE(copy);
}

/*
 * Adds the mapping, and removes all mappings that overlap it. Takes over the module and the name of
 * the mapping. Returns 0 or -ENOMEM.
 */
static int map_insert(struct process_maps *maps, const struct process_map *map)
{
	size_t first = 0, last;

	if (array_reserve(maps->items, maps->capacity, maps->n + 1))
		return -ENOMEM;
	while (first < maps->n && maps->items[first].end <= map->start)
		first++;
	for (last = first; last < maps->n && maps->items[last].start < map->end; last++)
		map_fini(&maps->items[last]);
	memmove(&maps->items[first + 1], &maps->items[last],
		(maps->n - last) * sizeof(maps->items[0]));
	maps->items[first] = *map;
	maps->n += 1 - (last - first);
	return 0;
}

int process_maps_add(struct module_registry *registry, struct process_maps **maps,
		     const struct unwind_mapping_found *found, struct module *module,
		     const char *path)
{
	struct process_maps *changed = *maps;
	struct process_map map;

	if (found_make(*maps, found, module, path, &map))
		return -ENOMEM;
	if (!is_private(changed))
		changed = maps_copy(registry, changed);
	if (!changed || map_insert(changed, &map)) {
		map_fini(&map);
		if (changed != *maps)
			process_maps_unref(changed);
		return -ENOMEM;
	}
	maps_count_bytes(changed);
	if (changed != *maps)
		process_maps_unref(*maps);
	*maps = changed;
	return 0;
}
