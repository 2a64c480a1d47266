/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "bpf/layout.h"
#include "bpf/unwind_shared.h"
#include "common/base.h"
#include "daemon/process/internal.h"

/*
 * While the file of a mapping is unknown, the mapping is pending. The first PENDED_AT_ONCE pending
 * mappings of a process always cause a read of /proc. Reads for later ones are dropped when the
 * reader thread has used up its CPU time.
 */
#define PENDED_AT_ONCE 32
/*
 * Reads of /proc for pending mappings are queued as if they had been due this long ago. They thus
 * come before reads of new processes, because many stacks may wait for the name of one file.
 */
#define PENDED_AHEAD_NS NS_PER_S

/*
 * Adding a mapping may copy all mappings of the process, so additions are rate limited: 16 at once,
 * then one every 100 ms, and fewer if the process has many mappings. A mapping that is not added is
 * kept in maps_history.c for the stack whose walk found it.
 */
#define ADDED_EVERY_NS	 (100 * NS_PER_MS)
#define ADDED_ITEM_NS	 (100 * NS_PER_US)
#define ADDED_AT_ONCE_NS (16 * ADDED_EVERY_NS)

/*
 * When a stack walk finds a mapping of a process that is at least this old, all mappings of the
 * process are read from /proc.
 */
#define OLD_NS NS_PER_S

/*
 * Mappings that stack walks found, and whose files are not known yet. The next read of /proc may
 * show the files.
 */
struct pending_mappings {
	size_t n;
	struct unwind_mapping_found found[UNWIND_FOUND_MAX];
	/* names[i] is the id of the path of mapping i; 0: not known */
	uint64_t names[UNWIND_FOUND_MAX];
};

/*
 * True if `map` is the mapping of a file, and has the same address and offset as `found`, a mapping
 * that a stack walk found. `map` may be NULL.
 */
static bool is_mapped_as(const struct process_map *map, const struct unwind_mapping_found *found)
{
	return map && !map->is_gone && map->module && map->start == found->start &&
	       map->pgoff == found->key.offset;
}

/*
 * True if is_mapped_as() is true and both mappings are of the same file. A layered file system
 * (such as overlayfs) has no device of its own: its major number is 0, and /proc may show another
 * inode for a file than the stack walk found. There, the same address and offset are enough if
 * `map` was read from /proc just now.
 */
static bool is_same_file(const struct process_map *map, const struct unwind_mapping_found *found,
			 bool is_just_read)
{
	if (!is_mapped_as(map, found))
		return false;
	return map->inode == found->key.inode || (is_just_read && !major(map->dev));
}

static const struct process_map *map_find(const struct process *process, uint64_t address)
{
	return process->maps ? process_maps_find(process->maps, address) : NULL;
}

/*
 * Adds a mapping to process->pending. Queues a read of /proc that comes before other reads, because
 * the process may exit soon.
 */
static void pend(struct process *process, const struct record_mapping *record)
{
	if (!process->pending)
		process->pending = calloc(1, sizeof(*process->pending));
	if (!process->pending || process->pending->n == UNWIND_FOUND_MAX)
		return;
	process_unpark(process);
	process->pending->names[process->pending->n] = record->name;
	process->pending->found[process->pending->n++] = record->found;
	read_queue_add(process, -PENDED_AHEAD_NS, process->n_pended >= PENDED_AT_ONCE);
	process->n_pended++;
}

void walk_mappings_learn(struct process *process)
{
	struct pending_mappings *pending = process->pending;
	size_t n = 0;

	if (!pending)
		return;
	for (size_t i = 0; i < pending->n; i++) {
		const struct process_map *map = map_find(process, pending->found[i].start);

		if (is_same_file(map, &pending->found[i], true)) {
			module_learn_code(map->module, &pending->found[i].key);
		} else {
			pending->names[n] = pending->names[i];
			pending->found[n++] = pending->found[i];
		}
	}
	pending->n = n;
}

/*
 * Adds the mapping to the process's maps now, because the process may exit before /proc is read.
 * process_show() must be called later. Returns 0 or -ENOMEM.
 */
static int add(struct process *process, const struct unwind_mapping_found *found, uint64_t name,
	       struct module *module)
{
	const char *path = process_name_find(process->table, name);
	int r = process_maps_add(process->table->registry, &process->maps, found, module, path);

	/*
	 * Discard the results of reads of /proc that began before now: they may lack this mapping.
	 */
	if (!r)
		process->read_applied = process->reads_begun;
	return r;
}

/*
 * True if a limit keeps the mapping out of the process's maps, so that each read of /proc would
 * remove it again. maps_history.c has it for the stack whose walk found it.
 */
static bool is_left_out(const struct process *process, uint64_t address)
{
	return process->maps && process_maps_leave_out(process->maps, address);
}

void walk_mappings_open(struct process *process)
{
	struct process_table *table = process->table;
	struct pending_mappings *pending;
	struct module *module;

	pthread_mutex_lock(&table->lock);
	pending = TAKE(process->pending);
	pthread_mutex_unlock(&table->lock);
	for (size_t i = 0; pending && i < pending->n; i++) {
		const struct unwind_mapping_found *found = &pending->found[i];

		module = module_open_code(table->registry, &found->key);
		if (!module)
			continue;
		pthread_mutex_lock(&table->lock);
		if (!is_left_out(process, found->start) &&
		    !is_same_file(map_find(process, found->start), found, false) &&
		    !add(process, found, pending->names[i], module))
			process_show(process);
		process_table_unlock(table);
		module_unref(module);
	}
	free(pending);
}

/*
 * True if the rate limit of the process allows adding a mapping now. Each call that returns true
 * uses up some of the limit.
 */
static bool take_share(struct process *process, int64_t now)
{
	size_t n = process->maps ? process_maps_count(process->maps) : 0;

	if (process->add_ns < now)
		process->add_ns = now;
	if (process->add_ns - now >= ADDED_AT_ONCE_NS)
		return false;
	process->add_ns += ADDED_EVERY_NS + (int64_t)n * ADDED_ITEM_NS;
	return true;
}

/*
 * True if /proc should be read, so that the unwinder knows the mappings of the process and later
 * walks need not look for them. This is not worth it for most short-lived processes, which exit
 * before the read is finished.
 */
static bool is_worth_reading(struct process *process, struct module *module, int64_t now)
{
	bool is_old = now - process->added_ns > OLD_NS;

	return (is_old || (module && module_needs_file(module))) &&
	       process_should_read(process, now);
}

void walk_mappings_note(struct process *process, const struct record_mapping *record,
			struct module *module)
{
	const struct unwind_mapping_found *found = &record->found;
	const struct process_map *map = map_find(process, found->start);
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (process->is_kernel || is_left_out(process, found->start))
		return;
	if (module && (!is_mapped_as(map, found) || map->module != module) &&
	    take_share(process, now)) {
		if (!add(process, found, record->name, module)) {
			process_unpark(process);
			process_show_later(process);
		}
	} else if (!module && is_same_file(map, found, false)) {
		module_learn_code(map->module, &found->key);
	} else if (!module && found->key.size) {
		pend(process, record);
	}
	if (is_worth_reading(process, module, now))
		read_queue_add(process, 0, false);
}
