/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_MODULE_MODULE_H
#define STACKD_DAEMON_MODULE_MODULE_H

/*
 * Files that processes have mapped: in go descriptors, out come modules shared by all processes
 * that map the same file, and names for the bytes in it. The process table owns the registry;
 * every function may be called from any thread, and none holds a lock while it reads a file.
 *
 * A module keeps its file open as long as a live process maps it, so that its symbols may be
 * evicted and read again even if the file was deleted or its mount namespace is gone. When the
 * last such process has gone, the symbols are read and the file is closed, for an open file keeps
 * its file system from being unmounted. From then on the table cannot be read again, so it is the
 * last to be evicted.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct module;
struct module_registry;
struct remote_mounts;
struct symtab;
struct unwind;
struct unwind_code_key;
struct unwind_file;

struct module_stats {
	size_t modules;
	size_t files; /* held open */
	size_t symbol_bytes;
	uint64_t evictions;
	uint64_t unreadable; /* could not be opened or parsed, or over a limit */
	uint64_t remote;     /* not opened: another host or a program serves them */
};

/* max_memory in bytes bounds the symbol tables. NULL when out of memory. */
struct module_registry *module_registry_new(uint64_t max_memory);

/* Where rows go; before any module is got. Borrowed, until the registry is freed. */
void module_registry_set_unwind(struct module_registry *registry, struct unwind *unwind);
struct unwind *module_registry_unwind(struct module_registry *registry);

/* All modules must have been put. */
struct module_registry *module_registry_free(struct module_registry *registry);

void module_registry_stats(struct module_registry *registry, struct module_stats *out);

/* From now on remote files are read too: what they hang on, names hang on. */
void module_registry_read_remote(struct module_registry *registry);

/* Which devices are remote; NULL where all files are read. Borrowed. */
struct remote_mounts *module_registry_mounts(struct module_registry *registry);

/* Whether a mapped file is not to be touched, see mounts.h; proc_fd is the process's. */
bool module_registry_is_remote(struct module_registry *registry, int proc_fd, uint64_t dev);
void module_registry_note_remote(struct module_registry *registry);

/* Counts a file that could not be opened. */
void module_registry_note_unreadable(struct module_registry *registry);

/*
 * Gets the module of a file; path_fd is open with O_PATH and stays the caller's, proc_fd is the
 * process's directory in /proc, or -1. Only regular files are opened: -EINVAL for others. A regular
 * file that is no ELF file is a module without symbols. The reference is owned by the caller.
 */
int module_get(struct module_registry *registry, int proc_fd, int path_fd, const char *path,
	       struct module **out);

/* The vdso this very process runs on: every process of its word size has the same. */
int module_get_vdso(struct module_registry *registry, struct module **out);
/* Its size in memory, bytes; 0 when there is none. */
size_t module_vdso_size(void);

struct module *module_ref(struct module *module);
struct module *module_unref(struct module *module);

/* How many live users it has; at 0 it is settled later, see module_registry_settle(). */
void module_add_live(struct module *module);
void module_drop_live(struct module *module);

/* The rows of the module's code are of use now: they are read later, see below. */
void module_want_rows(struct module *module);

/* Reads the rows of one file that wants them, a small one first. False when there is none. */
bool module_registry_load_rows(struct module_registry *registry, bool is_small_only);

/*
 * Opens the file of this identity: the one that is held open, or what is at path on this host now
 * if that is the same one; and its separate debug file, -1 where there is none. Owned by the
 * caller, both are numbered from fd_min on. -ENOENT.
 */
int module_registry_open(struct module_registry *registry, uint64_t file_id, const char *path,
			 int fd_min, int *fd_out, int *debug_fd_out);

/* What walks know the file by, mapped so that its first byte is (or would be) at base; never 0. */
uint64_t module_state(const struct module *module, uint64_t inode, uint64_t base);

/* Its code for walks, borrowed; NULL where it has none. */
struct unwind_file *module_unwind(const struct module *module);

/*
 * The kernel knows the module's code by this key, as a walk has found it: from now on walks find it
 * in processes that are not known yet. Nothing where the key is of another state of the file.
 */
void module_learn_code(struct module *module, const struct unwind_code_key *key);

/*
 * Opens the file that the kernel knows by this key, where its file system lets files be opened by
 * inode, and learns it: a reference. NULL where that cannot be, or it is another state of the file.
 */
struct module *module_open_code(struct module_registry *registry,
				const struct unwind_code_key *key);

/* The module whose code it is, a reference; NULL where that is not known. */
struct module *module_find_code(struct module_registry *registry,
				const struct unwind_code_key *key);

/* Drops symbols that can be read again and were not asked for in idle_ns; looks now and then. */
void module_registry_drop_idle(struct module_registry *registry, int64_t idle_ns);

/* Reads and closes one file nobody maps any more. False when there is none. */
bool module_registry_settle(struct module_registry *registry);

/* Borrowed; lives as long as the module. */
const char *module_path(const struct module *module);
uint64_t module_file_id(const struct module *module);
bool module_is_elf(const struct module *module);

/* The ELF virtual address of a byte of the file; the offset itself where no segment holds it. */
uint64_t module_address(const struct module *module, uint64_t file_offset);

/*
 * The symbols, loaded if need be: a reference for module_registry_put_symbols(), until when they
 * are not evicted. NULL where the file has none that could be read.
 */
struct symtab *module_get_symbols(struct module *module);
void module_registry_put_symbols(struct module_registry *registry, struct symtab *symbols);

#endif
