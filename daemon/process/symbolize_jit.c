/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/host/procfs.h"
#include "daemon/process/internal.h"

/* How long a name is believed, and how soon one that is missing, or a map, is looked for again. */
#define FRESH_NS  NS_PER_S
#define MISS_NS	  (10 * NS_PER_MS)
#define NO_MAP_NS (100 * NS_PER_MS)
/*
 * Reading takes at most one part in so many of the time, but for the first of a process: what is
 * added to that is short.
 */
#define READ_SHARE 50

static bool is_due(struct process *process, bool is_missing)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC), wait;
	bool due;

	pthread_mutex_lock(&process->table->lock);
	wait = !is_missing ? FRESH_NS : process->perf ? MISS_NS : NO_MAP_NS;
	due = !process->has_exited && process_is_newest(process) && now >= process->perf_due_ns &&
	      (!process->perf_checked_ns || now - process->perf_checked_ns >= wait);
	if (due)
		process->perf_checked_ns = now;
	pthread_mutex_unlock(&process->table->lock);
	return due;
}

/* Takes the map, NULL when there is none (any more). */
static void perf_set(struct process *process, struct perf_map *map, const struct perf_map_key *key)
{
	struct perf_map *old;

	pthread_mutex_lock(&process->table->lock);
	old = process->perf;
	process->perf = map;
	process->perf_key = *key;
	pthread_mutex_unlock(&process->table->lock);
	perf_map_unref(old);
}

/* A reference; NULL where there is none. */
static struct perf_map *perf_of(struct process *process)
{
	struct perf_map *map;

	pthread_mutex_lock(&process->table->lock);
	map = process->perf ? perf_map_ref(process->perf) : NULL;
	pthread_mutex_unlock(&process->table->lock);
	return map;
}

static void note_refused(struct process *process)
{
	pthread_mutex_lock(&process->table->lock);
	process->table->perf_refused += !process->is_perf_refused;
	process->is_perf_refused = true;
	pthread_mutex_unlock(&process->table->lock);
}

/* A map from before the process was started is that of another, which had the pid before. */
static bool is_older(const struct process *process, const struct perf_map_key *key)
{
	return key->mtime_ns < process->start_real_ns - NS_PER_S;
}

static void perf_refresh(struct process *process, int proc_fd)
{
	struct perf_map_key key = { 0 };
	struct perf_map *map = NULL, *before;
	int64_t begun = clock_ns(CLOCK_MONOTONIC), now;
	int fd, r;

	fd = perf_map_open(proc_fd, module_registry_mounts(process->table->registry), &key);
	if (fd >= 0 && process->perf && !memcmp(&key, &process->perf_key, sizeof(key))) {
		close(fd);
		return;
	}
	before = perf_of(process);
	r = fd < 0 ? fd : is_older(process, &key) ? -EPERM : perf_map_read(fd, before, &map);
	closep(&fd);
	if (r == -EPERM || r == -E2BIG || (map && perf_map_is_truncated(map)))
		note_refused(process);
	perf_set(process, map, &key);
	now = clock_ns(CLOCK_MONOTONIC);
	pthread_mutex_lock(&process->table->lock);
	if (!map || process->had_perf)
		process->perf_due_ns = now + (now - begun) * READ_SHARE;
	process->had_perf |= map != NULL;
	pthread_mutex_unlock(&process->table->lock);
	perf_map_unref(before);
}

static void perf_update(struct process *process)
{
	struct process_table *table = process->table;
	struct procfs_stat stat;
	struct process_id id;
	int fd;

	pthread_mutex_lock(&table->lock);
	id = process->id;
	pthread_mutex_unlock(&table->lock);
	fd = procfs_open(id.pid, &stat);
	if (fd >= 0 && stat.start_ticks == procfs_ticks(id.start_boot_ns))
		perf_refresh(process, fd);
	closep(&fd);
}

/* The map as it is now, held until the symbols are released; NULL where there is none. */
static const struct perf_map *perf_hold(struct process *process)
{
	struct process_held *held = &process->held;
	struct perf_map *map, **perfs;

	pthread_mutex_lock(&process->table->lock);
	map = process->perf;
	if (map && (!held->n_perfs || held->perfs[held->n_perfs - 1] != map)) {
		perfs = reallocarray(held->perfs, held->n_perfs + 1, sizeof(struct perf_map *));
		if (perfs) {
			held->perfs = perfs;
			perfs[held->n_perfs++] = perf_map_ref(map);
		} else {
			map = NULL;
		}
	}
	pthread_mutex_unlock(&process->table->lock);
	return map;
}

const char *process_lookup_jit(struct process *process, uint64_t address, uint64_t *start_out)
{
	const struct perf_map *map;
	const char *name = NULL;

	for (int i = 0; i < 2; i++) {
		if (is_due(process, i > 0))
			perf_update(process);
		else if (i > 0)
			break;
		map = perf_hold(process);
		name = map ? perf_map_lookup(map, address, start_out) : NULL;
		if (name)
			break;
	}
	return name;
}
