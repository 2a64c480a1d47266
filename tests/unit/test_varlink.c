/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "common/arena.h"
#include "common/base.h"
#include "proto/varlink.h"

static int call_parse(const char *text)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;

	return varlink_call_parse(text, strlen(text), &message);
}

static void test_call(void **state)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	static const char text[] = "{\"method\":\"io.stackd.Status\",\"parameters\":{\"a\":1},"
				   "\"more\":true,\"oneway\":false,\"upgrade\":true,\"other\":[]}";

	assert_int_equal(varlink_call_parse(text, strlen(text), &message), 0);
	assert_string_equal(message->method, "io.stackd.Status");
	assert_true(message->more);
	assert_false(message->oneway);
	assert_non_null(message->parameters);
}

static void test_calls_that_are_none(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"null",
		"1",
		"[]",
		"\"io.stackd.Status\"",
		"{",
		"{}",
		"{\"method\":1}",
		"{\"method\":null}",
		"{\"method\":\"\"}",
		"{\"method\":\"a.B\",}",
		"{\"method\":\"a.B\"}x",
		"{\"method\":\"a.B\"}{}",
		"{'method':'a.B'}",
		"{\"method\":\"a.B\" /* why */}",
		"{\"method\":\"a.B\",\"method\":\"a.C\"}",
		"{\"method\":\"a.B\",\"parameters\":{\"x\":{\"y\":1,\"y\":1}}}",
		"{\"method\":\"a.B\",\"parameters\":[]}",
		"{\"method\":\"a.B\",\"parameters\":\"x\"}",
		"{\"method\":\"a.B\",\"more\":1}",
		"{\"method\":\"a.B\",\"oneway\":\"true\"}",
		"{\"method\":\"a.B\\u0000\"}",
		"{\"method\":\"a.B\",\"parameters\":{\"x\\u0000\":1}}",
		"{\"method\":\"a.B\xff\"}",
		"{\"method\":\"a.B\xc0\x80\"}",
		"{\"method\":\"a.B\xed\xa0\x80\"}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (call_parse(texts[i]) != -EBADMSG)
			fail_msg("%d for %s", call_parse(texts[i]), texts[i]);
}

static void test_nothing_follows_a_nul(void **state)
{
	static const char text[] = "{\"method\":\"a.B\"}\0{}";
	struct varlink_message *message = NULL;

	assert_int_equal(varlink_call_parse(text, sizeof(text) - 1, &message), -EBADMSG);
	assert_null(message);
}

static void test_what_looks_like_more_is_not(void **state)
{
	/* Inside strings, colons, brackets and the letters of an escaped NUL have no meaning. */
	assert_int_equal(call_parse("{\"method\":\"a.B\",\"parameters\":{\"x\":\":[{\\\\u0000\"}}"),
			 0);
	assert_int_equal(call_parse(" {\"method\" : \"a.B\" }"), 0);
	assert_int_equal(call_parse("{\"method\":\"a.B\",\"parameters\":null}"), 0);
}

static void test_depth_and_values_are_bounded(void **state)
{
	struct text text;

	for (int depth = 10; depth < 100000; depth *= 10) {
		text_init(&text, SIZE_MAX);
		text_put_str(&text, "{\"method\":\"a.B\",\"parameters\":{\"x\":");
		for (int i = 0; i < depth; i++)
			text_put_str(&text, "[");
		for (int i = 0; i < depth; i++)
			text_put_str(&text, "]");
		text_put_str(&text, "}}");
		text_put(&text, "", 1);
		assert_int_equal(call_parse(text.data), depth < VARLINK_MAX_DEPTH ? 0 : -EMSGSIZE);
		text_fini(&text);
	}
	for (int values = 1000; values <= 100000; values *= 10) {
		text_init(&text, SIZE_MAX);
		text_put_str(&text, "{\"method\":\"a.B\",\"parameters\":{\"x\":[0");
		for (int i = 0; i < values; i++)
			text_put_str(&text, ",0");
		text_put_str(&text, "]}}");
		text_put(&text, "", 1);
		assert_int_equal(call_parse(text.data),
				 values < VARLINK_MAX_REQUEST_VALUES ? 0 : -EMSGSIZE);
		text_fini(&text);
	}
}

static void test_call_is_encoded(void **state)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	assert_int_equal(varlink_call_encode("a.B", NULL, NULL, VARLINK_MORE, &text), 0);
	assert_int_equal(varlink_call_encode("a.C", NULL, NULL, VARLINK_ONEWAY, &text), 0);
	assert_string_equal(text.data, "{\"method\":\"a.B\",\"parameters\":{},\"more\":true}");
	assert_string_equal(text.data + strlen(text.data) + 1,
			    "{\"method\":\"a.C\",\"parameters\":{},\"oneway\":true}");
	text_fini(&text);
}

static void test_reply(void **state)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	static const char text[] =
		"{\"parameters\":{\"n\":9007199254740993,\"p\":\"/\"},\"continues\":true}";

	assert_int_equal(varlink_reply_parse(text, strlen(text), &message), 0);
	assert_null(message->error);
	assert_true(message->continues);
	assert_string_equal(json_object_to_json_string_ext(message->parameters,
							   JSON_C_TO_STRING_PLAIN |
								   JSON_C_TO_STRING_NOSLASHESCAPE),
			    "{\"n\":9007199254740993,\"p\":\"/\"}");
}

static void error_round_trip(const struct wire_error *error, struct wire_error *out,
			     struct arena *arena)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	_cleanup_(text_fini) struct text text;

	text_init(&text, SIZE_MAX);
	assert_int_equal(varlink_error_encode(error, &text), 0);
	assert_int_equal(varlink_reply_parse(text.data, strlen(text.data), &message), 0);
	assert_string_equal(message->error, wire_error_name(error->code));
	assert_int_equal(varlink_error_decode(message, arena, out), 0);
}

static void test_errors_survive(void **state)
{
	static const struct wire_error errors[] = {
		{ ERROR_NO_DATA, "range", WIRE_ABSENT, "no window" },
		{ ERROR_UNKNOWN_PROBE, "ofcpu", WIRE_ABSENT, "offcpu is one" },
		{ ERROR_INVALID_FILTER, "comm", WIRE_ABSENT, "" },
		{ ERROR_TOO_MANY_SESSIONS, NULL, 16, "stop one" },
		{ ERROR_FAILED, "io.stackd.Status", WIRE_ABSENT, "out of memory" },
		{ ERROR_INVALID_PARAMETER, "filter.pids[1]", WIRE_ABSENT, NULL },
		{ ERROR_METHOD_NOT_FOUND, "io.stackd.X", WIRE_ABSENT, NULL },
		{ ERROR_INTERFACE_NOT_FOUND, "io.x", WIRE_ABSENT, NULL },
		{ ERROR_PERMISSION_DENIED, "stackd", WIRE_ABSENT, NULL },
		{ ERROR_EXPECTED_MORE, NULL, WIRE_ABSENT, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		_cleanup_(arena_freep) struct arena *arena = arena_new();
		struct wire_error out;

		error_round_trip(&errors[i], &out, arena);
		assert_int_equal(out.code, errors[i].code);
		assert_int_equal(out.limit, errors[i].limit);
		assert_true(!out.what == !errors[i].what);
		if (out.what)
			assert_string_equal(out.what, errors[i].what);
		assert_true(!out.message == !errors[i].message);
		if (out.message)
			assert_string_equal(out.message, errors[i].message);
	}
}

static void test_strange_errors(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	_cleanup_(text_fini) struct text text;
	const struct wire_error unknown = { .code = ERROR_NONE };
	static const char reply[] = "{\"error\":\"io.other.Error\",\"parameters\":{\"what\":1}}";
	struct wire_error out;

	text_init(&text, SIZE_MAX);
	assert_int_equal(varlink_error_encode(&unknown, &text), -EINVAL);
	assert_int_equal(varlink_reply_parse(reply, strlen(reply), &message), 0);
	assert_int_equal(varlink_error_decode(message, arena, &out), 0);
	assert_int_equal(out.code, ERROR_NONE);
	assert_null(out.what);
	assert_null(out.message);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_call),
		cmocka_unit_test(test_calls_that_are_none),
		cmocka_unit_test(test_nothing_follows_a_nul),
		cmocka_unit_test(test_what_looks_like_more_is_not),
		cmocka_unit_test(test_depth_and_values_are_bounded),
		cmocka_unit_test(test_call_is_encoded),
		cmocka_unit_test(test_reply),
		cmocka_unit_test(test_errors_survive),
		cmocka_unit_test(test_strange_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
