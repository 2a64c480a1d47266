/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"
#include "daemon/process/loader.h"
#include "daemon/unwind/unwind.h"

/* If a walk ended in one of these ways, the process may have mappings that are not known yet. */
#define WALK_DOUBTS (1U << WALK_NO_MAPPING | 1U << WALK_NO_ROW | 1U << WALK_FAULT)

/* A walk that ended in one of these ways would have gone on if more files had been read. */
#define WALK_LACKS (1U << WALK_NO_MAPPING | 1U << WALK_NO_TABLE)

/* Compares the start and the exec of an entry with those of an id, as strcmp() does. */
static int id_compare(const struct process *process, const struct process_id *id)
{
	const struct process_id *own = &process->id;

	if (own->start_boot_ns != id->start_boot_ns)
		return own->start_boot_ns < id->start_boot_ns ? -1 : 1;
	if (!process->is_gen_known)
		return -1;
	return own->exec_gen < id->exec_gen ? -1 : own->exec_gen > id->exec_gen;
}

static struct process *process_find(struct process_table *table, const struct process_id *id)
{
	struct process *p = process_entries(table, id);

	if (p && p->prev->is_gen_known && id_compare(p->prev, id) > 0)
		return NULL; /* the last entry is newer */
	while (p && id_compare(p, id) > 0)
		p = p->next;
	return p && p->is_gen_known && !memcmp(&p->id, id, sizeof(*id)) ? p : NULL;
}

/*
 * Returns the entry of the process with this pid and start time; NULL if there is none. If the
 * process has done an exec, it has several entries: returns the latest.
 */
static struct process *process_find_latest(struct process_table *table, const struct process_id *id)
{
	const uint64_t ticks = procfs_ticks(id->start_boot_ns);
	struct process *p = process_entries(table, id);

	for (; p && procfs_ticks(p->id.start_boot_ns) >= ticks; p = p->next)
		if (process_is_same_start(p, id->start_boot_ns))
			return p;
	return NULL;
}

/*
 * Called when a probe has reported a process. If the process was added from /proc, finds its entry,
 * and sets the entry's id to the reported one: /proc does not show the exact start time and exec
 * generation. Returns NULL if there is no such entry, or if the process has done a further exec
 * before the report.
 */
static struct process *process_adopt(struct process_table *table, const struct process_id *id)
{
	struct process *latest = process_find_latest(table, id);

	if (!latest || (latest->is_gen_known && latest->id.exec_gen < id->exec_gen))
		return NULL;
	for (struct process *p = latest; p; p = p->next) {
		if (p->is_gen_known || !process_is_same_start(p, id->start_boot_ns))
			continue;
		p->id = *id;
		p->is_gen_known = true;
		process_relink(p);
		p->is_exe_guessed = true;
		/*
		 * The mappings in the table may be out of date: queue the process for another read
		 * of /proc.
		 */
		if (!p->has_exited && !p->is_kernel)
			read_queue_add(p, 0, true);
		return p;
	}
	return NULL;
}

/*
 * Marks the earlier program with the same pid as exited; those before it are. If there is a later
 * one with this pid, then this process was reported late, and is itself marked as exited.
 */
static void end_other_entries(struct process *process)
{
	struct process *newer = process_is_newest(process) ? NULL : process->prev;
	struct process *older = process->next;

	if (newer)
		process_set_exited(process);
	if (newer && newer->id.start_boot_ns == process->id.start_boot_ns)
		process->start_real_ns = newer->start_real_ns;
	if (!older)
		return;
	process_mark_exited(older);
	if (older->id.start_boot_ns == process->id.start_boot_ns)
		process->start_real_ns = older->start_real_ns;
}

static struct process *process_add(struct process_table *table, const struct process_id *id,
				   bool is_gen_known)
{
	struct process *process;

	if (table->n_processes == PROCESSES_MAX) {
		table->table_full++;
		return NULL;
	}
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->table = table;
	process->id = *id;
	process->is_gen_known = is_gen_known;
	process->seen_ns = process->added_ns = clock_ns(CLOCK_MONOTONIC);
	/* Without a sign: a damaged database may have any time. */
	process->start_real_ns = (int64_t)(id->start_boot_ns + (uint64_t)clock_ns(CLOCK_REALTIME) -
					   (uint64_t)clock_ns(CLOCK_BOOTTIME));
	if (process_link(process)) {
		free(process);
		return NULL;
	}
	process_relink(process);
	end_other_entries(process);
	return process;
}

static struct process *process_find_or_add(struct process_table *table, const struct process_id *id)
{
	struct process *process = process_find(table, id);

	return process ? process : process_add(table, id, true);
}

struct process *process_find_or_add_scanned(struct process_table *table, int32_t pid,
					    uint64_t start_ticks)
{
	struct process_id id = { .pid = pid, .start_boot_ns = procfs_ticks_ns(start_ticks) };

	struct process *newest = process_entries(table, &id);

	if (newest && procfs_ticks(newest->id.start_boot_ns) == start_ticks)
		return newest;
	return process_add(table, &id, false);
}

/*
 * The kernel gives a process the name of its new program just before it counts the exec, and may
 * switch to another task in between. For that moment, the name of a process that an exec replaces
 * is that of its successor. An exec that takes longer than this is not waited for.
 */
#define EXEC_NAME_NS NS_PER_S

/* True if a later exec of the process has given it this name. */
static bool is_name_of_successor(const struct process *process, const char *comm)
{
	struct process *p = process_entries(process->table, &process->id);

	for (; p != process; p = p->next)
		if (process_is_same_start(p, process->id.start_boot_ns) &&
		    strncmp(p->comm, comm, sizeof(p->comm) - 1) == 0)
			return true;
	return false;
}

static void set_comm(struct process *process, const char *comm)
{
	if (!comm)
		return;
	if (strncmp(process->comm, comm, sizeof(process->comm) - 1) != 0) {
		if (process->comm[0] && is_name_of_successor(process, comm))
			return;
		process_name(process, comm);
	}
	process->comm_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Takes back the name of an exec from the process that it has replaced. */
static void restore_comm(const struct process *process)
{
	const int64_t since = clock_ns(CLOCK_MONOTONIC) - EXEC_NAME_NS;

	for (struct process *p = process->next; p && p->comm_ns >= since; p = p->next)
		if (process_is_same_start(p, process->id.start_boot_ns) &&
		    !strcmp(p->comm, process->comm))
			process_unname(p, since);
}

struct process *process_table_see(struct process_table *table, const struct process_id *id,
				  bool is_kernel, const char *comm)
{
	struct process *process;

	pthread_mutex_lock(&table->lock);
	process = process_find(table, id);
	if (!process)
		process = process_adopt(table, id);
	if (!process) {
		process = process_add(table, id, true);
		if (process) {
			process->is_kernel = is_kernel;
			read_queue_add(process, 0, false);
		}
	}
	if (process) {
		set_comm(process, comm);
		process->seen_ns = clock_ns(CLOCK_MONOTONIC);
		process->refs++;
	}
	process_table_unlock(table);
	return process;
}

struct process *process_table_see_as(struct process_table *table, const struct process_info *info)
{
	struct process *process;

	pthread_mutex_lock(&table->lock);
	process = process_find_or_add(table, &info->id);
	if (process) {
		process->is_kernel = info->is_kernel;
		process->is_folded = info->is_folded;
		if (info->is_folded)
			process->start_real_ns = 0;
		set_comm(process, info->comm);
		if (info->exe)
			process_set_text(process, &process->exe, info->exe);
		if (info->cgroup)
			process_set_text(process, &process->cgroup, info->cgroup);
		process->seen_ns = clock_ns(CLOCK_MONOTONIC);
		process->refs++;
	}
	process_table_unlock(table);
	return process;
}

static uint64_t hash_text(uint64_t seed, const char *text)
{
	return text ? hash64_string(seed, text) : hash64(seed, "", 1);
}

struct process *process_see_folded(struct process *member, const struct process_info *shared)
{
	struct process_info info = *shared;
	uint64_t hash = hash_text(HASH64_SEED + info.is_kernel, info.comm);

	hash = hash_text(hash_text(hash, info.exe), info.cgroup);
	info.id = (struct process_id){ .exec_gen = UINT32_MAX, .start_boot_ns = hash };
	info.is_folded = true;
	return process_table_see_as(member->table, &info);
}

/*
 * Returns the generation of the address space in the process's entry in the unwinder's map; 0 if it
 * is not known.
 */
static uint64_t generation_of(const struct process *process)
{
	struct address_space *space =
		process->shown_maps ? process_maps_address_space(process->shown_maps) : NULL;

	return space ? address_space_generation(space) : process->copied_generation;
}

/* Gives a forked child the mappings, exe and cgroup of its parent. */
static void inherit(struct process *child, const struct process *parent)
{
	maps_history_inherit(child, parent);
	child->is_kernel = parent->is_kernel;
	/*
	 * At a fork, a BPF program copies the parent's entry in the unwinder's map for the child,
	 * if the parent has an entry by then.
	 */
	if (parent->shown_ns && (uint64_t)parent->shown_ns < child->id.start_boot_ns) {
		child->copied_generation = generation_of(parent);
		child->shown_ns = (int64_t)child->id.start_boot_ns;
	}
	if (parent->maps) {
		child->maps = process_maps_ref(parent->maps);
		process_show_later(child);
	}
	if (parent->exe)
		process_set_text(child, &child->exe, parent->exe);
	child->exe_dev = parent->exe_dev;
	child->exe_inode = parent->exe_inode;
	child->is_exe_guessed = parent->is_exe_guessed;
	if (parent->cgroup)
		process_set_text(child, &child->cgroup, parent->cgroup);
	child->group_name = parent->group_name;
}

/*
 * True if the child was read from /proc after it had replaced its program. A stack of the child
 * adds it to the table, and may come before the record of its fork, through the ring of another
 * probe.
 */
static bool was_read_late(const struct process *child, const struct process *parent)
{
	return child->exe && parent->exe && !child->is_exe_guessed && !parent->is_exe_guessed &&
	       strcmp(child->exe, parent->exe) != 0;
}

/* Sets the cgroup of the process by the id of its path. False if the path is not known. */
static bool set_group(struct process *process, uint64_t group_name)
{
	const char *path = process_name_find(process->table, group_name);

	process->group_name = group_name;
	if (path)
		process_set_text(process, &process->cgroup, path);
	else if (group_name == NAME_NONE)
		process_set_text(process, &process->cgroup, NULL);
	return path || group_name == NAME_NONE;
}

void process_table_note_fork(struct process_table *table, const struct process_id *child,
			     const struct process_id *parent, const char *comm, uint64_t group_name)
{
	struct process *process, *from;
	bool is_read;

	pthread_mutex_lock(&table->lock);
	process = process_find_or_add(table, child);
	if (process) {
		from = process_find(table, parent);
		if (!from)
			from = process_find_latest(table, parent);
		set_comm(process, comm);
		if (from && was_read_late(process, from))
			process->maps = process_maps_unref(process->maps);
		if (from && !process->maps)
			inherit(process, from);
		/*
		 * A child may begin in another cgroup than its parent (clone3() with
		 * CLONE_INTO_CGROUP, 5.7). If the path of this cgroup is not known, the child is
		 * read from /proc.
		 */
		is_read = !process->exe;
		if (group_name && process->group_name && group_name != process->group_name)
			is_read |= !set_group(process, group_name);
		if (is_read)
			read_queue_add(process, 0, false);
	}
	process_table_unlock(table);
}

/* Sets `exe` and `cgroup` of a process after an exec. True if nothing has to be read from /proc. */
static bool set_facts(struct process *process, const struct exec_facts *facts)
{
	const char *exe = process_name_find(process->table, facts->exe_name);
	bool has_group = set_group(process, facts->group_name);

	if (!exe)
		return false;
	process_set_text(process, &process->exe, exe);
	process->is_exe_guessed = false;
	process->exe_dev = 0;
	process->exe_inode = facts->exe_inode;
	return has_group && facts->is_known;
}

void process_table_note_exec(struct process_table *table, const struct process_id *id,
			     const char *comm, const struct exec_facts *facts)
{
	/*
	 * ld.so maps the libraries of a small program within 1 ms, those of a large one within 50
	 * ms.
	 */
	static const int64_t again_ns[] = { 3 * NS_PER_MS, 60 * NS_PER_MS };
	struct process *process;
	bool is_known;

	pthread_mutex_lock(&table->lock);
	process = process_find_or_add(table, id);
	if (process) {
		set_comm(process, comm);
		restore_comm(process);
		process->is_kernel = false; /* a kernel thread becomes a user process by exec */
		is_known = set_facts(process, facts);
		if (is_known)
			read_queue_add_later(process);
		else
			read_queue_add(process, 0, false);
		for (size_t i = 0; !is_known && i < ARRAY_SIZE(again_ns); i++)
			read_queue_add(process, again_ns[i], true);
	}
	process_table_unlock(table);
}

void process_table_note_move(struct process_table *table, const struct process_id *id,
			     uint64_t group_name)
{
	struct process *process;
	const char *path;

	pthread_mutex_lock(&table->lock);
	process = process_find(table, id);
	if (!process)
		process = process_find_latest(table, id);
	path = process_name_find(table, group_name);
	/* A move in a hierarchy of version 1 leaves the group as it was. */
	if (process && (!group_name || group_name != process->group_name)) {
		process_move(process, path);
		process->group_name = group_name;
		if (!path && group_name != NAME_NONE)
			read_queue_add(process, 0, false);
	}
	process_table_unlock(table);
}

void process_table_note_exit(struct process_table *table, const struct process_id *id)
{
	struct process *process;

	pthread_mutex_lock(&table->lock);
	process = process_find(table, id);
	if (!process)
		process = process_find_latest(table, id);
	if (process) {
		process->seen_ns = clock_ns(CLOCK_MONOTONIC);
		process_mark_exited(process);
	}
	process_table_unlock(table);
}

/*
 * Causes the unwind rows of the file that is mapped at this address to be loaded, because a stack
 * walk ended there without them. True if the file has to be opened first, by reading /proc.
 */
static bool need_rows(struct process_maps *maps, uint64_t address)
{
	const struct process_map *map = process_maps_find(maps, address);

	if (!map || !map->module || !module_unwind(map->module))
		return false;
	unwind_file_need(module_unwind(map->module),
			 module_address(map->module, address - map->start + map->pgoff));
	module_want_rows(map->module);
	return module_needs_file(map->module);
}

/*
 * True if the walk of a stack of this process, which ended at this address, lacked the file there
 * because the process was put off.
 */
static bool lacks_put_off(const struct process *process, uint64_t address, unsigned int ends)
{
	const struct process_map *map;

	if (!(ends & (WALK_LACKS | 1U << WALK_FRAME_POINTERS)) || !process_is_put_off(process))
		return false;
	map = process->maps ? process_maps_find(process->maps, address) : NULL;
	return !map || !map->module;
}

bool process_table_note_walk(struct process_table *table, struct process *process, uint64_t address,
			     unsigned int ends)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	bool is_put_off;

	pthread_mutex_lock(&table->lock);
	is_put_off = lacks_put_off(process, address, ends);
	if (is_put_off)
		process_note_put_off(process);
	walk_stats_note(process, is_put_off ? (ends & ~WALK_LACKS) | 1U << WALK_SHED : ends);
	if (process->has_exited || process->is_kernel || !process_is_newest(process)) {
		/*
		 * do nothing: the process has ended, so no later walks need its mappings and unwind
		 * rows
		 */
	} else if (ends & WALK_DOUBTS) {
		if (process_should_read(process, now))
			read_queue_add(process, 0, false);
	} else if (ends & 1U << WALK_NO_TABLE && process->maps) {
		if (need_rows(process->maps, address) && process_should_read(process, now))
			read_queue_add(process, 0, false);
		process_table_note_files(table);
	}
	process_table_unlock(table);
	return is_put_off;
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
	maps_history_note(process, record, module);
	walk_mappings_note(process, record, module);
	process_table_unlock(table);
	module_unref(module);
	process_unref(process);
}

void process_table_load_rows(struct process_table *table, int64_t timeout_ns)
{
	int64_t end = clock_ns(CLOCK_MONOTONIC) + timeout_ns;

	while (clock_ns(CLOCK_MONOTONIC) < end && module_registry_load_rows(table->registry, true))
		;
}

void process_table_set_unwind(struct process_table *table, struct unwind *unwind)
{
	pthread_mutex_lock(&table->lock);
	module_registry_set_unwind(table->registry, unwind);
	pthread_mutex_unlock(&table->lock);
}

void process_table_stats(struct process_table *table, struct process_stats *out)
{
	struct module_stats modules;
	struct loader_stats loader;

	module_registry_stats(table->registry, &modules);
	loader_stats(table->loader, &loader);
	pthread_mutex_lock(&table->lock);
	*out = (struct process_stats){
		.processes = table->n_processes,
		.modules = modules.modules,
		.symbol_bytes = modules.symbol_bytes,
		.evictions = modules.evictions,
		.unreadable = modules.unreadable,
		.remote = modules.remote,
		.too_late = table->too_late,
		.put_off = table->put_off,
		.queue_full = table->queue_full,
		.mappings_full = table->mappings_full,
		.maps_bytes = process_maps_bytes_all(),
		.maps_refused = table->maps_refused,
		.table_full = table->table_full,
		.moves_full = table->moves_full,
		.hanging = table->n_hanging,
		.last_hanging = table->last_hanging,
		.dead_bytes = table->dead_bytes,
		.referred_bytes = table->referred_bytes + table->unparked_bytes,
		.perf_map_bytes = perf_maps_bytes(),
		.perf_refused = table->perf_refused,
		.symbols_late = loader.late + loader.dropped,
	};
	pthread_mutex_unlock(&table->lock);
	opener_stats(&out->opening);
}

size_t process_table_referred_bytes(struct process_table *table)
{
	size_t bytes;

	pthread_mutex_lock(&table->lock);
	bytes = table->referred_bytes + table->unparked_bytes;
	pthread_mutex_unlock(&table->lock);
	return bytes;
}

void process_table_put_off(struct process_table *table, int64_t age_ns)
{
	pthread_mutex_lock(&table->lock);
	table->put_off_ns = age_ns;
	pthread_mutex_unlock(&table->lock);
}

void process_table_read_remote(struct process_table *table)
{
	module_registry_read_remote(table->registry);
}

void process_table_set_parser(struct process_table *table, struct parser *parser)
{
	module_registry_set_parser(table->registry, parser);
}

int process_table_new(uint64_t max_memory, struct process_table **out)
{
	struct process_table *table = calloc(1, sizeof(*table));
	int r;

	if (!table)
		return -ENOMEM;
	table->registry = module_registry_new(max_memory);
	if (!table->registry) {
		free(table);
		return -ENOMEM;
	}
	pthread_mutex_init(&table->lock, NULL);
	pthread_cond_init(&table->wake, NULL);
	pthread_cond_init(&table->has_read, NULL);
	pthread_cond_init(&table->files_wake, NULL);
	r = process_reader_start(table);
	if (r < 0) {
		process_table_free(table);
		return r;
	}
	*out = table;
	return 0;
}

struct process_table *process_table_free(struct process_table *table)
{
	struct process_entries *entries, *next;

	if (!table)
		return NULL;
	process_reader_stop(table);
	if (table->n_hanging)
		return table;
	HASH_ITER (hh, table->entries, entries, next) {
		struct process *process = entries->first, *older;

		for (; process; process = older) {
			older = process->next;
			process_release_symbols(process);
			process_remove(process); /* this also frees `entries` when it removes the
						    last process of `entries` */
		}
	}
	walk_stats_free(table);
	process_names_free(table);
	process_texts_free(table);
	module_registry_free(table->registry);
	pthread_cond_destroy(&table->wake);
	pthread_cond_destroy(&table->has_read);
	pthread_cond_destroy(&table->files_wake);
	pthread_mutex_destroy(&table->lock);
	free(table);
	return NULL;
}

int process_table_open_file(struct process_table *table, uint64_t file_id, const char *path,
			    int fd_min, int *fd_out, int *debug_fd_out)
{
	return module_registry_open(table->registry, file_id, path, fd_min, fd_out, debug_fd_out);
}
