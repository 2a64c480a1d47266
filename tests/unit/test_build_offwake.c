/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/process/process.h"
#include "daemon/window/builder.h"
#include "daemon/window/stack.h"
#include "daemon/window/window.h"

extern const struct window_builder_ops build_offwake;

struct fixture {
	struct process_table *processes;
	struct stack_table *stacks;
	struct window_builder *builder;
};

static int setup(void **state)
{
	static struct fixture f;
	struct window_builder_options options = { .kind = PROBE_OFFWAKE };

	assert_int_equal(process_table_new(1 << 20, &f.processes), 0);
	assert_int_equal(stack_table_new(1 << 20, &f.stacks), 0);
	options.processes = f.processes;
	options.stacks = f.stacks;
	assert_int_equal(window_builder_new(&build_offwake, &options, &f.builder), 0);
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

static struct wake_key key_of(uint32_t tid, uint64_t path)
{
	return (struct wake_key){
		.target = { .start_boot_ns = tid,
			    .leader_boot_ns = 1,
			    .tid = tid,
			    .tgid = 4000000 },
		.waker_kstack = STACK_FAULT,
		.path = path,
		.state = 1,
	};
}

static struct wake_sums sums_of(uint64_t count)
{
	struct wake_sums sums = {
		.sums = { .count = count, .blocked_ns = 90, .runnable_ns = 10, .max_ns = 60 },
		.comm = "target",
		.links = {
			{ .context = WAKE_TASK, .tgid = 7, .tid = 8, .comm = "waker" },
			{ .context = WAKE_TIMER },
		},
	};

	/* The kernel leaves any bytes after the end of a name. */
	memset(sums.links[0].comm + sizeof("waker"), 'x', 4);
	return sums;
}

static struct window *finish(struct fixture *f, int64_t start_ns, int64_t end_ns)
{
	window_builder_begin(f->builder, start_ns, end_ns, 0);
	return window_builder_finish(f->builder);
}

/* Each row has its waker; rows of one thread have one image, which has their sum. */
static void test_rows_have_wakers(void **state)
{
	const struct window_link none = {};
	struct fixture *f = *state;
	struct wake_sums sums = sums_of(3);
	const struct window_waker *waker;
	struct window *window;

	for (uint32_t i = 0; i < 3; i++) {
		struct wake_key key = key_of(4000001 + i / 2, i);

		window_builder_add(f->builder, &key, &sums);
	}
	window = finish(f, 10, 20);
	assert_non_null(window);
	assert_int_equal(window->kind, PROBE_OFFWAKE);
	assert_int_equal(window->start_ns, 10);
	assert_int_equal(window->end_ns, 20);
	assert_int_equal(window->n_rows, 3);
	assert_int_equal(window->n_wakers, 3);
	assert_int_equal(window->n_images, 2);
	assert_int_equal(window->rows[0].image, window->rows[1].image);
	assert_int_equal(window->images[0].sums.blocked_ns, 180);
	assert_int_equal(window->images[0].sums.runnable_ns, 20);
	assert_int_equal(window->images[0].sums.switches, 6);
	assert_string_equal(window->images[1].comm, "target");
	waker = window_row_waker(window, 2);
	assert_non_null(waker->kernel);
	assert_true(waker->kernel->flags & STACK_IS_FAULT);
	assert_null(waker->user);
	assert_int_equal(waker->links[0].context, WAKE_TASK);
	assert_int_equal(waker->links[0].pid, 7);
	assert_int_equal(waker->links[0].tid, 8);
	assert_memory_equal(waker->links[0].comm, "waker\0\0\0\0\0\0\0\0\0\0", COMM_LEN);
	assert_int_equal(waker->links[1].context, WAKE_TIMER);
	assert_memory_equal(&waker->links[2], &none, sizeof(none));
	window_unref(window);
}

/* Equal wakers have one id, also in two windows; a waker with another path has another id. */
static void test_ids(void **state)
{
	struct fixture *f = *state;
	struct wake_sums sums = sums_of(1), other = sums_of(1);
	struct wake_key key = key_of(4000001, 1), second = key_of(4000001, 2);
	struct window *window, *next;

	other.links[1].context = WAKE_IRQ;
	window_builder_add(f->builder, &key, &sums);
	window_builder_add(f->builder, &second, &other);
	window = finish(f, 0, 1);
	window_builder_add(f->builder, &key, &sums);
	next = finish(f, 1, 2);
	assert_int_equal(next->n_rows, 1);
	assert_int_equal(next->n_images, 1);
	assert_int_equal(window->images[0].uid, next->images[0].uid);
	assert_int_equal(window_waker_id(&window->wakers[0], true, true),
			 window_waker_id(&next->wakers[0], true, true));
	assert_int_not_equal(window_waker_id(&window->wakers[0], true, true),
			     window_waker_id(&window->wakers[1], true, true));
	window_unref(window);
	window_unref(next);
}

/* A context that this build does not know is shown as unknown. */
static void test_unknown_context(void **state)
{
	struct fixture *f = *state;
	struct wake_sums sums = sums_of(1);
	struct wake_key key = key_of(4000001, 1);
	struct window *window;

	sums.links[0].context = WAKE_CONTEXTS + 5;
	window_builder_add(f->builder, &key, &sums);
	window = finish(f, 0, 1);
	assert_int_equal(window->wakers[0].links[0].context, WAKE_UNKNOWN);
	window_unref(window);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows_have_wakers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_context, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
