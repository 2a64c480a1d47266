/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_INTERNAL_H
#define STACKD_DAEMON_PROCESS_INTERNAL_H

/*
 * What the files behind process.h share: the table (process.c), the thread that reads /proc
 * (process_reader.c) and the naming of addresses (process_lookup*.c). Everything here is under
 * table.lock unless said otherwise; the lock is never held while /proc or a file is read. Locks
 * are taken in this order: table.lock, a module's load lock or the registry's.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/process/maps.h"
#include "daemon/process/perf_map.h"
#include "daemon/process/process.h"

#define PROCESS_BUCKETS 4096
#define READ_QUEUE_MAX	1024

/* A string that was handed out; kept while the process is referenced, also when outdated. */
struct process_text {
	struct process_text *next; /* process.texts */
	char text[];
};

struct held_symbols {
	struct module *module;
	struct symtab *symtab;
};

/* What strings were handed out of, until process_release_symbols(). */
struct process_held {
	struct process_maps **maps;
	size_t n_maps;
	struct held_symbols *symbols;
	size_t n_symbols;
	struct perf_map **perfs;
	size_t n_perfs;
	char **names; /* that were made for functions without one */
	size_t n_names;
};

struct process {
	struct process_table *table;
	struct process *next; /* in table.buckets */
	struct process_id id;
	int64_t start_real_ns;
	bool is_gen_known; /* not when found in /proc, until it is seen */
	bool is_kernel;
	bool has_exited;   /* or its image was replaced by an exec */
	bool is_late;	   /* counted in too_late */
	unsigned refs;	   /* of others; the table itself has none */
	int64_t seen_ns;   /* CLOCK_MONOTONIC */
	int64_t exited_ns; /* likewise, when it was told */
	size_t dead_bytes; /* in table.dead_bytes for it */
	char comm[16];
	struct process_text *texts;
	const char *exe, *cgroup;    /* into texts */
	uint64_t exe_dev, exe_inode; /* 0 where unknown */
	bool is_exe_guessed;	     /* may be of the image before; else the first one read stays */

	struct process_maps *maps;	  /* NULL until read */
	struct process_version *versions; /* process_versions.c, the newest first */
	uint64_t reads_begun, read_applied;
	struct process_asked *asked; /* process_found.c; NULL: nothing */
	unsigned n_asked;
	int64_t found_ns; /* up to when its share of found mappings is used up */

	/* Reading again because of an unknown address: */
	unsigned attempts;
	int64_t missed_ns, next_read_ns;

	/* Names of code made at run time, process_lookup_jit.c: */
	struct perf_map *perf; /* NULL: there is none */
	struct perf_map_key perf_key;
	bool is_perf_refused;
	bool had_perf; /* a map was read, of which more may be read at once */
	int64_t perf_checked_ns, perf_due_ns;

	struct process_held held;

	struct process_walks *walks; /* of walks_exe */
	const char *walks_exe;
};

struct read_request {
	struct process *process; /* with a reference */
	int64_t due_ns;
	bool is_repeat;
};

struct process_table {
	pthread_mutex_t lock;
	pthread_cond_t wake;	   /* of the reader, CLOCK_MONOTONIC */
	pthread_cond_t files_wake; /* of the thread that reads big files */
	pthread_t reader, files;
	bool has_reader, has_files, is_stopping;
	bool is_files_woken;
	bool is_woken; /* work has come since the reader last looked */
	struct process *buckets[PROCESS_BUCKETS];
	struct module_registry *registry; /* has its own lock */
	struct read_request queue[READ_QUEUE_MAX];
	size_t n_queued;
	size_t n_processes;
	size_t dead_bytes; /* of those that have exited, for windows refer to them */
	uint64_t too_late, queue_full, mappings_full, table_full, perf_refused;
	struct process_walks walks[PROCESS_WALKS_MAX], other_walks;
	size_t n_walks;
	int64_t budget_start_ns, budget_used_ns; /* of the reader */
};

/* process.c: is it the latest image of the latest process with this pid? */
bool process_is_newest(const struct process *process);
void process_mark_exited(struct process *process);
/* What names addresses in it. Who holds what was handed out of it goes on doing so. */
void process_forget_code(struct process *process);
/* Out of the table, and freed. */
void process_remove(struct process *process);
/* Takes the maps. */
void process_set_maps(struct process *process, struct process_maps *maps);
/* Walks in the kernel find the mappings from now on, and their rows soon. */
void process_publish(struct process *process);
/* Copies the value unless it is the one already there. */
void process_set_text(struct process *process, const char **field, const char *value);
/* The process found in /proc under this pid and start; NULL when out of memory or room. */
struct process *process_find_or_add_scanned(struct process_table *table, int32_t pid,
					    uint64_t start_ticks);

/* process_lookup.c: whether an unknown address is reason enough to read /proc now. */
bool process_should_read(struct process *process, int64_t now);
/* What was held, for process_held_put() once the lock is released. */
struct process_held process_held_take(struct process *process);
void process_held_put(struct process_table *table, struct process_held *held);

/*
 * process_found.c: the mappings have been read; and, without the lock and by the reader only, what
 * they did not answer is looked for elsewhere.
 */
void process_found_answer(struct process *process);
void process_found_settle(struct process *process);

/*
 * process_versions.c: what was mapped when a stack was walked, by its record_stack.mappings, for as
 * long as it may take to come. Add: walks find the maps from now on. Note: one has found a mapping,
 * of this file if that is known. Settle: it may be known by now. Maps: borrowed, NULL where there
 * are none; *is_told_out: where at is not in them it is in nothing else that is known.
 */
void process_version_add(struct process *process);
void process_version_note(struct process *process, uint64_t id, uint64_t generation,
			  const struct unwind_mapping_found *found, struct module *module);
void process_version_settle(struct process *process, uint64_t id);
struct process_maps *process_version_maps(const struct process *process, uint64_t id, uint64_t at,
					  bool *is_told_out);
void process_versions_inherit(struct process *process, const struct process *parent);
void process_versions_free(struct process *process);

/* process_walks.c */
void process_walks_note(struct process *process, unsigned int ends);
void process_walks_free(struct process_table *table);

/* process_lookup_jit.c: names code made at run time, held until the symbols are released. */
const char *process_lookup_jit(struct process *process, uint64_t address, uint64_t *start_out);

/* process_reader.c */
void process_reader_wake(struct process_table *table);
int process_reader_start(struct process_table *table);
void process_reader_stop(struct process_table *table);
void process_queue_read(struct process *process, int64_t delay_ns, bool is_repeat);
/* Reads /proc in the calling thread, without the lock; the caller has a reference. */
void process_read(struct process *process);

#endif
