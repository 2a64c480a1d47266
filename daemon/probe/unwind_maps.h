/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_UNWIND_MAPS_H
#define STACKD_DAEMON_PROBE_UNWIND_MAPS_H

/*
 * The maps that walks of user stacks read, one set for all probes: out come memory for the unwind
 * room and maps for the programs. Owned by the recorder; opened on the main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/unwind/unwind.h"

struct bpf_object;
struct unwind_maps;

/* max_memory: bytes for all of them. Negative errno as the kernel gave it. */
int unwind_maps_open(uint64_t max_memory, struct unwind_maps **out);
struct unwind_maps *unwind_maps_close(struct unwind_maps *maps);

/* Borrowed, valid until closed. */
const struct unwind_memory *unwind_maps_memory(const struct unwind_maps *maps);

/* Before an object with walks in it is loaded: makes it use these maps. */
int unwind_maps_reuse(const struct unwind_maps *maps, struct bpf_object *object);

/* Whether an object's map of this name is one of these: then it is counted here. */
bool unwind_maps_has(const char *name);

/* Memory of the maps in bytes. */
uint64_t unwind_maps_bytes(const struct unwind_maps *maps);

#endif
