/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/parse/parse.h"
#include "daemon/process/internal.h"

/*
 * A perf map that was last read longer ago than this is stale, and is read again at the next
 * lookup.
 */
#define FRESH_NS NS_PER_S
/*
 * If a name is missing in a perf map, the map is not read again for MISS_NS. If a process has no
 * perf map, one is not looked for again for NO_MAP_NS.
 */
#define MISS_NS	  (10 * NS_PER_MS)
#define NO_MAP_NS (100 * NS_PER_MS)
/*
 * If reading a perf map took a time T, the map is not read again for READ_SHARE * T. The first read
 * of a process's map is an exception: it takes long, but later reads have only new lines to read.
 */
#define READ_SHARE 50
/* Longer readings count as this long: then one waited for another process. */
#define TOOK_MOST_NS (400 * NS_PER_MS)

/* True if the perf map may be read again now. Called with table.lock held. */
static bool is_due(const struct process *process, bool is_name_missing, int64_t now)
{
	int64_t wait = !is_name_missing ? FRESH_NS : process->perf ? MISS_NS : NO_MAP_NS;

	return !process->has_exited && process_is_newest(process) && now >= process->perf_due_ns &&
	       (!process->perf_checked_ns || now - process->perf_checked_ns >= wait);
}

bool process_perf_is_due(struct process *process, bool is_name_missing)
{
	bool due;

	pthread_mutex_lock(&process->table->lock);
	due = is_due(process, is_name_missing, clock_ns(CLOCK_MONOTONIC));
	pthread_mutex_unlock(&process->table->lock);
	return due;
}

uint32_t process_names_version(struct process *process)
{
	uint32_t version;

	pthread_mutex_lock(&process->table->lock);
	version = process->names_version + 1;
	pthread_mutex_unlock(&process->table->lock);
	return version;
}

uint32_t process_symbols_version(struct process *process)
{
	return module_registry_loads(process->table->registry);
}

/*
 * Makes `map` the perf map of the process, and takes over the caller's reference to it. If `map` is
 * NULL, the process has no perf map now. `state` is the state of the file.
 */
static void perf_set(struct process *process, struct perf_map *map, const struct file_state *state)
{
	struct perf_map *old;

	pthread_mutex_lock(&process->table->lock);
	old = process->perf;
	process->names_version += map || old;
	process->perf = map;
	process_unpark(process);
	process->perf_state = *state;
	pthread_mutex_unlock(&process->table->lock);
	perf_map_unref(old);
}

/* Returns a reference to the perf map as it was last read, NULL if there is none. */
static struct perf_map *perf_get(struct process *process)
{
	struct perf_map *map;

	pthread_mutex_lock(&process->table->lock);
	map = process->perf ? perf_map_ref(process->perf) : NULL;
	pthread_mutex_unlock(&process->table->lock);
	return map;
}

/* Counts the process as one whose perf map was refused, unless it was counted before. */
static void note_refused(struct process *process)
{
	pthread_mutex_lock(&process->table->lock);
	process->table->perf_refused += !process->is_perf_refused;
	process->is_perf_refused = true;
	pthread_mutex_unlock(&process->table->lock);
}

/*
 * Reads the perf map of the process if the file has changed. proc_fd is a descriptor of the
 * process's directory in /proc.
 */
static void perf_read(struct process *process, int proc_fd)
{
	struct parser *parser = module_registry_parser(process->table->registry);
	struct file_state state = { 0 };
	struct perf_map *map = NULL, *before;
	int64_t begun = clock_ns(CLOCK_MONOTONIC), now, took;
	int fd, r;

	fd = perf_map_open(proc_fd, module_registry_mounts(process->table->registry), &state);
	if (fd >= 0 && process->perf && !memcmp(&state, &process->perf_state, sizeof(state))) {
		close(fd);
		return;
	}
	before = perf_get(process);
	/* A file older than the process was written by an earlier process with the same pid. */
	if (fd >= 0 && state.mtime_ns < process->start_real_ns - NS_PER_S)
		r = -EPERM;
	else
		r = fd < 0 ? fd : perf_map_read(parser, fd, parse_group(proc_fd), before, &map);
	closep(&fd);
	if (r == -EPERM || r == -E2BIG || (map && perf_map_is_truncated(map)))
		note_refused(process);
	/* What was read last time does until there is memory, a worker, or a process that opens. */
	if (r != -ENOMEM && r != -EAGAIN && r != -EBUSY && r != -ETIMEDOUT)
		perf_set(process, map, &state);
	now = clock_ns(CLOCK_MONOTONIC);
	took = now - begun < TOOK_MOST_NS ? now - begun : TOOK_MOST_NS;
	pthread_mutex_lock(&process->table->lock);
	if (!map || process->had_perf)
		process->perf_due_ns = now + took * READ_SHARE;
	process->had_perf |= map != NULL;
	pthread_mutex_unlock(&process->table->lock);
	perf_map_unref(before);
}

void process_read_perf(struct process *process)
{
	struct process_table *table = process->table;
	struct procfs_stat stat;
	struct process_id id;
	int fd;

	pthread_mutex_lock(&table->lock);
	process->perf_checked_ns = clock_ns(CLOCK_MONOTONIC);
	id = process->id;
	pthread_mutex_unlock(&table->lock);
	fd = procfs_open(id.pid, &stat);
	if (fd >= 0 && stat.start_ticks == procfs_ticks(id.start_boot_ns))
		perf_read(process, fd);
	closep(&fd);
}
