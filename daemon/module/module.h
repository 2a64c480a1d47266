/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_MODULE_MODULE_H
#define STACKD_DAEMON_MODULE_MODULE_H

/*
 * The files that processes have mapped. A module is one state of a file, shared by all processes
 * that map it; it has the file's symbols and its unwind rows. The process table owns the registry;
 * every function may be called from any thread, and the registry's lock is never held while a file
 * is read.
 *
 * A module keeps its file open as long as a live process maps it, so that its symbols may be
 * evicted and read again even if the file is deleted or its mount namespace is gone. When the last
 * such process has exited, the symbols are read and the file is closed, because an open file keeps
 * its file system from being unmounted. After that the symbol table cannot be read again, so it is
 * the last to be evicted.
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
	size_t files; /* files held open */
	size_t symbol_bytes;
	uint64_t evictions;
	uint64_t unreadable; /* files that could not be opened or parsed, or exceeded a limit */
	uint64_t remote;     /* files not opened: on a network or FUSE file system */
};

/* Makes a registry. max_memory bounds the symbol tables, in bytes. NULL when out of memory. */
struct module_registry *module_registry_new(uint64_t max_memory);

/*
 * Sets the unwinder that gets the rows, before any module is added. Borrowed until the registry is
 * freed.
 */
void module_registry_set_unwind(struct module_registry *registry, struct unwind *unwind);
struct unwind *module_registry_unwind(struct module_registry *registry);

/* Frees the registry; all references to modules must have been dropped. */
struct module_registry *module_registry_free(struct module_registry *registry);

void module_registry_stats(struct module_registry *registry, struct module_stats *out);

/* Has remote files read, too. Looking up names may then hang as long as their file system does. */
void module_registry_read_remote(struct module_registry *registry);

/* Returns what is known of remote devices, borrowed; NULL where remote files are read, too. */
struct remote_mounts *module_registry_mounts(struct module_registry *registry);

/*
 * True if a mapped file must not be touched, see remote_mounts.h; proc_fd is the directory in /proc
 * of the process.
 */
bool module_registry_is_remote(struct module_registry *registry, int proc_fd, uint64_t dev);
/* Counts a file that was not opened because it is remote. */
void module_registry_note_remote(struct module_registry *registry);

/* Counts a file that could not be opened. */
void module_registry_note_unreadable(struct module_registry *registry);

/*
 * Finds or adds the module of a file. path_fd is opened with O_PATH and stays the caller's; proc_fd
 * is the process's directory in /proc, or -1. *out is a reference owned by the caller. Returns 0,
 * -EINVAL for anything but a regular file, -ENOMEM, or the error of opening it. A file that is not
 * an ELF file becomes a module without symbols.
 */
int module_get(struct module_registry *registry, int proc_fd, int path_fd, const char *path,
	       struct module **out);

/*
 * Finds or adds the module of the vdso of this process, which every process of the same word size
 * has. -ENODATA when there is none.
 */
int module_get_vdso(struct module_registry *registry, struct module **out);
/* Returns the size of the vdso in memory, in bytes; 0 when there is none. */
size_t module_vdso_size(void);

struct module *module_ref(struct module *module);
struct module *module_unref(struct module *module);

/* Counts live processes that map it. At 0 it is closed later, see module_registry_settle(). */
void module_add_live(struct module *module);
void module_drop_live(struct module *module);

/* Has the module's unwind rows read soon, see module_registry_load_rows(). */
void module_want_rows(struct module *module);

/*
 * Reads the rows of one file that wants them, a small one first. False when there is none to read.
 */
bool module_registry_load_rows(struct module_registry *registry, bool is_small_only);

/*
 * Opens the file with this identity: the one that is held open, or the file that is at path on this
 * host now, if it is the same. Also opens its separate debug file, -1 where there is none. Both are
 * owned by the caller and numbered from fd_min on. 0 or -ENOENT.
 */
int module_registry_open(struct module_registry *registry, uint64_t file_id, const char *path,
			 int fd_min, int *fd_out, int *debug_fd_out);

/*
 * Returns the id by which the BPF unwinder recognises this file state at this load base: base is
 * where the first byte of the file is or would be mapped. Never 0.
 */
uint64_t module_state(const struct module *module, uint64_t inode, uint64_t base);

/* Returns the unwinder's file, borrowed; NULL where the module has no code. */
struct unwind_file *module_unwind(const struct module *module);

/*
 * Records that the kernel's key stands for the module's code, so that walks find its rows even in
 * processes that are not known yet. Does nothing if the key is of another state of the file.
 */
void module_learn_code(struct module *module, const struct unwind_code_key *key);

/*
 * Opens the file that the key stands for, where its file system lets files be opened by inode, and
 * records the key. Returns a reference, or NULL where that fails or the file has another state by
 * now.
 */
struct module *module_open_code(struct module_registry *registry,
				const struct unwind_code_key *key);

/* Returns a reference to the module that the key stands for, NULL where that is not known. */
struct module *module_find_code(struct module_registry *registry,
				const struct unwind_code_key *key);

/*
 * Drops symbol tables that can be read again and were not used for idle_ns. May be called often: it
 * looks only now and then.
 */
void module_registry_drop_idle(struct module_registry *registry, int64_t idle_ns);

/* Reads and closes one file that no live process maps. False when there is none. */
bool module_registry_settle(struct module_registry *registry);

/* Returns the path, borrowed from the module. */
const char *module_path(const struct module *module);
uint64_t module_file_id(const struct module *module);
bool module_is_elf(const struct module *module);

/*
 * Returns the ELF virtual address of a byte of the file; the offset itself where no segment holds
 * it.
 */
uint64_t module_address(const struct module *module, uint64_t file_offset);

/*
 * Returns the symbol table, loading it if need be: a reference to be dropped by
 * module_registry_put_symbols(), which keeps the table from being evicted. NULL where the file has
 * no readable symbols.
 */
struct symtab *module_get_symbols(struct module *module);
void module_registry_put_symbols(struct module_registry *registry, struct symtab *symbols);

#endif
