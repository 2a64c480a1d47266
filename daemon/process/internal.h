/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_PROCESS_INTERNAL_H
#define STACKD_DAEMON_PROCESS_INTERNAL_H

/*
 * Declares the structs and functions that the source files of this folder share. Unless a comment
 * says otherwise, table.lock protects all structs, and functions are called with table.lock held.
 * The lock is never held while /proc or a file is read. Lock order: table.lock is taken before a
 * module's load lock and before the registry's lock.
 *
 * The source files form layers, listed here from the lowest to the highest. Each file calls only
 * files of lower layers: maps, park, perf_map < maps_history, held, names, texts, wake < process <
 * read_queue < walk_mappings < perf_reader < reader < table < scan, settle, sweep, stored.
 * symbolize.c, which names addresses, calls held.c, and asks perf_reader.c whether a perf map is
 * stale.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "bpf/unwind_shared.h"
#include "common/hash_table.h"
#include "daemon/process/maps.h"
#include "daemon/process/perf_map.h"
#include "daemon/process/process.h"
#include "daemon/unwind/unwind.h"

#define READ_QUEUE_MAX 1024
#define READ_LATER_MAX 4096
#define UNSHOWN_MAX    1024

struct held_symbols {
	struct module *module;
	struct symtab *symtab;
};

/*
 * References that the functions process_hold_*() took while symbols were looked up. The references
 * keep the strings in struct symbol valid until process_release_symbols() is called.
 */
struct process_held {
	struct process_maps **maps;
	size_t n_maps, maps_capacity;
	struct held_symbols *symbols;
	size_t n_symbols, symbols_capacity;
	struct module *due; /* a reference: a file whose symbols were not loaded; NULL: none */
	struct perf_map **perf_maps;
	size_t n_perf_maps, perf_maps_capacity;
	char **names; /* names made up by process_hold_name() for functions without a name */
	size_t n_names, names_capacity;
};

struct process {
	struct process_table *table;
	struct process *prev, *next; /* entries with the same pid, see process_entries.first */
	struct process_id id;
	int64_t start_real_ns;
	/*
	 * true: process.id is exact, because a probe has reported the process; false: it was read
	 * from /proc
	 */
	bool is_gen_known;
	bool is_kernel;
	bool is_folded;	  /* the entry stands for several processes, see process_see_folded() */
	bool has_exited;  /* the process has exited, or an exec has replaced its program */
	bool is_replaced; /* has_exited is set because of an exec: the process goes on */
	/*
	 * true: the process was read back from disk, and process_check_exited() has not looked in
	 * /proc yet whether it still runs
	 */
	bool is_unchecked;
	bool is_late; /* the process was counted in process_table.too_late */
	/* it is in process_table.later[], see read_queue_add() */
	bool is_put_off;
	/* something of it was to be read, but it was put off: see process_note_put_off() */
	bool is_missed;
	unsigned refs; /* number of references; while above 0, the process stays in the table */
	/*
	 * true: the process is not in table.swept, as there is nothing to do about it before its
	 * last reference is dropped
	 */
	bool is_parked;
	struct process *swept_prev, *swept_next; /* its neighbours in table.swept */
	int64_t added_ns;  /* time of CLOCK_MONOTONIC when the process was added to the table */
	int64_t seen_ns;   /* time of CLOCK_MONOTONIC when the process was last reported, or
			      looked for in /proc */
	int64_t exited_ns; /* time of CLOCK_MONOTONIC when the table learned that the process
			      has exited */
	size_t dead_bytes; /* memory of this process that is counted in process_table.dead_bytes */
	char comm[16];
	int64_t comm_ns; /* time of CLOCK_MONOTONIC when it was last seen with this name */
	struct old_comm *old_comms;  /* what it was called before, see texts.c */
	struct old_text *old_texts;  /* strings of `exe` and `cgroup` from before, see texts.c */
	unsigned n_moves;	     /* how many of them are groups that the process has left */
	int64_t moves_from_ns;	     /* since when, of CLOCK_MONOTONIC, all such groups are known */
	const char *exe, *cgroup;    /* paths of the program and of the cgroup; NULL if unknown.
					Only process_set_text() changes them */
	uint64_t exe_dev, exe_inode; /* device and inode of the program file; 0 if unknown */
	/* id of the path in `cgroup`; 0: a BPF program has not sent the path */
	uint64_t group_name;
	/* the string `exe` may name the program that ran before the last exec */
	bool is_exe_guessed;
	bool is_hanging; /* a thread that reads it from /proc has not come back, see reader.c */

	struct process_maps *maps; /* current mappings; NULL: not read, or already dropped */
	/*
	 * the mappings that the unwinder has, and whose files are kept open for this process. They
	 * are those in `maps`, or an earlier version until process_show() is called. NULL: none
	 */
	struct process_maps *shown_maps;
	bool is_unshown;	       /* the process is in process_table.unshown[] */
	struct maps_version *versions; /* versions of the mappings that stack walks used, newest
					  first (maps_history.c) */
	/*
	 * time of CLOCK_BOOTTIME at which the process's entry was added to the unwinder's BPF map;
	 * 0: it has no entry there
	 */
	int64_t shown_ns;
	bool has_put; /* the daemon has added the entry, not a BPF program */
	/*
	 * generation of the address space in the entry, if a BPF program has added the entry at the
	 * fork, as a copy of the parent's; else 0
	 */
	uint64_t copied_generation;
	uint64_t reads_begun, read_applied;
	uint64_t reads_ended; /* the number of the last read that has ended, of reads_begun */
	uint64_t read_taken;  /* the number of the last read whose result was taken over */
	struct pending_mappings *pending; /* mappings whose file is not known yet; may be NULL */
	unsigned n_pended;		  /* number of mappings that were ever added to `pending` */
	int64_t add_ns;	 /* used by the rate limit in take_share(); each added mapping moves this
			    time forward */
	int64_t open_ns; /* as add_ns, for the files that reader.c opens for found mappings */

	/* Rate limit for reading /proc when an address is in no known mapping (read_queue.c): */
	unsigned attempts;
	int64_t missed_ns, next_read_ns;
	int64_t read_from_ns; /* it is not read before, as the last read took long, see reader.c */

	/* The process's perf map, a file that names code made at run time (perf_reader.c): */
	struct perf_map *perf;	      /* NULL: the process has no perf map */
	struct file_state perf_state; /* state of the perf map's file at the last read; all 0:
					 there was no file */
	bool is_perf_refused;	      /* the process was counted in process_table.perf_refused */
	bool had_perf;		      /* a perf map of the process has been read before */
	int64_t perf_checked_ns, perf_due_ns;

	uint32_t names_version; /* see process_names_version() */

	struct process_held *held; /* NULL: no references are held, as for most processes */

	struct walk_stats *walks; /* statistics of stack walks of the program with the path
				     walks_exe */
	const char *walks_exe;
};

/*
 * The entries that the table has for one pid, also those of exited processes. Each exec adds an
 * entry. An entry with pid 0, which stands for several processes, is in a list of its own.
 */
struct process_entries {
	UT_hash_handle hh;
	uint64_t key; /* the pid; for an entry with pid 0, a number made from its start time */
	/*
	 * A doubly linked list (utlist), the newest entry first, as process_is_newer() says, but
	 * in a table of stored processes, where nothing asks for the newest. Only the first may be
	 * of a program that runs. A process that execs itself in a loop has thousands of entries:
	 * what is done at each event may not visit all of them.
	 */
	struct process *first;
};

struct read_request {
	struct process *process; /* the process to read; the request holds a reference to it */
	int64_t due_ns;
	bool is_repeat; /* true: the request is dropped if the thread that reads /proc has used
			   up its CPU time */
};

/*
 * A process that is to be read from /proc when it has reached a certain age. Most such processes
 * have exited by then, and need not be read. An entry may wait behind earlier ones that are due
 * later, for less than a second.
 */
struct read_later {
	struct process *process; /* the entry holds a reference */
	int64_t due_ns;
};

struct process_table {
	pthread_mutex_t lock;
	pthread_cond_t wake;	   /* wakes the thread `reader`; its clock is CLOCK_MONOTONIC */
	pthread_cond_t files_wake; /* wakes the thread `files`, which reads big files */
	pthread_cond_t has_read;   /* a process was read; its clock is CLOCK_MONOTONIC, too */
	pthread_t reader, files;   /* `reader` reads /proc, `files` reads big files */
	/*
	 * The process that `reader` reads now, borrowed, and since when (CLOCK_MONOTONIC); NULL:
	 * none. If that takes long, another thread becomes `reader`: each has a number.
	 */
	struct process *reading;
	int64_t reading_ns;
	unsigned int reader_number;
	unsigned int n_hanging; /* number of processes with is_hanging */
	int32_t last_hanging;	/* pid of the last one */
	bool has_reader, has_files, is_stopping;
	int64_t put_off_ns; /* the argument of process_table_put_off() */
	/*
	 * true: the thread `reader` or `files` has work that it has not looked at yet, see wake.c
	 */
	bool reader_has_rows, reader_has_request, files_has_work;
	int64_t reader_until_ns; /* time at which `reader` wakes up by itself; INT64_MAX:
				    never; 0: it is not asleep, or was woken */
	bool is_files_asleep;	 /* true: the thread `files` sleeps, and was not woken yet */
	struct process_entries *entries;  /* hash table of all processes, by pid */
	struct process_text *texts;	  /* hash table of paths, see texts.c */
	struct published_maps *published; /* hash table, see maps_history.c */
	struct process_name *names;	  /* hash table of the paths that BPF programs sent */
	size_t names_bytes;		  /* memory of the paths in `names`, in bytes */
	struct process *swept;		  /* list of all processes that are not parked */
	struct process *sweep_next;	  /* the process with which the current sweep continues;
					     NULL: none is left, or no sweep is running */
	struct module_registry *registry; /* the modules that processes map; has its own lock */
	struct loader *loader;		  /* reads their symbols; NULL in a table of stored ones */
	struct read_request queue[READ_QUEUE_MAX];
	size_t n_queued;
	/* The n_unshown processes for which process_show_later() was called, with references. */
	struct process *unshown[UNSHOWN_MAX];
	size_t n_unshown;
	struct read_later later[READ_LATER_MAX]; /* ring of n_later entries from first_later on */
	size_t first_later, n_later;
	size_t n_processes;
	size_t dead_bytes; /* memory of exited processes that are still in the table, in bytes */
	size_t referred_bytes; /* dead_bytes of the processes that are parked */
	/*
	 * the same of those that windows refer to, too, and that are not parked yet, when the last
	 * sweep looked at them
	 */
	size_t unparked_bytes;
	uint64_t too_late, put_off, queue_full, mappings_full, table_full, moves_full, perf_refused;
	uint64_t maps_refused;
	struct walk_stats walks[WALK_STATS_MAX], other_walks;
	size_t n_walks;
	/*
	 * Budget of CPU time for the thread `reader`: start of the current period, time used in
	 * this period.
	 */
	int64_t budget_start_ns, budget_used_ns;
};

/* Defined in park.c: */

/* Adds a process to table.swept, or removes it from there. */
void swept_add(struct process *process);
void swept_remove(struct process *process);
/*
 * Keeps sweeps from looking at a process that has exited, whose code is forgotten, and which has
 * references: on a host with many short-lived processes the windows refer to tens of thousands.
 */
void process_park(struct process *process);
/* Lets sweeps look at the process again, as it has something that may have to go. */
void process_unpark(struct process *process);
/* Drops a reference, and lets sweeps look at a process that has no other. */
void process_drop_ref(struct process *process);

/* Defined in process.c: */

/*
 * Returns the newest entry for the pid id->pid; NULL if the table has none. Its member `next` links
 * to the older entries with this pid.
 */
struct process *process_entries(const struct process_table *table, const struct process_id *id);
/* Adds the process to the table, as the first entry of its pid. Returns 0 or -ENOMEM. */
int process_link(struct process *process);
/* Puts an entry that is in the table where it belongs among those of its pid. */
void process_relink(struct process *process);
/* Removes the process from the table and frees it. */
void process_remove(struct process *process);
bool process_is_same_start(const struct process *process, uint64_t start_boot_ns);
/*
 * True if process `a` is later than process `b`, which has the same pid: `a` started later, or is
 * the same process after a later exec.
 */
bool process_is_newer(const struct process *a, const struct process *b);
/* True if the table has no later process with the same pid. */
bool process_is_newest(const struct process *process);
/*
 * Marks the process as exited. Does not remove the entry that the unwinder has for the pid, because
 * that entry may already belong to a later process.
 */
void process_set_exited(struct process *process);
/* Marks the process as exited, and removes its entry from the unwinder. */
void process_mark_exited(struct process *process);
/*
 * Drops the mappings of the process, current and past, and its perf map. Mappings and perf maps
 * that process.held refers to stay valid.
 */
void process_forget_code(struct process *process);
/*
 * Makes `maps` the current mappings of the process, and passes them to the unwinder. Takes over the
 * caller's reference to `maps`.
 */
void process_set_maps(struct process *process, struct process_maps *maps);
/*
 * Passes process.maps to the unwinder, and keeps the mapped files open as long as the process runs.
 * process_show_later() does so when process_table_show() is called, if the process runs then:
 * records come in batches, and many processes exit in the batch in which they begin.
 */
void process_show(struct process *process);
void process_show_later(struct process *process);
/* Returns by what the unwinder knows the process. */
struct unwind_owner process_unwind_owner(const struct process *process);
/*
 * Passes the mappings of the process to the unwinder, for stack walks, and causes the unwind rows
 * of the mapped files to be loaded soon.
 */
void process_publish(struct process *process);
/* Defined in texts.c: */

/*
 * Sets *field, which is process.exe or process.cgroup, to a copy of the string `value`, or to NULL
 * if `value` is NULL. When out of memory, *field keeps its old value.
 */
void process_set_text(struct process *process, const char **field, const char *value);
/*
 * Sets process.cgroup as process_set_text() does, and keeps the path that it had until now for
 * process_cgroup_at(). NULL if there were PROCESS_MOVES_MAX moves already.
 */
void process_move(struct process *process, const char *cgroup);
/*
 * Sets process.comm, and keeps the name from before for process_comm_at(). process_unname() takes
 * that back if the name was set after since_ns.
 */
void process_name(struct process *process, const char *comm);
void process_unname(struct process *process, int64_t since_ns);
/* Returns the name that the process had at a time of CLOCK_MONOTONIC. */
const char *process_comm_at(const struct process *process, int64_t at_ns);
void process_old_comms_free(struct old_comm **list);
/* Returns the path of the control group in which the process was at a time of CLOCK_MONOTONIC. */
const char *process_cgroup_at(const struct process *process, int64_t at_ns);
/*
 * Drops the strings from before, which callers may have used as long as they had a reference to the
 * process.
 */
void process_drop_old_texts(struct process *process);
void process_texts_free(struct process_table *table);

/* Defined in names.c: */

/* Returns the path with this id; NULL if it is not known. Valid while the lock is held. */
const char *process_name_find(const struct process_table *table, uint64_t id);
void process_names_free(struct process_table *table);

/* wake.c */

/*
 * Must be called after modules may have been queued for reading their unwind rows or closing their
 * files. process_table_unlock() then wakes the threads for this work.
 */
void process_table_note_files(struct process_table *table);
/*
 * Must be called after a request to read /proc was queued, which is due at due_ns.
 * process_table_unlock() then wakes the thread `reader` if it would sleep longer.
 */
void process_table_note_request(struct process_table *table, int64_t due_ns);
/*
 * Releases table.lock, then wakes each thread that sleeps although there is work for it. Must be
 * used to release the lock after calls of functions that may queue work.
 */
void process_table_unlock(struct process_table *table);

/*
 * Defined in held.c. These functions return a pointer, which a reference in process.held keeps
 * valid. They are called without table.lock.
 */

/*
 * Returns the mappings by which a stack was walked. `mappings` is their id: record_stack.mappings
 * of the stack. If `mappings` is 0, returns the current mappings of the process. Returns NULL if
 * the mappings are not known. Sets *is_final_out to true if the address must not be looked up in
 * any other mappings.
 */
const struct process_maps *process_hold_maps(struct process *process, uint64_t mappings,
					     uint64_t address, bool *is_final_out);
/*
 * Returns the symbols of the module if they are loaded, else NULL. *is_missing_out: they are not,
 * but may be read. Who wants that says so with process_hold_due(); process_take_due() returns a
 * reference to such a module, or NULL.
 */
struct symtab *process_hold_symbols(struct process *process, struct module *module,
				    bool *is_missing_out);
void process_hold_due(struct process *process, struct module *module);
struct module *process_take_due(struct process *process);
/* Takes over a reference to the symbols of the module. Returns them; NULL when out of memory. */
struct symtab *process_hold_loaded(struct process *process, struct module *module,
				   struct symtab *spare);
/* Returns the perf map of the process; NULL if it has none. */
const struct perf_map *process_hold_perf_map(struct process *process);
/*
 * Makes up the name "FILE+fn_START" for a function that has none, and returns it. START is the
 * parameter `start` in hexadecimal. NULL when out of memory.
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
 * Defined in maps_history.c: the history of a process's mappings. The functions of a stack are
 * looked up in the mappings that were used to walk the stack; record_stack.mappings is their id.
 * Old mappings are kept as long as stacks with their id may still arrive.
 */

/* Adds process.maps to the history: stack walks use these mappings from now on. */
void maps_history_add(struct process *process);
/*
 * Records a mapping that a stack walk found, but that the unwinder did not have. `module` is the
 * mapped file, or NULL if no file is mapped or the file is not known yet.
 */
void maps_history_note(struct process *process, const struct record_mapping *record,
		       struct module *module);
/*
 * Finds the mappings that stack walks have found and whose files are not known. `id` is
 * record_stack.mappings of the stacks. Returns their number and stores the kernel's keys of the
 * files.
 */
size_t maps_history_awaited(const struct process *process, uint64_t id,
			    struct unwind_code_key keys_out[static UNWIND_FOUND_MAX]);
/*
 * Looks again for the files of these mappings. One that is still unknown gets its path, if the BPF
 * programs have sent it.
 */
void maps_history_settle(struct process *process, uint64_t id);
/*
 * Returns the same as process_hold_maps() for the mappings `id` and the address `at`, but takes no
 * reference.
 */
struct process_maps *maps_history_find(const struct process *process, uint64_t id, uint64_t at,
				       bool *is_final_out);
/*
 * Copies the newest versions of the mappings from the parent's history to the history of its forked
 * child, because stacks of the child may have been walked with the parent's mappings.
 */
void maps_history_inherit(struct process *process, const struct process *parent);
void maps_history_free(struct process *process);

/* Defined in read_queue.c: */

/*
 * True if the rate limit of the process allows a read of /proc now, to look for an unknown mapping.
 * Each call that returns true uses up some of the limit.
 */
bool process_should_read(struct process *process, int64_t now);
/*
 * True if process_table_put_off() applies to the process: it is, or was when it exited, too young
 * to be read.
 */
bool process_is_put_off(const struct process *process);
/*
 * Notes that something of the process was to be read, but it is put off. If it exits before it is
 * read, it counts in process_table.put_off; a process whose program and files are known does not.
 */
void process_note_put_off(struct process *process);
/*
 * Queues a request to read /proc/PID of the process after delay_ns; the reader thread carries it
 * out. `is_repeat`: the request is dropped if this thread has used up its CPU time. Does nothing
 * for a kernel thread, nor for an exited process that has no pending mappings. If
 * process_is_put_off() is true, the process is queued once, to be read when it is old enough.
 */
void read_queue_add(struct process *process, int64_t delay_ns, bool is_repeat);
/* Queues such a request without conditions. False if the queue is full. */
bool read_queue_push(struct process *process, int64_t due_ns, bool is_repeat);
/* Returns the index of the request that is due first; table->n_queued must not be 0. */
size_t read_queue_first(const struct process_table *table);
/*
 * Queues the process to be read from /proc when it is some tens of milliseconds older. If it has
 * exited by then, it is not read.
 */
void read_queue_add_later(struct process *process);
/*
 * Queues requests to read the processes in process_table.later[] that are old enough now and have
 * not exited.
 */
void read_queue_move_due(struct process_table *table);
/* Returns when read_queue_move_due() has to be called next; INT64_MAX: no process is waiting. */
int64_t read_queue_later_ns(const struct process_table *table);

/*
 * Defined in walk_mappings.c. A mapping that a stack walk found is pending as long as its file is
 * not known.
 *
 * walk_mappings_note() is called when a stack walk has found a mapping. walk_mappings_learn() is
 * called when /proc was read, which may show the files of pending mappings. walk_mappings_open() is
 * called after that. It tries to open, by inode number, the files that are still unknown. Only the
 * reader thread calls it, without table.lock.
 */
void walk_mappings_note(struct process *process, const struct record_mapping *record,
			struct module *module);
void walk_mappings_learn(struct process *process);
void walk_mappings_open(struct process *process);

/* Defined in perf_reader.c; called without table.lock: */

/*
 * True if the perf map of the process should be read again now. `is_name_missing` is true if a
 * lookup found no name in the map. The map may then be read again earlier.
 */
bool process_perf_is_due(struct process *process, bool is_name_missing);
void process_read_perf(struct process *process);

/*
 * Defined in reader.c. The caller must have a reference to the process, and must not hold
 * table.lock.
 */

/*
 * Has the thread `reader` read the program, cgroup and mappings of the process from /proc/PID, and
 * waits for that, but not for long: reading hangs while the process's memory map is locked. Such a
 * process is not read again until then.
 */
void process_read_soon(struct process *process);
/*
 * Waits until at most `most` requests are queued; if it is 0, also for the end of the last read.
 * Gives up where too many reads hang.
 */
void process_reader_await(struct process_table *table, size_t most);
/*
 * If the thread `reader` has read one process for too long, has another thread go on with the
 * others. /proc waits for the lock of a process's memory map, which a thread of the process keeps
 * for as long as a file system does not answer it. Called with table.lock held.
 */
void process_reader_replace(struct process_table *table);
int process_reader_start(struct process_table *table);
void process_reader_stop(struct process_table *table);

/*
 * Defined in table.c. Returns the process with this pid and start time, which were read from /proc.
 * Adds the process if it is not in the table. Returns NULL when out of memory or when the table is
 * full.
 */
struct process *process_find_or_add_scanned(struct process_table *table, int32_t pid,
					    uint64_t start_ticks);

/*
 * Defined in walk_stats.c. Counts one walk of a stack of the process. `ends` says how the walk
 * ended: bit 1 << N is set for each value N of enum walk_end that applies.
 */
void walk_stats_note(struct process *process, unsigned int ends);
void walk_stats_free(struct process_table *table);

#endif
