/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "proto/frame.h"

static void take_expect(struct frame *frame, const char *expected, size_t n)
{
	_cleanup_(freep) char *message = NULL;
	size_t len = 0;

	assert_int_equal(frame_take(frame, &message, &len), 1);
	assert_int_equal(len, n);
	assert_memory_equal(message, expected, n);
	assert_int_equal(message[n], '\0');
}

static void take_nothing(struct frame *frame)
{
	char *message = NULL;
	size_t len = 99;

	assert_int_equal(frame_take(frame, &message, &len), 0);
	assert_null(message);
	assert_int_equal(len, 99);
}

static void test_messages_in_any_pieces(void **state)
{
	static const char stream[] = "one\0two two\0\0three\0par";
	const size_t n = sizeof(stream) - 1;

	for (size_t piece = 1; piece <= n; piece++) {
		struct frame frame;
		size_t taken = 0;
		static const char *const expected[] = { "one", "two two", "", "three" };

		frame_init(&frame, 8);
		for (size_t i = 0; i < n; i += piece) {
			char *message;
			size_t len;

			assert_int_equal(
				frame_feed(&frame, stream + i, n - i < piece ? n - i : piece), 0);
			while (frame_take(&frame, &message, &len) == 1) {
				assert_string_equal(message, expected[taken]);
				assert_int_equal(len, strlen(expected[taken]));
				taken++;
				free(message);
			}
		}
		assert_int_equal(taken, ARRAY_SIZE(expected));
		assert_int_equal(frame_pending(&frame), 3);
		frame_fini(&frame);
	}
}

static void test_limit_is_exact(void **state)
{
	struct frame frame;
	char *message;
	size_t len;

	frame_init(&frame, 4);
	assert_int_equal(frame_feed(&frame, "1234", 4), 0);
	take_nothing(&frame);
	assert_int_equal(frame_feed(&frame,
				    "\0"
				    "5678",
				    5),
			 0);
	take_expect(&frame, "1234", 4);
	assert_int_equal(frame_feed(&frame, "9", 1), -EMSGSIZE);
	assert_int_equal(frame_take(&frame, &message, &len), -EMSGSIZE);
	frame_fini(&frame);

	frame_init(&frame, 4);
	assert_int_equal(frame_feed(&frame, "12345\0", 6), 0);
	assert_int_equal(frame_take(&frame, &message, &len), -EMSGSIZE);
	frame_fini(&frame);
}

static void test_a_long_second_message_is_found(void **state)
{
	struct frame frame;
	char *message;
	size_t len;

	frame_init(&frame, 4);
	assert_int_equal(frame_feed(&frame,
				    "ok\0"
				    "toolong",
				    10),
			 0);
	take_expect(&frame, "ok", 2);
	assert_int_equal(frame_take(&frame, &message, &len), -EMSGSIZE);
	frame_fini(&frame);
}

static void test_memory_of_a_burst_is_given_back(void **state)
{
	static char large[1 << 20];
	struct frame frame;

	memset(large, 'x', sizeof(large) - 1);
	frame_init(&frame, sizeof(large));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(frame_feed(&frame, large, sizeof(large)), 0);
		take_expect(&frame, large, sizeof(large) - 1);
		take_nothing(&frame);
		assert_true(frame.capacity <= 65536);
	}
	frame_fini(&frame);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_in_any_pieces),
		cmocka_unit_test(test_limit_is_exact),
		cmocka_unit_test(test_a_long_second_message_is_found),
		cmocka_unit_test(test_memory_of_a_burst_is_given_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
