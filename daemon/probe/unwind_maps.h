/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROBE_UNWIND_MAPS_H
#define STACKD_DAEMON_PROBE_UNWIND_MAPS_H

/*
 * The BPF maps that hold unwind tables: with them, the BPF programs of all probes walk user stacks.
 * There is one set of these maps for all probes. They are mapped into memory, where daemon/unwind/
 * fills them. Owned by the recorder; opened on the main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/unwind/unwind.h"

struct bpf_object;
struct unwind_maps;

/* Creates the maps, which take max_memory bytes together. 0, or the kernel's negative errno. */
int unwind_maps_open(uint64_t max_memory, struct unwind_maps **out);
struct unwind_maps *unwind_maps_close(struct unwind_maps *maps);

/*
 * Returns the memory of the BPF maps, which daemon/unwind/ fills; borrowed until the maps are
 * closed.
 */
const struct unwind_memory *unwind_maps_memory(const struct unwind_maps *maps);

/*
 * Makes a BPF object use these maps instead of its own. Called before the object is loaded. 0, or a
 * negative errno.
 */
int unwind_maps_reuse(const struct unwind_maps *maps, struct bpf_object *object);

/*
 * True if one of these maps has this name. Probes do not count such a map as memory of their own.
 */
bool unwind_maps_has(const char *name);

/* Returns the memory that all these maps take, in bytes. */
uint64_t unwind_maps_bytes(const struct unwind_maps *maps);

#endif
