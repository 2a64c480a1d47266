/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_MAPS_H
#define STACKD_DAEMON_PROCESS_MAPS_H

/*
 * The executable mappings of a process, with the modules (files) behind them: built from /proc or
 * from what a walk found, searched by address. Immutable and refcounted, because a forked child
 * shares its parent's. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/host/proc_maps.h"
#include "daemon/module/module.h"

struct unwind_mapping_found;

enum map_kind {
	MAP_FILE,      /* a file, which may not have been opened */
	MAP_SPECIAL,   /* made by the kernel: [vdso], [vsyscall], [uprobes] */
	MAP_GENERATED, /* no file: code made at run time */
};

struct process_map {
	uint64_t start, end, pgoff;
	dev_t dev;
	uint64_t inode;
	enum map_kind kind;
	bool is_gone;	       /* unmapped since; kept to name addresses sampled before */
	bool is_skipped;       /* its file must not or cannot be opened: not tried again */
	struct module *module; /* NULL where there is none: no file, or not opened */
	char *name;	       /* "[vdso]", "[anon]" or the path; NULL: the same as module_path() */
	bool is_name_guessed;  /* a walk found it: the path by which it was mapped is not known */
};

struct process_maps;

/*
 * Builds maps from the mappings read from /proc. Mappings that are unchanged since before (NULL:
 * none) keep their modules; other files are opened through dir_fd, see procfs.h. File mappings that
 * are only in before are kept, marked as gone, where nothing else is mapped in their place now.
 * *out is a reference owned by the caller: to before itself if nothing has changed. -ENOMEM.
 */
int process_maps_build(struct module_registry *registry, int dir_fd,
		       const struct proc_maps *mappings, struct process_maps *before,
		       struct process_maps **out);

/*
 * Builds a copy of before (NULL: empty) with one more mapping, which replaces what was mapped
 * there: of a file or (module NULL) code made at run time. *out is owned by the caller. -ENOMEM.
 */
int process_maps_add(struct module_registry *registry, const struct process_maps *before,
		     const struct unwind_mapping_found *found, struct module *module,
		     struct process_maps **out);

struct process_maps *process_maps_ref(struct process_maps *maps);
struct process_maps *process_maps_unref(struct process_maps *maps);
void process_maps_unrefp(struct process_maps **maps);

/*
 * Returns what the unwinder has of these mappings, borrowed; NULL where it has nothing, and once no
 * live process uses them.
 */
struct address_space *process_maps_address_space(const struct process_maps *maps);

/* Returns how many mappings there are. */
size_t process_maps_count(const struct process_maps *maps);

/* Has the unwind rows of all files loaded soon, as far as they are not. */
void process_maps_want_rows(struct process_maps *maps);

/* A live process begins or ends to use the maps: as long as one does, their files are kept open. */
void process_maps_add_live(struct process_maps *maps);
void process_maps_drop_live(struct process_maps *maps);

/*
 * Returns the path by which the process mapped the file (a file may have several), borrowed from
 * the map.
 */
const char *process_map_name(const struct process_map *map);

/*
 * Returns the name of a mapping of this module whose name is not guessed; NULL where there is none.
 */
const char *process_maps_name_of(const struct process_maps *maps, const struct module *module);

/* Finds the mapping of an address, borrowed from the maps; NULL where nothing was mapped. */
const struct process_map *process_maps_find(const struct process_maps *maps, uint64_t address);

#endif
