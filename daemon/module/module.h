/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_MODULE_MODULE_H
#define STACKD_DAEMON_MODULE_MODULE_H

/*
 * The files that processes have mapped. A module is one file in one state (its size and time of
 * change). All processes that map the file share the module, which has the file's symbols and
 * unwind rows. The process table owns the registry of modules. Every function may be called from
 * any thread; the registry's lock is never held while a file is read.
 *
 * A module keeps its file open as long as a live process maps it. Its symbols may thus be evicted
 * and read again even if the file is deleted or its mount namespace no longer exists. When the last
 * such process has exited, the symbols are read and the file is closed, because an open file keeps
 * its file system from being unmounted. The symbols of a closed file cannot be read again, so they
 * are evicted only after all others. A closed module that nothing refers to any more is kept for a
 * minute, as its program may be started again.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct code_file;
struct module;
struct module_registry;
struct parser;
struct remote_mounts;
struct symtab;
struct unwind;
struct unwind_code_key;
struct unwind_file;

struct module_stats {
	size_t modules; /* number of modules that something refers to */
	size_t unused;	/* number of modules to which nothing refers; they are kept for a while */
	size_t files;	/* number of files that are held open */
	size_t symbol_bytes; /* memory of the loaded symbol tables, in bytes */
	uint64_t evictions;  /* number of symbol tables dropped to stay within max_memory */
	uint64_t unreadable; /* number of files that could not be opened or parsed, or exceeded a
				limit */
	uint64_t remote;     /* number of files on network or FUSE file systems, which are not
				opened */
};

/*
 * Makes a registry. max_memory: limit of the memory of all symbol tables, in bytes. NULL when out
 * of memory.
 */
struct module_registry *module_registry_new(uint64_t max_memory);

/*
 * Sets the unwinder to which the unwind rows of modules are passed. Must be called before a module
 * is added. The unwinder must outlive the registry.
 */
void module_registry_set_unwind(struct module_registry *registry, struct unwind *unwind);
struct unwind *module_registry_unwind(struct module_registry *registry);

/* Frees the registry; all references to modules must have been dropped. */
struct module_registry *module_registry_free(struct module_registry *registry);

/*
 * Sets the workers that parse files. Must be called before a module is added; the workers must
 * outlive the registry. Without them, files are parsed in this process, which only tests do.
 */
void module_registry_set_parser(struct module_registry *registry, struct parser *parser);
struct parser *module_registry_parser(struct module_registry *registry);

void module_registry_stats(struct module_registry *registry, struct module_stats *out);

/*
 * Allows reading files on remote file systems, see remote_mounts.h. Looking up a name may then hang
 * as long as such a file system does.
 */
void module_registry_read_remote(struct module_registry *registry);

/*
 * Returns the table of remote file systems, which the registry owns; NULL if remote files are read
 * like others.
 */
struct remote_mounts *module_registry_mounts(struct module_registry *registry);

/* Counts a file that was not opened because it is remote. */
void module_registry_note_remote(struct module_registry *registry);

/* Counts a file that could not be opened. */
void module_registry_note_unreadable(struct module_registry *registry);

/*
 * Finds or adds the module of a file. path_fd is the file, opened with O_PATH; the caller closes
 * it. proc_fd is the directory in /proc of a process that maps the file, or -1. Stores in *out a
 * reference that the caller owns. Returns 0, -EINVAL if path_fd is not a regular file, -ENOMEM, or
 * the error of opening the file. A file that is not an ELF file becomes a module without symbols.
 */
int module_get(struct module_registry *registry, int proc_fd, int path_fd, const char *path,
	       struct module **out);

/*
 * Finds or adds the module of the vdso. The daemon's own vdso is read: all 64-bit processes have
 * the same one. Returns 0, -ENODATA if there is no vdso, or -ENOMEM.
 */
int module_get_vdso(struct module_registry *registry, struct module **out);
/* Returns the size of the vdso in memory, in bytes; 0 when there is none. */
size_t module_vdso_size(void);

struct module *module_ref(struct module *module);
struct module *module_unref(struct module *module);

/*
 * module_add_live() and module_drop_live() count the live processes that map the module's file.
 * When the count becomes 0, the file is queued for module_registry_settle(), which closes it.
 */
void module_add_live(struct module *module);
void module_drop_live(struct module *module);

/*
 * Queues the module for module_registry_load_rows(), unless its unwind rows are loaded already or
 * not needed.
 */
void module_want_rows(struct module *module);

/*
 * True if the module's file is closed and has to be opened again, because its rows or its symbols
 * were evicted and are needed. module_get() opens it.
 */
bool module_needs_file(struct module *module);

/*
 * Reads the unwind rows of one module that module_want_rows() has queued; modules with small files
 * come first. If is_small_only is true, modules with big files stay in the queue. False if there
 * was no module to read.
 */
bool module_registry_load_rows(struct module_registry *registry, bool is_small_only);

/* The lists of modules that wait for a thread to read or close their files. */
struct module_work {
	bool has_small_files;  /* unwind rows of small files are to be read */
	bool has_big_files;    /* unwind rows of big files are to be read */
	bool has_unused_files; /* files that no live process maps any more are to be closed */
};

/* Returns which of these lists are not empty. */
struct module_work module_registry_work(struct module_registry *registry);

/*
 * Opens the file that was recorded with this identity and path. If a module of root's holds the
 * file open, duplicates the module's descriptor. Otherwise opens `path`, if the file there has this
 * identity. Also opens the separate debug file; *debug_fd_out is -1 if there is none. The caller
 * owns both descriptors; their numbers are fd_min or higher. Returns 0 or -ENOENT.
 */
int module_registry_open(struct module_registry *registry, uint64_t file_id, const char *path,
			 int fd_min, int *fd_out, int *debug_fd_out);

/*
 * Returns a hash of the file's state. Stack walks in the kernel compare it to check that a mapping
 * is still of this file in this state. `base` is the address at which the file's first byte is
 * mapped, or would be. Never returns 0.
 */
uint64_t module_state(const struct module *module, uint64_t inode, uint64_t base);

/*
 * Returns the unwinder's data of the module's file, which the module owns; NULL if the file has no
 * code or the unwinder has too many files.
 */
struct unwind_file *module_unwind(const struct module *module);

/*
 * Records that mapped code with this key is code of the module. Stack walks, which get the key from
 * the kernel, then find the module's unwind rows even in processes that the daemon does not know
 * yet. False, and does nothing, if the key belongs to another state of the file.
 */
bool module_learn_code(struct module *module, const struct unwind_code_key *key);

/*
 * Opens a file by the inode number in the key, and records the key for the file's module. Not all
 * file systems support this. Returns a reference to the module, or NULL if opening fails or the
 * file has changed.
 */
struct module *module_open_code(struct module_registry *registry,
				const struct unwind_code_key *key);

/* Returns a reference to the module that the key identifies, NULL if the key is not recorded. */
struct module *module_find_code(struct module_registry *registry,
				const struct unwind_code_key *key);

/*
 * Drops symbol tables that can be read again and were not used for idle_ns. Also drops modules to
 * which nothing has referred for half of that time. May be called often: a call does nothing if an
 * earlier call did this less than idle_ns / 8 ago.
 */
void module_registry_drop_idle(struct module_registry *registry, int64_t idle_ns);

/*
 * Closes one file that no live process maps any more, after reading its symbols and unwind rows.
 * False if there was no such file.
 */
bool module_registry_settle(struct module_registry *registry);

/* Returns the path of the module's file, which the module owns. */
const char *module_path(const struct module *module);
uint64_t module_file_id(const struct module *module);
/*
 * Returns a hash of the file's state (see struct file_state) and of its path. Two modules with the
 * same key give the same symbols.
 */
uint64_t module_key(const struct module *module);
bool module_is_elf(const struct module *module);

/*
 * Returns the build-id of the file and where its code is; the module owns it. NULL if the file has
 * no build-id.
 */
struct code_file *module_code(const struct module *module);

/*
 * Returns the ELF virtual address of the byte at file_offset; file_offset itself if no segment
 * contains the byte.
 */
uint64_t module_address(const struct module *module, uint64_t file_offset);

/*
 * Returns a reference to the module's symbol table, which is read if it is not loaded; NULL if the
 * file has no readable symbols. The table is not evicted before module_registry_put_symbols() drops
 * the reference.
 */
struct symtab *module_get_symbols(struct module *module);
/* Does the same if the table is loaded. *is_missing_out: it is not, but may be read. */
struct symtab *module_loaded_symbols(struct module *module, bool *is_missing_out);
/* False if the table could not be read a moment ago, for want of memory or of a worker. */
bool module_symbols_are_due(struct module *module);
/*
 * Returns a number that grows when a symbol table was read, and when one is due again that could
 * not be read.
 */
uint32_t module_registry_loads(struct module_registry *registry);
void module_registry_put_symbols(struct module_registry *registry, struct symtab *symbols);

/* Returns for whose share the file takes, see parser_owner_key(). */
uint64_t module_owner_key(const struct module *module);

#endif
