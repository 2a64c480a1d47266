/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "common/base.h"

/*
 * Time to wait for a record that a BPF program has reserved but not committed. If the program was
 * preempted before it could commit the record, it should have run again by then.
 */
#define COMMIT_TIMEOUT_NS (50 * NS_PER_MS)

enum { RETRY_US = 50 };

struct drain_ring {
	struct ring_buffer *ring;
	drain_ring_fn record_fn;
	void *context;
	uint64_t end;	 /* position up to which the ring buffer was filled when the current reading
			    began */
	char *positions; /* the ring buffer's first two pages: the positions of its consumer and of
			    its producer */
	size_t page;
};

static const uint64_t *consumer_of(const struct drain_ring *ring)
{
	return (const uint64_t *)ring->positions;
}

static const uint64_t *producer_of(const struct drain_ring *ring)
{
	return (const uint64_t *)(ring->positions + ring->page);
}

/*
 * Passes a record to record_fn. When the consumer has reached ring->end, returns a negative value,
 * which makes libbpf stop. Otherwise libbpf would read as long as there are records, and BPF
 * programs on a busy CPU may send them as fast as it reads: no window would end.
 */
static int on_ring_record(void *data, void *record, size_t size)
{
	struct drain_ring *ring = data;

	ring->record_fn(ring->context, record, size);
	return __atomic_load_n(consumer_of(ring), __ATOMIC_RELAXED) >= ring->end ? -EINTR : 0;
}

int drain_ring_open(int map_fd, drain_ring_fn record_fn, void *context, struct drain_ring **out)
{
	struct drain_ring *ring = calloc(1, sizeof(*ring));
	void *positions;
	int r;

	if (!ring)
		return -ENOMEM;
	ring->record_fn = record_fn;
	ring->context = context;
	ring->page = (size_t)sysconf(_SC_PAGESIZE);
	positions = mmap(NULL, 2 * ring->page, PROT_READ, MAP_SHARED, map_fd, 0);
	if (positions == MAP_FAILED) {
		r = -errno;
		free(ring);
		return r;
	}
	ring->positions = positions;
	ring->ring = ring_buffer__new(map_fd, on_ring_record, ring, NULL);
	if (!ring->ring) {
		r = -errno;
		drain_ring_close(ring);
		return r;
	}
	*out = ring;
	return 0;
}

struct drain_ring *drain_ring_close(struct drain_ring *ring)
{
	if (!ring)
		return NULL;
	ring_buffer__free(ring->ring);
	munmap(ring->positions, 2 * ring->page);
	free(ring);
	return NULL;
}

int drain_ring_poll_fd(const struct drain_ring *ring)
{
	return ring_buffer__epoll_fd(ring->ring);
}

bool drain_ring_has_records(const struct drain_ring *ring)
{
	return __atomic_load_n(producer_of(ring), __ATOMIC_RELAXED) !=
	       __atomic_load_n(consumer_of(ring), __ATOMIC_RELAXED);
}

void drain_ring_consume(struct drain_ring *ring)
{
	ring->end = __atomic_load_n(producer_of(ring), __ATOMIC_ACQUIRE);
	ring_buffer__consume(ring->ring);
}

static void on_consume(void *context)
{
	drain_ring_consume(context);
}

bool drain_ring_catch_up(struct drain_ring *ring)
{
	return ring_catch_up(consumer_of(ring), producer_of(ring), on_consume, ring,
			     COMMIT_TIMEOUT_NS);
}

bool ring_catch_up(const uint64_t *consumer, const uint64_t *producer,
		   void (*consume_fn)(void *context), void *context, int64_t timeout_ns)
{
	uint64_t end = __atomic_load_n(producer, __ATOMIC_ACQUIRE);
	int64_t until = clock_ns(CLOCK_MONOTONIC) + timeout_ns;

	for (;;) {
		consume_fn(context);
		if (__atomic_load_n(consumer, __ATOMIC_ACQUIRE) >= end)
			return true;
		if (clock_ns(CLOCK_MONOTONIC) >= until)
			return false;
		/*
		 * Sleep: a BPF program that was preempted on this CPU cannot commit its record
		 * before it runs again.
		 */
		usleep(RETRY_US);
	}
}
