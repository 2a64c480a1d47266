/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_UNWIND_MAPS_H
#define STACKD_DAEMON_PROBE_UNWIND_MAPS_H

/*
 * The maps that walks of user stacks read, one set for all probes. The unwind room fills them as
 * memory; the programs of every probe use them. Owned by the recorder; opened on the main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/unwind/unwind.h"

struct bpf_object;
struct unwind_maps;

/* Creates the maps, of max_memory bytes together. 0, or negative errno as the kernel gave it. */
int unwind_maps_open(uint64_t max_memory, struct unwind_maps **out);
struct unwind_maps *unwind_maps_close(struct unwind_maps *maps);

/* Returns the maps as memory for the unwind room; borrowed until they are closed. */
const struct unwind_memory *unwind_maps_memory(const struct unwind_maps *maps);

/* Makes an object that is not loaded yet use these maps. 0 or negative errno. */
int unwind_maps_reuse(const struct unwind_maps *maps, struct bpf_object *object);

/* True if a map of this name is one of these, whose memory is counted only here. */
bool unwind_maps_has(const char *name);

/* Returns the memory of the maps in bytes. */
uint64_t unwind_maps_bytes(const struct unwind_maps *maps);

#endif
