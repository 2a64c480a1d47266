/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_INTERNAL_H
#define STACKD_DAEMON_UNWIND_INTERNAL_H

/*
 * The structs that the files of this room share: files (unwind.c), where their rows are
 * (row_memory.c), address spaces and processes (address_space.c), and keys of code (code_keys.c).
 * Everything is protected by unwind.lock, which is the last lock taken.
 */

#include <pthread.h>

#include "bpf/unwind_shared.h"
#include "daemon/base/hash_table.h"
#include "daemon/unwind/range_alloc.h"
#include "daemon/unwind/unwind.h"

enum { UNWIND_MISSED_MAX = 64 };

/* Where the rows of a part are; range.n 0: the part is absent. */
struct row_part {
	struct unwind_range range;
	int64_t used_ns; /* when a walk was last seen to have used it; 0: never */
};

/* Compiled rows in the shared memory; files with equal rows share them. */
struct row_set {
	struct row_set *next;	  /* unwind.row_sets */
	struct unwind_range head; /* a word for each part, then frames and rules */
	struct row_part *parts;
	uint32_t n_parts;
	uint32_t n_placed; /* words of all parts that are placed */
	uint64_t hash;	   /* of the rows */
	int64_t used_ns;   /* when a walk was last seen to have used it */
	unsigned int refs; /* files that have it */
	unsigned int live; /* references to these files; valid while room is made */
	bool is_used;	   /* scratch of row_memory_notice() */
};

struct unwind_file {
	struct unwind *unwind;
	struct file_state state;
	uint64_t base;
	uint32_t table; /* index into memory.tables and unwind.files */
	unsigned int refs;
	struct row_set *set;		    /* NULL: not loaded */
	int64_t used_ns;		    /* when a walk was last seen to have used it */
	int64_t retry_ns;		    /* its rows are not wanted before */
	bool is_needed;			    /* a walk has ended for want of its rows */
	uint32_t missed[UNWIND_MISSED_MAX]; /* absent parts at which walks have ended */
	uint32_t n_missed;
	bool is_too_big;
};

/* A range of segments that programs may still be reading. */
struct unwind_dead {
	struct unwind_dead *next;
	struct unwind_range range;
};

/* A key that the kernel's map of codes has. */
struct unwind_known_code {
	UT_hash_handle hh; /* in unwind.codes */
	const struct unwind_file *file;
	struct unwind_code_key key;
};

struct unwind {
	pthread_mutex_t lock;
	struct unwind_memory memory;
	/* Heads have a region of their own: they are large, and parts would fragment it. */
	struct range_alloc heads_alloc, parts_alloc, segments_alloc;
	struct row_set *row_sets;
	struct unwind_file **files; /* by table; [0] is not used */
	struct unwind_dead *dead;
	struct unwind_known_code *codes; /* by key */
	int64_t again_ns;	   /* missed parts of files that are loaded are not read before */
	uint64_t generation;	   /* of the address space made last */
	struct unwind_stats stats; /* without the members that unwind_stats() computes */
};

/* The segments of one process, or of several that have forked. */
struct address_space {
	struct unwind *unwind;
	uint32_t first, n; /* its segments; the header is the segment before first */
	uint64_t generation;
	struct unwind_dead *dead; /* allocated beforehand: freeing must not fail */
};

/*
 * code_keys.c, with the lock held: removes the file's keys from the kernel's map. Programs that run
 * now may have found one already.
 */
void unwind_codes_forget(struct unwind *unwind, const struct unwind_file *file);

#endif
