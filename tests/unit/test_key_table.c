/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/base/key_table.h"

enum { MANY = 5000 };

struct item {
	uint64_t key[2];
	uint64_t n;
};

static void test_makes_each_key_once(void **state)
{
	struct key_table table = KEY_TABLE(struct item);
	struct item *item;
	uint64_t i, key[2];
	bool is_new;

	for (i = 0; i < 3 * MANY; i++) {
		key[0] = i % MANY;
		key[1] = 7;
		item = key_table_get(&table, key, &is_new);
		assert_non_null(item);
		assert_int_equal(is_new, i < MANY);
		assert_int_equal(item->n++, i / MANY);
	}
	assert_int_equal(table.n, MANY);
	for (i = 0; i < MANY; i++) {
		item = table.items[i];
		assert_int_equal(item->key[0], i);
		assert_int_equal(item->n, 3);
		assert_ptr_equal(key_table_find(&table, item->key), item);
	}
	key[1] = 8;
	assert_null(key_table_find(&table, key));
	key_table_fini(&table);
	assert_null(key_table_find(&table, key));
	assert_int_equal(table.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_makes_each_key_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
