/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_PROCESS_H
#define STACKD_DAEMON_PROCESS_PROCESS_H

/*
 * The table of processes: who each process is, and what it has mapped, which names its addresses
 * even after it has exited. A process here is one image, (pid, start time, exec generation): a
 * reused pid or a new image after an exec is another process. The recorder owns the table; every
 * function may be called from any thread. process_table_see() and the note functions never block:
 * a thread of the table reads /proc for them. process_table_scan() and process_refresh() read /proc
 * in the calling thread, and process_lookup() may read symbols from a mapped file.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/symbol/symbol.h"

/* As the kernel has it: task->group_leader->start_boottime in ns, task->self_exec_id. */
struct process_id {
	int32_t pid;
	uint32_t exec_gen;
	uint64_t start_boot_ns;
};

/* What is known of a process. exe and cgroup are NULL where unknown. */
struct process_info {
	struct process_id id;
	int64_t start_real_ns; /* since the epoch */
	bool is_kernel;
	bool has_exited;
	char comm[16];
	const char *exe;
	const char *cgroup; /* path below the cgroup2 mount, begins with "/" */
};

struct process;
struct process_table;
struct unwind;
struct record_mapping;

struct process_stats {
	size_t processes;	/* in the table now, PROCESSES_MAX at most */
	size_t modules;		/* mapped files known now */
	size_t symbol_bytes;	/* memory of the loaded symbol tables */
	uint64_t evictions;	/* symbol tables dropped to stay within max_memory */
	uint64_t too_late;	/* processes that exited before their mappings were read */
	uint64_t unreadable;	/* files that could not be opened or parsed */
	uint64_t remote;	/* files not opened: on a network or FUSE file system */
	uint64_t queue_full;	/* reads of /proc that were dropped because there were too many */
	uint64_t mappings_full; /* processes with more executable mappings than are kept */
	uint64_t table_full;	/* processes not added because the table was full */
	size_t dead_bytes;	/* memory of exited processes that others still refer to */
	size_t perf_map_bytes;	/* memory of perf maps: names of code made at run time */
	uint64_t perf_refused; /* processes whose perf map has another owner or is too big or old */
};

/* How a walk of a user stack ended; bit numbers of process_table_note_walk()'s ends. */
enum walk_end {
	WALK_WHOLE,	     /* it reached the thread's first function */
	WALK_TRUNCATED,	     /* the stack has more frames than fit */
	WALK_NO_TABLE,	     /* the unwind rows of a file are not loaded */
	WALK_NO_MAPPING,     /* an address is in no known mapping */
	WALK_FAULT,	     /* the stack's memory could not be read */
	WALK_NO_ROW,	     /* no unwind row covers an address, or the stack contradicts it */
	WALK_FRAME_POINTERS, /* some frames were found by frame pointers */
	WALK_ENDS,	     /* how many there are */
};

enum { WALK_STATS_MAX = 256, PROCESSES_MAX = 131072 };

/* How the walks of one program's stacks ended; each stack counts once a window. */
struct walk_stats {
	const char *exe; /* lives as long as the table; NULL: unknown programs and those beyond
			    WALK_STATS_MAX */
	uint64_t stacks;
	uint64_t ends[WALK_ENDS];
};

/*
 * Makes a table and starts its threads, which read /proc and big files. max_memory bounds the
 * memory of symbol tables, in bytes. -ENOMEM, or the error of starting a thread.
 */
int process_table_new(uint64_t max_memory, struct process_table **out);
/*
 * Has files of network and FUSE file systems read, too. To be called before the first process is
 * seen.
 */
void process_table_read_remote(struct process_table *table);
struct process_table *process_table_free(struct process_table *table);

/*
 * Sets the unwinder, which gets the mappings of processes and the rows of their files. To be called
 * before the scan. Borrowed.
 */
void process_table_set_unwind(struct process_table *table, struct unwind *unwind);

/*
 * Reads every process in /proc, at the start of the daemon. Symbols are loaded later, on demand.
 * Returns 0, -ENOMEM or the error of opening /proc.
 */
int process_table_scan(struct process_table *table);

/*
 * Finds the process or adds it; the mappings of a new one are read soon. Returns a reference owned
 * by the caller, NULL when out of memory or when the table is full. comm may be NULL.
 */
struct process *process_table_see(struct process_table *table, const struct process_id *id,
				  bool is_kernel, const char *comm);

/*
 * Finds or adds an entry that is no process (its pid is 0) but stands for several of them. It is
 * described by info alone, whose strings are copied; /proc is not read. Returns as above.
 */
struct process *process_table_see_as(struct process_table *table, const struct process_info *info);

/* Notes a fork: the child begins with the parent's mappings; the parent may be unknown. */
void process_table_note_fork(struct process_table *table, const struct process_id *child,
			     const struct process_id *parent, const char *comm);

/*
 * Notes an exec: the new image's mappings are read now, and again some milliseconds later, when the
 * dynamic linker has mapped the libraries.
 */
void process_table_note_exec(struct process_table *table, const struct process_id *id,
			     const char *comm);

/*
 * Counts a walk of the process's stack, which ended at this address; ends has a bit for each enum
 * walk_end that applies. If the address is in no known mapping, or the walk found no way on there,
 * the mappings are read again (rate limited), because another library may be mapped there by now.
 * If only the file's unwind rows are missing, those are loaded.
 */
void process_table_note_walk(struct process_table *table, struct process *process, uint64_t address,
			     unsigned int ends);

/*
 * A stack walk crossed a mapping that was not known for the process. If the mapping's file is
 * known, addresses in it resolve to it from now on. Otherwise /proc is read, which tells the file
 * that the kernel's key stands for.
 */
void process_table_note_mapping(struct process_table *table, const struct record_mapping *record);

/*
 * Copies the statistics of up to max programs, those with the most incomplete walks first. Returns
 * how many.
 */
size_t process_table_walk_stats(struct process_table *table, struct walk_stats *out, size_t max);

/*
 * Loads the unwind rows that the processes found by the scan need, for timeout_ns at most, so that
 * the first stacks are whole. Rows of big files are left to the table's thread.
 */
void process_table_load_rows(struct process_table *table, int64_t timeout_ns);

/* Notes an exit. The process stays in the table while it is referenced, see process_sweep. */
void process_table_note_exit(struct process_table *table, const struct process_id *id);

/* Limits of a sweep; all times are of CLOCK_MONOTONIC. */
struct process_sweep {
	/* Processes not seen since then are looked for in /proc: their exit may not have been
	 * reported. */
	int64_t lost_ns;
	int64_t dead_ns;  /* processes that exited before and are not referenced are removed */
	int64_t named_ns; /* stacks older than this have names: mappings of exited ones are freed */
};

void process_table_sweep(struct process_table *table, const struct process_sweep *sweep);

void process_table_stats(struct process_table *table, struct process_stats *out);

/* Returns process_stats.dead_bytes alone, which is cheap. */
size_t process_table_dead_bytes(struct process_table *table);

/* Makes a table for processes that were read back from disk. It has no threads. -ENOMEM. */
int process_table_new_stored(struct process_table **out);

/*
 * Adds a process that was read back from disk and looks in /proc whether it has exited. Returns a
 * reference, NULL when out of memory or when the table is full.
 */
struct process *process_table_add_stored(struct process_table *table,
					 const struct process_info *info);

struct process *process_ref(struct process *process);
struct process *process_unref(struct process *process);

/* Copies what is known now; the strings stay valid while the reference is held. */
void process_info(struct process *process, struct process_info *out);

/* The kind of data that a lookup lacked, or found outdated, and that process_refresh() can read. */
enum process_miss {
	PROCESS_NO_MISS,      /* nothing: the answer is as good as it gets */
	PROCESS_MISS_MAPPING, /* the address is in no known mapping: /proc/PID/maps may have it */
	PROCESS_MISS_JIT,     /* the perf map is stale, or lacks a name for code made at run time */
};

/*
 * Names one address of the process from what is known now, without reading /proc. mappings is as in
 * record_stack: what was mapped when the stack was walked, 0 where that is not known. is_call: the
 * address is a return address, so the instruction before it is named. Where nothing is known,
 * symbol_out->module is NULL, kind is native and file_offset the address. The strings live until
 * process_release_symbols().
 */
enum process_miss process_lookup(struct process *process, uint64_t mappings, uint64_t address,
				 bool is_call, struct symbol *symbol_out);

/*
 * Reads from /proc what a lookup has missed, in the calling thread; mappings as in that lookup.
 * Mappings are read rate limited, and only while the process lives. Look the address up again then.
 */
void process_refresh(struct process *process, uint64_t mappings, enum process_miss miss);

/* See module_registry_open(). */
int process_table_open_file(struct process_table *table, uint64_t file_id, const char *path,
			    int fd_min, int *fd_out, int *debug_fd_out);

/* Ends the use of the strings from process_lookup(): symbol tables may be evicted then. */
void process_release_symbols(struct process *process);

#endif
