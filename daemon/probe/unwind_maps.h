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
struct probe_unwind;

/* max_memory: bytes for all of them. Negative errno as the kernel gave it. */
int probe_unwind_open(uint64_t max_memory, struct probe_unwind **out);
struct probe_unwind *probe_unwind_close(struct probe_unwind *maps);

/* Borrowed, valid until closed. */
const struct unwind_memory *probe_unwind_memory(const struct probe_unwind *maps);

/* Before an object with walks in it is loaded: makes it use these maps. */
int probe_unwind_reuse(const struct probe_unwind *maps, struct bpf_object *object);

/* Whether an object's map of this name is one of these: then it is counted here. */
bool probe_unwind_has(const char *name);

/* Memory of the maps in bytes. */
uint64_t probe_unwind_bytes(const struct probe_unwind *maps);

#endif
