/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Looks up the long waits of made-up windows, with a made-up holder_find() and clock: which waits
 * are looked up, how often, and what the windows have of it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/holder/holder.h"
#include "daemon/session/held_waits.h"
#include "daemon/window/window.h"

#define LENGTH_NS (5 * NS_PER_S)
#define REAL_NS	  (INT64_C(1700000000) * NS_PER_S)

/* STOPPED, SLEEPING: states of tasks, from include/linux/sched.h. PID: above all real ones. */
enum { SLEEPING = 1, STOPPED = 4, PID = 0x3f000000, TRIES = 6 };

static struct process_table *table;

/* What holder_find() was asked last, what it does, and how often it was called. */
static struct {
	struct holder_question questions[HOLDER_LOOKUPS];
	size_t n, calls, answered;
	int r;
	int64_t takes_ns;
	int32_t holder;	     /* of all objects; 0: the thread behind the one that waits */
	const char *unknown; /* why nobody is known */
} find;

static int64_t later_ns; /* by so much the clocks are ahead */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
	int r = __real_clock_gettime(clock, out);

	*out = timespec_ns((int64_t)out->tv_sec * NS_PER_S + out->tv_nsec + later_ns);
	return r;
}

int __wrap_holder_find(const struct holder_question *questions, size_t n, enum holder_use use,
		       struct holder_answer *answers, int64_t *cpu_ns_out);

/* Says that each thread waits for object "/TID", which the thread behind it in number holds. */
int __wrap_holder_find(const struct holder_question *questions, size_t n, enum holder_use use,
		       struct holder_answer *answers, int64_t *cpu_ns_out)
{
	size_t i;

	assert_int_equal(use, HOLDER_FOR_WINDOW);
	find.calls++;
	find.n = n;
	memcpy(find.questions, questions, n * sizeof(*questions));
	if (find.takes_ns)
		usleep((useconds_t)(find.takes_ns / NS_PER_US));
	for (i = 0; i < n && i < find.answered && !find.r; i++) {
		answers[i].is_known = true;
		answers[i].unknown = find.unknown;
		if (find.unknown)
			continue;
		assert_true(asprintf(&answers[i].object, "/%d", questions[i].tid) > 0);
		answers[i].n = 1;
		answers[i].holders[0].pid = questions[i].pid;
		answers[i].holders[0].tid = find.holder ? find.holder : questions[i].tid + 1;
		strcpy(answers[i].holders[0].comm, "holder");
	}
	return find.r;
}

static int set_up(void **state)
{
	memset(&find, 0, sizeof(find));
	find.answered = SIZE_MAX;
	return process_table_new_stored(&table);
}

static int tear_down(void **state)
{
	process_table_free(table);
	return 0;
}

/* Returns the n-th window without waits. */
static struct window *window_make(int64_t n)
{
	struct window *window = window_new();

	window->kind = PROBE_OFFCPU;
	window->start_ns = n * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	window->real_offset_ns = REAL_NS;
	return window;
}

/* Adds a wait of a thread of process PID that began at start_ns and goes on. */
static struct window_open *wait_add(struct window *window, int32_t tid, int64_t start_ns,
				    uint32_t state)
{
	const struct process_info info = { .id = { .pid = PID, .start_boot_ns = 5 },
					   .comm = "program" };
	struct window_image *image = window_add_image(window);
	struct window_open *open = window_add_open(window);

	image->process = process_table_add_stored(table, &info);
	image->uid = (uint64_t)tid;
	image->tid = tid;
	image->start_boot_ns = 6;
	memcpy(image->comm, "thread", 7);
	open->image = (uint32_t)window->n_images - 1;
	open->start_ns = start_ns;
	open->wake_ns = INT64_MAX;
	open->state = state;
	return open;
}

static const struct held_wait *held_of(const struct window *window, int32_t tid)
{
	return window_held_at(&window->held, tid, window->end_ns + REAL_NS);
}

/* Does held_waits_find() once more look-ups may be made, until they are: they were `calls` before.
 */
static void find_again(struct held_waits *held, struct window *window, size_t calls)
{
	int tries;

	for (tries = 0; find.calls == calls && tries < 10000; tries++) {
		window_held_fini(&window->held);
		held_waits_find(held, window);
		if (find.calls == calls)
			usleep(1000);
	}
	assert_int_equal(find.calls, calls + 1);
}

/* Asks about the n-th window, in which the wait of PID goes on, some seconds after the last one. */
static struct window *window_later(struct held_waits *held, int64_t n, int64_t seconds)
{
	struct window *window = window_make(n);

	later_ns += seconds * NS_PER_S;
	wait_add(window, PID, 2 * NS_PER_S, STOPPED);
	held_waits_find(held, window);
	return window;
}

static void test_long_waits_are_looked_up(void **state)
{
	struct held_waits *held = held_waits_new();
	struct window *window = window_make(0);
	const struct held_wait *wait;
	int64_t n;

	wait_add(window, PID, 2 * NS_PER_S, STOPPED);
	wait_add(window, PID + 9, window->end_ns - HELD_WAIT_NS + 1, STOPPED);
	held_waits_find(held, window);
	assert_int_equal(find.calls, 1);
	assert_int_equal(find.n, 1);
	assert_int_equal(find.questions[0].pid, PID);
	assert_int_equal(find.questions[0].tid, PID);
	assert_int_equal(find.questions[0].start_boot_ns, 6);
	assert_int_equal(find.questions[0].reason, REASON_STOPPED);
	wait = held_of(window, PID);
	assert_int_equal(window->held.n, 1);
	assert_int_equal(wait->since_ns, REAL_NS + 2 * NS_PER_S);
	assert_true(wait->looked_ns > 0);
	assert_int_equal(wait->n_by, 1);
	assert_int_equal(wait->by[0].tid, PID + 1);
	assert_string_equal(wait->by[0].comm, "holder");
	assert_string_equal(wait->comm, "thread");
	window_unref(window);
	/* The windows that follow have it, too, until it ends. */
	for (n = 1; n < 5; n++) {
		window = window_later(held, n, 1);
		assert_int_equal(find.calls, 1);
		assert_int_equal(held_of(window, PID)->last_ns, REAL_NS + window->end_ns);
		window_unref(window);
	}
	/* Another wait of the same thread. */
	window = window_make(5);
	wait_add(window, PID, 26 * NS_PER_S, STOPPED);
	find_again(held, window, 1);
	assert_int_equal(find.n, 1);
	window_unref(window);
	held_waits_free(held);
}

/* Others may hold what a wait is for after a while, and the window says when that was looked up. */
static void test_long_waits_are_looked_up_again(void **state)
{
	struct held_waits *held = held_waits_new();
	struct window *window = window_later(held, 0, 0);
	int64_t first_ns = held_of(window, PID)->looked_ns;

	window_unref(window);
	find.holder = PID + 7;
	window = window_later(held, 1, 5);
	assert_int_equal(find.calls, 1);
	assert_int_equal(held_of(window, PID)->by[0].tid, PID + 1);
	assert_int_equal(held_of(window, PID)->looked_ns, first_ns);
	window_unref(window);
	window = window_later(held, 2, 5);
	find_again(held, window, 1);
	assert_int_equal(held_of(window, PID)->by[0].tid, PID + 7);
	assert_true(held_of(window, PID)->looked_ns >= first_ns + 10 * NS_PER_S);
	window_unref(window);
	held_waits_free(held);
}

/* A wait that has gone on for 100 s is looked up again after 25 s, one of hours after a minute. */
static void test_old_waits_are_looked_up_less_often(void **state)
{
	static const struct {
		int64_t windows, early_s, due_s;
	} ages[] = { { 20, 23, 4 }, { 1000, 58, 4 } };
	struct held_waits *held;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ages); i++) {
		struct window *window;

		held = held_waits_new();
		window_unref(window_later(held, ages[i].windows, 0));
		window_unref(window_later(held, ages[i].windows + 1, ages[i].early_s));
		assert_int_equal(find.calls, 2 * i + 1);
		window = window_later(held, ages[i].windows + 1, ages[i].due_s);
		find_again(held, window, 2 * i + 1);
		window_unref(window);
		held_waits_free(held);
	}
}

/* A look-up that found nothing is done again, and takes nothing from what was found before. */
static void test_nothing_found(void **state)
{
	static const char *const unknown[] = { holder_went_on, holder_took_too_long };
	struct held_waits *held;
	struct window *window;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		held = held_waits_new();
		find.unknown = unknown[i];
		window = window_later(held, 0, 0);
		assert_int_equal(window->held.n, i);
		window_unref(window);
		find.unknown = NULL;
		window = window_later(held, 1, 10);
		find_again(held, window, 3 * i + 1);
		assert_int_equal(held_of(window, PID)->by[0].tid, PID + 1);
		assert_null(held_of(window, PID)->unknown);
		window_unref(window);
		find.unknown = unknown[i];
		window = window_later(held, 2, 10);
		find_again(held, window, 3 * i + 2);
		assert_int_equal(held_of(window, PID)->by[0].tid, PID + 1);
		window_unref(window);
		held_waits_free(held);
	}
}

static void test_who_is_left_out(void **state)
{
	struct held_waits *held = held_waits_new();
	struct window *window = window_make(0);

	/* A wait for an unknown reason, an end that may be unseen, a thread that was woken, a pool.
	 */
	wait_add(window, PID, 0, SLEEPING);
	wait_add(window, PID + 1, 0, STOPPED | STATE_UNSEEN);
	wait_add(window, PID + 2, 0, STOPPED)->wake_ns = NS_PER_S;
	wait_add(window, PID + 3, 0, STOPPED)->count = 7;
	held_waits_find(held, window);
	window->kind = PROBE_ONCPU;
	wait_add(window, PID + 4, 0, STOPPED);
	held_waits_find(held, window);
	assert_int_equal(find.calls, 0);
	assert_int_equal(window->held.n, 0);
	window_unref(window);
	held_waits_free(held);
}

/*
 * Of more waits than fit, those that began first are looked up first, and then others: what is
 * known keeps none out.
 */
static void test_limit(void **state)
{
	struct held_waits *held = held_waits_new();
	struct window *window = window_make(0);
	int32_t i, n = 3 * HOLDER_LOOKUPS;
	size_t calls;

	for (i = 0; i < n; i++)
		wait_add(window, PID + 2 * i, 3 * NS_PER_S - i, STOPPED);
	for (calls = 0; calls < 3; calls++) {
		n -= HOLDER_LOOKUPS;
		find_again(held, window, calls);
		assert_int_equal(find.n, HOLDER_LOOKUPS);
		assert_int_equal(find.questions[0].tid, PID + 2 * (n + HOLDER_LOOKUPS - 1));
		assert_int_equal(find.questions[HOLDER_LOOKUPS - 1].tid, PID + 2 * n);
		if (calls == 2)
			break;
		for (i = 0; i < 3 * HOLDER_LOOKUPS; i++)
			assert_int_equal(held_of(window, PID + 2 * i) != NULL, i >= n);
	}
	assert_int_equal(window->held.n, HELD_WAITS_MAX);
	held_waits_find(held, window);
	assert_int_equal(find.calls, 3);
	window_unref(window);
	held_waits_free(held);
}

/* The window also has the wait of a thread that holds something, though it cannot be looked up. */
static void test_the_wait_of_a_holder(void **state)
{
	struct held_waits *held = held_waits_new();
	struct window *window = window_make(0);
	const struct held_wait *wait;

	wait_add(window, PID, 0, STOPPED);
	wait_add(window, PID + 1, window->end_ns - 1, SLEEPING);
	wait_add(window, PID + 2, 0, SLEEPING);
	held_waits_find(held, window);
	assert_int_equal(window->held.n, 2);
	wait = held_of(window, PID + 1);
	assert_int_equal(wait->looked_ns, 0);
	assert_int_equal(wait->n_by, 0);
	assert_null(wait->object);
	window_unref(window);
	held_waits_free(held);
}

/*
 * A wait for a child is idle, and is looked up only if the thread holds what another one waits for.
 * The stack is never freed.
 */
static void test_the_child_of_a_holder(void **state)
{
	struct frame frame = { .name = "do_wait" }, *frames[] = { &frame };
	struct stack stack = {
		.is_resolved = true, .is_idle = true, .refs = 100, .n_frames = 1, .frames = frames
	};
	struct held_waits *held = held_waits_new();
	const int32_t tids[] = { PID + 1, PID + 7 };

	for (int64_t n = 0; n < 3; n++) {
		struct window *window = window_make(n);

		wait_add(window, PID, 0, STOPPED);
		for (size_t i = 0; i < ARRAY_SIZE(tids); i++)
			wait_add(window, tids[i], 0, SLEEPING)->kernel = &stack;
		if (n < 2)
			find_again(held, window, (size_t)n);
		else
			held_waits_find(held, window);
		assert_int_equal(find.n, 1);
		assert_int_equal(find.questions[0].tid, n == 0 ? PID : PID + 1);
		assert_null(held_of(window, PID + 7));
		assert_int_equal(held_of(window, PID + 1)->n_by, n > 0);
		window_unref(window);
	}
	assert_int_equal(find.calls, 2);
	held_waits_free(held);
}

/* A wait whose look-up hangs does not keep the others from being looked up, and is given up. */
static void test_hanging(void **state)
{
	struct held_waits *held = held_waits_new();
	/* The one that hangs comes behind the other one, and each is tried three times. */
	static const int32_t tids[TRIES] = { PID, PID + 5, PID, PID, PID + 5, PID + 5 };
	struct window *window;
	int64_t n;

	find.answered = 0;
	for (n = 0; n < TRIES; n++) {
		window = window_make(n);
		wait_add(window, PID, 0, STOPPED);
		wait_add(window, PID + 5, 1, STOPPED);
		find_again(held, window, (size_t)n);
		assert_int_equal(find.questions[0].tid, tids[n]);
		assert_int_equal(window->held.n, 0);
		window_unref(window);
	}
	window = window_make(6);
	wait_add(window, PID, 0, STOPPED);
	wait_add(window, PID + 5, 1, STOPPED);
	held_waits_find(held, window);
	assert_int_equal(find.calls, TRIES);
	window_unref(window);
	held_waits_free(held);
}

/* If more waits are due than are looked up at once, those come first that were not for longest. */
static void test_many_again(void **state)
{
	enum { MORE = 10 };
	struct held_waits *held = held_waits_new();
	struct window *window;
	int32_t i;

	for (int64_t n = 0; n < 4; n++) {
		window = window_make(n);
		for (i = 0; i < HOLDER_LOOKUPS + MORE; i++)
			wait_add(window, PID + 5 * i, i, STOPPED);
		/* The others are asked about in the second window for the first time. */
		later_ns += n > 1 ? 10 * NS_PER_S : 0;
		find_again(held, window, (size_t)n);
		assert_int_equal(find.n, n == 1 ? MORE : HOLDER_LOOKUPS);
		window_unref(window);
	}
	for (i = 0; i < MORE; i++)
		assert_int_equal(find.questions[i].tid, PID + 5 * (HOLDER_LOOKUPS + i));
	held_waits_free(held);
}

/* After look-ups that took long, none are made for ten times as long. */
static void test_pause(void **state)
{
	struct held_waits *held = held_waits_new();
	struct window *window = window_make(0);

	find.takes_ns = 200 * NS_PER_MS;
	wait_add(window, PID, 0, STOPPED);
	held_waits_find(held, window);
	assert_int_equal(find.calls, 1);
	wait_add(window, PID + 5, 0, STOPPED);
	held_waits_find(held, window);
	assert_int_equal(find.calls, 1);
	/* What is known already is there. */
	assert_non_null(held_of(window, PID));
	assert_null(held_of(window, PID + 5));
	window_unref(window);
	held_waits_free(held);
}

static void test_failure(void **state)
{
	struct held_waits *held = held_waits_new();
	struct window *window = window_make(0);

	find.r = -EBUSY;
	wait_add(window, PID, 0, STOPPED);
	held_waits_find(held, window);
	assert_int_equal(window->held.n, 0);
	find.r = 0;
	find_again(held, window, 1);
	assert_int_equal(window->held.n, 1);
	window_unref(window);
	held_waits_free(held);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_long_waits_are_looked_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_old_waits_are_looked_up_less_often, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_long_waits_are_looked_up_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_found, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_who_is_left_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_wait_of_a_holder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_the_child_of_a_holder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hanging, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_pause, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_failure, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
