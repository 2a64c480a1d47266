/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/process/process.h"
#include "daemon/window/builder.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

extern const struct window_builder_ops build_samples;

enum { PERIOD = 1000 };

struct fixture {
	struct process_table *processes;
	struct stack_table *stacks;
	struct window_builder *builder;
};

static int setup(void **state)
{
	static struct fixture f;
	struct window_builder_options options = { .kind = PROBE_ONCPU, .period_ns = PERIOD };

	assert_int_equal(process_table_new(1 << 20, &f.processes), 0);
	assert_int_equal(stack_table_new(1 << 20, &f.stacks), 0);
	options.processes = f.processes;
	options.stacks = f.stacks;
	assert_int_equal(window_builder_new(&build_samples, &options, &f.builder), 0);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	window_builder_free(f->builder);
	stack_table_free(f->stacks);
	process_table_free(f->processes);
	return 0;
}

static void add(struct fixture *f, uint32_t tid, uint32_t exec_gen, uint64_t kstack, uint64_t count,
		const char *comm)
{
	struct sample_key key = {
		.start_boot_ns = tid,
		.leader_boot_ns = 4000000,
		.kstack = kstack,
		.tid = tid,
		.tgid = 4000000,
		.exec_gen = exec_gen,
		.flags = SAMPLE_IS_KERNEL,
	};
	struct sample_sums sums = { .count = count };

	snprintf(sums.comm, sizeof(sums.comm), "%s", comm);
	window_builder_add(f->builder, &key, &sums);
}

static struct window *finish(struct fixture *f, int64_t start_ns, int64_t end_ns)
{
	window_builder_begin(f->builder, start_ns, end_ns, 0);
	return window_builder_finish(f->builder);
}

/* Two stacks of a thread are two rows of one image; after an exec the thread is another image. */
static void test_images(void **state)
{
	struct fixture *f = *state;
	struct window *window;

	add(f, 4000001, 1, STACK_NONE, 3, "one");
	add(f, 4000001, 1, STACK_FAULT, 4, "one");
	add(f, 4000001, 2, STACK_NONE, 5, "after");
	add(f, 4000002, 1, STACK_NONE, 6, "two");
	window = finish(f, 10, 20);
	assert_non_null(window);
	assert_int_equal(window->kind, PROBE_ONCPU);
	assert_int_equal(window->start_ns, 10);
	assert_int_equal(window->end_ns, 20);
	assert_int_equal(window->n_images, 3);
	assert_int_equal(window->n_samples, 4);
	assert_int_equal(window->samples[0].image, window->samples[1].image);
	assert_int_not_equal(window->samples[1].image, window->samples[2].image);
	assert_int_equal(window->samples[1].on_ns, 4 * PERIOD);
	assert_int_equal(window->images[0].sums.on_ns, 7 * PERIOD);
	assert_string_equal(window->images[window->samples[2].image].comm, "after");
	assert_int_equal(window->images[0].uid, window->images[1].uid);
	assert_null(window->samples[0].kernel);
	assert_non_null(window->samples[1].kernel);
	assert_true(window->samples[1].kernel->flags & STACK_IS_FAULT);
	window_seal(window);
	window_unref(window);
}

/* The samples of one window are not in the next one. */
static void test_each_window_is_new(void **state)
{
	struct fixture *f = *state;
	struct window *window;

	add(f, 4000003, 1, STACK_NONE, 1, "x");
	window = finish(f, 0, 1);
	assert_int_equal(window->n_samples, 1);
	window_unref(window);
	window = finish(f, 1, 2);
	assert_int_equal(window->n_samples, 0);
	assert_int_equal(window->n_images, 0);
	window_unref(window);
}

/* The idle tasks of all CPUs are one image. */
static void test_idle(void **state)
{
	struct fixture *f = *state;
	struct sample_key key = { .flags = SAMPLE_IS_KERNEL };
	struct sample_sums sums = { .count = 2, .comm = "swapper/1" };
	struct window *window;

	window_builder_add(f->builder, &key, &sums);
	window = finish(f, 0, 1);
	assert_int_equal(window->n_images, 1);
	assert_string_equal(window->images[0].comm, "idle");
	window_unref(window);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_images, setup, teardown),
		cmocka_unit_test_setup_teardown(test_each_window_is_new, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
