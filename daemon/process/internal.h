/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_INTERNAL_H
#define STACKD_DAEMON_PROCESS_INTERNAL_H

/*
 * The structs and functions that the files of this room share. Everything here is protected by
 * table.lock unless said otherwise; the lock is never held while /proc or a file is read. Locks are
 * taken in this order: table.lock, then a module's load lock or the registry's lock.
 *
 * The files form layers; a file calls only those to the left of it: maps, perf_map < maps_history,
 * held < process < read_queue < walk_mappings < perf_reader < reader < table < scan, sweep, stored.
 * Naming an address (symbolize) calls held and reads nothing; perf_reader tells it whether a perf
 * map is stale.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/hash_table.h"
#include "daemon/host/procfs.h"
#include "daemon/process/maps.h"
#include "daemon/process/perf_map.h"
#include "daemon/process/process.h"

#define READ_QUEUE_MAX 1024

/*
 * A string that was given to a caller. It is kept while the process is referenced, even when
 * process.exe or process.cgroup has another value by then.
 */
struct process_text {
	struct process_text *next; /* process.texts */
	char text[];
};

struct held_symbols {
	struct module *module;
	struct symtab *symtab;
};

/* References to what the strings of struct symbol point into, until process_release_symbols(). */
struct process_held {
	struct process_maps **maps;
	size_t n_maps, maps_capacity;
	struct held_symbols *symbols;
	size_t n_symbols, symbols_capacity;
	struct perf_map **perf_maps;
	size_t n_perf_maps, perf_maps_capacity;
	char **names; /* made up for functions that have none */
	size_t n_names, names_capacity;
};

struct process {
	struct process_table *table;
	struct process *next; /* in process_images.first */
	struct process_id id;
	int64_t start_real_ns;
	bool is_gen_known; /* false if it was found in /proc and no probe has reported it yet */
	bool is_kernel;
	bool has_exited;   /* or an exec has replaced its image */
	bool is_late;	   /* counted in table.too_late */
	unsigned refs;	   /* of other rooms; the table itself holds none */
	int64_t seen_ns;   /* CLOCK_MONOTONIC */
	int64_t exited_ns; /* likewise, when the exit was reported */
	size_t dead_bytes; /* its share of table.dead_bytes */
	char comm[16];
	struct process_text *texts;
	const char *exe, *cgroup;    /* into texts */
	uint64_t exe_dev, exe_inode; /* 0 where unknown */
	bool is_exe_guessed;	     /* exe may be that of the image before the last exec */

	struct process_maps *maps;     /* NULL until read */
	struct maps_version *versions; /* maps_history.c, the newest first */
	uint64_t reads_begun, read_applied;
	struct pending_mappings *pending; /* walk_mappings.c; NULL: none */
	unsigned n_pended;		  /* how many have ever been pending */
	int64_t add_ns; /* mappings found by walks have used up the process's share until then */

	/* Reading /proc again because an address is unknown, read_queue.c: */
	unsigned attempts;
	int64_t missed_ns, next_read_ns;

	/* Names of code made at run time, perf_reader.c: */
	struct perf_map *perf;	      /* NULL: there is none */
	struct file_state perf_state; /* of the map; all 0: there is none */
	bool is_perf_refused;	      /* counted in table.perf_refused */
	bool had_perf;		      /* a map has been read */
	int64_t perf_checked_ns, perf_due_ns;

	struct process_held held;

	struct walk_stats *walks; /* of the program walks_exe */
	const char *walks_exe;
};

/* All images of all processes that have had a pid, the one added last first. */
struct process_images {
	UT_hash_handle hh;
	uint64_t pid;
	struct process *first;
};

struct read_request {
	struct process *process; /* with a reference */
	int64_t due_ns;
	bool is_repeat; /* the process was read before: dropped when the reader is busy */
};

struct process_table {
	pthread_mutex_t lock;
	pthread_cond_t wake;	   /* wakes the reader; CLOCK_MONOTONIC */
	pthread_cond_t files_wake; /* wakes the thread that reads big files */
	pthread_t reader, files;
	bool has_reader, has_files, is_stopping;
	bool is_woken, is_files_woken;	  /* there has been work since the thread last looked */
	struct process_images *images;	  /* by pid */
	struct module_registry *registry; /* has its own lock */
	struct read_request queue[READ_QUEUE_MAX];
	size_t n_queued;
	size_t n_processes;
	size_t dead_bytes; /* of processes that have exited and that windows still refer to */
	uint64_t too_late, queue_full, mappings_full, table_full, perf_refused;
	struct walk_stats walks[WALK_STATS_MAX], other_walks;
	size_t n_walks;
	int64_t budget_start_ns, budget_used_ns; /* of the reader, for repeated reads */
};

/* process.c */

/* Returns the images of a pid, linked by next; NULL where the table has none. */
struct process *process_images(const struct process_table *table, int32_t pid);
/* Adds the process to the images of its pid. -ENOMEM. */
int process_link(struct process *process);
/* Takes the process out of the table and frees it. */
void process_remove(struct process *process);
bool process_is_same_start(const struct process *process, uint64_t start_boot_ns);
/* True if a is a later image than b; both have the same pid. */
bool process_is_newer(const struct process *a, const struct process *b);
/* True if no later image with this pid is known. */
bool process_is_newest(const struct process *process);
/* Marks the process as exited without telling the unwinder, which may know a later image. */
void process_set_exited(struct process *process);
/* Marks the process as exited; walks no longer find its mappings. */
void process_mark_exited(struct process *process);
/* Drops maps, their history and the perf map. Holders of symbols keep their references. */
void process_forget_code(struct process *process);
/* Takes over the reference to maps. */
void process_set_maps(struct process *process, struct process_maps *maps);
/* Lets walks find the process's mappings, and has the rows of its files loaded soon. */
void process_publish(struct process *process);
/* Sets a field (exe or cgroup) to a copy of value. Without memory it keeps its old value. */
void process_set_text(struct process *process, const char **field, const char *value);
/* Wakes both threads of the table. */
void process_table_wake(struct process_table *table);

/* held.c: each returns its result with a reference in process.held; without the lock. */

/*
 * The maps by which a stack was walked (mappings: as in record_stack), else the maps as they are
 * now; NULL where there are none. *is_final_out: if the address is not in them, it was in no
 * mapping that is known.
 */
const struct process_maps *process_hold_maps(struct process *process, uint64_t mappings,
					     uint64_t address, bool *is_final_out);
/* NULL where the module has no symbols. May read the module's file. */
struct symtab *process_hold_symbols(struct process *process, struct module *module);
/* NULL where the process has no perf map. */
const struct perf_map *process_hold_perf_map(struct process *process);
/* Makes up a name for a function without one: "FILE+fn_START". NULL when out of memory. */
const char *process_hold_name(struct process *process, const char *path, uint64_t start);

/* Moves process.held out (with the lock), for process_held_put() (without it). */
struct process_held process_held_take(struct process *process);
void process_held_put(struct process_table *table, struct process_held *held);

/*
 * maps_history.c: what was mapped when a stack was walked, by its record_stack.mappings; kept for
 * as long as such a stack may take to arrive.
 */

/* Records process.maps as the version that walks use from now on. */
void maps_history_add(struct process *process);
/* Records a mapping that a walk found; module is NULL where its file is not known (yet). */
void maps_history_note(struct process *process, uint64_t id, uint64_t generation,
		       const struct unwind_mapping_found *found, struct module *module);
/* Looks again for the files of mappings that walks found, which may be known by now. */
void maps_history_settle(struct process *process, uint64_t id);
/* Borrowed; the arguments and *is_final_out are those of process_hold_maps(). */
struct process_maps *maps_history_find(const struct process *process, uint64_t id, uint64_t at,
				       bool *is_final_out);
/* A fork: walks of the child may still use versions of the parent. */
void maps_history_inherit(struct process *process, const struct process *parent);
void maps_history_free(struct process *process);

/* read_queue.c */

/*
 * True if an address in no known mapping is reason enough to read /proc now; counts the attempt.
 * Rate limited for each process.
 */
bool process_should_read(struct process *process, int64_t now);
/* Queues a read by the reader's thread. Kernel threads and exited processes are not read. */
void read_queue_add(struct process *process, int64_t delay_ns, bool is_repeat);
/* Returns the index of the earliest request; n_queued must not be 0. */
size_t read_queue_first(const struct process_table *table);

/*
 * walk_mappings.c: mappings that stack walks met before /proc was read. Note: a walk found one.
 * Learn: /proc has been read, so the files of pending mappings may be known. Open: opens the files
 * of those still pending by inode; without the lock and by the reader's thread only.
 */
void walk_mappings_note(struct process *process, const struct unwind_mapping_found *found,
			struct module *module);
void walk_mappings_learn(struct process *process);
void walk_mappings_open(struct process *process);

/* perf_reader.c, without the lock */

/* True if the perf map is stale, or lacks a name, and may be read again now. */
bool process_perf_is_due(struct process *process, bool is_name_missing);
void process_read_perf(struct process *process);

/* reader.c; the first two without the lock, the caller has a reference */

/* Reads /proc/PID in the calling thread. */
void process_read(struct process *process);
/* The same by an open directory of /proc; dir_fd < 0 is the error of opening it. */
void process_read_from(struct process *process, int dir_fd, const struct procfs_stat *stat);
int process_reader_start(struct process_table *table);
void process_reader_stop(struct process_table *table);

/* table.c: the process found in /proc by pid and start; NULL when out of memory or the table full.
 */
struct process *process_find_or_add_scanned(struct process_table *table, int32_t pid,
					    uint64_t start_ticks);

/* walk_stats.c */
void walk_stats_note(struct process *process, unsigned int ends);
void walk_stats_free(struct process_table *table);

#endif
