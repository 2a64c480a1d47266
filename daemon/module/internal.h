/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_MODULE_INTERNAL_H
#define STACKD_DAEMON_MODULE_INTERNAL_H

/*
 * Declares the structs and functions that the source files of this folder share. Lock order: a
 * module's load_lock is taken before registry.lock.
 *
 * The source files form layers, listed here from the lowest to the highest; each calls only files
 * of lower layers: file.c (small helpers) and unused.c (modules without references) < code_keys.c
 * (keys by which the kernel identifies code) < module.c (the registry, references to modules) <
 * unwind_rows.c < symbols.c (symbol tables, closing files) < get.c (finding or adding the module
 * of a file) < open.c (opening files by their identity).
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "bpf/unwind_shared.h"
#include "common/hash_table.h"
#include "daemon/base/code_file.h"
#include "daemon/base/file_state.h"
#include "daemon/elf/file.h"
#include "daemon/host/remote_mounts.h"
#include "daemon/module/module.h"
#include "daemon/parse/parse.h"
#include "daemon/unwind/unwind.h"

#define MODULE_CODES_MAX 4096

struct module_symbols {
	struct symtab *symtab;
	unsigned modules;	     /* number of modules that share the table */
	unsigned users;		     /* number of references to the table; while above 0, it
					stays loaded */
	struct module_symbols *next; /* next in the list registry.symbols */
};

struct module {
	struct module_registry *registry;
	UT_hash_handle hh;	 /* links the module into the hash table registry.modules */
	uid_t owner;		 /* user to whom the file belonged when it was opened */
	uint64_t group;		 /* see parse_group() */
	struct file_state state; /* state of the file when it was opened; for the vdso, only the
				    size is set */
	unsigned refs;
	/*
	 * time of CLOCK_MONOTONIC at which the last reference was dropped; 0: there are references,
	 * or the module is about to be freed
	 */
	int64_t unused_ns;
	struct module *unused_prev, *unused_next; /* in registry.unused, while unused_ns is not 0 */
	struct module_code *codes; /* the entries of registry.codes that name the module */
	char *path;
	uint64_t file_id;
	uint64_t key; /* see module_key() */
	bool is_elf;
	struct elf_file elf;
	struct code_file *code; /* NULL: the file has no build-id */
	/* registry.lock protects the members from here to next_wanting: */
	unsigned live;	/* number of live processes that map the file */
	bool is_failed; /* the symbols could not be read, or were evicted for good; reading them
			   is not tried again */
	int64_t symbols_from_ns; /* they could not be read for now: time of CLOCK_MONOTONIC from
				    which on they are tried again */
	struct module_symbols *symbols;
	int64_t used_ns;
	bool is_settling;
	struct module *next_settling;
	struct unwind_file *unwind; /* the data that the unwinder has about the file; NULL: the
				       file has no code, or the unwinder has too many files.
				       Constant after the module was added to the registry */
	bool is_wanting;	    /* the module is in a list of registry.wanting */
	struct module *next_wanting;
	pthread_mutex_t load_lock; /* held while symbols or unwind rows are read from the file */
	int fd;	      /* descriptor of the file; -1: closed. Changed only with load_lock and
			 registry.lock held */
	int debug_fd; /* descriptor of the separate debug file; -1: none. Closed together with fd */
};

/*
 * An entry of registry.codes: the module that has the code which the kernel identifies by this key.
 */
struct module_code {
	UT_hash_handle hh; /* links the entry into the hash table registry.codes */
	struct unwind_code_key key;
	struct module *module;		 /* not counted as a reference to the module */
	struct module_code *prev, *next; /* in module.codes */
};

struct module_registry {
	pthread_mutex_t lock;
	struct module *modules;	   /* hash table of all modules, by the state of their file */
	struct module *unused;	   /* those without references; unused for longest: first */
	struct module_code *codes; /* hash table by key, with MODULE_CODES_MAX entries at most */
	struct module_symbols *symbols;
	_Atomic uint32_t loads; /* see module_registry_loads() */
	/*
	 * From when on a module may be tried again whose symbols could not be read: the first one,
	 * 0 if there is none, and the last one.
	 */
	_Atomic int64_t retry_ns;
	int64_t last_retry_ns;
	struct module *settling;      /* modules whose file is to be closed, because no live
					 process maps it; the list has a reference to each */
	struct module *wanting[2];    /* modules whose unwind rows are to be read, in two lists
					 that have references to them: [0] with small files, [1]
					 with big files */
	struct unwind *unwind;	      /* NULL: user stacks are not walked */
	uint64_t max_memory;	      /* maximum memory of all symbol tables, in bytes */
	size_t files_max;	      /* maximum number of files that are held open */
	struct parser *parser;	      /* parses the files; NULL: this process does, as in tests */
	struct remote_mounts *mounts; /* known remote file systems; NULL: their files are read
					 like others */
	struct module_stats stats;    /* statistics, without symbol_bytes, which is computed
					 when it is asked for */
	size_t n_unused;	      /* number of modules without references */
	int64_t idle_checked_ns;
	bool is_over; /* all symbol tables are in use, and take more than max_memory */
};

/* Defined in unused.c. These functions are called with registry.lock held. */
/* Adds a reference to a module, even if it has no references yet. */
void module_use(struct module *module);
/* Removes a module from the list of those without references, if it is there. */
void module_unused_remove(struct module *module);
/*
 * Called when the last reference to a module was dropped. Returns the module that has to be removed
 * now: this module, another one that has been unused for longer, or NULL.
 */
struct module *module_leave(struct module *module);
/* Returns a module whose last reference was dropped before time_ns; NULL if there is none. */
struct module *module_unused_before(struct module_registry *registry, int64_t time_ns);

/* module.c */

/* Frees the modules whose last reference was dropped before before_ns. */
void module_registry_drop_unused(struct module_registry *registry, int64_t before_ns);
/* Frees *module, which is not in the registry (any more). Does nothing if it is NULL. */
void module_destroyp(struct module **module);
/* These two functions are called with registry.lock held: */
size_t module_registry_symbol_bytes(struct module_registry *registry);
void module_symbols_drop_unused(struct module_registry *registry, struct module_symbols *symbols);

/* file.c */
/*
 * Returns the hash that identifies a file in stored data: a hash of its build-id, and of its owner
 * if that is not root. Every user can give a file the build-id of another one: it must not have the
 * frames of that file, whose functions would have its names where rows are added up; one bit tells
 * files of root from all others. For a file without a build-id, its device, inode, size and time of
 * change take its place.
 */
uint64_t module_identity(const struct elf_file *elf, const struct file_state *state, uid_t owner);
/*
 * Makes what frames keep of the file: the build-id and the first segments with code. NULL if the
 * file has no build-id or when out of memory.
 */
struct code_file *module_code_new(const struct elf_file *elf);
/* Returns the module's file in the form in which it is passed to a worker. */
struct parse_file module_parse_file(const struct module *module);
/*
 * A struct debug_file_choice for a separate debug file: true if fd is that of debug->elf, and
 * belongs to root or to the owner of that file. Another user could show a debug file of his own, in
 * a mount namespace of his own, for a file that all users run.
 */
struct module_debug {
	struct parser *parser;
	uid_t owner;	  /* of the ELF file */
	uint64_t group;	  /* see parse_group() */
	const char *path; /* of the ELF file */
	const struct elf_file *elf;
};
bool module_is_debug_of(const void *debug, int fd);
/* Returns the number of files that the module holds open. */
size_t module_files(const struct module *module);
/* Returns *fd and sets *fd to -1, so that the caller owns the descriptor. */
int module_take_fd(int *fd);

/* Defined in unwind_rows.c: */
void module_unwind_init(struct module *module);
/*
 * True if the file is so large that reading its unwind rows takes long. Small files are read first.
 */
bool module_is_big(const struct module *module);
/*
 * Reads the module's unwind rows now and passes them to the unwinder, if they are not loaded yet
 * and the file is open.
 */
void module_unwind_load(struct module *module);

/*
 * Defined in code_keys.c. Removes the keys of a module that is about to be freed. Called with
 * registry.lock held.
 */
void module_codes_forget(struct module *module);

/*
 * Defined in symbols.c. Closes the file of a module. Before that, reads its symbols and unwind
 * rows, if they are not loaded: they will be used if the program is started again.
 */
void module_close(struct module *module);

#endif
