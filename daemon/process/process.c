/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/process/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"
#include "daemon/unwind/unwind.h"

/* Nothing is mapped there; or something else is than what the walk was told of. */
#define WALK_DOUBTS (1U << WALK_NO_MAPPING | 1U << WALK_NO_ROW | 1U << WALK_FAULT)

static struct process **bucket(struct process_table *table, int32_t pid)
{
	return &table->buckets[(uint32_t)pid % PROCESS_BUCKETS];
}

/* Of a process found in /proc the start is known to the tick only. */
static bool is_same_start(const struct process *process, uint64_t start_boot_ns)
{
	if (process->id.start_boot_ns == start_boot_ns)
		return true;
	return !process->is_gen_known &&
	       procfs_ticks(process->id.start_boot_ns) == procfs_ticks(start_boot_ns);
}

static bool is_newer(const struct process *a, const struct process *b)
{
	if (is_same_start(a, b->id.start_boot_ns) || is_same_start(b, a->id.start_boot_ns))
		return a->is_gen_known && (!b->is_gen_known || a->id.exec_gen > b->id.exec_gen);
	return a->id.start_boot_ns > b->id.start_boot_ns;
}

bool process_is_newest(const struct process *process)
{
	for (struct process *p = *bucket(process->table, process->id.pid); p; p = p->next) {
		if (p->id.pid == process->id.pid && is_newer(p, process))
			return false;
	}
	return true;
}

static struct unwind_owner unwind_owner_of(const struct process *process)
{
	return (struct unwind_owner){
		.pid = (uint32_t)process->id.pid,
		.exec_gen = process->id.exec_gen,
		.start_boot_ns = process->id.start_boot_ns,
		.is_exact = process->is_gen_known,
	};
}

void process_publish(struct process *process)
{
	struct unwind_run *run = process_maps_run(process->maps);
	struct unwind_owner owner = unwind_owner_of(process);

	if (!run || process->has_exited || process->is_kernel || !process_is_newest(process))
		return;
	process_version_add(process);
	unwind_process_set(run, &owner);
	process_maps_want_rows(process->maps);
	process_reader_wake(process->table);
}

static size_t process_bytes(const struct process *process)
{
	size_t bytes = sizeof(*process);

	for (const struct process_text *text = process->texts; text; text = text->next)
		bytes += sizeof(*text) + strlen(text->text) + 1;
	return bytes;
}

/* Once: it is counted among the dead until it goes. */
static void exit_set(struct process *process)
{
	if (process->has_exited)
		return;
	process->has_exited = true;
	process->exited_ns = clock_ns(CLOCK_MONOTONIC);
	process->dead_bytes = process_bytes(process);
	process->table->dead_bytes += process->dead_bytes;
}

void process_mark_exited(struct process *process)
{
	struct unwind *unwind = module_registry_unwind(process->table->registry);
	struct unwind_owner owner = unwind_owner_of(process);

	if (process->has_exited)
		return;
	exit_set(process);
	if (unwind && !process->is_kernel)
		unwind_process_drop(unwind, &owner);
	if (process->maps)
		process_maps_drop_live(process->maps);
	process_reader_wake(process->table); /* files may have to be closed */
}

void process_set_maps(struct process *process, struct process_maps *maps)
{
	struct process_maps *old = process->maps;

	/* First the new ones, so that files in both do not look unused in between. */
	process_maps_add_live(maps);
	process->maps = maps;
	process_publish(process);
	if (process->has_exited)
		process_maps_drop_live(maps);
	else if (old)
		process_maps_drop_live(old);
	process_maps_unref(old);
}

void process_set_text(struct process *process, const char **field, const char *value)
{
	struct process_text *text;

	if (*field && !strcmp(*field, value))
		return;
	for (text = process->texts; text; text = text->next) {
		if (!strcmp(text->text, value)) {
			*field = text->text;
			return;
		}
	}
	text = malloc(sizeof(*text) + strlen(value) + 1);
	if (!text)
		return;
	strcpy(text->text, value);
	text->next = process->texts;
	process->texts = text;
	*field = text->text;
}

static void texts_drop_outdated(struct process *process)
{
	for (struct process_text **p = &process->texts; *p;) {
		struct process_text *text = *p;

		if (text->text == process->exe || text->text == process->cgroup) {
			p = &text->next;
		} else {
			*p = text->next;
			free(text);
		}
	}
}

void process_forget_code(struct process *process)
{
	process->maps = process_maps_unref(process->maps);
	process_versions_free(process);
	free(TAKE(process->asked));
	process->perf = perf_map_unref(process->perf);
}

static void process_destroy(struct process *process)
{
	process_mark_exited(process);
	process_forget_code(process);
	process->table->dead_bytes -= process->dead_bytes;
	process->exe = process->cgroup = NULL;
	texts_drop_outdated(process);
	free(process);
}

void process_remove(struct process *process)
{
	struct process_table *table = process->table;

	for (struct process **p = bucket(table, process->id.pid); *p; p = &(*p)->next) {
		if (*p == process) {
			*p = process->next;
			break;
		}
	}
	table->n_processes--;
	process_destroy(process);
}

static struct process *process_find(struct process_table *table, const struct process_id *id)
{
	for (struct process *p = *bucket(table, id->pid); p; p = p->next) {
		if (p->is_gen_known && !memcmp(&p->id, id, sizeof(*id)))
			return p;
	}
	return NULL;
}

/* The latest image of a process, whatever its generation. */
static struct process *process_find_latest(struct process_table *table, const struct process_id *id)
{
	struct process *latest = NULL;

	for (struct process *p = *bucket(table, id->pid); p; p = p->next) {
		if (p->id.pid == id->pid && is_same_start(p, id->start_boot_ns) &&
		    (!latest || is_newer(p, latest)))
			latest = p;
	}
	return latest;
}

/*
 * One that was found in /proc, where its exact start and generation do not show, is the one now
 * seen, unless an exec has come between.
 */
static struct process *process_adopt(struct process_table *table, const struct process_id *id)
{
	struct process *latest = process_find_latest(table, id);

	for (struct process *p = *bucket(table, id->pid); p; p = p->next) {
		if (p->id.pid != id->pid || p->is_gen_known || !is_same_start(p, id->start_boot_ns))
			continue;
		if (latest != p && latest->id.exec_gen < id->exec_gen)
			continue;
		p->id = *id;
		p->is_gen_known = true;
		p->is_exe_guessed = true;
		/* It may have changed between the reading of /proc and the first probe. */
		if (!p->has_exited && !p->is_kernel)
			process_queue_read(p, 0, true);
		return p;
	}
	return NULL;
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
	process->seen_ns = clock_ns(CLOCK_MONOTONIC);
	process->start_real_ns =
		(int64_t)id->start_boot_ns + clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
	for (struct process *p = *bucket(table, id->pid); p; p = p->next) {
		if (p->id.pid != id->pid)
			continue;
		if (is_newer(p, process))
			exit_set(process); /* a late report of an earlier one */
		else
			process_mark_exited(p);
		if (p->id.start_boot_ns == id->start_boot_ns)
			process->start_real_ns = p->start_real_ns;
	}
	process->next = *bucket(table, id->pid);
	*bucket(table, id->pid) = process;
	table->n_processes++;
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

	for (struct process *p = *bucket(table, pid); p; p = p->next) {
		if (p->id.pid == pid && procfs_ticks(p->id.start_boot_ns) == start_ticks &&
		    process_is_newest(p))
			return p;
	}
	return process_add(table, &id, false);
}

static void set_comm(struct process *process, const char *comm)
{
	if (comm)
		snprintf(process->comm, sizeof(process->comm), "%.15s", comm);
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
			process_queue_read(process, 0, false);
		}
	}
	if (process) {
		set_comm(process, comm);
		process->seen_ns = clock_ns(CLOCK_MONOTONIC);
		process->refs++;
	}
	pthread_mutex_unlock(&table->lock);
	return process;
}

struct process *process_table_see_as(struct process_table *table, const struct process_info *info)
{
	struct process *process;

	pthread_mutex_lock(&table->lock);
	process = process_find(table, &info->id);
	if (!process)
		process = process_add(table, &info->id, true);
	if (process) {
		process->is_kernel = info->is_kernel;
		set_comm(process, info->comm);
		process_set_text(process, &process->cgroup, info->cgroup);
		process->seen_ns = clock_ns(CLOCK_MONOTONIC);
		process->refs++;
	}
	pthread_mutex_unlock(&table->lock);
	return process;
}

void process_table_note_fork(struct process_table *table, const struct process_id *child,
			     const struct process_id *parent, const char *comm)
{
	struct process *process, *from;

	pthread_mutex_lock(&table->lock);
	process = process_find_or_add(table, child);
	if (process) {
		from = process_find(table, parent);
		if (!from)
			from = process_find_latest(table, parent);
		set_comm(process, comm);
		if (from && !process->maps) {
			process_versions_inherit(process, from);
			process->is_kernel = from->is_kernel;
			if (from->maps)
				process_set_maps(process, process_maps_ref(from->maps));
			if (from->exe)
				process_set_text(process, &process->exe, from->exe);
			process->exe_dev = from->exe_dev;
			process->exe_inode = from->exe_inode;
			process->is_exe_guessed = from->is_exe_guessed;
			if (from->cgroup)
				process_set_text(process, &process->cgroup, from->cgroup);
		}
		if (!process->maps)
			process_queue_read(process, 0, false);
	}
	pthread_mutex_unlock(&table->lock);
}

void process_table_note_exec(struct process_table *table, const struct process_id *id,
			     const char *comm)
{
	/* ld.so maps the libraries of a small program within 1 ms, those of a large one in 50. */
	static const int64_t again_ns[] = { 3 * NS_PER_MS, 60 * NS_PER_MS };
	struct process *process;

	pthread_mutex_lock(&table->lock);
	process = process_find_or_add(table, id);
	if (process) {
		set_comm(process, comm);
		process->is_kernel = false; /* the kernel starts helpers from its own threads */
		process_queue_read(process, 0, false);
		for (size_t i = 0; i < ARRAY_SIZE(again_ns); i++)
			process_queue_read(process, again_ns[i], true);
	}
	pthread_mutex_unlock(&table->lock);
}

static void rows_need(struct process_maps *maps, uint64_t address)
{
	const struct process_map *map = process_maps_find(maps, address);

	if (!map || !map->module || !module_unwind(map->module))
		return;
	unwind_file_need(module_unwind(map->module),
			 module_address(map->module, address - map->start + map->pgoff));
	module_want_rows(map->module);
}

void process_table_note_walk(struct process_table *table, struct process *process, uint64_t address,
			     unsigned int ends)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	pthread_mutex_lock(&table->lock);
	process_walks_note(process, ends);
	if (process->has_exited || process->is_kernel || !process_is_newest(process)) {
		/* too late */
	} else if (ends & WALK_DOUBTS) {
		if (process_should_read(process, now))
			process_queue_read(process, 0, false);
	} else if (ends & 1U << WALK_NO_TABLE && process->maps) {
		rows_need(process->maps, address);
		process_reader_wake(table);
	}
	pthread_mutex_unlock(&table->lock);
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
	pthread_mutex_unlock(&table->lock);
}

struct process *process_ref(struct process *process)
{
	pthread_mutex_lock(&process->table->lock);
	process->refs++;
	pthread_mutex_unlock(&process->table->lock);
	return process;
}

struct process *process_unref(struct process *process)
{
	struct process_held held = { 0 };
	struct process_table *table;

	if (!process)
		return NULL;
	table = process->table;
	pthread_mutex_lock(&table->lock);
	if (!--process->refs) {
		texts_drop_outdated(process);
		held = process_held_take(process);
	}
	pthread_mutex_unlock(&table->lock);
	process_held_put(table, &held);
	return NULL;
}

void process_unrefp(struct process **process)
{
	process_unref(*process);
}

void process_info(struct process *process, struct process_info *out)
{
	pthread_mutex_lock(&process->table->lock);
	*out = (struct process_info){
		.id = process->id,
		.start_real_ns = process->start_real_ns,
		.is_kernel = process->is_kernel,
		.has_exited = process->has_exited,
		.exe = process->exe,
		.cgroup = process->cgroup,
	};
	memcpy(out->comm, process->comm, sizeof(out->comm));
	pthread_mutex_unlock(&process->table->lock);
}

void process_table_stats(struct process_table *table, struct process_stats *out)
{
	struct module_stats modules;

	module_registry_stats(table->registry, &modules);
	pthread_mutex_lock(&table->lock);
	*out = (struct process_stats){
		.processes = table->n_processes,
		.modules = modules.modules,
		.symbol_bytes = modules.symbol_bytes,
		.evictions = modules.evictions,
		.unreadable = modules.unreadable,
		.remote = modules.remote,
		.too_late = table->too_late,
		.queue_full = table->queue_full,
		.mappings_full = table->mappings_full,
		.table_full = table->table_full,
		.dead_bytes = table->dead_bytes,
		.perf_map_bytes = perf_maps_bytes(),
		.perf_refused = table->perf_refused,
	};
	pthread_mutex_unlock(&table->lock);
}

size_t process_table_dead_bytes(struct process_table *table)
{
	size_t bytes;

	pthread_mutex_lock(&table->lock);
	bytes = table->dead_bytes;
	pthread_mutex_unlock(&table->lock);
	return bytes;
}

void process_table_read_remote(struct process_table *table)
{
	module_registry_read_remote(table->registry);
}

int process_table_new(uint64_t max_memory, struct process_table **out)
{
	struct process_table *table = calloc(1, sizeof(*table));
	pthread_condattr_t attr;
	int r;

	if (!table)
		return -ENOMEM;
	table->registry = module_registry_new(max_memory);
	if (!table->registry) {
		free(table);
		return -ENOMEM;
	}
	pthread_mutex_init(&table->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&table->wake, &attr);
	pthread_condattr_destroy(&attr);
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
	if (!table)
		return NULL;
	process_reader_stop(table);
	for (size_t i = 0; i < PROCESS_BUCKETS; i++) {
		while (table->buckets[i]) {
			process_release_symbols(table->buckets[i]);
			process_remove(table->buckets[i]);
		}
	}
	process_walks_free(table);
	module_registry_free(table->registry);
	pthread_cond_destroy(&table->wake);
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
