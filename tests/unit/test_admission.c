/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/service/admission.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { ROOT, ALICE = 1000, BOB = 1001 };

static struct admission admission;
static atomic_bool pressed;

static void limits_set(size_t max_long, size_t answers, size_t per_user)
{
	const struct admission_limits limits = {
		.max_long = max_long,
		.max_bytes = 20 * answers,
		.answer_bytes = 20,
		.max_per_user = per_user,
		.max_wait_ns = 3600 * NS_PER_S,
	};

	admission_init(&admission);
	admission_set_limits(&admission, &limits);
}

static bool enter(struct place *place, uid_t uid, bool is_long)
{
	place->uid = uid;
	place->is_long = is_long;
	return admission_enter(&admission, place, &pressed);
}

/* Tries again for a call that waits. */
static bool again(struct place *place)
{
	return enter(place, place->uid, place->is_long);
}

static void leave(struct place *place)
{
	admission_leave(&admission, place);
	assert_int_equal(place->state, PLACE_NONE);
}

static void all_left(void)
{
	assert_null(admission.held);
	assert_null(admission.waiting);
	assert_int_equal(admission.n_held, 0);
	assert_int_equal(admission.n_long, 0);
	assert_false(admission_has_room(&admission));
	admission_fini(&admission);
}

/* Long answers leave room for a short one, however little memory there is. */
static void test_memory(void **state)
{
	struct place places[6] = {};

	limits_set(4, 3, 10);
	assert_true(enter(&places[0], ROOT, true));
	assert_true(enter(&places[1], ROOT, true));
	assert_false(enter(&places[2], ROOT, true));
	assert_true(enter(&places[3], ROOT, false));
	assert_false(enter(&places[4], ROOT, false));
	assert_int_equal(admission.n_held, 3);
	assert_int_equal(admission.waited[PLACE_NO_BYTES], 2);
	assert_false(admission_has_room(&admission));
	/* The short one goes: its room is for a short one. */
	leave(&places[3]);
	assert_true(admission_has_room(&admission));
	assert_false(again(&places[2]));
	assert_true(again(&places[4]));
	leave(&places[0]);
	assert_true(again(&places[2]));
	leave(&places[1]);
	leave(&places[2]);
	leave(&places[4]);
	all_left();

	limits_set(4, 0, 10);
	assert_true(enter(&places[0], ROOT, true));
	assert_true(enter(&places[1], ROOT, false));
	assert_false(enter(&places[2], ROOT, true));
	assert_false(enter(&places[3], ROOT, false));
	for (size_t i = 0; i < 4; i++)
		leave(&places[i]);
	all_left();
}

/* The number of long answers has a limit, which does not hold up short ones. */
static void test_long_answers(void **state)
{
	struct place places[5] = {};

	limits_set(1, 100, 10);
	assert_true(enter(&places[0], ROOT, true));
	assert_false(enter(&places[1], ROOT, true));
	assert_false(enter(&places[2], ROOT, true));
	assert_true(enter(&places[3], ROOT, false));
	assert_int_equal(admission.waited[PLACE_NO_LONG], 2);
	leave(&places[0]);
	/* In the order of arrival; who leaves the queue is not waited for. */
	assert_false(again(&places[2]));
	leave(&places[1]);
	assert_true(again(&places[2]));
	assert_int_equal(admission.waited[PLACE_NO_LONG], 2);
	leave(&places[2]);
	leave(&places[3]);
	all_left();
}

/* A user cannot take all places, and is not before one who has fewer. Root may take all. */
static void test_users(void **state)
{
	struct place alice[4] = {}, bob[2] = {}, root[3] = {};

	limits_set(10, 3, 2);
	assert_true(enter(&alice[0], ALICE, false));
	assert_true(enter(&alice[1], ALICE, false));
	assert_false(enter(&alice[2], ALICE, false));
	assert_int_equal(admission.waited[PLACE_NO_SHARE], 1);
	assert_true(enter(&bob[0], BOB, false));
	assert_false(enter(&alice[3], ALICE, false));
	assert_false(enter(&bob[1], BOB, false));
	assert_int_equal(admission.waited[PLACE_NO_BYTES], 1);
	/* Bob has none now, Alice one: his call is first, although hers are older. */
	leave(&bob[0]);
	leave(&alice[0]);
	assert_false(again(&alice[2]));
	assert_true(again(&bob[1]));
	assert_true(again(&alice[2]));
	assert_false(again(&alice[3]));
	leave(&alice[1]);
	leave(&alice[2]);
	leave(&alice[3]);
	leave(&bob[1]);
	for (size_t i = 0; i < 3; i++)
		assert_true(enter(&root[i], ROOT, false));
	for (size_t i = 0; i < 3; i++)
		leave(&root[i]);
	all_left();
}

/* A call is overdue after max_wait, and is told which setting held it up. */
static void test_refusal(void **state)
{
	struct place places[2] = {}, alice[2] = {};

	limits_set(1, 100, 1);
	assert_true(enter(&places[0], ROOT, true));
	assert_false(enter(&places[1], ROOT, true));
	assert_true(enter(&alice[0], ALICE, false));
	assert_false(enter(&alice[1], ALICE, false));
	assert_false(admission_is_overdue(&admission, &places[1]));
	admission.limits.max_wait_ns = -1;
	assert_true(admission_is_overdue(&admission, &places[1]));
	assert_string_equal(admission_refuse(&admission, &alice[1]), "query.max_per_user");
	assert_int_equal(admission.starved, 0); /* held up by answers of the same user only */
	assert_string_equal(admission_refuse(&admission, &places[1]), "query.max_streams");
	assert_int_equal(admission.refused, 2);
	assert_int_equal(admission.starved, 1);
	assert_string_equal(admission.starved_by, "query.max_streams");
	leave(&places[0]);
	leave(&alice[0]);
	all_left();
}

/*
 * Only a client that does not read what was made for it is marked: not one whose answer is being
 * made, nor one that reads fast, nor while the others wait for their own share only.
 */
static void test_slow_readers(void **state)
{
	struct place places[3] = {}, alice[2] = {};

	limits_set(2, 100, 1);
	admission.slow_ns = 0;
	assert_true(enter(&places[0], ROOT, true));
	assert_true(enter(&places[1], ALICE, true));
	assert_false(enter(&places[2], ROOT, true));
	assert_int_equal(admission.cut, 0);
	admission_reply_end(&admission, &places[0], 1 << 30);
	/* The last reply is empty, but all of them together were read fast. */
	assert_true(admission_reply_begin(&admission, &places[0]));
	admission_reply_end(&admission, &places[0], 0);
	assert_false(again(&places[2]));
	assert_int_equal(admission.cut, 0);
	admission_reply_end(&admission, &places[1], 0);
	assert_false(enter(&alice[0], ALICE, false));
	assert_int_equal(admission.cut, 0);
	assert_false(again(&places[2]));
	assert_int_equal(admission.cut, 1);
	assert_true(places[1].is_slow && atomic_load(&pressed));
	assert_true(admission_reply_begin(&admission, &places[0]));
	assert_false(admission_reply_begin(&admission, &places[1]));
	/* One that waits has no reply yet. */
	admission_reply_end(&admission, &places[2], 0);
	assert_int_equal(places[2].made_ns, 0);
	for (size_t i = 0; i < 3; i++)
		leave(&places[i]);
	leave(&alice[0]);
	all_left();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),	     cmocka_unit_test(test_long_answers),
		cmocka_unit_test(test_users),	     cmocka_unit_test(test_refusal),
		cmocka_unit_test(test_slow_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
