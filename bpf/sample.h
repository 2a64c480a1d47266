/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_SAMPLE_H
#define STACKD_BPF_SAMPLE_H

/*
 * Decides which short waits are recorded, and with which weight. A wait of `ns` nanoseconds that is
 * shorter than `below` is recorded with the probability ns / below, and then stands for
 * below / ns waits like it: whatever its length was, its row gets exactly `below` nanoseconds. The
 * expected time of each row is the true one. The standard deviation of a row with the time S is at
 * most sqrt(below * S). The programs in the kernel and the unit tests use these functions.
 *
 * Some kernels let stacks be taken only before a wait, when its length is not known. There the
 * thread's last waits decide: their average takes the place of `ns` in the probability. The wait
 * then stands for 1 / probability waits like it, so its row gets its own time as many times, and
 * the expected time is the true one here, too. It spreads more where a wait was not foreseen.
 */

#include <linux/types.h>
#include <stdbool.h>

/* The greatest value of `below`. Products of two times below it fit in 64 bits. */
#define SAMPLE_BELOW_MAX 1000000000ULL

/*
 * Where averages decide, at least one wait of this many is recorded. This limits what one wait can
 * stand for.
 */
#define SAMPLE_RAREST 256

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

/*
 * Returns the average of a thread's last waits after one more wait of `ns`. 0: the thread had none
 * yet.
 */
static inline __attribute__((always_inline)) __u32 sample_average(__u32 average, __u64 ns)
{
	__u32 last = ns < SAMPLE_BELOW_MAX ? (__u32)ns : (__u32)SAMPLE_BELOW_MAX;

	return average ? average - average / 8 + last / 8 + 1 : last + 1;
}

/*
 * Returns the probability with which the next wait of a thread is to be recorded, in parts of 2^32,
 * from the average of its last waits. 0: it is recorded for sure.
 */
static inline __attribute__((always_inline)) __u32 sample_odds(__u32 average, __u64 below)
{
	__u64 least = below / SAMPLE_RAREST + 1, ns = average;

	if (!average || average >= below || least >= below)
		return 0;
	if (ns < least)
		ns = least;
	return (__u32)((ns << 32) / below);
}

/* True if a wait with these odds is to be recorded. */
static inline __attribute__((always_inline)) bool sample_has_luck(__u32 random, __u32 odds)
{
	return !odds || random < odds;
}

/* Returns the time for which a part of a wait stands that was recorded with these odds. */
static inline __attribute__((always_inline)) __u64 sample_odds_part(__u64 part_ns, __u32 odds)
{
	return odds ? (part_ns << 32) / odds : part_ns;
}

/* Does the same as sample_weight() for a wait that was recorded with these odds. */
static inline __attribute__((always_inline)) __u64 sample_odds_weight(__u32 random, __u32 odds)
{
	__u64 all = 1ULL << 32;

	return odds ? all / odds + (((__u64)random * odds >> 32) < all % odds) : 1;
}

#endif
