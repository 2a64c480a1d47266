/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_MODULE_INTERNAL_H
#define STACKD_DAEMON_MODULE_INTERNAL_H

/*
 * The structs and functions that the sources of this room share: small helpers (file.c), modules
 * and the registry (module.c), symbol tables (symbols.c), unwind rows (unwind_rows.c), keys by
 * which the kernel identifies code (code_keys.c), opening files by their identity (open.c). Locks
 * are taken in this order: a module's load_lock, then registry.lock.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "bpf/unwind_shared.h"
#include "daemon/base/file_state.h"
#include "daemon/base/hash_table.h"
#include "daemon/elf/file.h"
#include "daemon/host/remote_mounts.h"
#include "daemon/module/module.h"
#include "daemon/unwind/unwind.h"

#define MODULE_CODES_MAX 512

struct module_symbols {
	struct symtab *symtab;
	unsigned modules;	     /* number of modules that share the table */
	unsigned users;		     /* number of references to the table, which keep it loaded */
	struct module_symbols *next; /* next in the list registry.symbols */
};

struct module {
	struct module_registry *registry;
	UT_hash_handle hh;	 /* links the module into the hash table registry.modules */
	struct file_state state; /* state of the file; for the vdso, only the size is set */
	unsigned refs;
	char *path;
	uint64_t file_id;
	bool is_elf;
	struct elf_file elf;
	/* Members that registry.lock protects: */
	unsigned live;	/* number of live processes that map the file */
	bool is_failed; /* the symbols could not be read, and are not tried again */
	struct module_symbols *symbols;
	int64_t used_ns;
	bool is_settling;
	struct module *next_settling;
	struct unwind_file *unwind; /* NULL: the file has no code, or there are too many files; does
				       not change after the module was added to the registry */
	bool is_wanting;	    /* the module is in the list registry.wanting */
	struct module *next_wanting;
	pthread_mutex_t load_lock; /* held while the file is read */
	int fd;	      /* the open file, -1: closed; changed only with both locks held */
	int debug_fd; /* the separate debug file, closed together with fd; -1: none */
};

/* An entry that maps a key, by which the kernel identifies code, to the module with this code. */
struct module_code {
	UT_hash_handle hh; /* links the entry into the hash table registry.codes */
	struct unwind_code_key key;
	struct module *module; /* the entry holds no reference to the module */
};

struct module_registry {
	pthread_mutex_t lock;
	struct module *modules;	   /* hash table by state */
	struct module_code *codes; /* hash table by key, with MODULE_CODES_MAX entries at most */
	struct module_symbols *symbols;
	struct module *settling;   /* list of modules that are to be closed because no live process
				      maps   their file; it holds references */
	struct module *wanting[2]; /* lists of modules whose unwind rows are to be read: [0] with
				      small files, [1] with big ones; they hold references */
	struct unwind *unwind;	   /* NULL: user stacks are not walked */
	uint64_t max_memory;	   /* limit of the memory of all symbol tables, in bytes */
	size_t files_max;	   /* limit of the files that are held open */
	struct remote_mounts *mounts; /* NULL: files on remote file systems are read, too */
	struct module_stats stats;    /* all members but symbol_bytes, which is computed */
	int64_t idle_checked_ns;
	bool is_over; /* symbol tables exceed max_memory, but all of them are in use */
};

/* file.c */
/*
 * Returns the hash that identifies a file in stored data: a hash of its build-id or, if it has
 * none, of its state.
 */
uint64_t module_identity(const struct elf_file *elf, const struct file_state *state);
/* Returns the vdso of the daemon as an ELF file in memory. size: its size in bytes. */
struct elf_source module_vdso_source(size_t size);
/* Returns the number of files that the module holds open. */
size_t module_files(const struct module *module);
/* Returns *fd and sets *fd to -1, so that the caller owns the descriptor. */
int module_take_fd(int *fd);

/* unwind_rows.c */
void module_unwind_init(struct module *module);
/* True if the file is so large that reading its rows takes long: other files are read first. */
bool module_is_big(const struct module *module);
/* Reads and loads the module's unwind rows now, if they are wanted and its file is open. */
void module_unwind_load(struct module *module);

/*
 * code_keys.c: removes the keys of a module that is about to be freed. Called with registry.lock
 * held.
 */
void module_codes_forget(struct module *module);

/* symbols.c; the first two functions are called with registry.lock held */
size_t module_registry_symbol_bytes(struct module_registry *registry);
void module_symbols_drop_unused(struct module_registry *registry, struct module_symbols *symbols);
/* Reads the symbols and rows of a module that are not loaded yet, then closes its file. */
void module_close(struct module *module);

#endif
