/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests for the parts that all builders of windows share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/process/process.h"
#include "daemon/window/builder.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

extern const struct window_builder_ops build_iolat, build_offcpu, build_offwake, build_samples;

/* Checks that each builder's empty window has the kind and the bounds of the cut. */
static void test_empty_windows(void **state)
{
	static const struct window_builder_ops *const builders[] = { &build_iolat, &build_offcpu,
								     &build_offwake,
								     &build_samples };
	struct window_builder_options options = { .kind = PROBE_STACKCOUNT };
	struct window_builder *builder;
	struct window *window;
	size_t i;

	assert_int_equal(process_table_new(1 << 20, &options.processes), 0);
	assert_int_equal(stack_table_new(1 << 20, &options.stacks), 0);
	for (i = 0; i < ARRAY_SIZE(builders); i++) {
		assert_int_equal(window_builder_new(builders[i], &options, &builder), 0);
		assert_int_equal(window_builder_key_size(builder) % sizeof(uint64_t), 0);
		assert_int_equal(window_builder_value_size(builder) % sizeof(uint64_t), 0);
		window_builder_begin(builder, 10, 20, 2);
		window = window_builder_finish(builder);
		assert_non_null(window);
		assert_int_equal(window->kind, options.kind);
		assert_int_equal(window->start_ns, 10);
		assert_int_equal(window->end_ns, 20);
		assert_int_equal(window->n_images, 0);
		window_unref(window);
		window_builder_free(builder);
	}
	stack_table_free(options.stacks);
	process_table_free(options.processes);
}

/* A builder without use for threads and records leaves them alone. */
static void test_others_threads_and_records(void **state)
{
	const struct record_thread_end end = { .head.type = RECORD_THREAD_END };
	struct window_builder_options options = { .kind = PROBE_ONCPU };
	struct window_builder *builder;
	struct window *window;

	assert_int_equal(process_table_new(1 << 20, &options.processes), 0);
	assert_int_equal(stack_table_new(1 << 20, &options.stacks), 0);
	assert_int_equal(window_builder_new(&build_samples, &options, &builder), 0);
	window_builder_begin(builder, 10, 20, 2);
	window_builder_add_thread(builder, &end.thread);
	window_builder_add_record(builder, &end.head);
	window = window_builder_finish(builder);
	assert_int_equal(window->n_images, 0);
	window_unref(window);
	window_builder_free(builder);
	stack_table_free(options.stacks);
	process_table_free(options.processes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_windows),
		cmocka_unit_test(test_others_threads_and_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
