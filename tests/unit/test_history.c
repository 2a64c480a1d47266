/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/session/session.h"
#include "daemon/store/history.h"

/* Windows of 5 s with 1000 bytes each; the real clock is 1000 s ahead of ours. */
enum { WINDOW_BYTES = 1000 };

#define OFFSET (1000 * NS_PER_S)

/* How often a lock was taken and given back, and how many locks are held. */
static _Thread_local struct {
	int taken, given, held, max_held;
} locks;

/* These two stand in for those of libc. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int (*real)(pthread_mutex_t *) =
		(int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_lock");
	int r = real(mutex);

	locks.taken++;
	locks.held++;
	if (locks.held > locks.max_held)
		locks.max_held = locks.held;
	return r;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int (*real)(pthread_mutex_t *) =
		(int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");

	locks.given++;
	locks.held--;
	return real(mutex);
}

static struct window *window_make(uint64_t seq, size_t bytes)
{
	struct window *window = window_new();

	window->seq = seq;
	window->start_ns = (int64_t)seq * 5 * NS_PER_S;
	window->end_ns = window->start_ns + 5 * NS_PER_S;
	window->real_offset_ns = OFFSET;
	window->bytes = bytes;
	return window;
}

static void add(struct history *history, uint64_t seq, size_t stack_bytes)
{
	history_add(history, window_make(seq, WINDOW_BYTES), NULL, stack_bytes);
}

static void assert_has(struct history *history, uint64_t first, uint64_t last)
{
	struct history_list list;
	size_t i;

	assert_int_equal(history_range(history, 0, INT64_MIN, INT64_MAX, &list), 0);
	assert_int_equal(list.n, last - first + 1);
	for (i = 0; i < list.n; i++)
		assert_int_equal(list.windows[i]->seq, first + i);
	history_list_fini(&list);
}

static struct history_stats stats(struct history *history)
{
	struct history_stats out;

	history_stats(history, &out);
	return out;
}

/* The bytes of the windows that wait to be written. */
static size_t waiting;

static size_t on_window(void *userdata, struct window *window)
{
	return waiting;
}

/*
 * Adds 300 windows whose stacks take as much memory as the windows, and are measured each time that
 * five windows were added. Windows and stacks, and what waits to be written, stay below the limit,
 * and the windows that are left are the newest.
 */
static void bound_check(size_t max_bytes)
{
	struct history *history;
	size_t stack_bytes = 0;
	uint64_t seq;

	assert_int_equal(history_new(2000 * NS_PER_S, max_bytes, &history), 0);
	history_set_sink(history, on_window, NULL);
	for (seq = 1; seq <= 300; seq++) {
		if (seq % 5 == 0)
			stack_bytes = stats(history).bytes;
		add(history, seq, stack_bytes);
		assert_true(2 * stats(history).bytes + waiting <= max_bytes);
	}
	assert_true(3 * stats(history).bytes + waiting > max_bytes);
	assert_has(history, 301 - stats(history).windows, 300);
	history_free(history);
}

static void test_bound(void **state)
{
	waiting = 0;
	bound_check(100 * WINDOW_BYTES);
	waiting = 30 * WINDOW_BYTES;
	bound_check(100 * WINDOW_BYTES);
}

/* When the limit is lowered, the oldest windows go until the others keep within it. */
static void test_budget(void **state)
{
	struct history *history;
	uint64_t seq;

	assert_int_equal(history_new(2000 * NS_PER_S, 100 * WINDOW_BYTES, &history), 0);
	for (seq = 1; seq <= 40; seq++)
		add(history, seq, 0);
	assert_has(history, 1, 40);
	history_set_budget(history, 20 * WINDOW_BYTES);
	add(history, 41, 0);
	assert_has(history, 22, 41);
	assert_int_equal(stats(history).evicted_for_bytes, 21);
	assert_true(stats(history).evicted_by_bytes);
	history_free(history);
}

static void test_order_survives_growth(void **state)
{
	struct history *history;
	uint64_t seq;

	assert_int_equal(history_new(500 * NS_PER_S, SIZE_MAX, &history), 0);
	for (seq = 1; seq <= 1000; seq++)
		add(history, seq, 0);
	/* Windows stay that ended at most 500 s before the last one. */
	assert_has(history, 900, 1000);
	assert_int_equal(stats(history).evicted_real_ns, 900 * 5 * NS_PER_S + OFFSET);
	assert_false(stats(history).evicted_by_bytes);
	assert_int_equal(stats(history).bytes, 101 * WINDOW_BYTES);
	history_free(history);
}

/* The ring grows while its first window is not in its first slot. */
static void test_order_survives_growth_after_eviction(void **state)
{
	struct history *history;
	uint64_t seq;

	assert_int_equal(history_new(1000 * NS_PER_S, 1000 * WINDOW_BYTES, &history), 0);
	for (seq = 1; seq <= 100; seq++)
		add(history, seq, seq == 50 ? 1000 * WINDOW_BYTES : 0);
	assert_has(history, 5, 100);
	history_free(history);
}

static void test_range_is_half_open(void **state)
{
	struct history *history;
	struct history_list list;
	uint64_t seq;

	assert_int_equal(history_new(500 * NS_PER_S, SIZE_MAX, &history), 0);
	for (seq = 1; seq <= 10; seq++)
		add(history, seq, 0);
	assert_int_equal(
		history_range(history, 0, 15 * NS_PER_S + OFFSET, 25 * NS_PER_S + OFFSET, &list),
		0);
	assert_int_equal(list.n, 2);
	assert_int_equal(list.windows[0]->seq, 3);
	history_list_fini(&list);
	assert_int_equal(history_range(history, 0, 16 * NS_PER_S + OFFSET,
				       25 * NS_PER_S + OFFSET + 1, &list),
			 0);
	assert_int_equal(list.n, 3);
	history_list_fini(&list);
	history_free(history);
}

static void test_bytes_are_bounded(void **state)
{
	struct history *history;
	uint64_t seq;

	assert_int_equal(history_new(500 * NS_PER_S, 10 * WINDOW_BYTES, &history), 0);
	for (seq = 1; seq <= 25; seq++)
		add(history, seq, 0);
	assert_has(history, 16, 25);
	assert_true(stats(history).evicted_by_bytes);
	assert_int_equal(stats(history).evicted_for_bytes, 15);
	history_free(history);
}

/*
 * When stacks take too much memory, each new window evicts a few others, in the end all but those
 * of the last 30 s.
 */
static void test_stacks_count(void **state)
{
	struct history *history;
	uint64_t seq;

	/* Stacks count as a little more than they took when they were measured. */
	assert_int_equal(history_new(500 * NS_PER_S, 20 * WINDOW_BYTES + 500, &history), 0);
	for (seq = 1; seq <= 10; seq++)
		add(history, seq, 10 * WINDOW_BYTES);
	assert_has(history, 1, 10);
	add(history, 11, 10 * WINDOW_BYTES);
	assert_has(history, 2, 11);
	add(history, 12, 100 * WINDOW_BYTES);
	assert_has(history, 6, 12);
	add(history, 13, 100 * WINDOW_BYTES);
	assert_has(history, 8, 13);
	add(history, 14, 99 * WINDOW_BYTES);
	assert_has(history, 9, 14);
	add(history, 15, 0);
	assert_has(history, 9, 15);
	history_free(history);
}

/* The windows of a list live on after they are evicted. */
static void test_lists_hold_windows(void **state)
{
	struct history *history;
	struct history_list list;

	assert_int_equal(history_new(500 * NS_PER_S, WINDOW_BYTES, &history), 0);
	add(history, 1, 0);
	assert_int_equal(history_range(history, 0, INT64_MIN, INT64_MAX, &list), 0);
	add(history, 2, 0);
	assert_has(history, 2, 2);
	assert_int_equal(list.windows[0]->seq, 1);
	assert_int_equal(list.windows[0]->refs, 1);
	history_list_fini(&list);
	history_free(history);
}

static void test_wait_for_a_window(void **state)
{
	struct history *history;

	assert_int_equal(history_new(500 * NS_PER_S, SIZE_MAX, &history), 0);
	add(history, 7, 0);
	assert_int_equal(history_wait(history, 7, 0), 0);
	assert_int_equal(history_wait(history, 8, NS_PER_MS), -ETIMEDOUT);
	history_free(history);
}

/* Shrinking evicts the oldest quarter, but never windows of the last 30 s. */
static void test_shrinks_when_asked(void **state)
{
	struct history *history;
	uint64_t seq;

	assert_int_equal(history_new(500 * NS_PER_S, SIZE_MAX, &history), 0);
	for (seq = 1; seq <= 8; seq++)
		add(history, seq, 0);
	history_shrink(history);
	assert_has(history, 3, 8);
	assert_true(stats(history).evicted_by_bytes);
	assert_int_equal(stats(history).evicted_for_bytes, 2);
	for (seq = 0; seq < 10; seq++)
		history_shrink(history);
	assert_has(history, 3, 8);
	history_free(history);
}

/* Returns how many of the windows are whole: they have more than WINDOW_BYTES. */
static size_t whole_count(struct history *history)
{
	struct history_list list;
	size_t n = 0, i;

	assert_int_equal(history_range(history, 0, INT64_MIN, INT64_MAX, &list), 0);
	for (i = 0; i < list.n; i++) {
		bool is_whole = list.windows[i]->bytes > WINDOW_BYTES;

		/* Those that are not come first. */
		assert_true(is_whole || !n);
		n += is_whole;
	}
	history_list_fini(&list);
	return n;
}

static void add_whole(struct history *history, uint64_t seq, size_t stack_bytes)
{
	history_add(history, window_make(seq, 4 * WINDOW_BYTES), window_make(seq, WINDOW_BYTES),
		    stack_bytes);
}

/* The sink gets the folded windows. */
static size_t on_folded(void *userdata, struct window *window)
{
	assert_int_equal(window->bytes, WINDOW_BYTES);
	return 0;
}

/* The windows of the last minute are whole, and a minute later folded. */
static void test_the_last_minute_is_whole(void **state)
{
	struct history *history;
	uint64_t seq;

	assert_int_equal(history_new(500 * NS_PER_S, SIZE_MAX, &history), 0);
	history_set_sink(history, on_folded, NULL);
	for (seq = 1; seq <= 30; seq++)
		add_whole(history, seq, 0);
	assert_has(history, 1, 30);
	/* Those that ended at most 60 s before the last one. */
	assert_int_equal(whole_count(history), 13);
	assert_int_equal(stats(history).bytes, (30 + 13 * 4) * WINDOW_BYTES);
	for (seq = 31; seq <= 50; seq++)
		add(history, seq, 0);
	assert_has(history, 1, 50);
	assert_int_equal(whole_count(history), 0);
	assert_int_equal(stats(history).bytes, 50 * WINDOW_BYTES);
	history_free(history);
}

/*
 * Whole windows take at most half of the memory, with their share of the stacks: so older windows
 * stay. The newest ones are whole.
 */
static void test_whole_windows_leave_room(void **state)
{
	struct history *history;
	uint64_t seq;

	assert_int_equal(history_new(500 * NS_PER_S, 40 * WINDOW_BYTES, &history), 0);
	for (seq = 1; seq <= 30; seq++) {
		add_whole(history, seq, 0);
		assert_true(stats(history).bytes <= 40 * WINDOW_BYTES);
	}
	assert_in_range(whole_count(history), 4, 6);
	assert_true(stats(history).windows >= 16);
	/* Not one fits. */
	history_set_budget(history, 6 * WINDOW_BYTES);
	add_whole(history, 31, 0);
	assert_int_equal(whole_count(history), 0);
	assert_has(history, 26, 31);
	history_free(history);
	/* Here the stacks take as much as the windows. */
	assert_int_equal(history_new(500 * NS_PER_S, 80 * WINDOW_BYTES, &history), 0);
	for (seq = 1; seq <= 30; seq++)
		add_whole(history, seq, stats(history).bytes);
	assert_in_range(whole_count(history), 4, 6);
	history_free(history);
}

static void add_lossy(struct history *history, uint64_t seq, uint64_t session, uint64_t lost)
{
	struct window *window = window_new();

	window->seq = seq;
	window->session = session;
	window->kind = PROBE_ONCPU;
	window->start_ns = (int64_t)seq * NS_PER_S;
	window->end_ns = window->start_ns + NS_PER_S;
	window->real_offset_ns = OFFSET;
	window->bytes = WINDOW_BYTES;
	window->lost[LOST_SAMPLE_KEYS] = lost;
	history_add(history, window, NULL, 0);
}

/* Losses outlive their windows; those of clients' sessions do not. */
static void test_losses_outlive_windows(void **state)
{
	struct history *history;
	struct history_list list;
	uint64_t seq;
	size_t i;

	assert_int_equal(history_new(10 * NS_PER_S, SIZE_MAX, &history), 0);
	for (seq = 1; seq <= 100; seq++)
		add_lossy(history, seq, seq % 5 ? 2 : SESSION_FIRST_ID, seq % 10 < 6 ? seq : 0);
	assert_has(history, 90, 100);
	assert_int_equal(history_lossy(history, 50 * NS_PER_S + OFFSET, &list), 0);
	/* The windows 51 to 54, 61 to 64 and so on lost something. */
	assert_int_equal(list.n, 20);
	for (i = 0; i < list.n; i++) {
		seq = 50 + i / 4 * 10 + i % 4 + 1;
		assert_int_equal(list.windows[i]->seq, seq);
		assert_int_equal(list.windows[i]->lost[LOST_SAMPLE_KEYS], seq);
		assert_int_equal(list.windows[i]->kind, PROBE_ONCPU);
	}
	history_list_fini(&list);
	/* Only the newest of many evicted windows keep their losses. */
	for (seq = 101; seq <= 2000; seq++)
		add_lossy(history, seq, 2, 1);
	assert_int_equal(history_lossy(history, INT64_MIN, &list), 0);
	assert_int_equal(list.n, HISTORY_LOSSY_MAX + 11);
	for (i = 0; i < list.n; i++)
		assert_int_equal(list.windows[i]->seq, 2000 - list.n + 1 + i);
	history_list_fini(&list);
	history_free(history);
}

#define ASSERT_LOCKS(call)                           \
	do {                                         \
		memset(&locks, 0, sizeof(locks));    \
		call;                                \
		assert_int_equal(locks.taken, 1);    \
		assert_int_equal(locks.given, 1);    \
		assert_int_equal(locks.max_held, 1); \
	} while (0)

/* Any thread may call these functions at any time: each of them takes the history's lock once. */
static void test_all_functions_lock(void **state)
{
	struct history_stats stats;
	struct history *history;
	struct history_list list;

	assert_int_equal(history_new(1000 * NS_PER_S, SIZE_MAX, &history), 0);
	ASSERT_LOCKS(add(history, 1, 0));
	ASSERT_LOCKS(history_range(history, 0, INT64_MIN, INT64_MAX, &list));
	history_list_fini(&list);
	ASSERT_LOCKS(history_lossy(history, INT64_MIN, &list));
	history_list_fini(&list);
	ASSERT_LOCKS(history_newest_end(history, 0));
	ASSERT_LOCKS(history_newest_ns(history, 0));
	ASSERT_LOCKS(history_wait(history, 1, NS_PER_S));
	ASSERT_LOCKS(history_set_limits(history, 1000 * NS_PER_S, SIZE_MAX));
	ASSERT_LOCKS(history_set_budget(history, 0));
	ASSERT_LOCKS(history_stats(history, &stats));
	ASSERT_LOCKS(history_shrink(history));
	history_free(history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_order_survives_growth),
		cmocka_unit_test(test_order_survives_growth_after_eviction),
		cmocka_unit_test(test_range_is_half_open),
		cmocka_unit_test(test_bytes_are_bounded),
		cmocka_unit_test(test_stacks_count),
		cmocka_unit_test(test_shrinks_when_asked),
		cmocka_unit_test(test_the_last_minute_is_whole),
		cmocka_unit_test(test_whole_windows_leave_room),
		cmocka_unit_test(test_lists_hold_windows),
		cmocka_unit_test(test_wait_for_a_window),
		cmocka_unit_test(test_losses_outlive_windows),
		cmocka_unit_test(test_all_functions_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
