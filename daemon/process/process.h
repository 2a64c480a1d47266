/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_PROCESS_H
#define STACKD_DAEMON_PROCESS_PROCESS_H

/*
 * The table of processes: the identity of each process, and its mappings, by which its addresses
 * are named even after it has exited. A process here is one image, (pid, start time, exec
 * generation): a reused pid or a new image after an exec is another process. The recorder owns the
 * table; every function may be called from any thread. process_table_see() and the note functions
 * never block: a thread of the table reads /proc for them. process_table_scan() and
 * process_refresh() read /proc in the calling thread, and process_lookup() may read symbols from a
 * mapped file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/symbol.h"

/*
 * Identifies a process by values of the kernel: start_boot_ns is
 * task->group_leader->start_boottime, exec_gen is task->self_exec_id.
 */
struct process_id {
	int32_t pid;
	uint32_t exec_gen;
	uint64_t start_boot_ns;
};

/* The facts that are known about a process. exe and cgroup are NULL if unknown. */
struct process_info {
	struct process_id id;
	int64_t start_real_ns; /* start time in ns since the epoch */
	bool is_kernel;
	bool has_exited;
	char comm[16];
	const char *exe;
	const char *cgroup; /* path in the cgroup2 hierarchy, begins with "/" */
};

struct process;
struct process_table;
struct unwind;
struct record_mapping;

struct process_stats {
	size_t processes;	/* number of processes in the table now, PROCESSES_MAX at most */
	size_t modules;		/* number of mapped files that are known now */
	size_t symbol_bytes;	/* memory of the loaded symbol tables */
	uint64_t evictions;	/* symbol tables that were dropped to stay within max_memory */
	uint64_t too_late;	/* processes that exited before their mappings were read */
	uint64_t unreadable;	/* files that could not be opened or parsed */
	uint64_t remote;	/* files on network or FUSE file systems, which are not opened */
	uint64_t queue_full;	/* reads of /proc that were dropped because there were too many */
	uint64_t mappings_full; /* how often a process had more mappings than are kept */
	uint64_t table_full;	/* how often a process was not added because the table was full */
	size_t dead_bytes;	/* memory of exited processes that are still in the table */
	size_t perf_map_bytes;	/* memory of perf maps, which name code made at run time */
	uint64_t perf_refused;	/* processes whose perf map has another owner, or is too big or
				   too old */
};

/*
 * How a walk of a user stack ended. The values are bit numbers in the argument ends of
 * process_table_note_walk().
 */
enum walk_end {
	WALK_WHOLE,	     /* the walk reached the thread's first function */
	WALK_TRUNCATED,	     /* the stack has more frames than a recorded stack can hold */
	WALK_NO_TABLE,	     /* the unwind rows of a file are not loaded */
	WALK_NO_MAPPING,     /* an address is in no known mapping */
	WALK_FAULT,	     /* the stack's memory could not be read */
	WALK_NO_ROW,	     /* no unwind row covers an address, or the stack contradicts the row */
	WALK_FRAME_POINTERS, /* some frames were found by frame pointers */
	WALK_ENDS,	     /* number of these values */
};

enum { WALK_STATS_MAX = 256, PROCESSES_MAX = 131072 };

/* How the walks of one program's stacks ended. Equal stacks in a window count once. */
struct walk_stats {
	const char *exe; /* path of the program, valid as long as the table; NULL: these counters
			    are for all other programs */
	uint64_t stacks;
	uint64_t ends[WALK_ENDS]; /* number of stacks, by enum walk_end */
};

/*
 * Makes a table and starts its threads, which read /proc and big files. max_memory: limit of the
 * memory of symbol tables, in bytes. Returns 0, -ENOMEM or the error of starting a thread.
 */
int process_table_new(uint64_t max_memory, struct process_table **out);
/*
 * Allows reading files on network and FUSE file systems. Must be called before the first process is
 * added.
 */
void process_table_read_remote(struct process_table *table);
struct process_table *process_table_free(struct process_table *table);

/*
 * Sets the unwinder, to which the table passes the mappings of processes and the unwind rows of
 * their files. Must be called before process_table_scan(). The unwinder must outlive the table.
 */
void process_table_set_unwind(struct process_table *table, struct unwind *unwind);

/*
 * Adds every process in /proc. Called when the daemon starts. Symbols are loaded later, on demand.
 * Returns 0, -ENOMEM or the error of opening /proc.
 */
int process_table_scan(struct process_table *table);

/*
 * Finds the process, or adds it and has a thread of the table read its mappings soon. comm: its
 * current name, or NULL. The caller owns the reference that is returned; NULL when out of memory or
 * when the table is full.
 */
struct process *process_table_see(struct process_table *table, const struct process_id *id,
				  bool is_kernel, const char *comm);

/*
 * Finds or adds an entry with pid 0, which stands for several processes together. Its description
 * comes only from info, whose strings are copied; /proc is not read. The caller owns the reference
 * that is returned; NULL when out of memory or when the table is full.
 */
struct process *process_table_see_as(struct process_table *table, const struct process_info *info);

/*
 * Records a fork: adds the child with the mappings of the parent or, if the parent is not in the
 * table, without mappings.
 */
void process_table_note_fork(struct process_table *table, const struct process_id *child,
			     const struct process_id *parent, const char *comm);

/*
 * Records an exec: adds the new image. Its mappings are read now, and again some milliseconds
 * later, when the dynamic linker has mapped the libraries.
 */
void process_table_note_exec(struct process_table *table, const struct process_id *id,
			     const char *comm);

/*
 * Counts a walk of the process's stack that ended at this address; ends has a bit for each enum
 * walk_end that applies. If the address is in no known mapping, or the walk failed there, the
 * mappings are read again (rate limited), because another library may be mapped there by now. If
 * only the file's unwind rows are missing, the rows are loaded.
 */
void process_table_note_walk(struct process_table *table, struct process *process, uint64_t address,
			     unsigned int ends);

/*
 * Records a mapping that a stack walk found and that was not known for the process. If its file is
 * known, addresses in the mapping are named from now on. If not, /proc is read to find the file.
 */
void process_table_note_mapping(struct process_table *table, const struct record_mapping *record);

/*
 * Copies the statistics of up to max programs; the program with the most incomplete walks comes
 * first. Returns the number of programs.
 */
size_t process_table_walk_stats(struct process_table *table, struct walk_stats *out, size_t max);

/*
 * Loads the unwind rows of the processes that process_table_scan() found, so that the first stacks
 * are whole; stops after timeout_ns. A thread of the table loads the rows of big files later.
 */
void process_table_load_rows(struct process_table *table, int64_t timeout_ns);

/*
 * Records the exit of a process. It stays in the table until process_table_sweep() finds that it is
 * not referenced any more.
 */
void process_table_note_exit(struct process_table *table, const struct process_id *id);

/* Limits of a sweep; all times are of CLOCK_MONOTONIC. */
struct process_sweep {
	/*
	 * Processes last seen before this time are looked for in /proc, because the report of their
	 * exit may have been lost.
	 */
	int64_t lost_ns;
	int64_t dead_ns;  /* processes that exited before this time and have no references are
			     removed */
	int64_t named_ns; /* processes that exited before this time lose their mappings: all stacks
			     from that time have names */
};

/* Removes and trims processes that have exited, as the limits say. */
void process_table_sweep(struct process_table *table, const struct process_sweep *sweep);

void process_table_stats(struct process_table *table, struct process_stats *out);

/* Returns process_stats.dead_bytes, which is cheaper than process_table_stats(). */
size_t process_table_dead_bytes(struct process_table *table);

/*
 * Makes a table for processes that were read back from disk. It has no threads. Returns 0 or
 * -ENOMEM.
 */
int process_table_new_stored(struct process_table **out);

/*
 * Adds a process that was read back from disk and looks in /proc whether it has exited. Returns a
 * reference, NULL when out of memory or when the table is full.
 */
struct process *process_table_add_stored(struct process_table *table,
					 const struct process_info *info);

struct process *process_ref(struct process *process);
struct process *process_unref(struct process *process);

/* Copies the known facts about a process; the strings stay valid while the reference is held. */
void process_info(struct process *process, struct process_info *out);

/* The data that process_lookup() did not have, and that process_refresh() can read. */
enum process_miss {
	PROCESS_NO_MISS,      /* nothing is missing that could be read */
	PROCESS_MISS_MAPPING, /* the address is in no known mapping; /proc/PID/maps may have it */
	PROCESS_MISS_JIT,     /* the perf map is stale, or lacks a name for code made at run time */
};

/*
 * Finds the symbol of an address of the process without reading /proc. mappings: the
 * record_stack.mappings of the stack, a number for what was mapped when it was walked, or 0 for the
 * current mappings. is_call: the address is a return address, so the symbol of the call before it
 * is found. If nothing is known, symbol_out->module is NULL, kind is FRAME_NATIVE and file_offset
 * is the address. The strings live until process_release_symbols().
 */
enum process_miss process_lookup(struct process *process, uint64_t mappings, uint64_t address,
				 bool is_call, struct symbol *symbol_out);

/*
 * Reads from /proc, in the calling thread, the data that process_lookup() has missed; mappings has
 * the same value as there. Reading mappings is rate limited, and works only while the process
 * lives. The caller then looks up the address again.
 */
void process_refresh(struct process *process, uint64_t mappings, enum process_miss miss);

/* Opens a file by its identity; see module_registry_open() for the arguments. */
int process_table_open_file(struct process_table *table, uint64_t file_id, const char *path,
			    int fd_min, int *fd_out, int *debug_fd_out);

/* Ends the use of all strings from process_lookup(), so that symbol tables may be evicted. */
void process_release_symbols(struct process *process);

#endif
