/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folding loses no time: sums, buckets and the longest wait stay, whatever share of rows does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/arena.h"
#include "common/base.h"
#include "fleet/send/fold.h"

enum { ROWS = 500, BUCKETS = 12 };

static struct wire_row rows[ROWS];
static int64_t buckets[ROWS][BUCKETS];
static const struct wire_stack stack = { .id = "0x1" };
static struct arena *arena;

static int64_t some(int64_t below)
{
	return lrand48() % below;
}

/* Makes rows of several processes and control groups, in all states, few of which have most time.
 */
static int set_up(void **state)
{
	static const char *const states[] = { "S", "D", "R", "-" };
	static const char *const reasons[] = { "futex", "epoll", NULL, "disk" };
	static const char *const cgroups[] = { "/a.service", "/b.service", NULL };

	srand48(20260309);
	for (size_t i = 0; i < ROWS; i++) {
		struct wire_row *row = &rows[i];

		*row = (struct wire_row){
			.process = { .pid = some(40), .comm = "p", .cgroup = cgroups[some(3)] },
			.comm = some(2) ? "a" : "b",
			.idle = some(3) == 0,
			.state = states[some(4)],
			.reason = reasons[some(4)],
			.count = some(100),
			.blocked_ns = i % 20 == 0 ? some(1000000000) : some(1000000),
			.runnable_ns = some(1000),
			.throttled_ns = some(10),
			.sampled = some(2) ? WIRE_ABSENT : some(50),
			.sampled_ns = WIRE_ABSENT,
			.open = some(3),
			.open_ns = some(1000),
			.unseen = WIRE_ABSENT,
			.folded = WIRE_ABSENT,
			.estimated = WIRE_BOOL_ABSENT,
			.max_ns = some(1000000000),
			.max_end = WIRE_ABSENT,
			.max_tid = (int64_t)i,
			.kernel = &stack,
		};
		row->total_ns = row->blocked_ns + row->runnable_ns;
		for (int k = 0; k < BUCKETS; k++)
			buckets[i][k] = some(5);
		row->buckets = (struct int_list){ buckets[i], (size_t)some(BUCKETS) };
	}
	arena = arena_new();
	return 0;
}

static int tear_down(void **state)
{
	arena = arena_free(arena);
	return 0;
}

/* Sums of some rows. */
struct sums {
	int64_t rows, count, total, blocked, runnable, throttled, sampled, open, open_ns, max;
	int64_t buckets[BUCKETS];
};

static void sums_add(struct sums *sums, const struct wire_row *row, int64_t of_rows)
{
	sums->rows += of_rows;
	sums->count += row->count;
	sums->total += row->total_ns;
	sums->blocked += row->blocked_ns;
	sums->runnable += row->runnable_ns;
	sums->throttled += row->throttled_ns;
	sums->sampled += row->sampled == WIRE_ABSENT ? 0 : row->sampled;
	sums->open += row->open;
	sums->open_ns += row->open_ns;
	if (row->max_ns > sums->max)
		sums->max = row->max_ns;
	for (size_t i = 0; i < row->buckets.n; i++)
		sums->buckets[i] += row->buckets.v[i];
}

static bool is_same(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

/* True if two rows have the same control group, state, reason and idle. */
static bool is_of(const struct wire_row *a, const struct wire_row *b)
{
	return is_same(a->process.cgroup, b->process.cgroup) && is_same(a->state, b->state) &&
	       is_same(a->reason, b->reason) && a->idle == b->idle;
}

static void check_sums(const struct fleet_rows *folded)
{
	for (size_t i = 0; i < ROWS; i++) {
		struct sums before = { 0 }, after = { 0 };

		for (size_t k = 0; k < ROWS; k++)
			if (is_of(&rows[k], &rows[i]))
				sums_add(&before, &rows[k], 1);
		for (size_t k = 0; k < folded->n; k++)
			if (is_of(&folded->v[k].wire, &rows[i]))
				sums_add(&after, &folded->v[k].wire, folded->v[k].of_rows);
		assert_memory_equal(&before, &after, sizeof(before));
	}
}

static void test_sums(void **state)
{
	static const uint64_t shares[] = { 1, 50, 97, 100 };
	const struct wire_rows all = { rows, ROWS };
	struct fleet_rows folded;
	size_t before = 0;

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		assert_int_equal(fold_rows(&all, shares[i], 1000, arena, &folded), 0);
		check_sums(&folded);
		assert_true(folded.n >= before && folded.n < ROWS);
		before = folded.n;
	}
}

/* What stays holds the share, of idle rows and of others by themselves, and nothing larger is
 * summed. */
static void test_share(void **state)
{
	const struct wire_rows all = { rows, ROWS };
	int64_t total[2] = { 0 }, kept[2] = { 0 }, n_rest = 0;
	struct fleet_rows folded;

	assert_int_equal(fold_rows(&all, 90, 1000, arena, &folded), 0);
	for (size_t i = 0; i < folded.n; i++) {
		const struct fleet_row *row = &folded.v[i];

		total[row->wire.idle] += row->wire.total_ns;
		if (row->kind == FLEET_REST)
			n_rest++;
		else
			kept[row->wire.idle] += row->wire.total_ns;
		if (row->kind == FLEET_ROW) {
			assert_ptr_equal(row->wire.kernel, &stack);
			assert_true(strchr("SD", row->wire.state[0]) != NULL);
			assert_int_equal(row->of_rows, 1);
		} else {
			assert_null(row->wire.kernel);
		}
	}
	assert_true(n_rest > 0);
	for (int i = 0; i < 2; i++)
		assert_true(kept[i] * 10 >= total[i] * 9);
}

static void test_limit(void **state)
{
	const struct wire_rows all = { rows, ROWS };
	struct fleet_rows folded;
	size_t n = 0;

	assert_int_equal(fold_rows(&all, 100, 7, arena, &folded), 0);
	check_sums(&folded);
	for (size_t i = 0; i < folded.n; i++)
		n += folded.v[i].kind != FLEET_REST;
	assert_int_equal(n, 14);
	assert_int_equal(fold_rows(&(struct wire_rows){ 0 }, 97, 7, arena, &folded), 0);
	assert_int_equal(folded.n, 0);
}

static void test_units(void **state)
{
	const struct wire_rows all = { rows, ROWS };
	struct fleet_rows folded, units;
	int64_t sum = 0, expected = 0;

	assert_int_equal(fold_rows(&all, 97, 600, arena, &folded), 0);
	assert_int_equal(fold_units(&folded, arena, &units), 0);
	assert_true(units.n < folded.n);
	for (size_t i = 0; i < units.n; i++) {
		sum += units.v[i].wire.total_ns;
		for (size_t k = 0; k < i; k++)
			assert_false(is_same(units.v[i].wire.unit, units.v[k].wire.unit) &&
				     is_same(units.v[i].wire.state, units.v[k].wire.state) &&
				     is_same(units.v[i].wire.reason, units.v[k].wire.reason) &&
				     units.v[i].wire.idle == units.v[k].wire.idle);
	}
	for (size_t i = 0; i < ROWS; i++)
		expected += rows[i].total_ns;
	assert_int_equal(sum, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_sums, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_share, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_limit, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_units, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
