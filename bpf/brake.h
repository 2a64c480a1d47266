/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_BPF_BRAKE_H
#define STACKD_BPF_BRAKE_H

/*
 * Bounds the share of one CPU that walks of stacks take, within milliseconds, until the daemon,
 * which measures once a second, has reacted. Each walk adds its time to a debt, and the debt
 * shrinks by `share` of the time that passes. While the debt is greater than what the share allows
 * in BRAKE_BURST_NS, the brake is on: the length below which waits are recorded by chance, see
 * sample.h, doubles with each further BRAKE_STEP_NS, and halves again as the debt shrinks. The
 * length follows from walks in the past only, and a wait is weighed by the length by which it was
 * picked, so that the expected time of each row stays the true one. The programs in the kernel and
 * the unit tests use these functions.
 */

#include <linux/types.h>

#include "sample.h"

enum {
	BRAKE_STEPS = 16,	   /* maximum number of times that the length is doubled */
	BRAKE_SHARE_ALL = 1 << 20, /* the share that is a whole CPU */
	/*
	 * The least length below which waits are recorded by chance. A walk takes longer than a
	 * shorter wait.
	 */
	BRAKE_LEAST_NS = 10000,
};

#define BRAKE_BURST_NS 50000000ULL
#define BRAKE_STEP_NS  5000000ULL

/*
 * The most that one walk adds to the debt. If a walk takes longer, the host of a virtual machine
 * has taken the CPU away, or interrupts have: the rest of the time is not the walk's.
 */
#define BRAKE_WALK_NS 50000ULL

struct brake {
	__u64 at_ns; /* time for which debt_ns and steps are right */
	__u64 debt_ns;
	__u32 steps; /* how many times the length is doubled; 0: the brake is off */
	__u32 pad;
};

/* Returns how much of `ns` the share allows for walks. */
static inline __attribute__((always_inline)) __u64 brake_part(__u64 ns, __u32 share)
{
	return ns * share >> 20;
}

/*
 * Sets the brake to the time now_ns. `share`, at most BRAKE_SHARE_ALL, is the share of the CPU that
 * walks may take; 0: there is no limit. walked_ns is the time of a walk that has just ended, or 0.
 */
static inline __attribute__((always_inline)) void brake_update(struct brake *brake, __u64 now_ns,
							       __u64 walked_ns, __u32 share)
{
	__u64 past = now_ns > brake->at_ns ? now_ns - brake->at_ns : 0, debt = brake->debt_ns;
	__u64 burst = brake_part(BRAKE_BURST_NS, share), step = brake_part(BRAKE_STEP_NS, share);
	__u64 most = burst + BRAKE_STEPS * step, earned;

	if (past > BRAKE_BURST_NS + BRAKE_STEPS * BRAKE_STEP_NS)
		past = BRAKE_BURST_NS + BRAKE_STEPS * BRAKE_STEP_NS;
	earned = brake_part(past, share);
	debt = debt > earned ? debt - earned : 0;
	debt += walked_ns < BRAKE_WALK_NS ? walked_ns : BRAKE_WALK_NS;
	if (debt > most)
		debt = most;
	brake->at_ns = now_ns;
	brake->debt_ns = debt;
	brake->steps = debt > burst && step ? (__u32)((debt - burst) / step) : 0;
}

/*
 * Returns the length below which waits are recorded by chance after this many steps, if without a
 * brake waits of at least least_ns, and those of at least below_ns if it is greater, are recorded.
 * If least_ns is above SAMPLE_BELOW_MAX, returns below_ns: waits that long are rare.
 */
static inline __attribute__((always_inline)) __u64 brake_below(__u32 steps, __u64 below_ns,
							       __u64 least_ns)
{
	__u64 ns = below_ns > least_ns ? below_ns : least_ns;

	if (least_ns > SAMPLE_BELOW_MAX)
		return below_ns;
	if (ns < BRAKE_LEAST_NS)
		ns = BRAKE_LEAST_NS;
	if (ns > SAMPLE_BELOW_MAX)
		ns = SAMPLE_BELOW_MAX;
	ns <<= steps < BRAKE_STEPS ? steps : BRAKE_STEPS;
	return ns < SAMPLE_BELOW_MAX ? ns : SAMPLE_BELOW_MAX;
}

#endif
