/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_LOADER_H
#define STACKD_DAEMON_PROCESS_LOADER_H

/*
 * Reads what names are looked up in, symbol tables and perf maps, on threads of its own. Any user
 * can make files that take seconds to read, and windows wait for their names. So who asks
 * waits a moment only; what is read later gives names from then on. Any thread.
 */

#include <stddef.h>
#include <stdint.h>

struct loader;
struct module;
struct module_registry;
struct process;
struct symtab;

/* The maximum number of requests that are not done, and how many of them may be of one owner. */
enum { LOADER_QUEUE_MAX = 1024, LOADER_OWNER_MAX = 128 };

struct loader_stats {
	uint64_t late;	  /* number of requests that were not done when somebody needed them */
	uint64_t dropped; /* number of requests that found too many others */
};

/* Starts the threads, for files of this registry. Returns 0 or a negative errno. */
int loader_new(struct module_registry *registry, struct loader **out);

/* Drops the requests, and waits for the end of what is being read. Returns NULL. */
struct loader *loader_free(struct loader *loader);

/*
 * Reads the symbol table of a module. Returns a reference to it, as module_get_symbols() does. NULL
 * if it cannot be read, or was not read until that time of CLOCK_MONOTONIC.
 */
struct symtab *loader_symbols(struct loader *loader, struct module *module, int64_t until_ns);

/* Reads the perf map of a process. Waits for that until that time of CLOCK_MONOTONIC. */
void loader_perf_map(struct loader *loader, struct process *process, int64_t until_ns);

void loader_stats(struct loader *loader, struct loader_stats *out);

#endif
