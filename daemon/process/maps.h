/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_MAPS_H
#define STACKD_DAEMON_PROCESS_MAPS_H

/*
 * What a process had mapped executable, with the modules behind it: in go parsed mappings, out
 * come modules for addresses. Immutable and refcounted, for a fork shares its parent's. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/host/proc_maps.h"
#include "daemon/module/module.h"

struct unwind_mapping_found;

enum map_kind {
	MAP_FILE,      /* of a module, or of a file that could not be opened */
	MAP_SPECIAL,   /* the kernel's: [vdso], [vsyscall], [uprobes] */
	MAP_GENERATED, /* no file behind it: code made at run time */
};

struct process_map {
	uint64_t start, end, pgoff;
	dev_t dev;
	uint64_t inode;
	enum map_kind kind;
	bool is_gone;	       /* unmapped since; kept to name what was sampled before */
	bool is_skipped;       /* opening it is out of the question */
	struct module *module; /* NULL where there is none */
	char *name; /* "[vdso]", "[anon]", the path; NULL: the one the module is known by */
	bool is_name_guessed; /* nobody has told by which of its paths the file was mapped */
};

struct process_maps;

/*
 * Builds from what was read. Mappings that are also in before (NULL: none) keep their modules;
 * files of others are opened through dir_fd, see procfs.h. Mappings of files that are only in
 * before stay, marked as gone, where nothing new lies in their place. *out is owned by the caller
 * and is before itself, with a reference, when nothing has changed. -ENOMEM.
 */
int process_maps_build(struct module_registry *registry, int dir_fd,
		       const struct proc_maps *mappings, struct process_maps *before,
		       struct process_maps **out);

/*
 * Those of before (NULL: none) and one more, which takes the place of what was there: of a file,
 * or (module NULL) code made at run time. *out is owned by the caller. -ENOMEM.
 */
int process_maps_add(struct module_registry *registry, const struct process_maps *before,
		     const struct unwind_mapping_found *found, struct module *module,
		     struct process_maps **out);

struct process_maps *process_maps_ref(struct process_maps *maps);
struct process_maps *process_maps_unref(struct process_maps *maps);
void process_maps_unrefp(struct process_maps **maps);

/* For walks in the kernel, borrowed; NULL where there is none, and once no live process has it. */
struct address_space *process_maps_address_space(const struct process_maps *maps);

/* How many mappings it has. */
size_t process_maps_count(const struct process_maps *maps);

/* The rows of all files may be of use: those not there are read by the reader. */
void process_maps_want_rows(struct process_maps *maps);

/* A live process begins or ends to use them: keeps the files open meanwhile. */
void process_maps_add_live(struct process_maps *maps);
void process_maps_drop_live(struct process_maps *maps);

/* What the process mapped: one file may have many paths. Borrowed, lives as long as the maps. */
const char *process_map_name(const struct process_map *map);

/* The name of a mapping of this module whose name is not guessed; NULL where there is none. */
const char *process_maps_name_of(const struct process_maps *maps, const struct module *module);

/* Borrowed, lives as long as the maps; NULL where nothing was mapped. */
const struct process_map *process_maps_find(const struct process_maps *maps, uint64_t address);

#endif
