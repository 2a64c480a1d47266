/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/query/turns.h"

static const struct query_peer root = { .is_root = true, .uid = 0 };

/* True if the peer gets no turn now. Its client hangs up at once, so that nothing waits. */
static bool has_to_wait(uid_t uid)
{
	static const atomic_bool is_gone = true;
	const struct query_peer peer = { .uid = uid, .is_gone = &is_gone };
	int r = turn_wait(&peer);

	if (!r)
		turn_end(&peer);
	else
		assert_int_equal(r, -ECANCELED);
	return r != 0;
}

static void one_user_does_not_have_all_turns(void **state)
{
	const struct query_peer one = { .uid = 1000 };

	assert_int_equal(turn_wait(&one), 0);
	assert_true(has_to_wait(1000));
	assert_false(has_to_wait(1001));
	assert_false(has_to_wait(0));
	turn_end(&one);
	assert_false(has_to_wait(1000));
}

static void root_may_have_all_turns(void **state)
{
	assert_int_equal(turn_wait(&root), 0);
	assert_int_equal(turn_wait(&root), 0);
	assert_true(has_to_wait(0));
	assert_true(has_to_wait(1000));
	turn_end(&root);
	assert_false(has_to_wait(0));
	assert_false(has_to_wait(1000));
	turn_end(&root);
}

static void *wait_for_turn(void *peer)
{
	return (void *)(intptr_t)turn_wait(peer);
}

/* Two users wait, and the turn that ends is one that only the second can have. */
static void the_one_who_can_have_it_gets_the_turn(void **state)
{
	struct query_peer one = { .uid = 1000 }, two = { .uid = 1001 };
	pthread_t first, second;
	void *r;

	assert_int_equal(turn_wait(&one), 0);
	assert_int_equal(turn_wait(&root), 0);
	assert_int_equal(pthread_create(&first, NULL, wait_for_turn, &one), 0);
	assert_int_equal(pthread_create(&second, NULL, wait_for_turn, &two), 0);
	turn_end(&root);
	pthread_join(second, &r);
	assert_null(r);
	assert_true(has_to_wait(1000));
	turn_end(&one);
	pthread_join(first, &r);
	assert_null(r);
	turn_end(&one);
	turn_end(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_user_does_not_have_all_turns),
		cmocka_unit_test(root_may_have_all_turns),
		cmocka_unit_test(the_one_who_can_have_it_gets_the_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
