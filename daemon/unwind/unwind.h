/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_UNWIND_H
#define STACKD_DAEMON_UNWIND_UNWIND_H

/*
 * Gives the programs that walk user stacks in the kernel what they need: the compiled rows of files
 * and the mappings of processes, in memory shared with the programs. The recorder owns it; any
 * thread. Memory that a running program may still read is not written over until it has ended.
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

/* The memory that the programs read, and access to maps that only the probe room can write. */
struct unwind_memory {
	uint32_t n_words;
	/*
	 * Maps n words from first on, until unmap(); NULL when out of memory. They are mapped only
	 * while they are written: otherwise they would count as memory of the daemon.
	 */
	uint64_t *(*map)(void *userdata, uint32_t first, uint32_t n);
	void (*unmap)(void *userdata, uint64_t *words, uint32_t first, uint32_t n);
	struct unwind_table *tables;
	uint32_t n_tables;
	struct unwind_segment *segments;
	uint32_t n_segments;
	/* Puts an entry. -EEXIST if is_new_only and there is one; else 0 or a negative errno. */
	int (*put)(void *userdata, const struct unwind_process *process, bool is_new_only);
	/* Copies the entry of a process. False where there is none. */
	bool (*get)(void *userdata, uint32_t tgid, struct unwind_process *out);
	void (*drop)(void *userdata, uint32_t tgid);
	/* Puts code by its key, n_codes at most. 0 or a negative errno. */
	uint32_t n_codes;
	int (*put_code)(void *userdata, const struct unwind_code_key *key,
			const struct unwind_code *code);
	void (*drop_code)(void *userdata, const struct unwind_code_key *key);
	/* Waits until every program that runs now has ended; may take some 10 ms. */
	void (*wait)(void *userdata);
	void *userdata;
};

struct unwind_stats {
	uint64_t max_bytes, bytes; /* memory for rows, and how much of it is in use */
	size_t tables;		   /* files whose rows are loaded */
	uint64_t evictions;  /* files, and parts of files, whose rows were dropped to make room */
	uint64_t no_room;    /* how often rows were not loaded because no room could be made */
	uint64_t unreadable; /* files whose call frame information could not be read */
	uint64_t max_segments, segments;
	uint64_t segments_full;	 /* address spaces not taken because there was no room */
	uint64_t processes_full; /* processes whose entry could not be put */
	uint64_t load_ns, loads; /* CPU time it took to read and compile rows, and how often */
};

/*
 * A process, see process.h. If not is_exact, the start is known to the tick only, and exec_gen not
 * at all.
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
	uint64_t address;	  /* ELF virtual address of start */
	struct unwind_file *file; /* NULL: its code has no rows */
	bool is_generated;	  /* code made at run time: walked by frame pointers */
	uint64_t state;		  /* unwind_state_of(), which walks check; 0: not checked */
};

/* The memory stays the caller's and must outlive the unwinder. -ENOMEM. */
int unwind_new(const struct unwind_memory *memory, struct unwind **out);
struct unwind *unwind_free(struct unwind *unwind);
void unwind_stats(struct unwind *unwind, struct unwind_stats *out);
/* Returns the most words that the rows of one file may take. */
size_t unwind_max_words(const struct unwind *unwind);

/*
 * Collects the "used" flags set by walks and clears them. To be called periodically: eviction
 * compares the times at which rows were seen to be used.
 */
void unwind_notice(struct unwind *unwind);

/*
 * Finds or adds a file and returns a reference; NULL when there are too many files. base: the ELF
 * virtual address that its rows count from. A file without references keeps its rows until the room
 * is needed, because programs are started again and again.
 */
struct unwind_file *unwind_file_get(struct unwind *unwind, const struct file_state *state,
				    uint64_t base);
void unwind_file_put(struct unwind_file *file);

/*
 * Notes that a walk ended at this ELF virtual address for want of rows. From now on the file's rows
 * may displace even rows of live processes; until then they are loaded only where there is room.
 */
void unwind_file_need(struct unwind_file *file, uint64_t address);
bool unwind_file_is_needed(struct unwind_file *file);

/* True if the file's rows should be read now: some are missing, and no attempt was made lately. */
bool unwind_file_is_wanted(struct unwind_file *file);

/*
 * Loads rows that took took_ns to compile. To make room, files that no process maps are evicted
 * first, then parts that were never used, then those not used for longest. Where that is not
 * enough, at least the parts that walks have missed are loaded. error (negative): why there are no
 * rows.
 */
void unwind_file_load(struct unwind_file *file, const struct unwind_rows *rows, int error,
		      int64_t took_ns);

/*
 * Lets walks find the file's rows by the key that the kernel has for a mapping, also in processes
 * that are not known yet. file NULL: the code was made at run time. address: the ELF virtual
 * address of the key's offset. When there are too many keys, the oldest is forgotten.
 */
void unwind_code_learn(struct unwind *unwind, struct unwind_file *file,
		       const struct unwind_code_key *key, uint64_t address);

/*
 * Makes the mappings of a process known; they must be sorted. Owned by the caller; shared by forked
 * processes. NULL when out of memory or when there is no room for the segments.
 */
struct address_space *address_space_new(struct unwind *unwind,
					const struct unwind_mapping *mappings, size_t n);
/* Returns the number by which a stack names the mappings it was walked by: unique, never 0. */
uint64_t address_space_generation(const struct address_space *space);
/* Walks of processes that still have this address space end at their first frame. */
struct address_space *address_space_free(struct address_space *space);

/*
 * Gives the process these mappings. The address space must live until the process has another one
 * or is dropped.
 */
void unwind_process_set(struct address_space *space, const struct unwind_owner *owner);
/* Removes the process, unless its entry is of a later image or of another process by now. */
void unwind_process_drop(struct unwind *unwind, const struct unwind_owner *owner);

#endif
