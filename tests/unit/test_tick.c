/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One tick for all ring buffers: rings that only say whether they have records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/drain/ring.h"
#include "daemon/drain/tick.h"

enum { RINGS = 20 };

/* Which rings have records, and how often the tick has looked at each. */
static struct {
	atomic_bool has_records;
	atomic_uint looked;
	int wake_fd;
} made[RINGS];

/* A ring is not a pointer to anything here, but its number and 1. */
static const struct drain_ring *ring_of(size_t i)
{
	return (const struct drain_ring *)(uintptr_t)(i + 1);
}

bool __wrap_drain_ring_has_records(const struct drain_ring *ring);

bool __wrap_drain_ring_has_records(const struct drain_ring *ring)
{
	size_t i = (uintptr_t)ring - 1;

	made[i].looked++;
	return made[i].has_records;
}

static unsigned int looked(void)
{
	unsigned int sum = 0;
	size_t i;

	for (i = 0; i < RINGS; i++)
		sum += made[i].looked;
	return sum;
}

/* Returns how often the drain of a ring was woken since the last call. */
static uint64_t woken(size_t i)
{
	eventfd_t n = 0;

	return eventfd_read(made[i].wake_fd, &n) ? 0 : n;
}

/* Waits until the tick has looked at a ring `times` times more. */
static void wait_for_looks(size_t i, unsigned int times)
{
	unsigned int until = made[i].looked + times;

	while (made[i].looked < until)
		usleep(1000);
}

static int setup(void **state)
{
	struct tick *tick;
	size_t i;

	if (tick_start(&tick))
		return -1;
	for (i = 0; i < RINGS; i++) {
		made[i].has_records = false;
		made[i].looked = 0;
		made[i].wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (made[i].wake_fd < 0 || tick_add(tick, ring_of(i), made[i].wake_fd))
			return -1;
	}
	*state = tick;
	return 0;
}

static int teardown(void **state)
{
	size_t i;

	tick_stop(*state);
	for (i = 0; i < RINGS; i++)
		closep(&made[i].wake_fd);
	return 0;
}

/* Drains whose rings are empty sleep on. */
static void test_only_rings_with_records(void **state)
{
	size_t i;

	made[3].has_records = true;
	wait_for_looks(3, 1);
	made[3].has_records = false;
	/* The next look begins after the first one has woken the drain. */
	wait_for_looks(3, 1);
	for (i = 0; i < RINGS; i++)
		assert_true(i == 3 ? woken(i) > 0 : !woken(i));
}

/* A drain is woken again and again as long as its ring has records. */
static void test_until_it_is_empty(void **state)
{
	made[0].has_records = made[RINGS - 1].has_records = true;
	wait_for_looks(0, 3);
	assert_true(woken(0) >= 2);
	assert_true(woken(RINGS - 1) >= 2);
	assert_int_equal(woken(1), 0);
}

/* Twenty rings are looked at together, and no more often than the interval says. */
static void test_the_pace(void **state)
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC), ns;
	unsigned int before = looked(), looks;

	wait_for_looks(0, 4);
	looks = looked() - before;
	ns = clock_ns(CLOCK_MONOTONIC) - begin;
	assert_true(looks > 3 * RINGS);
	/* When this began and now, the tick may have been in the middle of a look. */
	assert_true(looks <= (ns / TICK_NS + 2) * RINGS);
}

/* Once tick_remove() has returned, a ring may be closed: it is not looked at any more. */
static void test_a_ring_that_is_removed(void **state)
{
	unsigned int before;

	made[5].has_records = true;
	tick_remove(*state, ring_of(5));
	before = made[5].looked;
	woken(5);
	wait_for_looks(RINGS - 1, 2);
	assert_int_equal(made[5].looked, before);
	assert_int_equal(woken(5), 0);
	tick_remove(*state, ring_of(5)); /* it is not there */
	made[5].has_records = true;
	assert_int_equal(tick_add(*state, ring_of(5), made[5].wake_fd), 0);
	wait_for_looks(5, 2);
	assert_true(woken(5) >= 1);
}

static void test_no_rings(void **state)
{
	struct tick *tick;

	assert_int_equal(tick_start(&tick), 0);
	tick_remove(tick, ring_of(0));
	assert_null(tick_stop(tick));
	assert_null(tick_stop(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_only_rings_with_records, setup, teardown),
		cmocka_unit_test_setup_teardown(test_until_it_is_empty, setup, teardown),
		cmocka_unit_test_setup_teardown(test_the_pace, setup, teardown),
		cmocka_unit_test_setup_teardown(test_a_ring_that_is_removed, setup, teardown),
		cmocka_unit_test(test_no_rings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
