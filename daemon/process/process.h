/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_PROCESS_H
#define STACKD_DAEMON_PROCESS_PROCESS_H

/*
 * The table of processes. It has the identity of each process, and the mappings by which addresses
 * are named even after the process has exited. A process here is identified by pid, start time and
 * exec generation: a process that has reused a pid is another one, and so is the same process after
 * an exec. The recorder owns the table; every function may be called from any thread.
 * process_table_see() and the process_table_note_*() functions never block: a thread of the table
 * reads /proc for them. process_table_scan() and process_refresh() read /proc in the calling
 * thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/host/opener.h"
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

/* The facts that are known about a process. `exe` and `cgroup` are NULL if unknown. */
struct process_info {
	struct process_id id;
	int64_t start_real_ns; /* start time in ns since the epoch */
	bool is_kernel;
	bool has_exited;
	bool is_replaced; /* the process goes on, but an exec has replaced the program of this
			     entry; false if the entry was read from disk */
	bool is_folded;	  /* the entry stands for several processes, see process_see_folded() */
	char comm[16];
	const char *exe;
	const char *cgroup; /* path in the cgroup2 hierarchy, begins with "/" */
};

struct parser;
struct process;
struct process_table;
struct unwind;
struct record_mapping;

/* What is named waits no longer than this for the symbols of files, see loader.h. */
#define SYMBOLS_WAIT_NS NS_PER_S

struct process_stats {
	size_t processes;	/* number of processes in the table now, PROCESSES_MAX at most */
	size_t modules;		/* number of mapped files that are known now */
	size_t symbol_bytes;	/* memory of the loaded symbol tables, in bytes */
	uint64_t evictions;	/* number of symbol tables that were dropped to stay within
				   max_memory */
	uint64_t too_late;	/* number of processes that exited before their mappings were
				   read */
	uint64_t put_off;	/* number of processes of which something was to be read, but not
				   before the age that process_table_put_off() sets, and which
				   exited before that */
	uint64_t unreadable;	/* number of files that could not be opened or parsed */
	uint64_t remote;	/* number of files on network or FUSE file systems, which are not
				   opened */
	uint64_t queue_full;	/* number of reads of /proc that were dropped because there were
				   too many */
	uint64_t mappings_full; /* how often a process had more mappings than stackd reads */
	size_t maps_bytes;	/* memory of the mappings of all processes, in bytes */
	uint64_t maps_refused;	/* how often mappings were left out because that was too much */
	uint64_t table_full;	/* how often a process was not added because the table was full */
	uint64_t moves_full;   /* how often a process was moved more than PROCESS_MOVES_MAX times */
	unsigned int hanging;  /* number of processes whose reading hangs now */
	int32_t last_hanging;  /* pid of the last one */
	size_t dead_bytes;     /* memory of exited processes that are still in the table, in
				  bytes */
	size_t referred_bytes; /* see process_table_referred_bytes() */
	size_t perf_map_bytes; /* memory of perf maps, which name code made at run time, in
				  bytes */
	uint64_t perf_refused; /* number of processes whose perf map has another owner, or is
				  too big or too old */
	uint64_t
		symbols_late; /* number of times that symbols or a perf map were not read in time */
	struct opener_stats opening; /* see opener_stats() */
};

/*
 * How a walk of a user stack ended; several values may apply. process_table_note_walk() takes them
 * as a mask in its argument `ends`, which has bit 1 << N for value N.
 */
enum walk_end {
	WALK_WHOLE,	     /* the walk reached the thread's first function */
	WALK_TRUNCATED,	     /* the stack has more frames than a recorded stack can hold */
	WALK_NO_TABLE,	     /* the walk reached a file whose unwind rows are not loaded */
	WALK_NO_MAPPING,     /* the walk reached an address that is outside all known mappings */
	WALK_FAULT,	     /* the stack's memory could not be read */
	WALK_NO_ROW,	     /* the walk reached an address without an unwind row, or the stack
				contradicts the row */
	WALK_FRAME_POINTERS, /* some frames were found by frame pointers, not by unwind rows */
	WALK_COMPAT,	     /* 32-bit code, whose stacks are not walked */
	WALK_SHED,	     /* the walk ended early to keep within the budget */
	WALK_ENDS,	     /* number of the values above */
};

/*
 * WALK_STATS_MAX: most programs that process_table_walk_stats() knows. PROCESS_MOVES_MAX: how many
 * moves of a process to other control groups are remembered while it is referenced; then the oldest
 * is forgotten. If that is not older than PROCESS_MOVES_NS, the group is unknown until it is.
 */
enum { WALK_STATS_MAX = 256, PROCESSES_MAX = 131072, PROCESS_MOVES_MAX = 64 };
#define PROCESS_MOVES_NS (10 * 60 * NS_PER_S)

/*
 * Statistics of how walks of the stacks of one program ended. A stack that occurs many times in a
 * window is counted only once.
 */
struct walk_stats {
	const char *exe; /* path of the program, valid as long as the table exists; NULL:
			    statistics of all programs that have no entry of their own */
	uint64_t stacks;
	/*
	 * ends[N] is the number of stacks to whose walk the value N of enum walk_end applies; one
	 * stack may be counted under several values
	 */
	uint64_t ends[WALK_ENDS];
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
/*
 * Sets the workers that parse the files of processes. Must be called before the first process is
 * added; the workers must outlive the table.
 */
void process_table_set_parser(struct process_table *table, struct parser *parser);
/*
 * Frees the table. Returns NULL; the table if a thread that hangs in a read of /proc still uses it
 * and what it refers to: stackd exits soon.
 */
struct process_table *process_table_free(struct process_table *table);

/*
 * Sets for how long a process must have lived, since its start or its last exec, before it is read
 * from /proc. Files that only processes with a shorter life map are not read at all: their
 * functions have no names, and walks of stacks end in them. 0: processes are read at once.
 */
void process_table_put_off(struct process_table *table, int64_t age_ns);

/*
 * Sets the unwinder, to which the table passes the mappings of processes and the unwind rows of
 * their files. Must be called before process_table_scan(). The unwinder must outlive the table.
 */
void process_table_set_unwind(struct process_table *table, struct unwind *unwind);

/*
 * Adds every process in /proc. Called when the daemon starts. Symbols are not loaded now, but when
 * they are needed. Returns 0, -ENOMEM or the error of opening /proc.
 */
int process_table_scan(struct process_table *table);

/*
 * Finds the process. If the table does not have it, adds it; a thread of the table then reads its
 * mappings soon. `comm` is the current name of the process, or NULL. The caller owns the reference
 * that is returned; NULL when out of memory or when the table is full.
 */
struct process *process_table_see(struct process_table *table, const struct process_id *id,
				  bool is_kernel, const char *comm);

/*
 * Finds or adds an entry with pid 0, which stands for several processes together. The entry gets a
 * copy of the data in `info`; /proc is not read. The caller owns the reference that is returned;
 * NULL when out of memory or when the table is full.
 */
struct process *process_table_see_as(struct process_table *table, const struct process_info *info);

/*
 * Finds or adds an entry that stands for all processes with the same is_kernel, comm, exe and
 * cgroup as `shared`. A window sums up the data of such processes under this entry. The other
 * members of `shared` are not used. The entry is added to the process table that has the process
 * `member`. It has pid 0, and the same id in every run of stackd. The caller owns the reference
 * that is returned; NULL when out of memory or when the table is full.
 */
struct process *process_see_folded(struct process *member, const struct process_info *shared);

/*
 * Records the path of a file or of a control group under an id, by which later calls refer to the
 * path. `text` has the n bytes of record_name.text.
 */
void process_table_note_name(struct process_table *table, uint64_t id, const char *text, size_t n);

/*
 * Records a fork: adds the child with the exe, cgroup and mappings of the parent. If the parent is
 * not in the table, the child is read from /proc. group_name: id of the path of the child's cgroup;
 * 0 if it is not known.
 */
void process_table_note_fork(struct process_table *table, const struct process_id *child,
			     const struct process_id *parent, const char *comm,
			     uint64_t group_name);

/* The facts about a process that a BPF program has collected at an exec. */
struct exec_facts {
	uint64_t exe_name;   /* id of the path of the program; 0 if it is not known */
	uint64_t exe_inode;  /* inode of the program; 0 if it is not known */
	uint64_t group_name; /* id of the path of the process's cgroup; 0 if it is not known */
	bool is_known;	     /* the program was mapped by another process before */
};

/*
 * Records an exec: adds the process anew, with the exec generation in `id`. If another process has
 * mapped the program before (facts->is_known), /proc is not read now: stack walks report each
 * mapping that they come across. Otherwise the mappings are read at once, and again some
 * milliseconds later, when the dynamic linker has mapped the libraries.
 */
void process_table_note_exec(struct process_table *table, const struct process_id *id,
			     const char *comm, const struct exec_facts *facts);

/*
 * Records that a process was moved to the control group of which `group_name` is the path's id; 0
 * if it is not known. process_info_at() still returns the groups of before for times before.
 */
void process_table_note_move(struct process_table *table, const struct process_id *id,
			     uint64_t group_name);

/*
 * Counts a walk of a stack of the process. `address` is where the walk ended. `ends` says how it
 * ended: bit 1 << N is set for each value N of enum walk_end that applies. If the address may be in
 * a mapping that is not known yet, the mappings are read again (rate limited). If only the file's
 * unwind rows are missing, the rows are loaded. Returns true if the walk lacked what would be known
 * without process_table_put_off().
 */
bool process_table_note_walk(struct process_table *table, struct process *process, uint64_t address,
			     unsigned int ends);

/*
 * Records a mapping that a stack walk found and that was not known for the process. If its file is
 * known, addresses in the mapping are named from now on. If not, /proc is read to find the file.
 */
void process_table_note_mapping(struct process_table *table, const struct record_mapping *record);

/*
 * Passes to the unwinder the mappings that the functions above have given to processes, unless the
 * process has exited since. Must be called after a batch of records.
 */
void process_table_show(struct process_table *table);

/*
 * Copies the statistics of up to `max` programs to `out`, first the program with the most
 * incomplete walks. Returns the number of programs that were copied.
 */
size_t process_table_walk_stats(struct process_table *table, struct walk_stats *out, size_t max);

/*
 * Loads the unwind rows of the files that are mapped by the processes found by
 * process_table_scan(), so that even the first stacks are walked to their end. Stops after
 * timeout_ns. The rows of big files are loaded later, by a thread of the table.
 */
void process_table_load_rows(struct process_table *table, int64_t timeout_ns);

/* How many of the files with code that a process has mapped have their unwind rows loaded. */
struct process_files {
	size_t n;	/* number of files; one counts again where it is mapped apart */
	size_t awaited; /* those whose rows are still to be loaded */
	size_t partial; /* those of whose rows only some had room */
	size_t rowless; /* those that have no unwind rows */
	size_t refused; /* those that could not be read, or whose rows had no room */
};

/* What is known of a process, so that its stacks are walked and named to their end. */
struct process_settled {
	char comm[16];
	bool is_settled; /* all that can be known is known, until the process maps another file */
	bool is_kernel;	 /* it is a thread of the kernel, whose stacks need no files */
	bool is_read;	 /* its mappings have been read for this question */
	bool is_hanging; /* reading them has not come back */
	bool is_shown;	 /* walks of its stacks find its mappings */
	bool is_full;	 /* there is no room for its mappings */
	struct process_files files;
};

/*
 * Reads the process from /proc now, has the unwind rows of its files loaded soon, also those of big
 * files, and says what is known. Names are not loaded: they are read from the files, which stay
 * open, when they are needed. All records about the process must have been handled before. May
 * take two seconds if reading hangs. Returns 0; -ESRCH if there is no such process; or -ENOMEM,
 * also if the table is full.
 */
int process_table_settle(struct process_table *table, int32_t pid, struct process_settled *out);

/*
 * Records the exit of a process. The process stays in the table until process_table_sweep() finds
 * that it is not referenced any more.
 */
void process_table_note_exit(struct process_table *table, const struct process_id *id);

/* Times of CLOCK_MONOTONIC, by which process_table_sweep() decides what to remove. */
struct process_sweep {
	/*
	 * Processes last seen before this time are looked for in /proc, because the report of their
	 * exit may have been lost.
	 */
	int64_t lost_ns;
	int64_t dead_ns; /* processes that exited before this time and are not referenced are
			    removed */
	/*
	 * the mappings of processes that exited before this time are dropped, because the functions
	 * of all stacks from before this time have been looked up
	 */
	int64_t named_ns;
};

/*
 * Removes processes that exited long ago, and drops the mappings of others that have exited. The
 * times in `sweep` say which.
 */
void process_table_sweep(struct process_table *table, const struct process_sweep *sweep);

void process_table_stats(struct process_table *table, struct process_stats *out);

/*
 * Copies to comm[] the name of the process that had this pid in the range, in ns since the epoch.
 * False if it is not known, as it is if several had the pid; also if `table` is NULL.
 */
bool process_table_comm(struct process_table *table, int32_t pid, int64_t start_real_ns,
			int64_t end_real_ns, char comm[static 16]);

/*
 * Returns the memory of the exited processes to which windows refer, in bytes, as far as a sweep
 * has looked at them.
 */
size_t process_table_referred_bytes(struct process_table *table);

/*
 * Makes a table for processes that were read back from disk. It has no threads. Returns 0 or
 * -ENOMEM.
 */
int process_table_new_stored(struct process_table **out);

/*
 * Adds a process that was read back from disk; the number of such processes has no limit. The
 * process counts as running until process_check_exited() is called. Returns a reference; NULL when
 * out of memory.
 */
struct process *process_table_add_stored(struct process_table *table,
					 const struct process_info *info);

/*
 * On the first call for a process that was read back from disk, looks in /proc whether it has
 * exited. Does nothing for other processes. Must be called before process_info() if has_exited is
 * needed.
 */
void process_check_exited(struct process *process);

struct process *process_ref(struct process *process);
struct process *process_unref(struct process *process);

/*
 * True if the process has exited, or an exec has replaced its program. False for an entry that
 * stands for several processes.
 */
bool process_has_exited(struct process *process);

/*
 * Copies the known facts about a process; the strings stay valid while the reference is held.
 * process_info_at() does the same, but with the name and the control group that the process had at
 * that time of CLOCK_MONOTONIC.
 */
void process_info(struct process *process, struct process_info *out);
void process_info_at(struct process *process, int64_t at_ns, struct process_info *out);

/* Says which data process_lookup() lacked to name an address. process_refresh() can read it. */
enum process_miss {
	PROCESS_NO_MISS,      /* nothing is missing, or what is missing could not be read */
	PROCESS_MISS_MAPPING, /* a mapping: no known mapping has the address, but /proc/PID/maps
				 may have one */
	PROCESS_MISS_SYMBOLS, /* the symbol table of the file */
	PROCESS_MISS_JIT,     /* a perf map: the last one that was read is stale, or has no name for
				 code made at run time */
};

/*
 * Finds the symbol of an address of the process without reading anything. `mappings` is
 * record_stack.mappings of the stack, the id of the mappings that were used to walk it; 0 stands
 * for the current mappings. `is_call` is true if the address is a return address; the symbol of the
 * call before it is then found. If nothing is known, symbol_out->module is NULL, kind is
 * FRAME_NATIVE and file_offset is the address. The strings are valid until
 * process_release_symbols() is called.
 */
enum process_miss process_lookup(struct process *process, uint64_t mappings, uint64_t address,
				 bool is_call, struct symbol *symbol_out);

/*
 * Returns a number above 0 that changes when process_lookup() may find other names than before for
 * the same addresses, because mappings, files or a perf map were read.
 */
uint32_t process_names_version(struct process *process);

/*
 * Does the same for an address whose lookup ended with PROCESS_MISS_SYMBOLS, because symbols of any
 * file were read.
 */
uint32_t process_symbols_version(struct process *process);

/* Reads the perf map of the process if it was not read for a second. See process_refresh(). */
void process_refresh_perf(struct process *process, int64_t until_ns);

/* A place in a mapped ELF file. All processes that map the file by the same path have the place. */
struct code_place {
	uint64_t file;	 /* hash that identifies the file and its path; 0: it is no such place */
	uint64_t offset; /* ELF virtual address, of the last byte of the call if is_call is true */
	bool is_call;	 /* the address was looked up as a return address */
};

/*
 * Finds the places of n addresses of a stack, leaf first, each of them except for the first as a
 * return address. `mappings` is as for process_lookup(). For equal places with a symbol that has a
 * name, process_lookup() finds equal symbols.
 */
void code_places(struct process *process, uint64_t mappings, const uint64_t *addresses, size_t n,
		 struct code_place *places_out);

/*
 * Reads the data that process_lookup() lacked. `mappings` is the argument of that call, and `miss`
 * is its result. Reading mappings is rate limited, and works only while the process lives. Symbols
 * and perf maps that are not read until until_ns, of CLOCK_MONOTONIC, are there later, see
 * loader.h. After this, the caller looks up the address again.
 */
void process_refresh(struct process *process, uint64_t mappings, enum process_miss miss,
		     int64_t until_ns);

/* Opens a file by its identity; see module_registry_open() for the arguments. */
int process_table_open_file(struct process_table *table, uint64_t file_id, const char *path,
			    int fd_min, int *fd_out, int *debug_fd_out);

/*
 * Says that strings which process_lookup() returned are no longer used, so that symbols may be
 * evicted.
 */
void process_release_symbols(struct process *process);

#endif
