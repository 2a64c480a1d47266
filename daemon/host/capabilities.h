/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_HOST_CAPABILITIES_H
#define STACKD_DAEMON_HOST_CAPABILITIES_H

/*
 * Reads the capabilities of the calling thread, and gives them up for good. No state. To be called
 * before other threads are started, which inherit them.
 */

#include <stdbool.h>
#include <stdint.h>

/* A capability as a bit of a set. */
#define CAPABILITY_BIT(cap) (UINT64_C(1) << (cap))

/* Returns the permitted set; 0 where it cannot be read. */
uint64_t capabilities_permitted(void);

/*
 * Removes all capabilities but those of keep from the permitted, effective, inheritable and ambient
 * sets, and makes sure that no program executed later gets more. Returns 0 or a negative errno.
 */
int capabilities_limit(uint64_t keep);

#endif
