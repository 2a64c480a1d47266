/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_MAP_READ_H
#define STACKD_DAEMON_DRAIN_MAP_READ_H

/*
 * Reads and empties a whole BPF hash map, given its fd: passes each entry to a callback and deletes
 * it. Owns nothing; any thread.
 */

#include <stddef.h>

/* Takes one entry of the map. key and value are valid only during the call. */
typedef void (*drain_map_fn)(void *context, const void *key, const void *value);

/*
 * Passes all entries of a hash map to entry_fn and deletes them, in batches. 0, or a negative
 * errno: some entries may then have been passed to entry_fn and deleted, while the others are still
 * in the map.
 */
int drain_map_read(int fd, size_t key_size, size_t value_size, drain_map_fn entry_fn,
		   void *context);

#endif
