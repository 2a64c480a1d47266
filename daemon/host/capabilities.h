/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_CAPABILITIES_H
#define STACKD_DAEMON_HOST_CAPABILITIES_H

/*
 * Capabilities of the calling thread: asked for, and given up for good. No state; to be changed
 * before there are other threads, which inherit them.
 */

#include <stdbool.h>
#include <stdint.h>

/* A set of capabilities, one bit each. */
#define CAPABILITY_BIT(cap) (UINT64_C(1) << (cap))

/* The permitted set; 0 where it cannot be read. */
uint64_t capabilities_permitted(void);

/*
 * Leaves only those of keep in the permitted, effective, inheritable and ambient sets, and makes
 * sure that no program executed later gets more. Returns 0 or a negative errno.
 */
int capabilities_limit(uint64_t keep);

#endif
