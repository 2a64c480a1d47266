/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_PERF_MAP_H
#define STACKD_DAEMON_PROCESS_PERF_MAP_H

/*
 * Reads perf maps and looks up addresses in them. A perf map is a file, /tmp/perf-PID.map, to which
 * a program that makes code at run time writes the addresses and names of its functions. A struct
 * perf_map is refcounted and never changes after it was read; any thread may use it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/file_state.h"
#include "daemon/host/remote_mounts.h"

struct parser;
struct perf_map;

/*
 * Limit of the memory of all maps together, in bytes. All that exceeds it, or PERF_MAP_BYTES_MAX of
 * one file, is left out, and the process is counted in process_stats.perf_refused.
 */
#define PERF_MAPS_MEMORY_MAX (24 * 1024 * 1024)
/* Maximum bytes of memory of the maps that belong to one user, so that others find room, too. */
#define PERF_MAPS_USER_MAX (16 * 1024 * 1024)

/*
 * Opens the perf map of a process. proc_fd is a descriptor of the process's directory in /proc.
 * Never waits for another program. Accepts only a regular file that belongs to a user of the
 * process. The file must be on a local file system, unless `mounts` is NULL.
 * Returns a descriptor that the caller owns, -ENOENT when there is no such file, or -EPERM when it
 * belongs to another user.
 */
int perf_map_open(int proc_fd, struct remote_mounts *mounts, struct file_state *state_out);

/*
 * Reads a perf map, in a worker process unless `parser` is NULL, as in tests. `group` is the
 * parse_group() of the process. `before` is the map
 * that was read from the file last time, or NULL. If the file has only grown since, only the new
 * lines are read, because JITs append lines all the time. If functions overlap, keeps the one that
 * was written last. Returns 0, also when only the beginning of the file fits into the limits;
 * -E2BIG when nothing fits; -ENOMEM, also when it may be tried again later; or another error of
 * parse_perf_lines().
 */
int perf_map_read(struct parser *parser, int fd, uint64_t group, const struct perf_map *before,
		  struct perf_map **out);

struct perf_map *perf_map_ref(struct perf_map *map);
struct perf_map *perf_map_unref(struct perf_map *map);

/*
 * Returns the name of the function that contains the address, or NULL if there is none. The name
 * lives as long as the map. *start_out is set to the address of the function.
 */
const char *perf_map_lookup(const struct perf_map *map, uint64_t address, uint64_t *start_out);

bool perf_map_is_truncated(const struct perf_map *map);

/* Returns the memory that all perf maps take together, in bytes. */
size_t perf_maps_bytes(void);

#endif
