/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_TICK_H
#define STACKD_DAEMON_DRAIN_TICK_H

/*
 * Wakes the drains whose ring buffers have records. One thread looks at the ring buffers of all
 * drains. It makes no system call for this, because their positions are mapped into memory.
 * Therefore an idle host is woken for ring buffers only four times a second, however many drains
 * there are. Owned by the sessions; any thread may add or remove a ring buffer.
 */

#include <stdint.h>

struct drain_ring;
struct tick;

/*
 * The thread looks at the ring buffers at this interval. A BPF program wakes a drain earlier if the
 * ring buffer fills up, or if a process may exit soon.
 */
#define TICK_NS INT64_C(250000000)

/* Starts the thread. 0, or a negative errno. */
int tick_start(struct tick **out);

/* Ends the thread and frees the tick. NULL is allowed. */
struct tick *tick_stop(struct tick *tick);

/*
 * Adds a ring buffer. Whenever it has records, the thread writes to wake_fd, which is an eventfd.
 * Borrows `ring` and wake_fd until tick_remove(). 0, or -ENOMEM.
 */
int tick_add(struct tick *tick, const struct drain_ring *ring, int wake_fd);

/* Removes a ring buffer. Does nothing if it was not added. */
void tick_remove(struct tick *tick, const struct drain_ring *ring);

#endif
