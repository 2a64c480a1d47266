/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A ring made of its two positions and one record that is reserved but not yet committed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <linux/bpf.h>

#include "common/base.h"
#include "daemon/drain/ring.h"

enum { BUSY_AT = 100, END = 300, NEVER = 1 << 30 };

struct ring {
	uint64_t consumer;
	uint64_t producer;
	int busy_calls; /* the number of reads for which BUSY_AT is still not committed */
	int calls;
};

/* Reads up to a record that is not committed; meanwhile programs send more. */
static void consume(void *context)
{
	struct ring *ring = context;

	ring->consumer = ring->calls++ < ring->busy_calls ? BUSY_AT : ring->producer;
	ring->producer += 8;
}

static bool catch_up(struct ring *ring, int64_t timeout_ns)
{
	return ring_catch_up(&ring->consumer, &ring->producer, consume, ring, timeout_ns);
}

static void test_nothing_is_behind_a_busy_record(void **state)
{
	struct ring ring = { .producer = END, .busy_calls = 5 };

	assert_true(catch_up(&ring, 60 * NS_PER_S));
	assert_true(ring.consumer >= END);
	assert_int_equal(ring.calls, 6);
}

/* Records that are sent after the begin do not count, or catching up would never end. */
static void test_the_end_does_not_move(void **state)
{
	struct ring ring = { .producer = END };

	assert_true(catch_up(&ring, 60 * NS_PER_S));
	assert_int_equal(ring.calls, 1);
	ring = (struct ring){ .consumer = END, .producer = END, .busy_calls = NEVER };
	assert_false(catch_up(&ring, 0));
}

static void test_a_record_that_is_never_committed(void **state)
{
	struct ring ring = { .producer = END, .busy_calls = NEVER };

	assert_false(catch_up(&ring, NS_PER_MS));
	assert_int_equal(ring.consumer, BUSY_AT);
}

enum { SIZE = 64, HEADER = BPF_RINGBUF_HDR_SZ };

/*
 * A ring buffer as the kernel makes it, and what was read from it: the records of text, each
 * followed by a comma.
 */
struct made {
	uint64_t consumer, producer;
	_Alignas(8) char data[2 * SIZE];
	char text[128];
};

/* Reserves a record in both copies of the ring. `flags` are those of its header. */
static uint64_t made_reserve(struct made *made, const char *text, uint32_t flags)
{
	uint32_t word = (uint32_t)strlen(text) | flags;
	uint64_t at = made->producer;

	for (size_t i = 0; i < HEADER + strlen(text); i++) {
		char byte = '\0';
		size_t to = (at + i) % SIZE;

		if (i < sizeof(word))
			memcpy(&byte, (const char *)&word + i, 1);
		else if (i >= HEADER)
			byte = text[i - HEADER];
		made->data[to] = made->data[SIZE + to] = byte;
	}
	made->producer += (HEADER + strlen(text) + 7) / 8 * 8;
	return at;
}

static void made_commit(struct made *made, uint64_t at, const char *text)
{
	uint32_t word = (uint32_t)strlen(text);

	memcpy(made->data + at % SIZE, &word, sizeof(word));
}

static void on_record(void *context, const void *data, size_t size)
{
	struct made *made = context;

	assert_ptr_equal((const void *)((uintptr_t)data & ~(uintptr_t)7), data);
	strncat(made->text, data, size);
	strcat(made->text, ",");
}

static const char *made_read(struct made *made)
{
	const struct ring_memory memory = {
		.consumer = &made->consumer,
		.producer = &made->producer,
		.data = made->data,
		.size = SIZE,
	};

	made->text[0] = '\0';
	ring_consume(&memory, on_record, made);
	return made->text;
}

static void test_records_are_read_in_order_and_once(void **state)
{
	struct made made = { 0 };

	made_reserve(&made, "one", 0);
	made_reserve(&made, "not sent", BPF_RINGBUF_DISCARD_BIT);
	made_reserve(&made, "two", 0);
	assert_string_equal(made_read(&made), "one,two,");
	assert_string_equal(made_read(&made), "");
	assert_int_equal(made.consumer, made.producer);
}

static void test_reading_stops_at_a_record_that_is_not_committed(void **state)
{
	struct made made = { 0 };
	uint64_t busy;

	made_reserve(&made, "one", 0);
	busy = made_reserve(&made, "busy", BPF_RINGBUF_BUSY_BIT);
	made_reserve(&made, "three", 0);
	assert_string_equal(made_read(&made), "one,");
	assert_int_equal(made.consumer, busy);
	made_commit(&made, busy, "busy");
	assert_string_equal(made_read(&made), "busy,three,");
}

/* The second of these records has its header at the end, and its text at the beginning. */
static void test_a_record_that_continues_at_the_beginning(void **state)
{
	struct made made = { 0 };

	for (int i = 0; i < 20; i++) {
		made_reserve(&made, "0123456789abcdef", 0);
		made_reserve(&made, "the second", 0);
		assert_string_equal(made_read(&made), "0123456789abcdef,the second,");
	}
	assert_true(made.consumer > 10 * SIZE);
}

struct growing {
	struct made *made;
	int calls;
};

static void on_record_send(void *context, const void *data, size_t size)
{
	struct growing *growing = context;

	growing->calls++;
	made_reserve(growing->made, "next", 0);
}

/* A callback that sends a record for each one would else never end. */
static void test_records_that_arrive_meanwhile_are_left(void **state)
{
	struct made made = { 0 };
	struct growing growing = { &made, 0 };
	const struct ring_memory memory = { &made.consumer, &made.producer, made.data, SIZE };

	made_reserve(&made, "one", 0);
	ring_consume(&memory, on_record_send, &growing);
	assert_int_equal(growing.calls, 1);
	assert_true(made.consumer < made.producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_behind_a_busy_record),
		cmocka_unit_test(test_the_end_does_not_move),
		cmocka_unit_test(test_a_record_that_is_never_committed),
		cmocka_unit_test(test_records_are_read_in_order_and_once),
		cmocka_unit_test(test_reading_stops_at_a_record_that_is_not_committed),
		cmocka_unit_test(test_a_record_that_continues_at_the_beginning),
		cmocka_unit_test(test_records_that_arrive_meanwhile_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
