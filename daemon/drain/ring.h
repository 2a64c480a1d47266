/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_RING_H
#define STACKD_DAEMON_DRAIN_RING_H

/*
 * Reads the BPF ring buffer through which the BPF programs send records. The buffer is opened by
 * the fd of its map. Records are passed to a callback in the order in which programs reserved them.
 * Owned by the drain, used on its thread only.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct drain_ring;

/* Takes one record. `data` is valid only during the call. */
typedef void (*drain_ring_fn)(void *context, const void *data, size_t size);

/* Opens the ring buffer. Borrows map_fd, which must outlive *out. 0, or a negative errno. */
int drain_ring_open(int map_fd, drain_ring_fn record_fn, void *context, struct drain_ring **out);
struct drain_ring *drain_ring_close(struct drain_ring *ring);

/*
 * Returns an fd that becomes readable when a BPF program wants the ring buffer to be emptied. Owned
 * by the ring.
 */
int drain_ring_poll_fd(const struct drain_ring *ring);

/*
 * True if the ring buffer has bytes that were not read. Makes no system call, as the positions are
 * mapped into memory. Any thread.
 */
bool drain_ring_has_records(const struct drain_ring *ring);

/*
 * Passes to the callback the records that are in the ring buffer now. Stops at the first record
 * that a BPF program has reserved but not committed. Records that arrive during the call are left
 * for the next call.
 */
void drain_ring_consume(struct drain_ring *ring);

/*
 * Passes to the callback all records that BPF programs have reserved by now, and waits until they
 * are committed. False if one was not committed in time.
 */
bool drain_ring_catch_up(struct drain_ring *ring);

/* The memory of a ring buffer. */
struct ring_memory {
	uint64_t *consumer;	  /* position up to which records were read */
	const uint64_t *producer; /* position up to which records were reserved */
	/*
	 * the records. Behind the end, RING_RECORD_MAX bytes from the beginning follow again, so
	 * that a record which continues at the beginning is in one piece
	 */
	const char *data;
	uint64_t size; /* size of the ring buffer in bytes, a power of two */
};

/* Maximum size of a record with its header, in bytes; the largest has some 4 KiB. */
#define RING_RECORD_MAX 65536

/*
 * The loop of drain_ring_consume(), as a separate function that tests can call. Passes to record_fn
 * the records up to the position that the producer has at first, or up to a record that is not
 * committed. Leaves out records that were discarded.
 */
void ring_consume(const struct ring_memory *memory, drain_ring_fn record_fn, void *context);

/*
 * The loop of drain_ring_catch_up(), as a separate function that tests can call. Calls
 * consume_fn(), which advances *consumer, until *consumer has reached the value that *producer had
 * at first. False if that takes longer than timeout_ns.
 */
bool ring_catch_up(const uint64_t *consumer, const uint64_t *producer,
		   void (*consume_fn)(void *context), void *context, int64_t timeout_ns);

#endif
