/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_MODULE_INTERNAL_H
#define STACKD_DAEMON_MODULE_INTERNAL_H

/*
 * The structs and functions that the files of this room share: small helpers (file.c), modules and
 * the registry (module.c), symbol tables (symbols.c), unwind rows (unwind_rows.c), keys of code
 * (code_keys.c), opening by identity (open.c). Locks are taken in this order: a module's load_lock,
 * then registry.lock.
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
	unsigned modules;	     /* modules that share the table */
	unsigned users;		     /* lookups that use the table right now */
	struct module_symbols *next; /* registry.symbols */
};

struct module {
	struct module_registry *registry;
	UT_hash_handle hh;	 /* in registry.modules */
	struct file_state state; /* the vdso has only a size */
	unsigned refs;
	char *path;
	uint64_t file_id;
	bool is_elf;
	struct elf_file elf;
	/* Under registry.lock: */
	unsigned live;
	bool is_failed; /* symbols cannot be read, and are not tried again */
	struct module_symbols *symbols;
	int64_t used_ns;
	bool is_settling;
	struct module *next_settling;
	struct unwind_file
		*unwind; /* NULL: no code, or too many files; set before the module is shared */
	bool is_wanting; /* it is in registry.wanting */
	struct module *next_wanting;
	/* Held while the file is read: */
	pthread_mutex_t load_lock;
	int fd;	      /* changed only with both locks held; -1: closed */
	int debug_fd; /* its separate debug file, open as long as fd; -1: none */
};

/* The module behind a key by which the kernel knows code. */
struct module_code {
	UT_hash_handle hh; /* in registry.codes */
	struct unwind_code_key key;
	struct module *module; /* without a reference */
};

struct module_registry {
	pthread_mutex_t lock;
	struct module *modules;	   /* by state */
	struct module_code *codes; /* by key, MODULE_CODES_MAX at most */
	struct module_symbols *symbols;
	struct module
		*settling; /* modules no live process maps, to be closed; each with a reference */
	struct module *wanting[2]; /* modules whose rows are to be read, each with a reference: [1]
				      are the big files */
	struct unwind *unwind;	   /* NULL: user stacks are not walked */
	uint64_t max_memory;
	size_t files_max;
	struct remote_mounts *mounts; /* NULL: remote files are read, too */
	struct module_stats stats;    /* without symbol_bytes, which is computed */
	int64_t idle_checked_ns;
	bool is_over; /* symbol tables exceed max_memory, and all of them are in use */
};

/* file.c */
/* Returns the hash by which a file is known on disk: of its build-id, else of its state. */
uint64_t module_identity(const struct elf_file *elf, const struct file_state *state);
/* Returns the vdso of this process, which is size bytes large. */
struct elf_source module_vdso_source(size_t size);
/* Returns how many files the module holds open. */
size_t module_files(const struct module *module);
/* Returns *fd, and sets *fd to -1. */
int module_take_fd(int *fd);

/* unwind_rows.c */
void module_unwind_init(struct module *module);
/* True if the rows take long to read, so that other files come first. */
bool module_is_big(const struct module *module);
/* Reads the rows now, if they are wanted and the file is open. */
void module_unwind_load(struct module *module);

/* code_keys.c, with registry.lock held: forgets the keys of a module that is about to be freed. */
void module_codes_forget(struct module *module);

/* symbols.c; the first two with registry.lock held */
size_t module_registry_symbol_bytes(struct module_registry *registry);
void module_symbols_drop_unused(struct module_registry *registry, struct module_symbols *symbols);
/* Reads symbols and rows, then closes the file. */
void module_close(struct module *module);

#endif
