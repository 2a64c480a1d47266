/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_UNWIND_H
#define STACKD_DAEMON_UNWIND_UNWIND_H

/*
 * Keeps the data by which BPF programs walk user stacks: the compiled rows of ELF files and the
 * mappings of processes, in memory that it shares with the programs. The recorder owns it; any
 * thread. Memory that a running program may still read is not overwritten before that program has
 * ended.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/file_state.h"
#include "daemon/unwind/rows.h"

struct unwind;
struct unwind_file;
struct address_space;
struct unwind_process;
struct unwind_segment;
struct unwind_table;
struct unwind_code;
struct unwind_code_key;

/*
 * The memory that the BPF programs read, and functions of the probe room that write BPF maps, which
 * no other room can.
 */
struct unwind_memory {
	uint32_t n_words;
	/*
	 * Maps n words of the memory for rows from index first on, until unmap() is called; NULL
	 * when out of memory. Words that stay mapped count as memory of the daemon, so they are
	 * mapped only while they are written.
	 */
	uint64_t *(*map)(void *userdata, uint32_t first, uint32_t n);
	void (*unmap)(void *userdata, uint64_t *words, uint32_t first, uint32_t n);
	struct unwind_table *tables;
	uint32_t n_tables;
	struct unwind_segment *segments;
	uint32_t n_segments;
	/*
	 * Stores the entry of a process. Returns -EEXIST if is_new_only and the process has an
	 * entry; else 0 or a negative errno.
	 */
	int (*put)(void *userdata, const struct unwind_process *process, bool is_new_only);
	/* Copies the entry of a process. False if it has none. */
	bool (*get)(void *userdata, uint32_t tgid, struct unwind_process *out);
	void (*drop)(void *userdata, uint32_t tgid);
	uint32_t n_codes; /* limit of the number of keys that put_code() stores */
	/* Stores where the rows of the code with this key are. Returns 0 or a negative errno. */
	int (*put_code)(void *userdata, const struct unwind_code_key *key,
			const struct unwind_code *code);
	void (*drop_code)(void *userdata, const struct unwind_code_key *key);
	/* Waits until every BPF program that runs now has ended; may take some 10 ms. */
	void (*wait)(void *userdata);
	void *userdata;
};

struct unwind_stats {
	uint64_t max_bytes, bytes; /* size of the memory for rows, and how much of it is in use */
	size_t tables;		   /* number of files whose rows are loaded */
	uint64_t evictions;	   /* number of files, and parts of files, that were evicted */
	uint64_t no_room;    /* how often rows were not loaded because no room could be made */
	uint64_t unreadable; /* how often the call frame information of a file was not readable */
	uint64_t max_segments, segments; /* limit of the segments, and how many are in use */
	uint64_t segments_full;	 /* number of address spaces that could not be added, as no segments
				    were free */
	uint64_t processes_full; /* how often the entry of a process could not be stored */
	uint64_t load_ns, loads; /* CPU time spent on reading and compiling rows, number of loads */
};

/*
 * Identifies a process; see process.h for the members. If is_exact is false, the start time is
 * rounded to clock ticks, and exec_gen is unknown.
 */
struct unwind_owner {
	uint32_t pid;
	uint32_t exec_gen;
	uint64_t start_boot_ns;
	bool is_exact;
};

/* One executable mapping. */
struct unwind_mapping {
	uint64_t start, end;
	uint64_t address;	  /* ELF virtual address of the byte that is mapped at start */
	struct unwind_file *file; /* the mapped file; NULL: there are no rows for the mapping */
	bool is_generated;	  /* the code was made at run time; walks use frame pointers */
	uint64_t state;		  /* unwind_state_of() of the mapped file, which walks compare with
				     the file that they find mapped; 0: they do not compare */
};

/* Makes an unwinder. The caller keeps the memory, which must outlive the unwinder. -ENOMEM. */
int unwind_new(const struct unwind_memory *memory, struct unwind **out);
struct unwind *unwind_free(struct unwind *unwind);
void unwind_stats(struct unwind *unwind, struct unwind_stats *out);
/* Returns the most words that the rows of one file may take. */
size_t unwind_max_words(const struct unwind *unwind);

/*
 * Collects the "used" marks that walks set in the rows, and clears the marks. Must be called
 * periodically, because eviction compares the times at which rows were last seen to be used.
 */
void unwind_notice(struct unwind *unwind);

/*
 * Returns a reference to the file, which is added if it is new; NULL when there are too many files,
 * or no memory. base: the ELF virtual address to which the file's rows are relative. A file without
 * references keeps its rows until the memory is needed, because programs are started again and
 * again.
 */
struct unwind_file *unwind_file_get(struct unwind *unwind, const struct file_state *state,
				    uint64_t base);
void unwind_file_put(struct unwind_file *file);

/*
 * Records that a walk ended at this ELF virtual address because the file's rows were absent. Before
 * the first call, the rows are loaded only if there is room; afterwards they may displace even rows
 * of live processes.
 */
void unwind_file_need(struct unwind_file *file, uint64_t address);
bool unwind_file_is_needed(struct unwind_file *file);

/*
 * True if the file's rows should be loaded now: some are missing, and the last attempt was not
 * lately.
 */
bool unwind_file_is_wanted(struct unwind_file *file);

/*
 * Loads rows into the shared memory. To make room, files that no process maps are evicted first,
 * then parts that were never used, then parts that were not used for longest. If the room is still
 * too small, only parts that walks have missed are loaded. error: the negative errno with which
 * compiling the rows failed, or 0. took_ns: CPU time that it took.
 */
void unwind_file_load(struct unwind_file *file, const struct unwind_rows *rows, int error,
		      int64_t took_ns);

/*
 * Lets walks find the file's rows by a key that the kernel has for each mapping of the file, even
 * in processes that the daemon does not know yet. file NULL: the code was made at run time.
 * address: the ELF virtual address of the file offset in the key. When there are too many keys, the
 * oldest one is forgotten.
 */
void unwind_code_learn(struct unwind *unwind, struct unwind_file *file,
		       const struct unwind_code_key *key, uint64_t address);

/*
 * Makes an address space of the mappings of a process, which must be sorted by address. The caller
 * owns it; forked processes may share it. NULL when out of memory or when too few segments are
 * free.
 */
struct address_space *address_space_new(struct unwind *unwind,
					const struct unwind_mapping *mappings, size_t n);
/*
 * Returns the number of the address space, which is unique and never 0. A stack carries the number
 * of the address space by which it was walked.
 */
uint64_t address_space_generation(const struct address_space *space);
/*
 * Frees the address space. Walks of a process that still uses it end at their first frame. Returns
 * NULL.
 */
struct address_space *address_space_free(struct address_space *space);

/*
 * Lets walks of the process use the address space, which must live until the process gets another
 * one or is dropped.
 */
void unwind_process_set(struct address_space *space, const struct unwind_owner *owner);
/*
 * Removes the entry of the process, unless the entry now belongs to another process with the same
 * pid or to a later execve() of the same process.
 */
void unwind_process_drop(struct unwind *unwind, const struct unwind_owner *owner);

#endif
