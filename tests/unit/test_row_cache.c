/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/store/row_cache.h"

/* Keys as stacks have them: equal hashes that differ in `more`, and neighbouring hashes. */
static struct row_key key_of(int64_t number)
{
	return (struct row_key){ (uint64_t)number / 3, (uint64_t)number % 3 };
}

static void add(struct row_cache *cache, int64_t number)
{
	struct row_key key = key_of(number);

	row_cache_add(cache, &key, number);
}

static int64_t find(const struct row_cache *cache, int64_t number)
{
	struct row_key key = key_of(number);

	return row_cache_find(cache, &key);
}

static void each_row_is_found(void **state)
{
	struct row_cache cache = {};
	int64_t i;

	(void)state;
	assert_int_equal(find(&cache, 1), 0);
	for (i = 1; i <= ROW_CACHE_MAX; i++) {
		assert_int_equal(find(&cache, i), 0);
		add(&cache, i);
		assert_int_equal(find(&cache, i), i);
	}
	for (i = 1; i <= ROW_CACHE_MAX; i++)
		assert_int_equal(find(&cache, i), i);
	assert_true(cache.allocated * sizeof(*cache.slots) <= ROW_CACHE_MAX * 32);
	row_cache_clear(&cache);
	assert_int_equal(find(&cache, 1), 0);
}

/* When the cache is full, it begins anew, and has the row that did not fit. */
static void full_cache_is_emptied(void **state)
{
	struct row_cache cache = {};
	int64_t i;

	(void)state;
	for (i = 1; i <= ROW_CACHE_MAX + 1; i++)
		add(&cache, i);
	assert_int_equal(cache.n, 1);
	assert_int_equal(find(&cache, ROW_CACHE_MAX + 1), ROW_CACHE_MAX + 1);
	assert_int_equal(find(&cache, ROW_CACHE_MAX), 0);
	row_cache_clear(&cache);
}

/* Rows that a collection did not mark are gone; those that it marked are found. */
static void only_rows_in_the_set_are_kept(void **state)
{
	struct row_cache cache = {};
	struct id_set kept = {};
	int64_t i;

	(void)state;
	row_cache_keep(&cache, &kept);
	for (i = 1; i <= 5000; i++) {
		add(&cache, i);
		if (i % 7 == 0)
			assert_int_equal(id_set_add(&kept, i, 1), 0);
	}
	row_cache_keep(&cache, &kept);
	for (i = 1; i <= 5000; i++)
		assert_int_equal(find(&cache, i), i % 7 == 0 ? i : 0);
	assert_int_equal(cache.n, 5000 / 7);
	for (i = 1; i <= 5000; i++)
		if (i % 7)
			add(&cache, i);
	for (i = 1; i <= 5000; i++)
		assert_int_equal(find(&cache, i), i);
	id_set_clear(&kept);
	row_cache_clear(&cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_is_found),
		cmocka_unit_test(full_cache_is_emptied),
		cmocka_unit_test(only_rows_in_the_set_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
