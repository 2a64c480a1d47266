/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_BUCKETS_H
#define STACKD_BPF_BUCKETS_H

/*
 * Chooses the bucket of a histogram for a wait. The programs in the kernel and the daemon both use
 * these functions, so they put a wait into the same bucket. No loops, as the verifier would follow
 * each iteration.
 */

#include <linux/types.h>

/*
 * Number of buckets. Bucket i has waits of [2^(i+9), 2^(i+10)) ns; the first also has shorter
 * waits, the last longer ones.
 */
#define WAIT_BUCKETS 26

/* Returns the base-2 logarithm of v, rounded down; 0 for 0, and 31 if v does not fit in 32 bits. */
static inline __attribute__((always_inline)) __u32 log2_of_32(__u64 v)
{
	__u32 i = 0;

	if (v >= 1 << 16) {
		i += 16;
		v >>= 16;
	}
	if (v >= 1 << 8) {
		i += 8;
		v >>= 8;
	}
	if (v >= 1 << 4) {
		i += 4;
		v >>= 4;
	}
	if (v >= 1 << 2) {
		i += 2;
		v >>= 2;
	}
	return v >= 2 ? i + 1 : i;
}

/* Returns the index of the bucket for a wait of `ns` nanoseconds. */
static inline __attribute__((always_inline)) __u32 wait_bucket(__u64 ns)
{
	__u32 i = log2_of_32(ns >> 9);

	return i < WAIT_BUCKETS ? i : WAIT_BUCKETS - 1;
}

/* Returns the length in ns of the shortest wait that belongs in the bucket. */
static inline __attribute__((always_inline)) __u64 wait_bucket_least_ns(__u32 bucket)
{
	return bucket ? (__u64)1 << (bucket + 9) : 0;
}

#endif
