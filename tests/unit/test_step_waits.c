/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits for a program's own lock that are made in steps, in made-up windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/session/step_waits.h"
#include "daemon/window/window.h"

#define LENGTH_NS (5 * NS_PER_S)
#define REAL_NS	  (INT64_C(1700000000) * NS_PER_S)

/* SLEEPING: a state of tasks, from include/linux/sched.h. PID: above all real ones. */
enum { SLEEPING = 1, PID = 0x3f000000, TID = PID + 1, OTHER = PID + 2 };

static struct process_table *table;
static struct step_waits *steps;

/* A stack of one function. The kinds of stacks have numbers of their own for their places. */
struct made {
	struct stack stack;
	struct frame frame, *frames[1];
};

static struct made futex, nap, lock, other;

static void stack_make(struct made *made, uint64_t place, char *name)
{
	*made = (struct made){
		.stack = { .refs = 1,
			   .is_resolved = true,
			   .n_frames = 1,
			   .place_id = place,
			   .frames = made->frames },
		.frame.name = name,
		.frames = { &made->frame },
	};
}

static int set_up(void **state)
{
	stack_make(&futex, 1, "futex_do_wait");
	stack_make(&nap, 2, "hrtimer_nanosleep");
	stack_make(&lock, 3, "lock_wait_suspend_thread");
	stack_make(&other, 4, "log_write_up_to");
	steps = step_waits_new();
	return process_table_new_stored(&table);
}

static int tear_down(void **state)
{
	steps = step_waits_free(steps);
	process_table_free(table);
	return 0;
}

/* Returns the n-th window, with the two threads. */
static struct window *window_make(int64_t n)
{
	const struct process_info info = { .id = { .pid = PID, .start_boot_ns = 5 } };
	struct window *window = window_new();

	window->kind = PROBE_OFFCPU;
	window->start_ns = n * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	window->real_offset_ns = REAL_NS;
	for (int32_t tid = TID; tid <= OTHER; tid++) {
		struct window_image *image = window_add_image(window);

		image->process = process_table_add_stored(table, &info);
		image->uid = (uint64_t)tid;
		image->tid = tid;
	}
	return window;
}

/* Adds what thread TID waited in steps that have ended. */
static void ended_add(struct window *window, struct made *kernel, struct made *user, int64_t ns)
{
	struct window_row *row = window_add_row(window);

	row->state = SLEEPING;
	row->blocked_ns = (uint64_t)ns;
	row->kernel = stack_ref(&kernel->stack);
	row->user = stack_ref(&user->stack);
}

/* Adds a wait of thread TID that began `ago` before the end; user: NULL if its stack was not read.
 */
static void open_add(struct window *window, struct made *kernel, struct made *user, int64_t ago)
{
	struct window_open *open = window_add_open(window);

	open->start_ns = window->end_ns - ago;
	open->wake_ns = INT64_MAX;
	open->state = SLEEPING;
	open->kernel = stack_ref(&kernel->stack);
	open->user = user ? stack_ref(&user->stack) : NULL;
}

/* Returns how long the wait that goes on at the end of the window counts. */
static int64_t length_of(struct window *window)
{
	const int64_t at = window->end_ns + REAL_NS, start = window->opens[0].start_ns + REAL_NS;
	int64_t length;

	step_waits_find(steps, window);
	assert_int_equal(window_held_first_step(&window->held, OTHER, start, at), start);
	length = at - window_held_first_step(&window->held, TID, start, at);
	window_unref(window);
	return length;
}

/* Steps of a second count from the first one on, until the thread does something else. */
static void test_steps(void **state)
{
	struct window *window = window_make(1);

	open_add(window, &futex, &lock, NS_PER_S / 2);
	assert_int_equal(length_of(window), NS_PER_S / 2);
	for (int64_t n = 2; n < 5; n++) {
		window = window_make(n);
		ended_add(window, &futex, &lock, LENGTH_NS - NS_PER_S / 2);
		open_add(window, &futex, &lock, NS_PER_S / 2);
		assert_int_equal(length_of(window), (n - 1) * LENGTH_NS + NS_PER_S / 2);
	}
	window = window_make(5);
	ended_add(window, &futex, &lock, 2 * NS_PER_S);
	open_add(window, &futex, &lock, NS_PER_S / 2);
	assert_int_equal(length_of(window), NS_PER_S / 2);
}

/* A step whose stack was not read yet is the next one if it waits in the same way. */
static void test_a_young_step(void **state)
{
	struct window *window = window_make(1);

	open_add(window, &futex, &lock, NS_PER_S);
	assert_int_equal(length_of(window), NS_PER_S);
	window = window_make(2);
	ended_add(window, &futex, &lock, LENGTH_NS - NS_PER_MS);
	open_add(window, &futex, NULL, NS_PER_MS);
	assert_int_equal(length_of(window), NS_PER_S + LENGTH_NS);
	window = window_make(3);
	ended_add(window, &futex, &lock, LENGTH_NS - NS_PER_MS);
	open_add(window, &nap, NULL, NS_PER_MS);
	assert_int_equal(length_of(window), NS_PER_MS);
	window = window_make(4);
	ended_add(window, &futex, &lock, LENGTH_NS - NS_PER_MS);
	open_add(window, &futex, &other, NS_PER_MS);
	assert_int_equal(length_of(window), NS_PER_MS);
}

/* Short steps are known by those that have ended, from the beginning of their window on. */
static void test_short_steps(void **state)
{
	struct window *window = window_make(1);

	ended_add(window, &nap, &lock, LENGTH_NS - 50 * NS_PER_MS);
	open_add(window, &nap, NULL, 50 * NS_PER_MS);
	assert_int_equal(length_of(window), LENGTH_NS);
}

/* Other waits are no steps, and neither are those before a gap. */
static void test_no_steps(void **state)
{
	struct window *window = window_make(1);

	ended_add(window, &futex, &other, LENGTH_NS - NS_PER_S);
	open_add(window, &futex, &other, NS_PER_S);
	assert_int_equal(length_of(window), NS_PER_S);
	for (int64_t n = 2; n < 6; n += 2) {
		window = window_make(n);
		open_add(window, &futex, &lock, NS_PER_S);
		assert_int_equal(length_of(window), NS_PER_S);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_steps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_young_step, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_short_steps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_steps, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("step_waits", tests, NULL, NULL);
}
