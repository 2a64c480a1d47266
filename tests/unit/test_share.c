/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Lets owners take as many entries of a table as they are allowed to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf/share.h"

enum { MAX = 16384, OWNERS_MAX = 8, FACTOR = 7 };

struct table {
	int64_t taken;
	int64_t own[OWNERS_MAX];
};

static bool take(struct table *table, unsigned int owner)
{
	if (!share_allows(table->own[owner], table->taken, MAX, FACTOR))
		return false;
	table->own[owner]++;
	table->taken++;
	return true;
}

/* Lets the first n owners take entries in turn, until none of them gets any more. */
static void flood(struct table *table, unsigned int n)
{
	bool any = true;
	unsigned int i;

	while (any)
		for (any = false, i = 0; i < n; i++)
			any |= take(table, i);
}

/* However many owners take all that they can, they leave room for the others, and no more. */
static void test_owners_leave_room(void **state)
{
	unsigned int n;

	(void)state;
	for (n = 1; n < OWNERS_MAX; n++) {
		const int64_t left = MAX / (1 + n * FACTOR);
		struct table table = {};

		flood(&table, n);
		assert_in_range(MAX - table.taken, left, left + 1);
		/* One more owner gets almost all of what is left. */
		while (take(&table, n))
			;
		assert_true(table.own[n] >= left - left / FACTOR - 1);
	}
}

/* An owner that has fewer entries than are free is refused none, whoever has the others. */
static void test_small_owner_is_not_refused(void **state)
{
	struct table table = {};
	int64_t i;

	(void)state;
	flood(&table, 2);
	for (i = 0; i < MAX / 32; i++)
		assert_true(take(&table, 2));
}

/* What the first owner gives back goes to those that have less. */
static void test_entries_given_back_are_shared(void **state)
{
	struct table table = {};
	int64_t i;

	(void)state;
	flood(&table, 1);
	for (i = 0; take(&table, 1); i++) {
		table.own[0]--;
		table.taken--;
	}
	assert_true(table.own[1] > MAX / 2);
	assert_false(take(&table, 0) && table.own[0] >= table.own[1]);
}

/* Counts below 0, and a full table. */
static void test_limits(void **state)
{
	(void)state;
	assert_true(share_allows(-3, -1, MAX, FACTOR));
	assert_true(share_allows(0, MAX - 1, MAX, FACTOR));
	assert_false(share_allows(0, MAX, MAX, FACTOR));
	assert_false(share_allows(-1, MAX + 5, MAX, FACTOR));
	assert_false(share_allows(FACTOR, MAX - 1, MAX, FACTOR));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_owners_leave_room),
		cmocka_unit_test(test_small_owner_is_not_refused),
		cmocka_unit_test(test_entries_given_back_are_shared),
		cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
