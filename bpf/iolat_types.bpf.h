/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_IOLAT_TYPES_BPF_H
#define STACKD_BPF_IOLAT_TYPES_BPF_H

/* The types of iolat: the key and the value of its window's map, and what each CPU keeps. */

#include "brake.h"
#include "io_shared.h"
#include "layout.h"

struct cpu {
	struct cpu_counts counts;
	__u64 word;	    /* address of `cut` as a number, see pointer_number() */
	__u64 random;	    /* state of sample_random(); 0: not used yet */
	struct brake brake; /* of the walks of stacks of slow operations */
	__u64 stack;	    /* used by stack_number() to read a pointer back as a number */
};

#define WINDOW_KEY   struct io_key
#define WINDOW_VALUE struct io_sums

#endif
