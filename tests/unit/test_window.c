/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/window/window.h"

static void test_members_are_kept(void **state)
{
	struct window *window = window_new();
	size_t i;

	for (i = 0; i < 1000; i++) {
		assert_int_equal(window_add_row(window)->count, 0);
		window->rows[i].count = i;
		window_add_image(window)->uid = i;
		window_add_span(window)->start_ns = (int64_t)i;
		window_add_open(window)->start_ns = (int64_t)i;
	}
	window_seal(window);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(window->rows[i].count, i);
		assert_int_equal(window->images[i].uid, i);
		assert_int_equal(window->spans[i].start_ns, i);
		assert_int_equal(window->opens[i].start_ns, i);
		window->images[i].process = NULL;
	}
	assert_int_equal(window->bytes,
			 sizeof(*window) +
				 1000 * (sizeof(struct window_row) + sizeof(struct window_image) +
					 sizeof(struct window_span) + sizeof(struct window_open)));
	window_unref(window);
}

/* A packed window has what it had before, and takes whole pages. */
static void test_packed_window_is_the_same(void **state)
{
	struct window *window = window_new(), *empty = window_new();
	size_t i, n = 777;

	for (i = 0; i < n; i++) {
		window_add_row(window)->count = i;
		window_add_sample(window)->count = i * i;
		window_add_member(window)->pid = (int32_t)i;
	}
	window_seal(window);
	window_pack(window);
	assert_non_null(window->block);
	window_pack(window);
	for (i = 0; i < n; i++) {
		assert_int_equal(window->rows[i].count, i);
		assert_int_equal(window->samples[i].count, i * i);
		assert_int_equal(window->members[i].pid, i);
	}
	assert_null(window->images);
	assert_true(window->bytes >= sizeof(*window) + n * (sizeof(struct window_row) +
							    sizeof(struct window_sample) +
							    sizeof(struct window_member)));
	assert_int_equal((window->bytes - sizeof(*window)) % 4096, 0);
	window_unref(window);
	window_seal(empty);
	window_pack(empty);
	assert_int_equal(empty->bytes, sizeof(*empty));
	window_unref(empty);
}

static void test_buckets_come_back(void **state)
{
	struct window *window = window_new();
	uint32_t buckets[2][WAIT_BUCKETS] = { { [0] = 7, [25] = 9 }, { [3] = 1 } };
	uint64_t sums[WAIT_BUCKETS] = { [3] = 100 };
	size_t i;

	for (i = 0; i < 2; i++) {
		struct window_row *row = window_add_row(window);

		assert_int_equal(window_row_set_buckets(window, row, buckets[i]), 0);
	}
	assert_int_equal(window->n_buckets, 3);
	window_row_add_buckets(window, &window->rows[1], sums);
	assert_int_equal(sums[3], 101);
	assert_int_equal(sums[0], 0);
	window_row_add_buckets(window, &window->rows[0], sums);
	assert_int_equal(sums[0], 7);
	assert_int_equal(sums[25], 9);
	window_unref(window);
}

/* A window gives its references back when it is freed: only then does the table drop a stack. */
static void test_stacks_are_released(void **state)
{
	struct stack_table *table;
	struct window *window = window_new();
	uint64_t ip = 1;
	bool is_new;
	struct stack *stack;

	assert_int_equal(stack_table_new(1 << 20, &table), 0);
	stack = stack_table_put(table, 100, NULL, &ip, 1, &is_new);
	window_add_row(window)->kernel = stack_table_get(table, 100, false);
	window_add_span(window)->user = stack_table_get(table, 100, true);
	window_add_open(window)->user = stack_table_get(table, 100, true);
	window_ref(window);
	window_unref(window);
	assert_int_equal(stack->refs, 5);
	window_unref(window);
	assert_int_equal(stack->refs, 2);
	stack_table_free(table);
}

#define ADD_BOTH(window, table, member)                                      \
	do {                                                                 \
		struct window_##member *added = window_add_##member(window); \
                                                                             \
		added->kernel = stack_table_get(table, 100, false);          \
		added->user = stack_table_get(table, 100, true);             \
	} while (0)

/* Each kind of member gives its two references back. */
static void test_all_stacks_are_released(void **state)
{
	struct window *window = window_new();
	struct stack_table *table;
	struct stack *stack;
	uint64_t ip = 1;
	bool is_new;

	assert_int_equal(stack_table_new(1 << 20, &table), 0);
	stack = stack_table_put(table, 100, NULL, &ip, 1, &is_new);
	ADD_BOTH(window, table, row);
	ADD_BOTH(window, table, span);
	ADD_BOTH(window, table, open);
	ADD_BOTH(window, table, sample);
	ADD_BOTH(window, table, waker);
	ADD_BOTH(window, table, io);
	assert_int_equal(stack->refs, 2 + 2 * 6);
	window_unref(window);
	assert_int_equal(stack->refs, 2);
	stack_table_free(table);
}

static void test_every_loss_has_a_name(void **state)
{
	unsigned int i, k;

	for (i = 0; i < WINDOW_LOST_N; i++) {
		assert_non_null(window_loss_name(i));
		for (k = 0; k < i; k++)
			assert_string_not_equal(window_loss_name(i), window_loss_name(k));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_members_are_kept),
		cmocka_unit_test(test_packed_window_is_the_same),
		cmocka_unit_test(test_buckets_come_back),
		cmocka_unit_test(test_stacks_are_released),
		cmocka_unit_test(test_all_stacks_are_released),
		cmocka_unit_test(test_every_loss_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
