/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_INTERNAL_H
#define STACKD_DAEMON_UNWIND_INTERNAL_H

/*
 * The structs that the sources in this folder share: ELF files (unwind.c), the memory of their rows
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

/* Where a part of a file's unwind rows is in the memory that BPF programs read. range.n is 0 if the
 * part is not loaded. */
struct row_part {
	struct unwind_range range;
	int64_t used_ns; /* time at which a stack walk was last seen to use the part; 0: never */
};

/* The compiled unwind rows of a file, in the memory that BPF programs read. Files with equal rows
 * share one set. */
struct row_set {
	struct row_set *next;	  /* next in the list unwind.row_sets */
	struct unwind_range head; /* the head: a word for each part, then frames and rules */
	struct row_part *parts;
	uint32_t n_parts;
	uint32_t n_placed; /* number of words in memory that the loaded parts take */
	uint64_t hash;	   /* hash of the contents of the rows */
	int64_t used_ns;   /* time at which a stack walk was last seen to have used these rows */
	unsigned int refs; /* number of files that have these rows */
	unsigned int live; /* number of references to all files that have these rows; valid only
			      while rows are evicted */
	bool is_used;	   /* a walk has used these rows; valid only inside row_memory_notice() */
};

struct unwind_file {
	struct unwind *unwind;
	struct file_state state;
	uint64_t base;
	uint32_t table; /* index into memory.tables and unwind.files */
	unsigned int refs;
	struct row_set *set; /* the file's unwind rows; NULL: not loaded */
	int64_t used_ns;     /* time at which a stack walk was last seen to use the file */
	int64_t retry_ns;    /* time before which the daemon does not try to load the rows */
	bool is_needed;	     /* a stack walk has ended early, because these rows were not loaded */
	uint32_t missed[UNWIND_MISSED_MAX]; /* numbers of absent parts that walks have needed */
	uint32_t n_missed;
	bool is_too_big;
};

/* A range of segments of a freed address space, which BPF programs may still be reading. */
struct unwind_dead {
	struct unwind_dead *next;
	struct unwind_range range;
};

/* An entry of the BPF map in which stack walks find the unwind rows of a mapping by a key that the
 * kernel has for the mapping. */
struct unwind_known_code {
	UT_hash_handle hh; /* links the entry into the hash table unwind.codes */
	const struct unwind_file *file;
	struct unwind_code_key key;
};

struct unwind {
	pthread_mutex_t lock;
	struct unwind_memory memory;
	/* Allocators of words for heads, words for parts, and segments. Heads have a region of
	 * their own, because a large head would not fit between parts. */
	struct range_alloc heads_alloc, parts_alloc, segments_alloc;
	struct row_set *row_sets;
	struct unwind_file **files; /* indexed by unwind_file.table; [0] is not used */
	struct unwind_dead *dead;
	struct unwind_known_code *codes; /* hash table by key */
	int64_t again_ns;    /* time before which parts that walks have missed are not loaded */
	uint64_t generation; /* number (generation) of the newest address space */
	struct unwind_stats stats; /* does not have the members that unwind_stats() computes */
};

/* The executable mappings of a process, as segments that BPF programs read. Forked processes share
 * them with their parent. */
struct address_space {
	struct unwind *unwind;
	uint32_t first, n; /* range of its segments; the segment before `first` is a header */
	uint64_t generation;
	struct unwind_dead *dead; /* allocated early, because address_space_free() must not fail */
};

/*
 * Removes the file's keys from the BPF map. A BPF program that is running may still use a key that
 * it has looked up before. The caller holds unwind.lock. Defined in code_keys.c.
 */
void unwind_codes_forget(struct unwind *unwind, const struct unwind_file *file);

#endif
