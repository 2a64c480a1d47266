/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_MODULE_INTERNAL_H
#define STACKD_DAEMON_MODULE_INTERNAL_H

/*
 * What the files behind module.h share: files and their identity (module.c), symbols and their
 * memory (module_symbols.c). Locks are taken in this order: a module's load_lock, registry.lock.
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
	unsigned modules;	     /* that share it */
	unsigned users;		     /* who look names up right now */
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
	bool is_failed; /* symbols cannot be read, now or later */
	struct module_symbols *symbols;
	int64_t used_ns;
	bool is_settling;
	struct module *next_settling;
	struct unwind_file *unwind; /* NULL: no code, or no room; set before it is shared */
	bool is_wanting;	    /* in registry.wanting */
	struct module *next_wanting;
	/* Taken before registry.lock, while the file is read: */
	pthread_mutex_t load_lock;
	int fd;	      /* changed under both locks */
	int debug_fd; /* its separate debug file, open as long as it is; -1: none */
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
	struct module *settling;   /* each with a reference */
	struct module *wanting[2]; /* rows; each with a reference; big files second */
	struct unwind *unwind;	   /* NULL: stacks are not walked */
	uint64_t max_memory;
	size_t files_max;
	struct remote_mounts *mounts; /* NULL: all files are read */
	struct module_stats stats;    /* but for symbol_bytes */
	int64_t idle_checked_ns;
	bool is_over; /* max_memory, all of it by tables in use */
};

/* file.c */
uint64_t module_identity(const struct elf_file *elf, const struct file_state *state);
struct elf_source module_vdso_source(size_t size);
size_t module_files(const struct module *module);
/* The fd, and -1 stays behind. */
int module_take_fd(int *fd);

/* module_unwind.c */
void module_unwind_init(struct module *module);
/* Its rows take long to read: others come first. */
bool module_is_big(const struct module *module);
/* Reads the rows now if they are wanted. */
void module_unwind_load(struct module *module);

/* module_codes.c, with registry.lock held: the module ends. */
void module_codes_forget(struct module *module);

/* module_symbols.c; the first two with registry.lock held. */
size_t module_registry_symbol_bytes(struct module_registry *registry);
void module_symbols_drop_unused(struct module_registry *registry, struct module_symbols *symbols);
/* Reads the symbols and closes the file. */
void module_close(struct module *module);

#endif
