/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_SAMPLE_H
#define STACKD_BPF_SAMPLE_H

/*
 * Decides which short waits are recorded, and with which weight. A wait of `ns` nanoseconds that is
 * shorter than `below` is recorded with the probability ns / below, and then stands for
 * below / ns waits like it: whatever its length was, its row gets exactly `below` nanoseconds. The
 * expected time of each row is the true one. The standard deviation of a row with the time S is at
 * most sqrt(below * S). The programs in the kernel and the unit tests use these functions.
 */

#include <linux/types.h>
#include <stdbool.h>

/* The greatest value of `below`. Products of two times below it fit in 64 bits. */
#define SAMPLE_BELOW_MAX 1000000000ULL

/*
 * Returns 32 random bits and advances *state, which must not be shared by two CPUs. The numbers are
 * those of a linear congruential generator (Knuth's MMIX), of which the upper bits are good enough
 * to pick waits, and take about 1 ns.
 */
static inline __attribute__((always_inline)) __u32 sample_random(__u64 *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (__u32)(*state >> 32);
}

/*
 * True if the wait is to be recorded, which has the probability ns / below. `random` is a new
 * random number, and ns < below.
 */
static inline __attribute__((always_inline)) bool sample_has(__u32 random, __u64 ns, __u64 below)
{
	return random * below < ns << 32;
}

/* Returns the time for which a part of a recorded wait stands. The part for all of it is `below`.
 */
static inline __attribute__((always_inline)) __u64 sample_part(__u64 part_ns, __u64 ns, __u64 below)
{
	return part_ns * below / ns;
}

/*
 * Returns the number of waits for which a recorded wait stands. If below / ns is not a whole
 * number, rounds up as often as the fraction says, so that the expected number is right.
 */
static inline __attribute__((always_inline)) __u64 sample_weight(__u32 random, __u64 ns,
								 __u64 below)
{
	return below / ns + ((random * ns >> 32) < below % ns);
}

#endif
