/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_PERF_MAP_H
#define STACKD_DAEMON_PROCESS_PERF_MAP_H

/*
 * Names of code made at run time: reads /tmp/perf-PID.map, which the maker of the code writes, and
 * looks addresses up in it. A map is immutable and refcounted; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/file_state.h"
#include "daemon/host/remote_mounts.h"

struct perf_map;

/*
 * Limits of one file, and of the memory of all maps together. What exceeds them is left out, and
 * counted.
 */
#define PERF_MAP_BYTES_MAX   (32 * 1024 * 1024)
#define PERF_MAPS_MEMORY_MAX (16 * 1024 * 1024)

/*
 * Opens the perf map of the process whose directory in /proc is proc_fd, without waiting for
 * anything. Accepts only a regular file that belongs to the process's user or to root, on a file
 * system of this host (mounts NULL: on any). Returns an fd owned by the caller, -ENOENT when there
 * is none, -EPERM when it belongs to another user.
 */
int perf_map_open(int proc_fd, struct remote_mounts *mounts, struct file_state *state_out);

/*
 * Reads the map. If the file still begins with what before was read from, only the rest is read,
 * because JITs append lines all the time; before may be NULL. Where functions overlap, the one
 * written last counts. Returns 0 also when only the beginning fits; -E2BIG when nothing does,
 * -ENOMEM, or the error of reading.
 */
int perf_map_read(int fd, const struct perf_map *before, struct perf_map **out);

struct perf_map *perf_map_ref(struct perf_map *map);
struct perf_map *perf_map_unref(struct perf_map *map);

/*
 * Returns the name of the function that holds the address, which lives as long as the map; NULL
 * where none does.
 */
const char *perf_map_lookup(const struct perf_map *map, uint64_t address, uint64_t *start_out);

bool perf_map_is_truncated(const struct perf_map *map);

/* Returns the memory of all maps, in bytes. */
size_t perf_maps_bytes(void);

#endif
