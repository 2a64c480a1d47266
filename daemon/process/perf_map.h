/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_PERF_MAP_H
#define STACKD_DAEMON_PROCESS_PERF_MAP_H

/*
 * Names of code made at run time, as its maker tells them: in goes /tmp/perf-PID.map as the process
 * sees it, out come names for addresses. A table is immutable and refcounted; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/file_state.h"
#include "daemon/host/remote_mounts.h"

struct perf_map;

/* Of one file, and of all tables together: what is beyond is left out, and counted. */
#define PERF_MAP_BYTES_MAX   (32 * 1024 * 1024)
#define PERF_MAPS_MEMORY_MAX (16 * 1024 * 1024)

/*
 * Opens the map of the process whose directory in /proc is proc_fd. Only a regular file that
 * belongs to the process's user or to root, on a file system of this host (mounts; NULL: any), is
 * one; nothing is waited for. An fd owned by the caller, -ENOENT when there is none, -EPERM when
 * it is somebody else's.
 */
int perf_map_open(int proc_fd, struct remote_mounts *mounts, struct file_state *state_out);

/*
 * Reads the map, from where before ends if that is what it begins with, as those who make code add
 * lines all the time; before may be NULL. Where functions overlap the one that was written last
 * counts. -E2BIG when there is no room, -ENOMEM, -errno of reading. A map of which only the
 * beginning fits is no error.
 */
int perf_map_read(int fd, const struct perf_map *before, struct perf_map **out);

struct perf_map *perf_map_ref(struct perf_map *map);
struct perf_map *perf_map_unref(struct perf_map *map);

/* The name of the function that holds the address; it lives as long as the map. NULL: none. */
const char *perf_map_lookup(const struct perf_map *map, uint64_t address, uint64_t *start_out);

bool perf_map_is_truncated(const struct perf_map *map);

/* Memory of all tables. */
size_t perf_maps_bytes(void);

#endif
