/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"

/* A map read longer ago than this is stale. */
#define FRESH_NS NS_PER_S
/* Where a map lacks a name, and where there is no map at all, it is read again after this long. */
#define MISS_NS	  (10 * NS_PER_MS)
#define NO_MAP_NS (100 * NS_PER_MS)
/*
 * After a map has been read it is left alone for this many times as long as the reading took. The
 * first map of a process is exempt: reading what is added to it later is short.
 */
#define READ_SHARE 50

/* With the lock held. */
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

/* Takes over the map; NULL when the process has none (any more). */
static void perf_set(struct process *process, struct perf_map *map, const struct file_state *state)
{
	struct perf_map *old;

	pthread_mutex_lock(&process->table->lock);
	old = process->perf;
	process->perf = map;
	process->perf_state = *state;
	pthread_mutex_unlock(&process->table->lock);
	perf_map_unref(old);
}

/* Returns a reference to the map as last read, NULL where there is none. */
static struct perf_map *perf_get(struct process *process)
{
	struct perf_map *map;

	pthread_mutex_lock(&process->table->lock);
	map = process->perf ? perf_map_ref(process->perf) : NULL;
	pthread_mutex_unlock(&process->table->lock);
	return map;
}

/* Counts the process once. */
static void note_refused(struct process *process)
{
	pthread_mutex_lock(&process->table->lock);
	process->table->perf_refused += !process->is_perf_refused;
	process->is_perf_refused = true;
	pthread_mutex_unlock(&process->table->lock);
}

/* Reads the map if the file has changed; proc_fd is the process's directory in /proc. */
static void perf_read(struct process *process, int proc_fd)
{
	struct file_state state = { 0 };
	struct perf_map *map = NULL, *before;
	int64_t begun = clock_ns(CLOCK_MONOTONIC), now;
	int fd, r;

	fd = perf_map_open(proc_fd, module_registry_mounts(process->table->registry), &state);
	if (fd >= 0 && process->perf && !memcmp(&state, &process->perf_state, sizeof(state))) {
		close(fd);
		return;
	}
	before = perf_get(process);
	/* A file older than the process was written by another one, which had the pid before. */
	if (fd >= 0 && state.mtime_ns < process->start_real_ns - NS_PER_S)
		r = -EPERM;
	else
		r = fd < 0 ? fd : perf_map_read(fd, before, &map);
	closep(&fd);
	if (r == -EPERM || r == -E2BIG || (map && perf_map_is_truncated(map)))
		note_refused(process);
	perf_set(process, map, &state);
	now = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_lock(&process->table->lock);
	if (!map || process->had_perf)
		process->perf_due_ns = now + (now - begun) * READ_SHARE;
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
