/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_INTERNAL_H
#define STACKD_DAEMON_PROCESS_INTERNAL_H

/*
 * The structs and functions that the sources of this room share. table.lock protects all structs,
 * and functions are called with it held, unless a comment says otherwise. It is never held while
 * /proc or a file is read. Locks are taken in this order: table.lock, then a module's load lock or
 * the registry's lock.
 *
 * The sources form layers, and each one calls only those to the left of it: maps, perf_map <
 * maps_history, held < process < read_queue < walk_mappings < perf_reader < reader < table < scan,
 * sweep, stored. symbolize.c, which names addresses, calls held, and asks perf_reader whether a
 * perf map is stale.
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
 * A value that process.exe or process.cgroup has or had. An old value is kept as long as the
 * process is referenced, because a caller may still use it.
 */
struct process_text {
	struct process_text *next; /* next in the list process.texts */
	char text[];
};

struct held_symbols {
	struct module *module;
	struct symtab *symtab;
};

/*
 * References that keep the strings of struct symbol valid until process_release_symbols() is
 * called.
 */
struct process_held {
	struct process_maps **maps;
	size_t n_maps, maps_capacity;
	struct held_symbols *symbols;
	size_t n_symbols, symbols_capacity;
	struct perf_map **perf_maps;
	size_t n_perf_maps, perf_maps_capacity;
	char **names; /* names that were made up for functions without one */
	size_t n_names, names_capacity;
};

struct process {
	struct process_table *table;
	struct process *next; /* next in the list process_images.first */
	struct process_id id;
	int64_t start_real_ns;
	bool is_gen_known; /* id is exact; false as long as only /proc has shown the process */
	bool is_kernel;
	bool has_exited;   /* the process has exited, or an exec has replaced this image */
	bool is_late;	   /* the process was counted in table.too_late */
	unsigned refs;	   /* number of references that other rooms hold */
	int64_t seen_ns;   /* time at which it was last reported, CLOCK_MONOTONIC */
	int64_t exited_ns; /* time at which its exit was reported, CLOCK_MONOTONIC */
	size_t dead_bytes; /* bytes of this process that table.dead_bytes includes */
	char comm[16];
	struct process_text *texts;
	const char *exe, *cgroup;    /* strings in texts; NULL if unknown */
	uint64_t exe_dev, exe_inode; /* device and inode of exe; 0 if unknown */
	bool is_exe_guessed;	     /* exe may be that of the image before the last exec */

	struct process_maps *maps;     /* current mappings; NULL: not read yet */
	struct maps_version *versions; /* list of past mappings, newest first; see maps_history.c */
	uint64_t reads_begun, read_applied;
	struct pending_mappings *pending; /* see walk_mappings.c; NULL: no mapping is pending */
	unsigned n_pended;		  /* number of mappings that have ever been pending */
	int64_t add_ns; /* for the rate limit of take_share(): grows with each added mapping */

	/* State of reading /proc again because an address is unknown (read_queue.c): */
	unsigned attempts;
	int64_t missed_ns, next_read_ns;

	/* Names of code made at run time (perf_reader.c): */
	struct perf_map *perf;	      /* NULL: the process has no perf map */
	struct file_state perf_state; /* state of the perf map's file; all 0: there is no file */
	bool is_perf_refused;	      /* the process was counted in table.perf_refused */
	bool had_perf;		      /* a perf map of the process has been read before */
	int64_t perf_checked_ns, perf_due_ns;

	struct process_held held;

	struct walk_stats *walks; /* counters of the program walks_exe */
	const char *walks_exe;
};

/*
 * A list of all images of all processes that have had this pid; the image added last comes first.
 */
struct process_images {
	UT_hash_handle hh;
	uint64_t pid;
	struct process *first;
};

struct read_request {
	struct process *process; /* the request holds a reference */
	int64_t due_ns;
	bool is_repeat; /* the process was read before; such a request is dropped under load */
};

struct process_table {
	pthread_mutex_t lock;
	pthread_cond_t wake;	   /* wakes the reader's thread; its clock is CLOCK_MONOTONIC */
	pthread_cond_t files_wake; /* wakes the thread that reads big files */
	pthread_t reader, files;   /* the threads that read /proc and big files */
	bool has_reader, has_files, is_stopping;
	bool is_woken, is_files_woken;	  /* the thread was woken since it last looked for work */
	struct process_images *images;	  /* hash table by pid */
	struct module_registry *registry; /* has its own lock */
	struct read_request queue[READ_QUEUE_MAX];
	size_t n_queued;
	size_t n_processes;
	size_t dead_bytes; /* bytes of processes that have exited and are still in the table */
	uint64_t too_late, queue_full, mappings_full, table_full, perf_refused;
	struct walk_stats walks[WALK_STATS_MAX], other_walks;
	size_t n_walks;
	/* Start of the current period, and CPU time that the reader has spent in it: */
	int64_t budget_start_ns, budget_used_ns;
};

/* process.c */

/* Returns the list of images of a pid, linked by process.next; NULL if the table has none. */
struct process *process_images(const struct process_table *table, int32_t pid);
/* Adds the process to the table's images of its pid. Returns 0 or -ENOMEM. */
int process_link(struct process *process);
/* Takes the process out of the table and frees it. */
void process_remove(struct process *process);
bool process_is_same_start(const struct process *process, uint64_t start_boot_ns);
/* True if a is a later image than b; both have the same pid. */
bool process_is_newer(const struct process *a, const struct process *b);
/* True if no later image with this pid is known. */
bool process_is_newest(const struct process *process);
/*
 * Marks the process as exited, but keeps the unwinder's entry of its pid, which may be that of a
 * later image.
 */
void process_set_exited(struct process *process);
/* Marks the process as exited, and removes the unwinder's entry of it. */
void process_mark_exited(struct process *process);
/*
 * Drops the maps of the process, their history and its perf map. References in process.held stay
 * valid.
 */
void process_forget_code(struct process *process);
/*
 * Replaces the maps of the process, and gives them to the unwinder. Takes over the caller's
 * reference to the new maps.
 */
void process_set_maps(struct process *process, struct process_maps *maps);
/*
 * Gives the unwinder the mappings of the process, so that walks find them, and causes the unwind
 * rows of its files to be loaded soon.
 */
void process_publish(struct process *process);
/*
 * Sets a field (process.exe or process.cgroup) to a copy of value. Out of memory, it does nothing.
 */
void process_set_text(struct process *process, const char **field, const char *value);
/* Wakes both threads of the table. */
void process_table_wake(struct process_table *table);

/*
 * held.c: functions that return a pointer and keep it valid by a reference in process.held. Called
 * without the lock.
 */

/*
 * Returns the maps by which a stack was walked, or the current maps if mappings is 0; NULL if they
 * are not known. mappings: record_stack.mappings of the stack. *is_final_out is set to true if no
 * other maps can contain the address.
 */
const struct process_maps *process_hold_maps(struct process *process, uint64_t mappings,
					     uint64_t address, bool *is_final_out);
/* Returns the symbols of the module; NULL if it has none. May read the module's file. */
struct symtab *process_hold_symbols(struct process *process, struct module *module);
/* Returns the perf map of the process; NULL if it has none. */
const struct perf_map *process_hold_perf_map(struct process *process);
/* Makes up a name for a function without one: "FILE+fn_START". NULL when out of memory. */
const char *process_hold_name(struct process *process, const char *path, uint64_t start);

/*
 * process_held_take() empties process.held and returns what it had; called with the lock held.
 * process_held_put() drops these references; called without the lock.
 */
struct process_held process_held_take(struct process *process);
void process_held_put(struct process_table *table, struct process_held *held);

/*
 * maps_history.c: past mappings of processes. A stack names the mappings by which it was walked by
 * a number, record_stack.mappings. They are kept until no stack with this number can still arrive.
 */

/* Records process.maps as the mappings by which stacks of the process are walked from now on. */
void maps_history_add(struct process *process);
/*
 * Records a mapping that a walk found beside those of the unwinder. id: record_stack.mappings of
 * the walk. generation: number of the unwinder's mappings. module: NULL if the mapping has no file
 * or the file is not known yet.
 */
void maps_history_note(struct process *process, uint64_t id, uint64_t generation,
		       const struct unwind_mapping_found *found, struct module *module);
/* Looks again for the files of mappings that a walk found: they may be known by now. */
void maps_history_settle(struct process *process, uint64_t id);
/* Does the work of process_hold_maps() with the same arguments, but takes no reference. */
struct process_maps *maps_history_find(const struct process *process, uint64_t id, uint64_t at,
				       bool *is_final_out);
/* Copies the newest recorded mappings of a parent to its forked child, whose walks may use them. */
void maps_history_inherit(struct process *process, const struct process *parent);
void maps_history_free(struct process *process);

/* read_queue.c */

/*
 * True if /proc should be read now because an address is in no known mapping of the process. Rate
 * limited for each process; a result of true counts as an attempt.
 */
bool process_should_read(struct process *process, int64_t now);
/*
 * Queues a request for the reader's thread to read /proc/PID of the process after delay_ns. Does
 * nothing for kernel threads and exited processes.
 */
void read_queue_add(struct process *process, int64_t delay_ns, bool is_repeat);
/* Returns the index of the request that is due first; table->n_queued must not be 0. */
size_t read_queue_first(const struct process_table *table);

/*
 * walk_mappings.c: mappings that stack walks found before /proc was read. They are pending while
 * their file is not known. walk_mappings_note() is called when a walk has found one.
 * walk_mappings_learn() is called when /proc has been read, which may show the files of pending
 * mappings. walk_mappings_open() opens the files of mappings that are still pending by inode; only
 * the reader's thread calls it, without the lock.
 */
void walk_mappings_note(struct process *process, const struct unwind_mapping_found *found,
			struct module *module);
void walk_mappings_learn(struct process *process);
void walk_mappings_open(struct process *process);

/* perf_reader.c; called without the lock */

/*
 * True if the perf map is stale or, if is_name_missing, may have a new name; and may be read now.
 */
bool process_perf_is_due(struct process *process, bool is_name_missing);
void process_read_perf(struct process *process);

/* reader.c; called without the lock, with a reference to the process */

/* Reads the facts about the process from /proc/PID, in the calling thread. */
void process_read(struct process *process);
/*
 * Reads the facts about the process from dir_fd, the open directory /proc/PID. dir_fd < 0: the
 * negative errno with which opening it failed.
 */
void process_read_from(struct process *process, int dir_fd, const struct procfs_stat *stat);
int process_reader_start(struct process_table *table);
void process_reader_stop(struct process_table *table);

/*
 * table.c: finds or adds a process that /proc shows with this pid and start time. NULL when out of
 * memory or when the table is full.
 */
struct process *process_find_or_add_scanned(struct process_table *table, int32_t pid,
					    uint64_t start_ticks);

/* walk_stats.c: counts how walks of the process's stacks ended; ends: bits of enum walk_end. */
void walk_stats_note(struct process *process, unsigned int ends);
void walk_stats_free(struct process_table *table);

#endif
