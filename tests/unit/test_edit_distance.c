/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/base.h"
#include "common/edit_distance.h"

static size_t distance(const char *a, const char *b)
{
	return edit_distance(a, strlen(a), b, strlen(b));
}

static void test_each_kind_of_typing_error_counts_once(void **state)
{
	assert_int_equal(distance("offcpu", "offcpu"), 0);
	assert_int_equal(distance("offcpu", "ofcpu"), 1);   /* left out */
	assert_int_equal(distance("offcpu", "offcppu"), 1); /* inserted */
	assert_int_equal(distance("offcpu", "offcpi"), 1);  /* replaced */
	assert_int_equal(distance("offcpu", "ofcfpu"), 1);  /* swapped */
	assert_int_equal(distance("kitten", "sitting"), 3);
	assert_int_equal(distance("", "abc"), 3);
	assert_int_equal(distance("abc", ""), 3);
}

static void test_only_the_given_lengths_are_read(void **state)
{
	assert_int_equal(edit_distance("comm=x", 4, "comm", 4), 0);
}

static void test_long_words_are_far(void **state)
{
	char word[EDIT_DISTANCE_WORD + 1];

	memset(word, 'a', sizeof(word));
	assert_int_equal(edit_distance(word, EDIT_DISTANCE_WORD, word, EDIT_DISTANCE_WORD), 0);
	assert_int_equal(edit_distance(word, sizeof(word), word, 1), EDIT_DISTANCE_FAR);
	assert_int_equal(edit_distance(word, 1, word, sizeof(word)), EDIT_DISTANCE_FAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_kind_of_typing_error_counts_once),
		cmocka_unit_test(test_only_the_given_lengths_are_read),
		cmocka_unit_test(test_long_words_are_far),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
