/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/process/internal.h"

#define ASKED_AT_ONCE  32	/* of one process; then within the reader's budget */
#define ASKED_AHEAD_NS NS_PER_S /* of processes that are merely new: many stacks hang on a file */

/*
 * What one process may have added, for that takes all of its mappings anew: some at once, then one
 * in so long, and longer where it has many. What is not stays known to the walks that found it,
 * which are few different ones where libraries take each other's places.
 */
#define ADDED_EVERY_NS	 (100 * NS_PER_MS)
#define ADDED_ITEM_NS	 (100 * NS_PER_US)
#define ADDED_AT_ONCE_NS (16 * ADDED_EVERY_NS)

/* What was found before anybody knew which file it is: asked of the next reading of /proc. */
struct process_asked {
	size_t n;
	struct unwind_mapping_found found[UNWIND_FOUND_MAX];
};

static bool is_that(const struct process_map *map, const struct unwind_mapping_found *found)
{
	return map && !map->is_gone && map->module && map->start == found->start &&
	       map->pgoff == found->key.offset;
}

/* Whether it is of that file, too. Of files in layers (their device is none) inodes may differ. */
static bool is_that_file(const struct process_map *map, const struct unwind_mapping_found *found,
			 bool is_just_read)
{
	if (!is_that(map, found))
		return false;
	return map->inode == found->key.inode || (is_just_read && !major(map->dev));
}

static const struct process_map *map_find(const struct process *process, uint64_t address)
{
	return process->maps ? process_maps_find(process->maps, address) : NULL;
}

/* At once, for the process may be gone soon; one that goes on asking has to wait its turn. */
static void found_ask(struct process *process, const struct unwind_mapping_found *found)
{
	if (!process->asked)
		process->asked = calloc(1, sizeof(*process->asked));
	if (!process->asked || process->asked->n == UNWIND_FOUND_MAX)
		return;
	process->asked->found[process->asked->n++] = *found;
	process_queue_read(process, -ASKED_AHEAD_NS, process->n_asked >= ASKED_AT_ONCE);
	process->n_asked++;
}

void process_found_answer(struct process *process)
{
	struct process_asked *asked = process->asked;
	size_t n = 0;

	for (size_t i = 0; asked && i < asked->n; i++) {
		const struct process_map *map = map_find(process, asked->found[i].start);

		if (is_that_file(map, &asked->found[i], true))
			module_learn_code(map->module, &asked->found[i].key);
		else
			asked->found[n++] = asked->found[i];
	}
	if (asked)
		asked->n = n;
}

/* The process may be gone before /proc is read: what it had is known all the same. */
static void found_add(struct process *process, const struct unwind_mapping_found *found,
		      struct module *module)
{
	struct process_maps *maps;

	if (process_maps_add(process->table->registry, process->maps, found, module, &maps))
		return;
	process->read_applied = process->reads_begun; /* those under way may have missed it */
	process_set_maps(process, maps);
}

void process_found_settle(struct process *process)
{
	struct process_table *table = process->table;
	struct process_asked *asked;
	struct module *module;

	pthread_mutex_lock(&table->lock);
	asked = TAKE(process->asked);
	pthread_mutex_unlock(&table->lock);
	for (size_t i = 0; asked && i < asked->n; i++) {
		module = module_open_code(table->registry, &asked->found[i].key);
		if (!module)
			continue;
		pthread_mutex_lock(&table->lock);
		if (!is_that_file(map_find(process, asked->found[i].start), &asked->found[i],
				  false))
			found_add(process, &asked->found[i], module);
		pthread_mutex_unlock(&table->lock);
		module_unref(module);
	}
	free(asked);
}

static bool found_may_add(struct process *process, int64_t now)
{
	size_t n = process->maps ? process_maps_count(process->maps) : 0;
	int64_t every_ns = ADDED_EVERY_NS + (int64_t)n * ADDED_ITEM_NS;

	if (process->found_ns < now)
		process->found_ns = now;
	if (process->found_ns - now >= ADDED_AT_ONCE_NS)
		return false;
	process->found_ns += every_ns;
	return true;
}

static void found_note(struct process *process, const struct unwind_mapping_found *found,
		       struct module *module)
{
	const struct process_map *map = map_find(process, found->start);
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	if (process->is_kernel)
		return;
	if (module && (!is_that(map, found) || map->module != module) &&
	    found_may_add(process, now))
		found_add(process, found, module);
	else if (!module && is_that_file(map, found, false))
		module_learn_code(map->module, &found->key);
	else if (!module && found->key.size)
		found_ask(process, found);
	else if (process_should_read(process, now))
		process_queue_read(process, 0, false);
}

void process_table_note_mapping(struct process_table *table, const struct record_mapping *record)
{
	struct process_id id = {
		.pid = (int32_t)record->tgid,
		.exec_gen = record->exec_gen,
		.start_boot_ns = record->leader_boot_ns,
	};
	struct process *process = process_table_see(table, &id, false, NULL);
	struct module *module;

	if (!process)
		return;
	module = module_find_code(table->registry, &record->found.key);
	pthread_mutex_lock(&table->lock);
	process_version_note(process, record->mappings, record->generation, &record->found, module);
	found_note(process, &record->found, module);
	pthread_mutex_unlock(&table->lock);
	module_unref(module);
	process_unref(process);
}
