/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_RING_H
#define STACKD_DAEMON_DRAIN_RING_H

/*
 * The ring that programs send records through: in comes its map's fd, out come records to a
 * callback, in the order of their reservation. Owned by the drain, its thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct drain_ring;

typedef void (*drain_ring_fn)(void *context, void *data, size_t size);

int drain_ring_open(int map_fd, drain_ring_fn record_fn, void *context, struct drain_ring **out);
struct drain_ring *drain_ring_close(struct drain_ring *ring);

/* Readable when a program asked for the ring to be emptied. */
int drain_ring_poll_fd(const struct drain_ring *ring);

/*
 * What is there now, up to the first record that a program has reserved and not committed yet; what
 * comes meanwhile is of the next time.
 */
void drain_ring_consume(struct drain_ring *ring);

/* All that is reserved by now. False where a program did not commit in time. */
bool drain_ring_catch_up(struct drain_ring *ring);

/*
 * The same, on positions that anybody moves: consume_fn moves *consumer, as far as it can. Tries
 * until it is at what *producer is now, for timeout_ns at most.
 */
bool ring_catch_up(const uint64_t *consumer, const uint64_t *producer,
		   void (*consume_fn)(void *context), void *context, int64_t timeout_ns);

#endif
