/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sums that a gateway merges from several servers: their keys, their order, what filters leave
 * out, and that no text of users gets into SQL.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/arena.h"
#include "common/base.h"
#include "common/text.h"
#include "fleet/serve/groups.h"

/* The values of a row that tests set; the others are 0 or empty. */
struct value {
	enum group_field field;
	const char *text;
};

/* Adds a row with these values. The last one has an empty field's text NULL. */
static int add(struct groups *groups, const struct value *values)
{
	char texts[GROUP_FIELDS][64], *fields[GROUP_FIELDS];
	size_t i;

	for (i = 0; i < GROUP_FIELDS; i++) {
		bool is_text = i <= GROUP_FIELD_BOOT ||
			       (i >= GROUP_FIELD_PCOMM && i <= GROUP_FIELD_STATE) ||
			       i == GROUP_FIELD_REASON || i == GROUP_FIELD_NAME ||
			       i == GROUP_FIELD_MAX_COMM;

		strcpy(texts[i], i == GROUP_FIELD_BUCKETS ? "[]" : is_text ? "" : "0");
		fields[i] = texts[i];
	}
	for (; values->text; values++)
		strcpy(texts[values->field], values->text);
	return groups_add(groups, fields, GROUP_FIELDS);
}

#define ADD(groups, ...) \
	assert_int_equal(add((groups), (const struct value[]){ __VA_ARGS__, { 0 } }), 0)

struct fixture {
	struct arena *arena;
	struct groups_question question;
	struct groups groups;
	struct group **v;
};

static void begin(struct fixture *f, enum groups_by by, enum group_by name)
{
	*f = (struct fixture){
		.arena = arena_new(),
		.question = { .by = by, .name = name, .filter.max_ns = INT64_MAX },
	};
	f->groups = (struct groups){ .question = &f->question, .arena = f->arena };
}

static void sort(struct fixture *f, size_t n)
{
	assert_int_equal(f->groups.n, n);
	assert_int_equal(groups_sort(&f->groups, &f->v), 0);
}

static void end(struct fixture *f)
{
	groups_fini(&f->groups);
	arena_free(f->arena);
}

static void test_units_of_two_servers_add_up(void **state)
{
	struct fixture f;
	struct groups other;

	begin(&f, GROUPS_BY_NAME, GROUP_BY_UNIT);
	other = f.groups;
	ADD(&f.groups, { GROUP_FIELD_CGROUP, "/system.slice/a.service" },
	    { GROUP_FIELD_COUNT, "2" }, { GROUP_FIELD_TOTAL, "30" },
	    { GROUP_FIELD_STATE_BITS, "1" }, { GROUP_FIELD_MAX, "20" },
	    { GROUP_FIELD_MAX_TID, "7" }, { GROUP_FIELD_MAX_COMM, "seven" },
	    { GROUP_FIELD_BUCKETS, "[0,2]" });
	ADD(&f.groups, { GROUP_FIELD_CGROUP, "/system.slice/b.service" },
	    { GROUP_FIELD_TOTAL, "100" });
	ADD(&other, { GROUP_FIELD_CGROUP, "/user.slice/a.service" }, { GROUP_FIELD_COUNT, "3" },
	    { GROUP_FIELD_TOTAL, "80" }, { GROUP_FIELD_STATE_BITS, "2" }, { GROUP_FIELD_MAX, "50" },
	    { GROUP_FIELD_MAX_TID, "8" }, { GROUP_FIELD_MAX_COMM, "eight" },
	    { GROUP_FIELD_BUCKETS, "[1,1,1]" });
	assert_int_equal(groups_merge(&f.groups, &other), 0);
	sort(&f, 2);
	assert_string_equal(f.v[0]->name, "a.service");
	assert_int_equal(f.v[0]->total_ns, 110);
	assert_int_equal(f.v[0]->count, 5);
	assert_string_equal(group_state(f.v[0]), "mixed");
	assert_int_equal(f.v[0]->max_ns, 50);
	assert_string_equal(f.v[0]->max_comm, "eight");
	assert_int_equal(f.v[0]->buckets[0], 1);
	assert_int_equal(f.v[0]->buckets[1], 3);
	assert_int_equal(f.v[0]->buckets[2], 1);
	assert_string_equal(f.v[1]->name, "b.service");
	groups_fini(&other);
	end(&f);
}

static void test_processes_of_two_hosts_are_two(void **state)
{
	struct fixture f;

	begin(&f, GROUPS_BY_PROCESS, GROUP_BY_NONE);
	for (int i = 0; i < 2; i++) {
		ADD(&f.groups, { GROUP_FIELD_HOST, "a" }, { GROUP_FIELD_PID, "7" },
		    { GROUP_FIELD_PCOMM, "x" }, { GROUP_FIELD_TOTAL, "5" });
		ADD(&f.groups, { GROUP_FIELD_HOST, "b" }, { GROUP_FIELD_PID, "7" },
		    { GROUP_FIELD_PCOMM, "x" }, { GROUP_FIELD_TOTAL, "6" });
	}
	/* Waits that were only counted have a row of their own. */
	ADD(&f.groups, { GROUP_FIELD_HOST, "a" }, { GROUP_FIELD_PID, "7" },
	    { GROUP_FIELD_PCOMM, "x" }, { GROUP_FIELD_STATE, "-" }, { GROUP_FIELD_TOTAL, "1" });
	sort(&f, 3);
	assert_string_equal(f.v[0]->host, "b");
	assert_int_equal(f.v[0]->total_ns, 12);
	assert_int_equal(f.v[1]->total_ns, 10);
	assert_string_equal(group_state(f.v[2]), "-");
	end(&f);
}

static void test_stacks_of_a_fleet_are_merged_over_hosts(void **state)
{
	static const char *const hosts[] = { "a", "b" };
	struct fixture f;

	for (int is_one = 0; is_one < 2; is_one++) {
		begin(&f, GROUPS_BY_STACK, GROUP_BY_NONE);
		f.question.is_one_host = is_one;
		for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
			ADD(&f.groups, { GROUP_FIELD_HOST, hosts[i] }, { GROUP_FIELD_PCOMM, "x" },
			    { GROUP_FIELD_STATE, "S" },
			    { GROUP_FIELD_USTACK, "18446744073709551615" },
			    { GROUP_FIELD_TOTAL, "5" }, { GROUP_FIELD_PROCESSES, "3" });
		ADD(&f.groups, { GROUP_FIELD_PCOMM, "x" }, { GROUP_FIELD_STATE, "S" },
		    { GROUP_FIELD_USTACK, "9" }, { GROUP_FIELD_TOTAL, "1" });
		sort(&f, is_one ? 3 : 2);
		assert_int_equal(f.v[0]->total_ns, is_one ? 5 : 10);
		assert_int_equal(f.v[0]->processes, is_one ? 3 : 6);
		end(&f);
	}
}

static void test_filters_are_those_of_the_daemon(void **state)
{
	static const char *const comms[] = { "nginx-*", "db" };
	static const char *const states[] = { "R" };
	const struct wire_filter wire = {
		.comms = { (const char **)comms, ARRAY_SIZE(comms) },
		.not_states = { (const char **)states, ARRAY_SIZE(states) },
		.user_threads = WIRE_BOOL_ABSENT,
		.kernel_threads = WIRE_BOOL_ABSENT,
		.user_stacks = WIRE_BOOL_ABSENT,
		.kernel_stacks = WIRE_BOOL_ABSENT,
		.min_block_ns = WIRE_ABSENT,
		.max_block_ns = WIRE_ABSENT,
	};
	struct wire_error error = {};
	struct fixture f;

	begin(&f, GROUPS_BY_NAME, GROUP_BY_COMM);
	assert_int_equal(filter_init(&f.question.filter, &wire, &error), 0);
	ADD(&f.groups, { GROUP_FIELD_COMM, "nginx-1" }, { GROUP_FIELD_STATE, "S" },
	    { GROUP_FIELD_STATE_BITS, "1" }, { GROUP_FIELD_TOTAL, "4" });
	ADD(&f.groups, { GROUP_FIELD_COMM, "thread" }, { GROUP_FIELD_PCOMM, "db" },
	    { GROUP_FIELD_STATE, "D" }, { GROUP_FIELD_STATE_BITS, "2" },
	    { GROUP_FIELD_TOTAL, "3" });
	ADD(&f.groups, { GROUP_FIELD_COMM, "nginx" }, { GROUP_FIELD_STATE, "S" },
	    { GROUP_FIELD_STATE_BITS, "1" }, { GROUP_FIELD_TOTAL, "2" });
	ADD(&f.groups, { GROUP_FIELD_COMM, "db" }, { GROUP_FIELD_STATE, "R" },
	    { GROUP_FIELD_PREEMPTED, "1" }, { GROUP_FIELD_TOTAL, "9" });
	sort(&f, 2);
	assert_string_equal(f.v[0]->name, "nginx-1");
	assert_string_equal(f.v[1]->name, "thread");
	end(&f);
}

/* Threads that have no wait of a state are there all the same: that is no error on a host either.
 */
static void test_threads_are_there_without_rows(void **state)
{
	static const char *const comms[] = { "db" }, *const states[] = { "T" };
	const struct wire_filter wire = {
		.comms = { (const char **)comms, ARRAY_SIZE(comms) },
		.states = { (const char **)states, ARRAY_SIZE(states) },
		.user_threads = WIRE_BOOL_ABSENT,
		.kernel_threads = WIRE_BOOL_ABSENT,
		.user_stacks = WIRE_BOOL_ABSENT,
		.kernel_stacks = WIRE_BOOL_ABSENT,
		.min_block_ns = WIRE_ABSENT,
		.max_block_ns = WIRE_ABSENT,
	};
	struct wire_error error = {};
	struct groups other;
	struct fixture f;

	begin(&f, GROUPS_BY_NAME, GROUP_BY_COMM);
	assert_int_equal(filter_init(&f.question.filter, &wire, &error), 0);
	other = f.groups;
	ADD(&other, { GROUP_FIELD_COMM, "nginx" }, { GROUP_FIELD_STATE, "T" },
	    { GROUP_FIELD_STATE_BITS, "4" });
	assert_false(other.has_threads);
	ADD(&other, { GROUP_FIELD_COMM, "db" }, { GROUP_FIELD_STATE, "S" },
	    { GROUP_FIELD_STATE_BITS, "1" });
	assert_true(other.has_threads);
	assert_int_equal(groups_merge(&f.groups, &other), 0);
	assert_true(f.groups.has_threads);
	sort(&f, 0);
	end(&f);
}

static void test_own_threads_are_one_row(void **state)
{
	struct fixture f;

	begin(&f, GROUPS_BY_PROCESS, GROUP_BY_NONE);
	f.question.folds_own = true;
	ADD(&f.groups, { GROUP_FIELD_PID, "7" }, { GROUP_FIELD_PCOMM, "stackd" },
	    { GROUP_FIELD_OWN, "1" }, { GROUP_FIELD_TOTAL, "5" });
	ADD(&f.groups, { GROUP_FIELD_PID, "8" }, { GROUP_FIELD_PCOMM, "stackd-parse" },
	    { GROUP_FIELD_OWN, "1" }, { GROUP_FIELD_TOTAL, "5" });
	/* Any user can call a program of his so. */
	ADD(&f.groups, { GROUP_FIELD_PID, "9" }, { GROUP_FIELD_PCOMM, "stackd" },
	    { GROUP_FIELD_EXE, "/home/u/stackd" }, { GROUP_FIELD_TOTAL, "1" });
	sort(&f, 2);
	assert_true(f.v[0]->own);
	assert_int_equal(f.v[0]->total_ns, 10);
	assert_false(f.v[1]->own);
	end(&f);
}

static void test_bad_rows_are_refused(void **state)
{
	static const struct value bad[][2] = {
		{ { GROUP_FIELD_COUNT, "x" }, { 0 } },
		{ { GROUP_FIELD_TOTAL, "-1" }, { 0 } },
		{ { GROUP_FIELD_TOTAL, "18446744073709551616" }, { 0 } },
		{ { GROUP_FIELD_BUCKETS, "[1,2" }, { 0 } },
		{ { GROUP_FIELD_BUCKETS, "1" }, { 0 } },
		{ { GROUP_FIELD_USTACK, "18446744073709551616" }, { 0 } },
	};
	char *none[1] = { NULL };
	struct fixture f;

	begin(&f, GROUPS_BY_HOST, GROUP_BY_NONE);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(add(&f.groups, bad[i]), -EPROTO);
	assert_int_equal(groups_add(&f.groups, none, 0), -EPROTO);
	assert_int_equal(f.groups.n, 0);
	end(&f);
}

/* A host that lies makes its sums as great as they can be, and does not end the answer. */
static void test_great_numbers_stay_numbers(void **state)
{
	struct fixture f;
	struct groups other;

	begin(&f, GROUPS_BY_HOST, GROUP_BY_NONE);
	other = f.groups;
	ADD(&f.groups, { GROUP_FIELD_HOST, "liar" }, { GROUP_FIELD_TOTAL, "18446744073709551615" },
	    { GROUP_FIELD_COUNT, "9223372036854775808" },
	    { GROUP_FIELD_BUCKETS, "[18446744073709551615]" });
	ADD(&f.groups, { GROUP_FIELD_HOST, "liar" }, { GROUP_FIELD_TOTAL, "1" },
	    { GROUP_FIELD_BUCKETS, "[2]" });
	ADD(&f.groups, { GROUP_FIELD_HOST, "honest" }, { GROUP_FIELD_TOTAL, "7" });
	ADD(&other, { GROUP_FIELD_HOST, "liar" }, { GROUP_FIELD_COUNT, "9223372036854775807" });
	assert_int_equal(groups_merge(&f.groups, &other), 0);
	sort(&f, 2);
	assert_string_equal(f.v[0]->host, "liar");
	assert_true(f.v[0]->total_ns == INT64_MAX);
	assert_true(f.v[0]->count == INT64_MAX);
	assert_true(f.v[0]->buckets[0] == INT64_MAX);
	assert_int_equal(f.v[1]->total_ns, 7);
	groups_fini(&other);
	end(&f);
}

/* All shards of an answer have one limit of groups. */
static void test_shards_share_the_limit(void **state)
{
	const struct value b[] = { { GROUP_FIELD_HOST, "b" }, { 0 } };
	size_t n_all = GROUPS_MAX - 1;
	struct fixture f;
	struct groups other;

	begin(&f, GROUPS_BY_HOST, GROUP_BY_NONE);
	f.groups.n_all = &n_all;
	other = f.groups;
	ADD(&f.groups, { GROUP_FIELD_HOST, "a" });
	assert_int_equal(add(&other, b), -E2BIG);
	ADD(&f.groups, { GROUP_FIELD_HOST, "a" });
	assert_int_equal(f.groups.n, 1);
	groups_fini(&other);
	end(&f);
}

/* Only numbers of a filter get into SQL: its texts are compared here, by the daemon's rules. */
static void test_texts_stay_out_of_sql(void **state)
{
	static const char evil[] = "evil')--";
	static const char *const list[] = { evil };
	const struct wire_strs texts = { (const char **)list, 1 };
	const int64_t pids[] = { 42 };
	const struct wire_filter wire = {
		.pids = { pids, 1 },
		.not_pids = { pids, 1 },
		.comm = evil,
		.unit = evil,
		.comms = texts,
		.units = texts,
		.not_comms = texts,
		.not_units = texts,
		.cgroup = evil,
		.cgroups = texts,
		.not_cgroups = texts,
	};
	struct text sql;
	struct fixture f;

	for (enum groups_by by = GROUPS_BY_STACK; by <= GROUPS_BY_NAME; by++) {
		begin(&f, by, by == GROUPS_BY_NAME ? GROUP_BY_UNIT : GROUP_BY_NONE);
		f.question.filter.wire = &wire;
		text_init(&sql, SIZE_MAX);
		groups_put_select(&sql, &f.question, "0");
		groups_put_filter(&sql, &f.question);
		groups_put_group_by(&sql, &f.question);
		text_put(&sql, "", 1);
		assert_int_equal(sql.error, 0);
		assert_null(strstr(sql.data, "evil"));
		assert_non_null(strstr(sql.data, " AND pid IN (42)"));
		text_fini(&sql);
		end(&f);
	}
}

/* A line that is urgent on a host is so in a fleet. */
static void test_locks_are_urgent(void **state)
{
	struct group group = {
		.is_line = true, .reason = "sysv-sem", .max_ns = NS_PER_S, .blocked_ns = NS_PER_S
	};
	struct group other = { .is_line = true, .reason = "tcp", .blocked_ns = 30 * NS_PER_S };
	struct group *groups[] = { &group, &other };

	groups_mark_urgent(groups, 2);
	assert_true(group.is_urgent);
	assert_false(other.is_urgent);
	/* It is in less than 1/32 of the blocked time, but for that of idle threads. */
	other.blocked_ns *= 2;
	groups_mark_urgent(groups, 2);
	assert_false(group.is_urgent);
	/* A pool must not hide the only one that hangs. */
	group.max_ns = 5 * NS_PER_S;
	groups_mark_urgent(groups, 2);
	assert_true(group.is_urgent);
	/* Neither must others that wait for a lock, not as long, but together for longer. */
	other.reason = "mutex";
	other.max_ns = 4 * NS_PER_S;
	groups_mark_urgent(groups, 2);
	assert_true(group.is_urgent && other.is_urgent);
	other.reason = "tcp";
	group.max_ns = NS_PER_S;
	other.idle = true;
	groups_mark_urgent(groups, 2);
	assert_true(group.is_urgent);
	group.reason = "sem";
	groups_mark_urgent(groups, 2);
	assert_false(group.is_urgent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_units_of_two_servers_add_up),
		cmocka_unit_test(test_processes_of_two_hosts_are_two),
		cmocka_unit_test(test_stacks_of_a_fleet_are_merged_over_hosts),
		cmocka_unit_test(test_filters_are_those_of_the_daemon),
		cmocka_unit_test(test_threads_are_there_without_rows),
		cmocka_unit_test(test_own_threads_are_one_row),
		cmocka_unit_test(test_bad_rows_are_refused),
		cmocka_unit_test(test_great_numbers_stay_numbers),
		cmocka_unit_test(test_shards_share_the_limit),
		cmocka_unit_test(test_texts_stay_out_of_sql),
		cmocka_unit_test(test_locks_are_urgent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
