/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_PROCESS_H
#define STACKD_DAEMON_PROCESS_PROCESS_H

/*
 * Who a process was and what it had mapped: in come sightings (start, fork, exec, exit, stacks),
 * out come identity and names for its addresses, also after it has gone. A process is
 * (pid, start time, exec generation): a reused pid or a new image is another one. The table is
 * owned by the app; every function may be called from any thread, none but process_table_see()
 * and the note functions returns before /proc was read where that is needed.
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

/* Refcounted. Strings live as long as the reference; exe and cgroup are NULL where unknown. */
struct process_info {
	struct process_id id;
	int64_t start_real_ns; /* since the epoch */
	bool is_kernel;
	bool has_exited;
	char comm[16];
	const char *exe;
	const char *cgroup; /* path below the cgroup2 mount, "/" at the least */
};

struct process;
struct process_table;
struct unwind;
struct record_mapping;

struct process_stats {
	size_t processes;	/* held now, PROCESSES_MAX at most */
	size_t modules;		/* files held now */
	size_t symbol_bytes;	/* of symbol tables held now */
	uint64_t evictions;	/* symbol tables dropped for max_memory */
	uint64_t too_late;	/* processes gone before their mappings were read */
	uint64_t unreadable;	/* files that could not be opened or parsed */
	uint64_t remote;	/* mapped files left alone: another host or a program serves them */
	uint64_t queue_full;	/* prompt snapshots not queued or, with many execs, not repeated */
	uint64_t mappings_full; /* processes with more executable mappings than are kept */
	uint64_t table_full;	/* processes not taken in */
	size_t dead_bytes;	/* of processes that have exited, kept for who refers to them */
	size_t perf_map_bytes;	/* names of code made at run time */
	uint64_t perf_refused;	/* processes whose perf map is another's, too large or too old */
};

/* How walks of user stacks ended; bits of what process_table_note_walk() is told. */
enum walk_end {
	WALK_WHOLE, /* at the thread's first function */
	WALK_TRUNCATED,
	WALK_NO_TABLE,
	WALK_NO_MAPPING,
	WALK_FAULT,
	WALK_NO_ROW,
	WALK_FRAME_POINTERS, /* in part */
	WALK_ENDS,
};

enum { PROCESS_WALKS_MAX = 256, PROCESSES_MAX = 131072 };

/* The stacks of one program, each once a window. */
struct process_walks {
	const char *exe; /* lives as long as the table; NULL: not known, or there were too many */
	uint64_t stacks;
	uint64_t ends[WALK_ENDS];
};

/* Starts the threads that read /proc and big files promptly. max_memory in bytes bounds symbol
 * tables. */
int process_table_new(uint64_t max_memory, struct process_table **out);
/* Before the first process is seen: remote files are read too. */
void process_table_read_remote(struct process_table *table);
struct process_table *process_table_free(struct process_table *table);

/* Where mappings and rows go for walks in the kernel; before the scan. Borrowed. */
void process_table_set_unwind(struct process_table *table, struct unwind *unwind);

/* Reads every process of /proc; done once, before READY. Symbols are loaded later, on demand. */
int process_table_scan(struct process_table *table);

/*
 * Gets or creates; a new one is queued for a prompt snapshot of its mappings. Returns a reference
 * owned by the caller, NULL when out of memory. comm may be NULL. Never blocks on /proc.
 */
struct process *process_table_see(struct process_table *table, const struct process_id *id,
				  bool is_kernel, const char *comm);

/*
 * What stands for a process and is none, with a pid of 0: the same, but that it is as it is given
 * here, and that /proc is not asked. Strings are copied.
 */
struct process *process_table_see_as(struct process_table *table, const struct process_info *info);

/* A fork: the child starts with the parent's mappings (parent may be unknown). Never blocks. */
void process_table_note_fork(struct process_table *table, const struct process_id *child,
			     const struct process_id *parent, const char *comm);

/*
 * An exec: the new image's mappings are read now and again some milliseconds later, when the
 * dynamic linker has mapped the libraries. Never blocks.
 */
void process_table_note_exec(struct process_table *table, const struct process_id *id,
			     const char *comm);

/*
 * A walk of the process's stack ended at this address: counts it. Where nothing known is mapped
 * there, or it found no way on (rate limited), the mappings are read, for another library may have
 * taken the place of one; where the rows of the file are not loaded, those. Never blocks.
 */
void process_table_note_walk(struct process_table *table, struct process *process, uint64_t address,
			     unsigned int ends);

/*
 * A walk went through a mapping of the process that nobody had told of: where its file is known, it
 * names what is there from now on; else /proc is read, and the file known by its key. Never blocks.
 */
void process_table_note_mapping(struct process_table *table, const struct record_mapping *record);

/* Up to max programs and how their walks ended, those with the most that were cut first. */
size_t process_table_walks(struct process_table *table, struct process_walks *out, size_t max);

/*
 * Loads rows that processes found by the scan want, those of big files left to the reader, for as
 * long as that: done once, before READY, so that the first stacks are whole.
 */
void process_table_load_rows(struct process_table *table, int64_t timeout_ns);

/* The process has gone: what is known of it is kept while references are held. Never blocks. */
void process_table_note_exit(struct process_table *table, const struct process_id *id);

/* What is not needed any more; all times of CLOCK_MONOTONIC. */
struct process_sweep {
	int64_t lost_ns;  /* of those not seen since, some are looked for: their exit was lost */
	int64_t dead_ns;  /* those that exited before and hold no reference go */
	int64_t named_ns; /* all stacks of those that exited before have names: their mappings go */
};

void process_table_sweep(struct process_table *table, const struct process_sweep *sweep);

void process_table_stats(struct process_table *table, struct process_stats *out);

/* As in the stats; costs next to nothing. */
size_t process_table_dead_bytes(struct process_table *table);

/* A table of processes of the past, as they were written down: it reads nothing and has no thread.
 */
int process_table_new_past(struct process_table **out);

/* Adds one; a reference, NULL when out of memory or room. has_exited is looked for in /proc. */
struct process *process_table_add_past(struct process_table *table,
				       const struct process_info *info);

struct process *process_ref(struct process *process);
struct process *process_unref(struct process *process);
void process_unrefp(struct process **process);

/* Identity as known now; stays valid while the reference is held. */
void process_info(struct process *process, struct process_info *out);

/*
 * Names one address of the process, by what was mapped when its stack was walked (mappings: as in
 * record_stack, 0 where that is not known). An address in no known mapping makes it read
 * /proc/PID/maps again (rate limited; only while the process lives). The strings in *symbol_out
 * live until process_release_symbols(). False where nothing is known but the number: then kind is
 * native, file_offset the address.
 */
bool process_lookup(struct process *process, uint64_t mappings, uint64_t address, bool is_call,
		    struct symbol *symbol_out);

/* See module_registry_open(). */
int process_table_open_file(struct process_table *table, uint64_t file_id, const char *path,
			    int fd_min, int *fd_out, int *debug_fd_out);

/* Ends the use of strings from process_lookup(); symbol tables may be evicted after it. */
void process_release_symbols(struct process *process);

#endif
