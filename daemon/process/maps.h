/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_MAPS_H
#define STACKD_DAEMON_PROCESS_MAPS_H

/*
 * The executable mappings of a process ("maps"), each with the module of the mapped file, which has
 * symbols and unwind rows. Maps are built from /proc or from mappings that a stack walk found, and
 * are searched by address. They are refcounted and do not change, because a forked child shares the
 * maps of its parent. They may be used from any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/host/proc_maps.h"
#include "daemon/module/module.h"
#include "daemon/process/process.h"

struct unwind_mapping_found;

enum map_kind {
	MAP_FILE,      /* a mapping of a file */
	MAP_SPECIAL,   /* a mapping made by the kernel: [vdso], [vsyscall], [uprobes] */
	MAP_GENERATED, /* a mapping without a file, with code made at run time */
};

struct process_map {
	uint64_t start, end, pgoff;
	dev_t dev;
	uint64_t inode;
	enum map_kind kind;
	bool is_gone;	 /* no longer mapped here; kept to name the addresses of old samples */
	bool is_skipped; /* the file is remote or not a regular file; opening it is not tried
			    again */
	struct module *module; /* module of the mapped file; NULL: no file, or it is not open */
	/*
	 * "[vdso]" or the file's path, a shared_text; NULL: the name is module_path(), or "[anon]"
	 * if there is no module
	 */
	const char *name;
	bool is_name_guessed; /* the name is only a guess, because a stack walk found the
				 mapping */
};

struct process_maps;

/*
 * Limit of the memory of the maps of all processes together, in bytes. While it is exceeded, new
 * maps have only the mappings at the lowest addresses, in MAPS_FEW_BYTES: that is enough for most
 * programs.
 */
#define MAPS_MEMORY_MAX (24 * 1024 * 1024)
#define MAPS_FEW_BYTES	(64 * 1024)

/*
 * Builds maps from the mappings that were read from /proc, or from the first of them while
 * MAPS_MEMORY_MAX is exceeded. `before` is the previous maps of the process, or NULL. A mapping
 * that is also in `before` keeps its module; the files of other mappings are opened through dir_fd,
 * the directory /proc/PID. If a file is mapped only in `before`, this mapping is copied and marked
 * as gone, unless its addresses are, or may be, mapped again. Stores in *out a reference that the
 * caller owns: to `before` if nothing has changed, otherwise to new maps. Returns 0 or -ENOMEM.
 */
int process_maps_build(struct module_registry *registry, int dir_fd, const struct proc_maps *all,
		       struct process_maps *before, struct process_maps **out);

/*
 * Adds the mapping `found` to *maps (NULL: to empty maps). It replaces all mappings that overlap
 * it. `module` is the mapped file; if it is NULL, the mapping holds code made at run time. `path`
 * is the path by which the file is mapped, or NULL if it is not known. Changes *maps in place if
 * the caller has the only reference and no live process is counted. Otherwise drops the caller's
 * reference, and sets *maps to a changed copy. Returns 0, or -ENOMEM with *maps unchanged.
 */
int process_maps_add(struct module_registry *registry, struct process_maps **maps,
		     const struct unwind_mapping_found *found, struct module *module,
		     const char *path);

struct process_maps *process_maps_ref(struct process_maps *maps);
struct process_maps *process_maps_unref(struct process_maps *maps);
void process_maps_unrefp(struct process_maps **maps);

/*
 * Returns the address space, which has the mappings in the form that the unwinder needs. The maps
 * own it. NULL if there was no memory for it, or if no live process uses the maps any more.
 */
struct address_space *process_maps_address_space(const struct process_maps *maps);

/* Returns the number of mappings. */
size_t process_maps_count(const struct process_maps *maps);

/*
 * Returns the memory of the maps in bytes, without modules; and that of all maps of all processes.
 */
size_t process_maps_bytes(const struct process_maps *maps);
size_t process_maps_bytes_all(void);

/*
 * True if mappings from `address` on were left out because of a limit, so that another read of
 * /proc would not show them, either.
 */
bool process_maps_leave_out(const struct process_maps *maps, uint64_t address);

/* Causes the unwind rows of all mapped files to be loaded soon, if they are not loaded. */
void process_maps_want_rows(struct process_maps *maps);

/* Does the same also for big files, whose rows are else loaded only when walks have needed them. */
void process_maps_expect_rows(struct process_maps *maps);

/* Counts the mapped files with code. */
void process_maps_files(const struct process_maps *maps, struct process_files *out);

/*
 * process_maps_add_live() and process_maps_drop_live() count the live processes that use the maps.
 * While the count is above 0, the mapped files are kept open.
 */
void process_maps_add_live(struct process_maps *maps);
void process_maps_drop_live(struct process_maps *maps);

/*
 * Returns the name of the mapping, owned by the map. If a file is mapped, the name is the path by
 * which the process mapped it.
 */
const char *process_map_name(const struct process_map *map);

/* Returns the name of a mapping of this module; ignores guessed names. NULL if there is none. */
const char *process_maps_name_of(const struct process_maps *maps, const struct module *module);

/* Returns the mapping that contains the address, owned by the maps; NULL if there is none. */
const struct process_map *process_maps_find(const struct process_maps *maps, uint64_t address);

#endif
