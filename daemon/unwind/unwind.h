/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_UNWIND_H
#define STACKD_DAEMON_UNWIND_UNWIND_H

/*
 * Keeps the data by which BPF programs walk user stacks: the compiled rows of ELF files and the
 * mappings of processes, in memory that it shares with the programs. The recorder owns it; any
 * thread. Memory that a running BPF program may still read is not overwritten before that program
 * has ended.
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
 * The memory that BPF programs read, and functions that write BPF maps. daemon/probe/ defines these
 * functions, because this folder may not use libbpf.
 */
struct unwind_memory {
	uint32_t n_words;
	/*
	 * Maps n words of the memory for rows, beginning with the word that has the index `first`,
	 * until unmap() is called. NULL when out of memory. Mapped words count as memory of the
	 * daemon, so they are mapped only while they are accessed.
	 */
	uint64_t *(*map)(void *userdata, uint32_t first, uint32_t n);
	void (*unmap)(void *userdata, uint64_t *words, uint32_t first, uint32_t n);
	struct unwind_table *tables;
	uint32_t n_tables;
	struct unwind_segment *segments;
	uint32_t n_segments;
	/*
	 * Stores the entry of a process in the BPF map. If is_new_only is true and the map already
	 * has an entry of the process, returns -EEXIST. Otherwise returns 0 or a negative errno.
	 */
	int (*put)(void *userdata, const struct unwind_process *process, bool is_new_only);
	/* Copies the entry of a process from the BPF map. False if the process has none. */
	bool (*get)(void *userdata, uint32_t tgid, struct unwind_process *out);
	void (*drop)(void *userdata, uint32_t tgid);
	uint32_t n_codes; /* maximum number of keys that put_code() may store */
	/*
	 * Stores an entry of the BPF map by which walks find the unwind rows of mapped code: `key`
	 * identifies the code, `code` says which table has its rows. Returns 0 or a negative errno.
	 */
	int (*put_code)(void *userdata, const struct unwind_code_key *key,
			const struct unwind_code *code);
	void (*drop_code)(void *userdata, const struct unwind_code_key *key);
	/* Waits until every BPF program that is running now has ended; may take some 10 ms. */
	void (*wait)(void *userdata);
	void *userdata;
};

struct unwind_stats {
	uint64_t max_bytes, bytes; /* max_bytes: size of the memory for rows; bytes: how much of
				      it is in use */
	size_t tables;		   /* number of files whose unwind rows are loaded */
	uint64_t evictions; /* number of evictions; each evicts all rows of a file, or those of
			       32 KiB of its code */
	/*
	 * How often unwind rows of a file were not loaded for lack of room: there were too many
	 * files, the file had too many rows, or rows in use left no room.
	 */
	uint64_t no_room;
	uint64_t unreadable; /* how often a file's call frame information was not readable */
	/*
	 * max_segments: length of the array unwind_memory.segments, which has a segment for each
	 * executable mapping of a process; segments: number of segments in use
	 */
	uint64_t max_segments, segments;
	uint64_t segments_full; /* number of address spaces that could not be added, because too few
				   segments were free */
	uint64_t processes_full; /* how often the entry of a process could not be stored in the BPF
				    map of processes */
	uint64_t load_ns, loads; /* load_ns: CPU time spent on reading and compiling rows;
				    loads: number of loads */
};

/*
 * Identifies a process. daemon/process/process.h explains exec_gen and start_boot_ns. If is_exact
 * is false, the start time is rounded to clock ticks, and exec_gen is unknown.
 */
struct unwind_owner {
	uint32_t pid;
	uint32_t exec_gen;
	uint64_t start_boot_ns;
	bool is_exact;
};

/* One executable mapping of a process. */
struct unwind_mapping {
	uint64_t start, end;
	uint64_t address;	  /* ELF virtual address of the byte that is mapped at `start` */
	struct unwind_file *file; /* the mapped file; NULL: there are no rows for the mapping */
	bool is_generated;	  /* code generated at run time; walks use frame pointers */
	/*
	 * hash that identifies the mapped file, its contents and its address, made by
	 * unwind_state_of(). If it is not 0, a walk uses the rows only if the kernel's data about
	 * the present mapping have the same hash
	 */
	uint64_t state;
};

/* Makes an unwinder. The caller still owns the memory, which must outlive the unwinder. Returns 0
 * or -ENOMEM. */
int unwind_new(const struct unwind_memory *memory, struct unwind **out);
struct unwind *unwind_free(struct unwind *unwind);
void unwind_stats(struct unwind *unwind, struct unwind_stats *out);
/* Returns the maximum number of words (8 bytes) that the unwind rows of one file may take. */
size_t unwind_max_words(const struct unwind *unwind);

/*
 * Collects the "used" marks that stack walks set in the parts of the unwind rows, and clears the
 * marks. Must be called periodically, because eviction compares the times at which rows were last
 * seen to be used.
 */
void unwind_notice(struct unwind *unwind);

/*
 * Returns a reference to the file; adds the file if it is new. NULL when there are too many files,
 * or no memory. `base` is an ELF virtual address; the addresses in the file's rows are relative to
 * it. A file without references keeps its rows until their memory is needed, because its program
 * may be started again.
 */
struct unwind_file *unwind_file_get(struct unwind *unwind, const struct file_state *state,
				    uint64_t base);
void unwind_file_put(struct unwind_file *file);

/*
 * Records that a stack walk ended at this ELF virtual address because rows of the file were not
 * loaded. Before the first call, the file's rows are loaded only if there is room. Afterwards they
 * may displace even rows of live processes.
 */
void unwind_file_need(struct unwind_file *file, uint64_t address);
bool unwind_file_is_needed(struct unwind_file *file);

/*
 * Records that stack walks will need all rows of the file, as if walks had missed those that are
 * not loaded. Tries it at most every 10 s for a file of which only some rows are loaded: the others
 * may have no room.
 */
void unwind_file_expect(struct unwind_file *file);

/* What is loaded of a file's unwind rows. */
enum unwind_rows_loaded {
	UNWIND_ROWS_ALL,
	UNWIND_ROWS_SOME,    /* the others had no room; a walk that needs them has them loaded */
	UNWIND_ROWS_NONE,    /* the file has none */
	UNWIND_ROWS_REFUSED, /* they could not be read or had no room; later it is tried again */
	UNWIND_ROWS_AWAITED, /* rows that walks need are still to be loaded */
};
enum unwind_rows_loaded unwind_file_loaded(struct unwind_file *file);

/*
 * True if unwind rows of the file should be loaded now: stack walks need rows that are not loaded,
 * and the last attempt to load rows was long enough ago.
 */
bool unwind_file_is_wanted(struct unwind_file *file);

/*
 * Finds out which parts of the file's rows have to be compiled because stack walks have missed
 * them. Returns false if all rows have to be compiled: none of them is loaded, or there is room for
 * all of them, or memory is short. Otherwise fills in *out; the caller frees it by
 * unwind_wanted_fini().
 */
bool unwind_file_missed(struct unwind_file *file, struct unwind_wanted *out);

/*
 * Loads unwind rows into the memory that BPF programs read. If `wanted` is not NULL, only the
 * wanted parts of the rows were compiled. To make room, evicts other rows in this
 * order: rows of files that no process maps, rows that were never used, rows that have not been
 * used for the longest time. If there is still too little room, loads only rows that stack walks
 * have needed. `error` is the negative errno with which compiling the rows failed, or 0. took_ns is
 * the CPU time that compiling took.
 */
void unwind_file_load(struct unwind_file *file, const struct unwind_wanted *wanted,
		      const struct unwind_rows *rows, int error, int64_t took_ns);

/*
 * Lets stack walks find the rows of `file` by `key`, which BPF programs can make from the kernel's
 * data about a mapping. So walks find the rows even in processes that the daemon does not know yet.
 * If `file` is NULL, the key is that of code made at run time. `address` is the ELF virtual address
 * of the byte at key->offset in the file. When there are too many keys, the oldest one is dropped.
 */
void unwind_code_learn(struct unwind *unwind, struct unwind_file *file,
		       const struct unwind_code_key *key, uint64_t address);

/*
 * Makes an address space from the executable mappings of a process, which must be sorted by
 * address. The caller owns it; forked processes may share it. NULL when out of memory or when too
 * few segments are free.
 */
struct address_space *address_space_new(struct unwind *unwind,
					const struct unwind_mapping *mappings, size_t n);
/*
 * Returns the number of the address space, which is unique and never 0. Each stack that is walked
 * by means of the address space carries this number.
 */
uint64_t address_space_generation(const struct address_space *space);
/*
 * Frees the address space. If a process still uses it, walks of that process's stacks end at their
 * first frame. Returns NULL.
 */
struct address_space *address_space_free(struct address_space *space);

/*
 * Lets walks of the process's stacks use the address space. The address space must live until
 * another one is set for the process, or the entry of the process is dropped.
 */
void unwind_process_set(struct address_space *space, const struct unwind_owner *owner);
/*
 * Returns 0 if walks of the process's stacks use the address space; -ENOENT if the BPF map has no
 * entry of the process, or -ESTALE if its entry has another address space.
 */
int unwind_process_check(struct address_space *space, const struct unwind_owner *owner);
/*
 * Removes the entry of the process from the BPF map, unless the entry now belongs to another
 * process with the same pid or to the same process after a later execve().
 */
void unwind_process_drop(struct unwind *unwind, const struct unwind_owner *owner);

#endif
