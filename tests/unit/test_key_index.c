/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/base/key_index.h"

enum { MANY = 20000 };

struct item {
	uint64_t key[2];
	bool is_seen;
};

static void *find(const struct key_index *index, uint64_t a, uint64_t b)
{
	const uint64_t key[2] = { a, b };

	return key_index_find(index, key, key_index_hash(key, sizeof(key)));
}

static struct item *fill(struct key_index *index)
{
	struct item *items = calloc(MANY, sizeof(*items));
	size_t i;

	assert_non_null(items);
	for (i = 0; i < MANY; i++) {
		items[i].key[0] = i / 100;
		items[i].key[1] = i % 100;
		assert_int_equal(key_index_add(index, &items[i],
					       key_index_hash(items[i].key, sizeof(items[i].key))),
				 0);
	}
	assert_int_equal(index->n, MANY);
	return items;
}

static void test_finds_what_was_added(void **state)
{
	struct key_index index = { .key_size = sizeof(uint64_t[2]) };
	_cleanup_(freep) struct item *items = NULL;
	size_t i;

	assert_null(find(&index, 1, 1));
	items = fill(&index);
	for (i = 0; i < MANY; i++)
		assert_ptr_equal(find(&index, i / 100, i % 100), &items[i]);
	assert_null(find(&index, MANY / 100, 0));
	assert_null(find(&index, 0, 100));
	key_index_fini(&index);
}

static void test_visits_each_item_once(void **state)
{
	struct key_index index = { .key_size = sizeof(uint64_t[2]) };
	_cleanup_(freep) struct item *items = NULL;
	size_t at = 0, n = 0;
	struct item *item;

	assert_null(key_index_next(&index, &at));
	items = fill(&index);
	while ((item = key_index_next(&index, &at))) {
		assert_false(item->is_seen);
		item->is_seen = true;
		n++;
	}
	assert_int_equal(n, MANY);
	key_index_clear(&index);
	at = 0;
	assert_null(key_index_next(&index, &at));
	assert_null(find(&index, 1, 1));
	key_index_fini(&index);
}

/* Two keys with the same hash are two items. */
static void test_equal_hashes(void **state)
{
	struct key_index index = { .key_size = sizeof(uint64_t[2]) };
	struct item a = { .key = { 1, 2 } }, b = { .key = { 3, 4 } };
	const uint64_t neither[2] = { 5, 6 };

	assert_int_equal(key_index_add(&index, &a, 63), 0);
	assert_int_equal(key_index_add(&index, &b, 63), 0);
	assert_ptr_equal(key_index_find(&index, a.key, 63), &a);
	assert_ptr_equal(key_index_find(&index, b.key, 63), &b);
	assert_null(key_index_find(&index, neither, 63));
	key_index_fini(&index);
}

/* Without keys, the hash identifies an item; what was reserved is not exceeded. */
static void test_hashes_as_keys(void **state)
{
	struct key_index index = {};
	_cleanup_(freep) struct item *items = calloc(MANY, sizeof(*items));
	size_t capacity;
	uint64_t i;

	assert_non_null(items);
	assert_int_equal(key_index_reserve(&index, MANY), 0);
	capacity = index.capacity;
	for (i = 0; i < MANY; i++)
		assert_int_equal(key_index_add(&index, &items[i], key_index_hash(&i, sizeof(i))),
				 0);
	assert_int_equal(index.capacity, capacity);
	for (i = 0; i < MANY; i++)
		assert_ptr_equal(key_index_find(&index, NULL, key_index_hash(&i, sizeof(i))),
				 &items[i]);
	assert_null(key_index_find(&index, NULL, key_index_hash(&i, sizeof(i))));
	key_index_fini(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_finds_what_was_added),
		cmocka_unit_test(test_visits_each_item_once),
		cmocka_unit_test(test_equal_hashes),
		cmocka_unit_test(test_hashes_as_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
