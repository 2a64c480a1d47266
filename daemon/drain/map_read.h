/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_MAP_READ_H
#define STACKD_DAEMON_DRAIN_MAP_READ_H

/*
 * Reads a whole BPF hash map by its fd: passes the members of the map to a callback one by one and
 * deletes them. Owns nothing; any thread.
 */

#include <stddef.h>

/* Takes one member of the map. key and value are valid only during the call. */
typedef void (*drain_map_fn)(void *context, const void *key, const void *value);

/*
 * Empties a hash map, a batch of its buckets at a time. 0, or a negative errno: then the members
 * that entry_fn was called for have been deleted, and the others are still in the map.
 */
int drain_map_read(int fd, size_t key_size, size_t value_size, drain_map_fn entry_fn,
		   void *context);

#endif
