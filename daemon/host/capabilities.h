/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_CAPABILITIES_H
#define STACKD_DAEMON_HOST_CAPABILITIES_H

/*
 * Reads the capabilities of the calling thread, and gives them up for good. No state. Must be
 * called before other threads are started, because a thread inherits the capabilities of its
 * creator.
 */

#include <stdint.h>

/* The bit of a capability in a set of capabilities. */
#define CAPABILITY_BIT(cap) (UINT64_C(1) << (cap))

/* Returns the set of permitted capabilities; 0 if it cannot be read. */
uint64_t capabilities_permitted(void);

/*
 * Removes all capabilities that are not in the set `keep` from the permitted, effective,
 * inheritable and ambient sets. This is for good: a program that is executed later does not get
 * them back. Returns 0 or a negative errno.
 */
int capabilities_limit(uint64_t keep);

#endif
