/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_INTERNAL_H
#define STACKD_DAEMON_PROCESS_INTERNAL_H

/*
 * The structs and functions that the source files of this folder share. Unless a comment says
 * otherwise, table.lock protects all structs, and functions are called with table.lock held. The
 * lock is never held while /proc or a file is read. Lock order: table.lock before a module's load
 * lock or the registry's lock.
 *
 * The source files form layers. Each file calls only files of the layers left of its own: maps,
 * perf_map < maps_history, held, wake < process < read_queue < walk_mappings < perf_reader < reader
 * < table < scan, sweep, stored. symbolize.c, which names addresses, calls held.c, and asks
 * perf_reader.c whether a perf map is stale.
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
 * A string that process.exe or process.cgroup points to now or did earlier. An old string is kept
 * as long as the process is referenced, because a caller may still use it.
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
 * References that process_hold_*() took for lookups of symbols. They keep the strings in the
 * returned struct symbol valid until process_release_symbols() is called.
 */
struct process_held {
	struct process_maps **maps;
	size_t n_maps, maps_capacity;
	struct held_symbols *symbols;
	size_t n_symbols, symbols_capacity;
	struct perf_map **perf_maps;
	size_t n_perf_maps, perf_maps_capacity;
	char **names; /* names made up by process_hold_name() for functions without a name */
	size_t n_names, names_capacity;
};

struct process {
	struct process_table *table;
	struct process *next; /* next in the list process_images.first */
	struct process_id id;
	int64_t start_real_ns;
	bool is_gen_known; /* true: a probe reported the process, so id is exact; false: only
			      /proc has shown it */
	bool is_kernel;
	bool is_folded;	   /* the entry stands for several processes, see process_see_folded() */
	bool has_exited;   /* the process has exited, or an exec has replaced its program */
	bool is_unchecked; /* stored: process_check_exited() has not looked for it in /proc yet */
	bool is_late;	   /* the process was counted in process_table.too_late */
	unsigned refs;	   /* number of references; while above 0, the process stays in the table */
	int64_t seen_ns;   /* time when last reported or looked for in /proc; CLOCK_MONOTONIC */
	int64_t exited_ns; /* time when the table learned of its exit; CLOCK_MONOTONIC */
	size_t dead_bytes; /* memory of this process that is counted in process_table.dead_bytes */
	char comm[16];
	struct process_text *texts;
	const char *exe, *cgroup;    /* path of the program, and cgroup; strings of the list
					texts; NULL if unknown */
	uint64_t exe_dev, exe_inode; /* device and inode of the program file; 0 if unknown */
	bool is_exe_guessed;	     /* exe may be the program that ran before the last exec */

	struct process_maps *maps;     /* current mappings; NULL: not read, or already dropped */
	struct maps_version *versions; /* list of the mappings used by stack walks, newest first
					  (maps_history.c) */
	uint64_t reads_begun, read_applied;
	struct pending_mappings *pending; /* mappings whose file is not known yet; may be NULL */
	unsigned n_pended;		  /* number of mappings that were ever added to pending */
	int64_t add_ns; /* state of the rate limit in take_share(): a time that each added
			   mapping moves forward */

	/* Rate limit for reading /proc when an address is in no known mapping (read_queue.c): */
	unsigned attempts;
	int64_t missed_ns, next_read_ns;

	/* The process's perf map, a file that names code made at run time (perf_reader.c): */
	struct perf_map *perf;	      /* NULL: the process has no perf map */
	struct file_state perf_state; /* state of the perf map's file when last read; all 0:
					 there was no file */
	bool is_perf_refused;	      /* the process was counted in process_table.perf_refused */
	bool had_perf;		      /* a perf map of the process has been read before */
	int64_t perf_checked_ns, perf_due_ns;

	struct process_held held;

	struct walk_stats *walks; /* statistics of stack walks for the program walks_exe */
	const char *walks_exe;
};

/*
 * The processes in the table that have or had one pid; the process added last is first. After an
 * exec, the pid has one more struct process. An entry with pid 0, which stands for several
 * processes, is in a list of its own.
 */
struct process_images {
	UT_hash_handle hh;
	uint64_t key; /* the pid; for pid 0 a number made of the start time */
	struct process *first;
};

struct read_request {
	struct process *process; /* the process to read; the request holds a reference to it */
	int64_t due_ns;
	bool is_repeat; /* the request is dropped if the reader's CPU time is used up */
};

struct process_table {
	pthread_mutex_t lock;
	pthread_cond_t wake;	   /* wakes the thread that reads /proc; its clock is
				      CLOCK_MONOTONIC */
	pthread_cond_t files_wake; /* wakes the thread that reads big files */
	pthread_t reader, files;   /* the threads that read /proc and big files */
	bool has_reader, has_files, is_stopping;
	/* Work that was added for each thread since the thread last looked; see wake.c. */
	bool reader_has_rows, reader_has_request, files_has_work;
	int64_t reader_until_ns; /* until when the reader sleeps, INT64_MAX: until it is woken; 0:
				    it does not sleep, or was woken */
	bool is_files_asleep;	 /* the thread of big files sleeps, and was not woken */
	struct process_images *images;	   /* hash table of all processes, by pid */
	struct process_images *sweep_next; /* the entry at which the sweep in progress goes on, or
					      NULL */
	struct module_registry *registry;  /* the modules that processes map; has its own lock */
	struct read_request queue[READ_QUEUE_MAX];
	size_t n_queued;
	size_t n_processes;
	size_t dead_bytes; /* memory of exited processes that are still in the table, in bytes */
	uint64_t too_late, queue_full, mappings_full, table_full, perf_refused;
	struct walk_stats walks[WALK_STATS_MAX], other_walks;
	size_t n_walks;
	/*
	 * Start of the current period, CPU time that the reader has spent in it, and the number and
	 * average CPU time of requests, of which one in BUDGET_EVERY is measured:
	 */
	int64_t budget_start_ns, budget_used_ns, request_ns;
	uint64_t n_served;
};

/* Defined in process.c: */

/*
 * Returns the process with the pid id->pid that was added last; process.next links to the others
 * with the same pid. NULL if the table has none.
 */
struct process *process_images(const struct process_table *table, const struct process_id *id);
/* Adds the process to the table. Returns 0 or -ENOMEM. */
int process_link(struct process *process);
/* Removes the process from the table and frees it. */
void process_remove(struct process *process);
bool process_is_same_start(const struct process *process, uint64_t start_boot_ns);
/* True if a is later than b: it started later, or did a later exec. Both have the same pid. */
bool process_is_newer(const struct process *a, const struct process *b);
/* True if the table has no later process with the same pid. */
bool process_is_newest(const struct process *process);
/*
 * Marks the process as exited, but leaves the unwinder's entry of the pid alone: the entry may
 * belong to a later process already.
 */
void process_set_exited(struct process *process);
/* Marks the process as exited, and removes its entry from the unwinder. */
void process_mark_exited(struct process *process);
/*
 * Drops the mappings of the process, current and past, and its perf map. References in process.held
 * stay valid.
 */
void process_forget_code(struct process *process);
/*
 * Replaces the current mappings of the process by maps, and passes them to the unwinder. Takes over
 * the caller's reference to maps.
 */
void process_set_maps(struct process *process, struct process_maps *maps);
/*
 * Passes the mappings of the process to the unwinder, for stack walks, and causes the unwind rows
 * of the mapped files to be loaded soon.
 */
void process_publish(struct process *process);
/*
 * Sets *field, which is process.exe or process.cgroup, to a copy of value. Does nothing when out of
 * memory.
 */
void process_set_text(struct process *process, const char **field, const char *value);

/* wake.c */

/* Notes that modules may have been queued, for their rows to be read or their files to be closed.
 */
void process_table_note_files(struct process_table *table);
/* Notes that a request to read /proc was queued. */
void process_table_note_request(struct process_table *table, int64_t due_ns);
/*
 * Releases the lock, then wakes the threads that have work by now. Callers of a function that may
 * queue work release the lock by this function.
 */
void process_table_unlock(struct process_table *table);

/*
 * Defined in held.c: functions that return a pointer and keep it valid by a reference in
 * process.held. Called without table.lock.
 */

/*
 * Returns the mappings that were used to walk a stack, or the current ones if mappings is 0; NULL
 * if they are not known. mappings: the id record_stack.mappings of the stack. *is_final_out is set
 * to true if the address must not be looked up in any other mappings.
 */
const struct process_maps *process_hold_maps(struct process *process, uint64_t mappings,
					     uint64_t address, bool *is_final_out);
/* Returns the symbols of the module; NULL if it has none. May read the module's file. */
struct symtab *process_hold_symbols(struct process *process, struct module *module);
/* Returns the perf map of the process; NULL if it has none. */
const struct perf_map *process_hold_perf_map(struct process *process);
/*
 * Makes up a name for a function that has none, "FILE+fn_START" with START in hexadecimal, and
 * returns it. NULL when out of memory.
 */
const char *process_hold_name(struct process *process, const char *path, uint64_t start);

/*
 * process_held_take() moves all references out of process.held and returns them; called with
 * table.lock held. process_held_put() drops the references that were taken; called without the
 * lock.
 */
struct process_held process_held_take(struct process *process);
void process_held_put(struct process_table *table, struct process_held *held);

/*
 * Defined in maps_history.c: the mappings that were used to walk the stacks of a process.
 * record_stack.mappings of a stack is the id of its mappings. They are kept as long as stacks with
 * this id may still arrive.
 */

/* Adds process.maps to the history: stack walks use these mappings from now on. */
void maps_history_add(struct process *process);
/*
 * Records a mapping that a stack walk found and the unwinder did not have. id:
 * record_stack.mappings of the walk. generation: id of the mappings that the unwinder had, or 0.
 * module: the module of the mapped file; NULL if there is no file or it is not known yet.
 */
void maps_history_note(struct process *process, uint64_t id, uint64_t generation,
		       const struct unwind_mapping_found *found, struct module *module);
/*
 * Looks again for files that were not known when a stack walk found them mapped. id:
 * record_stack.mappings of the walk.
 */
void maps_history_settle(struct process *process, uint64_t id);
/* Returns the same as process_hold_maps() with these arguments, but takes no reference. */
struct process_maps *maps_history_find(const struct process *process, uint64_t id, uint64_t at,
				       bool *is_final_out);
/*
 * Copies the newest mappings of the parent's history to its forked child, because they may have
 * been used to walk stacks of the child.
 */
void maps_history_inherit(struct process *process, const struct process *parent);
void maps_history_free(struct process *process);

/* Defined in read_queue.c: */

/*
 * True if the rate limit of the process allows reading /proc now to look for an unknown mapping.
 * Each result of true counts against the limit.
 */
bool process_should_read(struct process *process, int64_t now);
/*
 * Queues a request to read /proc/PID of the process after delay_ns; the reader thread carries it
 * out. Does nothing for kernel threads, nor for exited processes without pending mappings.
 */
void read_queue_add(struct process *process, int64_t delay_ns, bool is_repeat);
/* Returns the index of the request that is due first; table->n_queued must not be 0. */
size_t read_queue_first(const struct process_table *table);

/*
 * Defined in walk_mappings.c: mappings that stack walks found before /proc was read. A mapping is
 * pending while its file is not known. walk_mappings_note() is called when a walk has found a
 * mapping. walk_mappings_learn() is called when /proc has been read, which may show the files of
 * pending mappings. walk_mappings_open() tries to open, by inode number, the files that are still
 * unknown; only the reader thread calls it, without table.lock.
 */
void walk_mappings_note(struct process *process, const struct unwind_mapping_found *found,
			struct module *module);
void walk_mappings_learn(struct process *process);
void walk_mappings_open(struct process *process);

/* Defined in perf_reader.c; called without table.lock: */

/*
 * True if the perf map of the process should be read again now. is_name_missing: a lookup found no
 * name in it, so it may be read again earlier.
 */
bool process_perf_is_due(struct process *process, bool is_name_missing);
void process_read_perf(struct process *process);

/* Defined in reader.c; called without table.lock, with a reference to the process: */

/* Reads the program, cgroup and mappings of the process from /proc/PID, in the calling thread. */
void process_read(struct process *process);
/*
 * Reads the program, cgroup and mappings of the process from dir_fd, the open directory /proc/PID.
 * If opening the directory failed, dir_fd is the negative errno.
 */
void process_read_from(struct process *process, int dir_fd, const struct procfs_stat *stat);
int process_reader_start(struct process_table *table);
void process_reader_stop(struct process_table *table);

/*
 * Defined in table.c. Returns the process that /proc shows with this pid and start time, adding it
 * if it is new. NULL when out of memory or when the table is full.
 */
struct process *process_find_or_add_scanned(struct process_table *table, int32_t pid,
					    uint64_t start_ticks);

/*
 * Defined in walk_stats.c. Counts one walk of a stack of the process. ends: how it ended, a mask
 * with bit 1 << N set for each value N of enum walk_end that applies.
 */
void walk_stats_note(struct process *process, unsigned int ends);
void walk_stats_free(struct process_table *table);

#endif
