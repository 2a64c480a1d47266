/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_INTERNAL_H
#define STACKD_DAEMON_UNWIND_INTERNAL_H

/*
 * The structs that the sources of this room share: ELF files (unwind.c), the memory of their rows
 * (row_memory.c), address spaces and processes (address_space.c), and the keys by which the kernel
 * identifies code (code_keys.c). unwind.lock protects all of them; no other lock is taken while it
 * is held.
 */

#include <pthread.h>

#include "bpf/unwind_shared.h"
#include "daemon/base/hash_table.h"
#include "daemon/unwind/range_alloc.h"
#include "daemon/unwind/unwind.h"

enum { UNWIND_MISSED_MAX = 64 };

/* The words in shared memory that hold a part of a file's rows; range.n is 0 while it is absent. */
struct row_part {
	struct unwind_range range;
	int64_t used_ns; /* time at which a walk was last seen to have used the part; 0: never */
};

/* Compiled rows in the shared memory; files with equal rows share them. */
struct row_set {
	struct row_set *next;	  /* next in the list unwind.row_sets */
	struct unwind_range head; /* words in memory: one for each part, then frames and rules */
	struct row_part *parts;
	uint32_t n_parts;
	uint32_t n_placed; /* number of words of all parts that are in memory */
	uint64_t hash;	   /* hash of the rows */
	int64_t used_ns;   /* time at which a walk was last seen to have used these rows */
	unsigned int refs; /* number of files that have these rows */
	unsigned int live; /* number of references to these files; valid only while rows are
			      evicted */
	bool is_used;	   /* valid only inside row_memory_notice() */
};

struct unwind_file {
	struct unwind *unwind;
	struct file_state state;
	uint64_t base;
	uint32_t table; /* index into memory.tables and unwind.files */
	unsigned int refs;
	struct row_set *set;		    /* the file's rows; NULL: they are not loaded */
	int64_t used_ns;		    /* time at which a walk was last seen to use the file */
	int64_t retry_ns;		    /* time before which the rows are not loaded */
	bool is_needed;			    /* a walk has ended because the rows were absent */
	uint32_t missed[UNWIND_MISSED_MAX]; /* indices of absent parts at which walks have ended */
	uint32_t n_missed;
	bool is_too_big;
};

/* A range of freed segments that BPF programs may still be reading. */
struct unwind_dead {
	struct unwind_dead *next;
	struct unwind_range range;
};

/* A key in the BPF map by which walks find the code of a mapping. */
struct unwind_known_code {
	UT_hash_handle hh; /* links the entry into the hash table unwind.codes */
	const struct unwind_file *file;
	struct unwind_code_key key;
};

struct unwind {
	pthread_mutex_t lock;
	struct unwind_memory memory;
	/* Heads and parts have separate regions: large heads would not fit between parts. */
	struct range_alloc heads_alloc, parts_alloc, segments_alloc;
	struct row_set *row_sets;
	struct unwind_file **files; /* indexed by unwind_file.table; [0] is not used */
	struct unwind_dead *dead;
	struct unwind_known_code *codes; /* hash table by key */
	int64_t again_ns;	   /* time before which missed parts of loaded files are not read */
	uint64_t generation;	   /* generation of the address space that was made last */
	struct unwind_stats stats; /* all members but those that unwind_stats() computes */
};

/* The mappings of a process, as segments; processes that it forks share them. */
struct address_space {
	struct unwind *unwind;
	uint32_t first, n; /* range of its segments; the segment before first is a header */
	uint64_t generation;
	struct unwind_dead *dead; /* allocated early, because address_space_free() must not fail */
};

/*
 * Removes the file's keys from the kernel's map. A BPF program that runs now may still use a key
 * that it has looked up before. Called with unwind.lock held; defined in code_keys.c.
 */
void unwind_codes_forget(struct unwind *unwind, const struct unwind_file *file);

#endif
