/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "common/base.h"

/*
 * Time to wait for a record that a BPF program has reserved but not committed. If the program was
 * preempted before it could commit the record, it should have run again by then.
 */
#define COMMIT_TIMEOUT_NS (50 * NS_PER_MS)

enum { RETRY_US = 50 };

/*
 * A record is preceded by a header of this size. Its first four bytes are the size of the record
 * and the flags BPF_RINGBUF_BUSY_BIT and BPF_RINGBUF_DISCARD_BIT.
 */
enum { HEADER_BYTES = BPF_RINGBUF_HDR_SZ };

/*
 * A ring buffer. libbpf has a reader of ring buffers, too, but it maps the records twice, and each
 * mapped page counts as memory of the daemon.
 */
struct drain_ring {
	struct ring_memory memory;
	drain_ring_fn record_fn;
	void *context;
	void *consumer_page;  /* mapped page with the position of the consumer */
	void *producer_pages; /* mapped page with the position of the producer, then the records */
	size_t producer_length; /* size of producer_pages in bytes */
	size_t page;
	int epoll_fd;
};

static int ring_map(struct drain_ring *ring, int map_fd, uint64_t size)
{
	uint64_t again = size < RING_RECORD_MAX ? size : RING_RECORD_MAX;
	void *consumer, *producer;

	consumer = mmap(NULL, ring->page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (consumer == MAP_FAILED)
		return -errno;
	ring->consumer_page = consumer;
	ring->producer_length = ring->page + size + again;
	producer =
		mmap(NULL, ring->producer_length, PROT_READ, MAP_SHARED, map_fd, (off_t)ring->page);
	if (producer == MAP_FAILED)
		return -errno;
	ring->producer_pages = producer;
	ring->memory = (struct ring_memory){
		.consumer = consumer,
		.producer = producer,
		.data = (const char *)producer + ring->page,
		.size = size,
	};
	return 0;
}

/*
 * Makes the fd that becomes readable when a program wakes the daemon. The fd of the map itself will
 * not do: poll() would find it readable whenever there are records, also without a wakeup.
 */
static int ring_watch(struct drain_ring *ring, int map_fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	ring->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ring->epoll_fd < 0 || epoll_ctl(ring->epoll_fd, EPOLL_CTL_ADD, map_fd, &event) < 0)
		return -errno;
	return 0;
}

static int ring_open(struct drain_ring *ring, int map_fd)
{
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);
	int r;

	if (bpf_obj_get_info_by_fd(map_fd, &info, &size))
		return -errno;
	r = ring_map(ring, map_fd, info.max_entries);
	if (r)
		return r;
	return ring_watch(ring, map_fd);
}

int drain_ring_open(int map_fd, drain_ring_fn record_fn, void *context, struct drain_ring **out)
{
	struct drain_ring *ring = calloc(1, sizeof(*ring));
	int r;

	if (!ring)
		return -ENOMEM;
	ring->record_fn = record_fn;
	ring->context = context;
	ring->page = (size_t)sysconf(_SC_PAGESIZE);
	ring->epoll_fd = -1;
	r = ring_open(ring, map_fd);
	if (r) {
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
	closep(&ring->epoll_fd);
	if (ring->producer_pages)
		munmap(ring->producer_pages, ring->producer_length);
	if (ring->consumer_page)
		munmap(ring->consumer_page, ring->page);
	free(ring);
	return NULL;
}

int drain_ring_poll_fd(const struct drain_ring *ring)
{
	return ring->epoll_fd;
}

bool drain_ring_has_records(const struct drain_ring *ring)
{
	return __atomic_load_n(ring->memory.producer, __ATOMIC_RELAXED) !=
	       __atomic_load_n(ring->memory.consumer, __ATOMIC_RELAXED);
}

void ring_consume(const struct ring_memory *memory, drain_ring_fn record_fn, void *context)
{
	/*
	 * Without this end, the loop would run as long as there are records, and BPF programs on a
	 * busy CPU may send them as fast as they are read: no window would end.
	 */
	uint64_t end = __atomic_load_n(memory->producer, __ATOMIC_ACQUIRE);
	uint64_t at = __atomic_load_n(memory->consumer, __ATOMIC_RELAXED);

	while (at < end) {
		const char *header = memory->data + (at & (memory->size - 1));
		uint32_t word =
			__atomic_load_n((const uint32_t *)(const void *)header, __ATOMIC_ACQUIRE);
		uint32_t size = word & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);

		if (word & BPF_RINGBUF_BUSY_BIT)
			return;
		if (!(word & BPF_RINGBUF_DISCARD_BIT))
			record_fn(context, header + HEADER_BYTES, size);
		at += (HEADER_BYTES + (uint64_t)size + 7) & ~UINT64_C(7);
		__atomic_store_n(memory->consumer, at, __ATOMIC_RELEASE);
	}
}

void drain_ring_consume(struct drain_ring *ring)
{
	ring_consume(&ring->memory, ring->record_fn, ring->context);
}

static void on_consume(void *context)
{
	drain_ring_consume(context);
}

bool drain_ring_catch_up(struct drain_ring *ring)
{
	return ring_catch_up(ring->memory.consumer, ring->memory.producer, on_consume, ring,
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
