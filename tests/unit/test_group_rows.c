/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/group_rows.h"

static const struct wire_frame waiting[] = {
	{ .kind = "kernel", .name = "__schedule" },
	{ .kind = "kernel", .name = "schedule_timeout" },
	{ .kind = "kernel", .name = "worker_thread" },
};
static const struct wire_frame driver[] = {
	{ .kind = "kernel", .name = "poll_ring", .module = "nvme" },
};
static const struct wire_frame reading[] = {
	{ .kind = "native", .name = "read", .module = "/lib/libc.so.6" },
	{ .kind = "native", .name = "main", .module = "/bin/db" },
};
static const struct wire_frame nameless[] = { { .kind = "native", .module = "/bin/x" } };
static const struct wire_frame shorts[] = { { .kind = "pseudo", .name = "[waits under 100us]" } };

static const struct wire_stack waiting_stack = { .id = "1", .frames = { waiting, 3 } };
static const struct wire_stack driver_stack = { .id = "2", .frames = { driver, 1 } };
static const struct wire_stack reading_stack = { .id = "3", .frames = { reading, 2 } };
static const struct wire_stack nameless_stack = { .id = "4", .frames = { nameless, 1 } };
static const struct wire_stack shorts_stack = { .id = "5", .frames = { shorts, 1 } };

static struct arena *arena;
static struct wire_rows grouped;

static int set_up(void **state)
{
	arena = arena_new();
	return arena ? 0 : -1;
}

static int tear_down(void **state)
{
	arena = arena_free(arena);
	return 0;
}

static struct wire_row wait_of(int64_t pid, const char *comm, const char *cgroup, int64_t ns)
{
	return (struct wire_row){
		.process = { .pid = pid, .comm = "program", .cgroup = cgroup },
		.tid = pid,
		.comm = comm,
		.count = 1,
		.total_ns = ns,
		.state = "S",
		.state_bits = 1,
		.blocked_ns = ns,
		.runnable_ns = 0,
		.open = WIRE_ABSENT,
		.open_ns = WIRE_ABSENT,
		.unseen = WIRE_ABSENT,
		.max_ns = ns,
		.max_end = 1000 + ns,
		.max_tid = pid,
		.kernel = &waiting_stack,
	};
}

static const struct wire_row *group(enum group_by by, struct wire_row *rows, size_t n, size_t want)
{
	struct wire_rows all = { rows, n };

	assert_int_equal(group_rows(arena, by, &all, &grouped), 0);
	assert_int_equal(grouped.n, want);
	return grouped.v;
}

static void test_words(void **state)
{
	assert_int_equal(group_by_parse("comm"), GROUP_BY_COMM);
	assert_int_equal(group_by_parse("function"), GROUP_BY_FUNCTION);
	assert_int_equal(group_by_parse("stack"), GROUP_BY_NONE);
	assert_int_equal(group_by_parse(NULL), GROUP_BY_NONE);
}

static void test_sums(void **state)
{
	const int64_t few[] = { 1, 2 }, more[] = { 0, 3, 4 };
	struct wire_row rows[] = { wait_of(1, "b", "/x", 10), wait_of(2, "a", "/x", 7),
				   wait_of(3, "b", "/y", 30) };
	const struct wire_row *v;

	rows[0].buckets = (struct int_list){ few, 2 };
	rows[2].buckets = (struct int_list){ more, 3 };
	rows[2].state = "D";
	rows[2].state_bits = 2;
	rows[2].open = 1;
	rows[2].open_ns = 5;
	v = group(GROUP_BY_COMM, rows, 3, 2);
	assert_string_equal(v[0].key, "a");
	assert_string_equal(v[1].key, "b");
	assert_int_equal(v[1].count, 2);
	assert_int_equal(v[1].total_ns, 40);
	assert_int_equal(v[1].blocked_ns, 40);
	assert_int_equal(v[1].runnable_ns, 0);
	assert_int_equal(v[1].open, 1);
	assert_int_equal(v[1].open_ns, 5);
	assert_true(v[1].unseen == WIRE_ABSENT && v[1].tid == WIRE_ABSENT);
	assert_int_equal(v[1].max_ns, 30);
	assert_int_equal(v[1].max_tid, 3);
	assert_int_equal(v[1].max_end, 1030);
	assert_string_equal(v[1].state, "mixed");
	assert_int_equal(v[1].state_bits, 3);
	assert_int_equal(v[1].buckets.n, 3);
	assert_int_equal(v[1].buckets.v[1], 5);
	assert_null(v[1].kernel);
	v = group(GROUP_BY_CGROUP, rows, 3, 2);
	assert_string_equal(v[0].key, "/x");
	assert_int_equal(v[0].total_ns, 17);
	rows[1].process.cgroup = NULL;
	v = group(GROUP_BY_CGROUP, rows, 3, 3);
	assert_string_equal(v[2].key, "[unknown]");
}

static void test_idle_and_short_stand_alone(void **state)
{
	struct wire_row rows[] = { wait_of(1, "a", "/", 1), wait_of(1, "a", "/", 2),
				   wait_of(1, "a", "/", 4) };

	rows[1].idle = true;
	rows[2].state = "-";
	group(GROUP_BY_COMM, rows, 3, 3);
}

static void test_leaves(void **state)
{
	struct wire_row rows[] = { wait_of(1, "a", "/", 1), wait_of(2, "b", "/", 2),
				   wait_of(3, "c", "/", 4), wait_of(4, "d", "/", 8) };
	const struct wire_row *v;

	rows[1].user = &reading_stack;
	rows[2].user = &nameless_stack;
	rows[3].kernel = &shorts_stack;
	rows[3].state = "-";
	v = group(GROUP_BY_FUNCTION, rows, 4, 4);
	assert_string_equal(v[0].key, "/bin/x");
	assert_string_equal(v[1].key, "[waits under 100us]");
	assert_string_equal(v[2].key, "read");
	assert_string_equal(v[3].key, "worker_thread");
	v = group(GROUP_BY_MODULE, rows, 4, 4);
	assert_string_equal(v[0].key, "/bin/x");
	assert_string_equal(v[1].key, "/lib/libc.so.6");
	assert_string_equal(v[2].key, "[kernel]");
	/* A sample that was taken in the kernel is grouped by the function in the kernel. */
	rows[1].state = NULL;
	rows[1].kernel = &driver_stack;
	v = group(GROUP_BY_FUNCTION, &rows[1], 1, 1);
	assert_string_equal(v[0].key, "poll_ring");
	v = group(GROUP_BY_MODULE, &rows[1], 1, 1);
	assert_string_equal(v[0].key, "nvme");
	rows[1].kernel = rows[1].user = NULL;
	v = group(GROUP_BY_MODULE, &rows[1], 1, 1);
	assert_string_equal(v[0].key, "[no stack]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test_setup_teardown(test_sums, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_idle_and_short_stand_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_leaves, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
