/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_INTERNAL_H
#define STACKD_DAEMON_UNWIND_INTERNAL_H

/*
 * Declares the structs that the sources in this folder share: ELF files (unwind.c), the memory of
 * their rows (row_memory.c), address spaces and processes (address_space.c), and the keys by which
 * the kernel identifies code (code_keys.c). unwind.lock protects all of them; no other lock is
 * taken while it is held.
 */

#include <pthread.h>

#include "bpf/unwind_shared.h"
#include "common/hash_table.h"
#include "daemon/unwind/range_alloc.h"
#include "daemon/unwind/unwind.h"

enum { UNWIND_MISSED_MAX = 64 };

/*
 * Says where the unwind rows of one part (32 KiB) of a file's code are in the memory that BPF
 * programs read. range.n is 0 if they are not loaded.
 */
struct row_part {
	struct unwind_range range;
	int64_t used_ns; /* time at which a stack walk was last seen to use these rows; 0: never */
};

/*
 * The compiled unwind rows of a file, in the memory that BPF programs read. They consist of a head,
 * and of one range of rows for each part (32 KiB) of the file's code. Files with equal rows share
 * one struct row_set.
 */
struct row_set {
	struct row_set *next; /* next in the list unwind.row_sets */
	/*
	 * the head: one word for each part of the code, which says where its rows are; then frames
	 * and rules
	 */
	struct unwind_range head;
	struct row_part *parts;
	uint32_t n_parts, n_frames;
	uint32_t n_placed; /* number of words that the loaded parts of the rows take */
	uint64_t n_all;	   /* number of words that all parts of the rows take */
	uint64_t hash;	   /* hash of the contents of the rows */
	int64_t used_ns;   /* time at which the daemon last found that a stack walk had used these
			      rows */
	unsigned int refs; /* number of files that share these rows */
	/*
	 * total number of references to the files that share these rows; valid only while rows are
	 * evicted
	 */
	unsigned int live;
	bool is_used; /* a walk has used these rows; valid only inside row_memory_notice() */
};

struct unwind_file {
	struct unwind *unwind;
	UT_hash_handle hh; /* links the file into the hash table unwind.by_state */
	struct file_state state;
	uint64_t base;
	uint32_t table; /* index into memory.tables and unwind.files */
	unsigned int refs;
	struct row_set *set; /* the file's unwind rows; NULL: not loaded */
	int64_t used_ns;     /* time at which a stack walk was last seen to use the file's rows */
	int64_t retry_ns;    /* time before which the daemon does not try to load the rows */
	bool is_needed; /* true: a stack walk has ended early, because unwind rows of this file were
			   not loaded */
	/*
	 * numbers of the parts (32 KiB) of the file's code whose rows walks have needed, but which
	 * were not loaded
	 */
	uint32_t missed[UNWIND_MISSED_MAX];
	uint32_t n_missed;
	bool is_too_big;
	bool is_expected;  /* the parts in missed[] are there because of unwind_file_expect() */
	int64_t expect_ns; /* time before which unwind_file_expect() adds no parts again */
};

/* A range of segments of a freed address space, which BPF programs may still be reading. */
struct unwind_dead {
	struct unwind_dead *next;
	struct unwind_range range;
};

/*
 * Stands for an entry of the BPF map unwind_codes: code of a mapped file that the daemon knows. If
 * a stack walk comes to a mapping that the daemon has not read from /proc, it makes a struct
 * unwind_code_key from the kernel's data about the mapping. The map's entry with this key says
 * where the unwind rows are.
 */
struct unwind_known_code {
	UT_hash_handle hh; /* links the entry into the hash table unwind.codes */
	const struct unwind_file *file;
	struct unwind_code_key key;
};

struct unwind {
	pthread_mutex_t lock;
	struct unwind_memory memory;
	/*
	 * Allocators for three regions of memory: heads_alloc for the heads of row sets (see struct
	 * row_set), parts_alloc for the rows, and segments_alloc for the mappings of processes.
	 * Heads have a region of their own, because a large head would not fit between rows.
	 */
	struct range_alloc heads_alloc, parts_alloc, segments_alloc;
	struct row_set *row_sets;
	struct unwind_file **files;   /* indexed by unwind_file.table; [0] is not used */
	struct unwind_file *by_state; /* hash table of the same files */
	struct unwind_dead *dead;
	struct unwind_known_code *codes; /* hash table by key */
	/*
	 * The earliest time at which missed rows are loaded. Missed rows are those that a stack
	 * walk needed, of a file of which only some rows are loaded. The time between two such
	 * loads limits their CPU time, see AGAIN_FACTOR.
	 */
	int64_t again_ns;
	uint64_t generation;	   /* number (generation) of the newest address space */
	struct unwind_stats stats; /* statistics, without the members that unwind_stats()
				      computes */
};

/* The executable mappings of a process, as segments that BPF programs read. Forked processes share
 * them with their parent. */
struct address_space {
	struct unwind *unwind;
	uint32_t first, n; /* `first` is the index of the first segment, n the number of
			      segments; the segment before `first` is a header */
	uint64_t generation;
	struct unwind_dead *dead; /* allocated together with the address space, because
				     address_space_free() must not fail */
};

/*
 * Removes the file's keys from the BPF map. BPF programs that are running may still use a key that
 * they looked up before. The caller holds unwind.lock. Defined in code_keys.c.
 */
void unwind_codes_forget(struct unwind *unwind, const struct unwind_file *file);

#endif
