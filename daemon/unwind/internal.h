/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_UNWIND_INTERNAL_H
#define STACKD_DAEMON_UNWIND_INTERNAL_H

/*
 * What the files behind unwind.h share: tables (unwind.c), where their rows are (unwind_words.c),
 * runs and processes (unwind_runs.c), and code as the kernel knows it (unwind_codes.c).
 * Everything is under unwind.lock unless said otherwise, which is the last lock taken.
 */

#include <pthread.h>

#include "bpf/unwind_shared.h"
#include "daemon/base/hash_table.h"
#include "daemon/unwind/range_alloc.h"
#include "daemon/unwind/unwind.h"

enum { UNWIND_MISSED_MAX = 64 };

/* Where a part is; n 0: absent. */
struct row_part {
	struct unwind_range range;
	int64_t used_ns; /* when a walk through it was last noticed; 0: never */
};

/* Compiled rows at their places, shared by files of equal contents. */
struct row_set {
	struct row_set *next;
	struct unwind_range head; /* parts, frames and rules */
	struct row_part *places;  /* of the parts */
	uint32_t n_parts;
	uint32_t n_placed; /* words of all parts */
	uint64_t hash;
	int64_t used_ns;
	unsigned int refs;
	unsigned int live; /* references to the files, counted when room is made */
	bool is_used;	   /* since the last time that was noticed */
};

struct unwind_file {
	struct unwind *unwind;
	struct file_state state;
	uint64_t base;
	uint32_t table; /* its number */
	unsigned int refs;
	struct row_set *words;		    /* NULL: not loaded */
	int64_t used_ns;		    /* when a walk through it was last noticed */
	int64_t retry_ns;		    /* not wanted before */
	bool is_needed;			    /* a walk has ended for want of its rows */
	uint32_t missed[UNWIND_MISSED_MAX]; /* parts that were absent where one has ended */
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
	/* Heads are far bigger than parts: among them there would be no room in a row. */
	struct range_alloc heads_alloc, parts_alloc, segments_alloc;
	struct row_set *words;
	struct unwind_file **files; /* by table number; 0 is nobody's */
	struct unwind_dead *dead;
	struct unwind_known_code *codes; /* by key */
	int64_t again_ns; /* what walks have missed of tables that are there is not read before */
	uint64_t generation;	   /* of the run made last */
	struct unwind_stats stats; /* but for what unwind_stats() counts */
};

struct address_space {
	struct unwind *unwind;
	uint32_t first, n; /* the header is before first */
	uint64_t generation;
	struct unwind_dead *dead; /* for when it is freed */
};

/* unwind_codes.c, with the lock held: programs that run now may still have found it. */
void unwind_codes_forget(struct unwind *unwind, const struct unwind_file *file);

#endif
