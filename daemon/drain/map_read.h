/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_MAP_READ_H
#define STACKD_DAEMON_DRAIN_MAP_READ_H

/*
 * Reads a BPF hash whole: in comes its fd, out come its members one by one. Owns nothing; any
 * thread.
 */

#include <stddef.h>

typedef void (*drain_map_fn)(void *context, const void *key, const void *value);

/*
 * Empties a hash, a batch of buckets at a time. A bucket that does not fit answers ENOSPC: more
 * room, and again. 0 or negative errno; what was handed to entry_fn by then is out of the map.
 */
int drain_map_read(int fd, size_t key_size, size_t value_size, drain_map_fn entry_fn,
		   void *context);

#endif
