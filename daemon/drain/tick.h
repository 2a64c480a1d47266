/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_TICK_H
#define STACKD_DAEMON_DRAIN_TICK_H

/*
 * Wakes the drains whose ring buffers have records. One thread looks at the rings of all drains, by
 * their mapped positions and without a system call for each: an idle host is then woken four times
 * a second in all, and not ten times by each drain. Owned by the sessions; any thread may add or
 * remove a ring.
 */

#include <stdint.h>

struct drain_ring;
struct tick;

/* The time between two looks at the rings, in ns. The BPF programs wake a drain earlier than that
 * when its ring fills up, or when a process may exit soon. */
#define TICK_NS INT64_C(250000000)

/* Starts the thread. 0, or a negative errno. */
int tick_start(struct tick **out);

/* Ends the thread and frees the tick. NULL is allowed. */
struct tick *tick_stop(struct tick *tick);

/*
 * Adds a ring: wake_fd, an eventfd, is written to whenever the ring has records. Both are borrowed
 * until tick_remove(). 0, or -ENOMEM.
 */
int tick_add(struct tick *tick, const struct drain_ring *ring, int wake_fd);

/* Removes a ring; does nothing if the ring was not added. */
void tick_remove(struct tick *tick, const struct drain_ring *ring);

#endif
