/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_LOG2_BPF_H
#define STACKD_BPF_LOG2_BPF_H

/* Buckets of histograms: in goes a number, out comes its logarithm, rounded down, without a loop. */

#include <bpf/bpf_helpers.h>

/* 0 of 0; 31 of what does not fit in 32 bits. */
static __always_inline __u32 log2_of_32(__u64 v)
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

#endif
