/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_BUCKETS_H
#define STACKD_BPF_BUCKETS_H

/*
 * The buckets of histograms, for the programs in the kernel and for the daemon alike, so that both
 * put a wait into the same one. Pure, and without a loop, which the verifier would have to follow.
 */

#include <linux/types.h>

#define WAIT_BUCKETS 26 /* bucket i: [2^(i+9), 2^(i+10)) ns; the first takes what is shorter */

/* Returns the logarithm of v to base 2, rounded down: 0 for 0, 31 for what 32 bits cannot hold. */
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

/* Returns the bucket of a wait of `ns`. */
static inline __attribute__((always_inline)) __u32 wait_bucket(__u64 ns)
{
	__u32 i = log2_of_32(ns >> 9);

	return i < WAIT_BUCKETS ? i : WAIT_BUCKETS - 1;
}

/* Returns the shortest wait in ns that the bucket takes. */
static inline __attribute__((always_inline)) __u64 wait_bucket_least_ns(__u32 bucket)
{
	return bucket ? (__u64)1 << (bucket + 9) : 0;
}

#endif
