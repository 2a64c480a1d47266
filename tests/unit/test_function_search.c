/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/query/function_search.h"

static void test_names(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool matches;
	} cases[] = {
		{ "read", "read", true },
		{ "read", "vfs_read", false },
		{ "rea", "read", false },
		{ "*read", "vfs_read", true },
		{ "vfs_*", "vfs_read", true },
		{ "*", "anything", true },
		{ "db::commit", "db::commit(int, char const*)", true },
		{ "db::commit(int, char const*)", "db::commit(int, char const*)", true },
		{ "commit", "db::commit(int)", false },
		{ "(anonymous namespace)::run", "(anonymous namespace)::run(int)", true },
		{ "job::operator()", "job::operator()(int) const", true },
		{ "job::operator", "job::operator()(int) const", false },
		{ "log_writer", "log_writer.constprop.0", true },
		{ "log_writer", "log_writer.isra.0.cold", true },
		{ "main", "main.worker", false },
		{ "main.worker", "main.worker", true },
		{ "main.(*Server).Serve", "main.(*Server).Serve", true },
		{ "*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		  false },
		{ "x", "", false },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (function_name_matches(cases[i].pattern, cases[i].name) != cases[i].matches)
			fail_msg("%s, %s", cases[i].pattern, cases[i].name);
}

static struct frame leaf = { .kind = FRAME_NATIVE, .name = (char *)"leaf", .file_id = 1 };
static struct frame middle = { .kind = FRAME_NATIVE, .name = (char *)"middle", .file_id = 2 };
static struct frame top = { .kind = FRAME_NATIVE, .name = (char *)"top", .file_id = 3 };
static struct frame unknown = { .kind = FRAME_NATIVE, .file_id = 4 };
static struct frame pseudo = { .kind = FRAME_PSEUDO, .name = (char *)"[top]" };

static struct stack stack_of(uint64_t id, struct frame **frames, size_t n)
{
	return (struct stack){
		.id = id, .is_resolved = true, .frames = frames, .n_frames = n, .refs = 1
	};
}

static void test_places(void **state)
{
	struct frame *frames[] = { &leaf, &unknown, &middle, &middle, &top };
	struct frame *made_up[] = { &pseudo };
	struct stack whole = stack_of(7, frames, 5), one = stack_of(8, made_up, 1);
	/* This one has the same slot of the memory as the first. */
	struct stack rival = stack_of(7 + 4096, frames, 2), unresolved = whole;
	const char *wanted[] = { "none", "to*" }, *callee = "middle", *refused = "leaf";
	const struct wire_filter filter = {
		.functions = { wanted, 2 },
		.callers = { &callee, 1 },
		.not_functions = { &refused, 1 },
	};
	struct arena *arena = arena_new();
	struct function_search *search = function_search_new(&filter, arena);
	struct function_places places;
	int round;

	for (round = 0; round < 3; round++) {
		places = function_search(search, &whole);
		assert_true(places.has_wanted && places.has_refused);
		assert_int_equal(places.callee, 2);
		places = function_search(search, &rival);
		assert_true(!places.has_wanted && places.has_refused);
		assert_int_equal(places.callee, FUNCTION_NOWHERE);
	}
	places = function_search(search, &one);
	assert_false(places.has_wanted || places.has_refused);
	assert_int_equal(function_search(search, NULL).callee, FUNCTION_NOWHERE);
	unresolved.is_resolved = false;
	unresolved.id = 9;
	assert_false(function_search(search, &unresolved).has_wanted);
	unresolved.is_resolved = true;
	assert_true(function_search(search, &unresolved).has_wanted);
	whole.flags = STACK_IS_AMBIGUOUS;
	assert_false(function_search(search, &whole).has_wanted);
	arena_free(arena);
}

static void test_ids_of_callers(void **state)
{
	struct frame *by_leaf[] = { &leaf, &middle, &top }, *by_none[] = { &middle, &top };
	struct frame elsewhere = middle;
	struct frame *by_other[] = { &unknown, &elsewhere, &top };
	struct stack a = stack_of(1, by_leaf, 3), b = stack_of(2, by_none, 2);
	struct stack c = stack_of(3, by_other, 3);

	assert_int_equal(function_callers_id(NULL, 0), 0);
	assert_true(function_callers_id(&a, 1) == function_callers_id(&b, 0));
	assert_true(function_callers_id(&a, 1) != function_callers_id(&a, 0));
	assert_true(function_callers_id(&a, 1) != function_callers_id(&a, 2));
	/* Another place in the same function. */
	elsewhere.file_offset += 16;
	elsewhere.name_offset += 16;
	assert_true(function_callers_id(&a, 1) == function_callers_id(&c, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_ids_of_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
