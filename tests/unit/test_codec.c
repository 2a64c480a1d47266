/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "common/base.h"
#include "proto/codec.h"
#include "proto/json_text.h"
#include "proto/record.h"

struct any_list {
	void *v;
	size_t n;
};

/* Fills a struct with a value in every field, two in every list. */
static void fill(const struct record *record, void *base, struct arena *arena, int64_t *seed)
{
	for (size_t i = 0; i < record->n_fields; i++) {
		const struct field *field = &record->fields[i];
		void *member = (char *)base + field->offset;
		struct any_list list = { .n = 2 };
		int64_t value = ++*seed;

		switch (field->kind) {
		case FIELD_STRING:
			*(char **)member = arena_printf(arena, "s%d \"\\/\x01é", (int)value);
			break;
		case FIELD_INT:
			*(int64_t *)member = INT64_MAX - value;
			break;
		case FIELD_TIME:
			*(int64_t *)member = 1700000000 * NS_PER_S + value;
			break;
		case FIELD_BOOL:
			*(bool *)member = value % 2;
			break;
		case FIELD_TRISTATE:
			*(int *)member = (int)(value % 2);
			break;
		case FIELD_STRINGS:
			list.v = arena_array(arena, 2, sizeof(char *));
			((const char **)list.v)[0] = "";
			((const char **)list.v)[1] = "two";
			memcpy(member, &list, sizeof(list));
			break;
		case FIELD_INTS:
			list.v = arena_array(arena, 2, sizeof(int64_t));
			((int64_t *)list.v)[0] = -value;
			memcpy(member, &list, sizeof(list));
			break;
		case FIELD_STRUCT:
			fill(field->record, member, arena, seed);
			break;
		case FIELD_STRUCT_PTR:
			*(void **)member = arena_alloc(arena, field->record->size);
			fill(field->record, *(void **)member, arena, seed);
			break;
		case FIELD_STRUCTS:
			list.v = arena_array(arena, 2, field->record->size);
			fill(field->record, list.v, arena, seed);
			fill(field->record, (char *)list.v + field->record->size, arena, seed);
			memcpy(member, &list, sizeof(list));
			break;
		}
	}
}

static struct json_object *json_of(struct text *text)
{
	struct json_tokener *tokener = json_tokener_new();
	struct json_object *object;

	assert_int_equal(text->error, 0);
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, text->data, (int)text->len);
	assert_int_equal(json_tokener_get_error(tokener), json_tokener_success);
	assert_int_equal(json_tokener_get_parse_end(tokener), text->len);
	assert_non_null(object);
	json_tokener_free(tokener);
	return object;
}

static void test_every_struct_survives(void **state)
{
	for (size_t i = 0; wire_records[i]; i++) {
		const struct record *record = wire_records[i];
		_cleanup_(arena_freep) struct arena *arena = arena_new();
		void *before = arena_alloc(arena, record->size);
		void *after = arena_alloc(arena, record->size);
		struct codec_error error = { .parameter = "" };
		struct text one, two;
		struct json_object *object;
		int64_t seed = 0;

		fill(record, before, arena, &seed);
		text_init(&one, SIZE_MAX);
		text_init(&two, SIZE_MAX);
		record_encode(record, before, &one);
		object = json_of(&one);
		assert_int_equal(record_decode(record, object, arena, after, &error), 0);
		json_object_put(object);
		record_encode(record, after, &two);
		assert_int_equal(one.len, two.len);
		assert_memory_equal(one.data, two.data, one.len);
		text_fini(&one);
		text_fini(&two);
	}
}

/* Copies every struct and frees the original before the copy is compared with it. */
static void test_every_struct_is_copied(void **state)
{
	for (size_t i = 0; wire_records[i]; i++) {
		const struct record *record = wire_records[i];
		_cleanup_(arena_freep) struct arena *copied = arena_new();
		struct arena *arena = arena_new();
		void *from = arena_alloc(arena, record->size);
		void *to = arena_alloc(copied, record->size);
		struct text one, two;
		int64_t seed = 0;

		fill(record, from, arena, &seed);
		text_init(&one, SIZE_MAX);
		text_init(&two, SIZE_MAX);
		record_encode(record, from, &one);
		assert_int_equal(record_copy(record, from, copied, to), 0);
		arena_free(arena);
		record_encode(record, to, &two);
		assert_int_equal(two.error, 0);
		assert_int_equal(one.len, two.len);
		assert_memory_equal(one.data, two.data, one.len);
		text_fini(&one);
		text_fini(&two);
	}
}

/* Finds the members of a type, of a method's parameters or of an error: "name: type, ...". */
static char *definition(const char *interface, const char *record_name)
{
	char *name = strdup(record_name);
	bool is_reply = strchr(name, '(') != NULL;
	const char *begin = NULL, *end;
	static const char *const words[] = { "\ntype ", "\nmethod ", "\nerror " };
	char head[128];

	name[strcspn(name, "(")] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(words) && !begin; i++)
		for (const char *after = " (";; after = "(") {
			snprintf(head, sizeof(head), "%s%s%s", words[i], name, after);
			begin = strstr(interface, head);
			if (begin || after[0] == '(')
				break;
		}
	free(name);
	if (!begin)
		return NULL;
	if (is_reply)
		begin = strstr(begin, "->");
	begin = strchr(begin, '(') + 1;
	end = strchr(begin, ')');
	return strndup(begin, (size_t)(end - begin));
}

static void type_name(const struct field *field, char *out, size_t size)
{
	const char *name = field->record ? field->record->name : NULL;
	const char *list = "";

	switch (field->kind) {
	case FIELD_STRING:
		name = "string";
		break;
	case FIELD_INT:
		name = "int";
		break;
	case FIELD_BOOL:
	case FIELD_TRISTATE:
		name = "bool";
		break;
	case FIELD_TIME:
		name = "Time";
		break;
	case FIELD_STRINGS:
		list = "[]";
		name = "string";
		break;
	case FIELD_INTS:
		list = "[]";
		name = "int";
		break;
	case FIELD_STRUCTS:
		list = "[]";
		break;
	case FIELD_STRUCT:
	case FIELD_STRUCT_PTR:
		break;
	}
	snprintf(out, size, "%s%s%s", field->is_optional ? "?" : "", list, name);
}

/* Reads the next "name: type" of a definition. False at its end. */
static bool definition_next(char **rest, char *name, char *type)
{
	int n = 0;

	*rest += strspn(*rest, " \n,");
	if (sscanf(*rest, "%63[A-Za-z0-9_]: %63[A-Za-z0-9?[]%n", name, type, &n) < 2)
		return false;
	*rest += n;
	/* The set of letters of sscanf() cannot hold the ] of a list. */
	if (**rest == ']') {
		size_t len = strlen(type);

		(*rest)++;
		type[len] = ']';
		n = 0;
		assert_int_equal(sscanf(*rest, "%60[A-Za-z]%n", type + len + 1, &n), 1);
		*rest += n;
	}
	return true;
}

static void check_record(const struct record *record, struct json_object *object,
			 const char *interface)
{
	char *text = definition(interface, record->name), *rest = text;
	char name[64], type[128], expected[128];
	size_t n = 0;

	if (!text)
		fail_msg("no definition of %s", record->name);
	for (; definition_next(&rest, name, type); n++) {
		const struct field *field = &record->fields[n];
		struct json_object *value = NULL;

		if (n == record->n_fields)
			fail_msg("%s.%s is not in the table", record->name, name);
		assert_string_equal(field->name, name);
		type_name(field, expected, sizeof(expected));
		assert_string_equal(expected, type);
		if (!json_object_object_get_ex(object, name, &value))
			fail_msg("%s.%s is not encoded", record->name, name);
		if (!field->record)
			continue;
		if (field->kind == FIELD_STRUCTS)
			value = json_object_array_get_idx(value, 0);
		check_record(field->record, value, interface);
	}
	assert_string_equal(rest, "");
	assert_int_equal(n, record->n_fields);
	assert_int_equal(n, json_object_object_length(object));
	free(text);
}

static void test_structs_are_those_of_the_definition(void **state)
{
	for (size_t i = 0; wire_records[i]; i++) {
		const struct record *record = wire_records[i];
		_cleanup_(arena_freep) struct arena *arena = arena_new();
		void *base = arena_alloc(arena, record->size);
		struct json_object *object;
		struct text text;
		int64_t seed = 0;

		fill(record, base, arena, &seed);
		text_init(&text, SIZE_MAX);
		record_encode(record, base, &text);
		object = json_of(&text);
		check_record(record, object,
			     strncmp(record->name, "Get", 3) == 0 ? interface_org_varlink_service
								  : interface_io_stackd);
		json_object_put(object);
		text_fini(&text);
	}
}

static void check_error(const char *interface, const char *prefix, const char *name)
{
	char *text = definition(interface, name), *rest = text;
	char full[128], field[64], type[128];
	struct wire_error error = { .what = "w", .limit = 7, .message = "m" };
	struct json_object *reply, *object, *value;
	struct text out;
	int n = 0;

	snprintf(full, sizeof(full), "%s.%s", prefix, name);
	error.code = wire_error_code(full);
	text_init(&out, SIZE_MAX);
	if (varlink_error_encode(&error, &out) != 0)
		fail_msg("%s is not known", full);
	out.len--;
	reply = json_of(&out);
	assert_true(json_object_object_get_ex(reply, "parameters", &object));
	for (; definition_next(&rest, field, type); n++) {
		if (!json_object_object_get_ex(object, field, &value))
			fail_msg("%s has no %s", full, field);
		assert_int_equal(json_object_get_type(value),
				 strcmp(type, "int") == 0 ? json_type_int : json_type_string);
	}
	assert_int_equal(n, json_object_object_length(object));
	json_object_put(reply);
	text_fini(&out);
	free(text);
}

static void test_errors_are_those_of_the_definition(void **state)
{
	static const struct {
		const char *text;
		const char *name;
		int errors;
	} interfaces[] = {
		{ interface_io_stackd, "io.stackd", 10 },
		{ interface_org_varlink_service, "org.varlink.service", 6 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(interfaces); i++) {
		const char *at = interfaces[i].text;
		int n = 0;

		for (; (at = strstr(at, "\nerror ")); n++) {
			char name[64];

			at += strlen("\nerror ");
			assert_int_equal(sscanf(at, "%63[A-Za-z]", name), 1);
			check_error(interfaces[i].text, interfaces[i].name, name);
		}
		assert_int_equal(n, interfaces[i].errors);
	}
}

static int request_decode(const char *params, struct wire_snapshot_request *out,
			  struct arena *arena, struct codec_error *error)
{
	_cleanup_(varlink_message_freep) struct varlink_message *message = NULL;
	char *text = arena_printf(arena, "{\"method\":\"io.stackd.Snapshot\"%s%s}",
				  *params ? ",\"parameters\":" : "", params);

	assert_int_equal(varlink_call_parse(text, strlen(text), &message), 0);
	return snapshot_request_decode(message, arena, out, error);
}

static void test_absent_is_not_zero(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	struct wire_snapshot_request request;
	struct codec_error error;

	assert_int_equal(request_decode("{\"probe\":\"offcpu\",\"top\":null,\"filter\":{}}",
					&request, arena, &error),
			 0);
	assert_string_equal(request.probe, "offcpu");
	assert_int_equal(request.top, WIRE_ABSENT);
	assert_int_equal(request.window_ns, WIRE_ABSENT);
	assert_int_equal(request.idle, WIRE_BOOL_ABSENT);
	assert_null(request.by);
	assert_non_null(request.filter);
	assert_int_equal(request.filter->pids.n, 0);
	assert_int_equal(request.filter->user_threads, WIRE_BOOL_ABSENT);
	assert_int_equal(request_decode("{\"probe\":\"\",\"top\":0,\"idle\":false}", &request,
					arena, &error),
			 0);
	assert_int_equal(request.top, 0);
	assert_int_equal(request.idle, 0);
	assert_null(request.filter);
}

static void test_wrong_types_are_named(void **state)
{
	static const struct {
		const char *params;
		const char *parameter;
	} wrong[] = {
		{ "{\"probe\":1}", "probe" },
		{ "{\"probe\":\"p\",\"top\":\"1\"}", "top" },
		{ "{\"probe\":\"p\",\"top\":1.0}", "top" },
		{ "{\"probe\":\"p\",\"top\":1e3}", "top" },
		{ "{\"probe\":\"p\",\"top\":true}", "top" },
		{ "{\"probe\":\"p\",\"top\":9223372036854775808}", "top" },
		{ "{\"probe\":\"p\",\"top\":-9223372036854775808}", "top" },
		{ "{\"probe\":\"p\",\"idle\":1}", "idle" },
		{ "{\"probe\":\"p\",\"filter\":[]}", "filter" },
		{ "{\"probe\":\"p\",\"filter\":{\"pids\":1}}", "filter.pids" },
		{ "{\"probe\":\"p\",\"filter\":{\"pids\":[1,\"2\"]}}", "filter.pids[1]" },
		{ "{\"probe\":\"p\",\"filter\":{\"pids\":[null]}}", "filter.pids[0]" },
		{ "{\"probe\":\"p\",\"filter\":{\"states\":[\"D\",{}]}}", "filter.states[1]" },
		{ "{\"probe\":\"p\",\"filter\":{\"comm\":{}}}", "filter.comm" },
		{ "{\"probe\":\"p\",\"tops\":1}", "tops" },
		{ "{\"probe\":\"p\",\"filter\":{\"pid\":[1]}}", "filter.pid" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_(arena_freep) struct arena *arena = arena_new();
		struct wire_snapshot_request request = { .top = 42 };
		struct codec_error error;

		assert_int_equal(request_decode(wrong[i].params, &request, arena, &error), -EINVAL);
		assert_string_equal(error.parameter, wrong[i].parameter);
		assert_true(strlen(error.message) > 0);
		assert_int_equal(request.top, 42);
	}
}

static void json_string_is(const char *s, const char *expected)
{
	struct text text;

	text_init(&text, SIZE_MAX);
	json_put_string(&text, s);
	assert_int_equal(text.error, 0);
	assert_int_equal(text.len, strlen(expected));
	assert_memory_equal(text.data, expected, text.len);
	text_fini(&text);
}

static void test_strings_are_utf8(void **state)
{
	json_string_is("a\"b\\c/\n\t\r\x1f\x7f", "\"a\\\"b\\\\c/\\n\\t\\r\\u001f\x7f\"");
	json_string_is("é€𐍈", "\"é€𐍈\"");
	json_string_is("\xff", "\"\xef\xbf\xbd\"");
	json_string_is("a\xc3", "\"a\xef\xbf\xbd\"");
	json_string_is("\xc3(", "\"\xef\xbf\xbd(\"");
	json_string_is("\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	json_string_is("\xe0\x80\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	json_string_is("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	json_string_is("\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	json_string_is("\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	json_string_is("\xf0\x9f\x98", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void test_any_bytes_become_valid(void **state)
{
	char bytes[64];

	srand(1);
	for (int i = 0; i < 20000; i++) {
		struct json_object *object;
		struct text text;
		size_t n = (size_t)rand() % (sizeof(bytes) - 1);

		for (size_t j = 0; j < n; j++)
			bytes[j] = (char)(rand() % 4 ? 0xc0 + rand() % 64 : 1 + rand() % 254);
		bytes[n] = '\0';
		text_init(&text, SIZE_MAX);
		text_put_str(&text, "[");
		json_put_string(&text, bytes);
		text_put_str(&text, "]");
		object = json_of(&text);
		json_object_put(object);
		text_fini(&text);
	}
}

static void time_is(const char *zone, int64_t ns, const char *expected)
{
	struct text text;

	setenv("TZ", zone, 1);
	tzset();
	text_init(&text, SIZE_MAX);
	json_put_time(&text, ns);
	assert_int_equal(text.len, strlen(expected));
	assert_memory_equal(text.data, expected, text.len);
	text_fini(&text);
}

static void test_times(void **state)
{
	const int64_t t = 1700000000 * NS_PER_S;

	time_is("UTC0", t, "\"2023-11-14T22:13:20+00:00\"");
	time_is("UTC0", t + 120 * NS_PER_MS, "\"2023-11-14T22:13:20.120+00:00\"");
	time_is("UTC0", t + 5 * NS_PER_US, "\"2023-11-14T22:13:20.000005+00:00\"");
	time_is("UTC0", t + 1, "\"2023-11-14T22:13:20.000000001+00:00\"");
	time_is("UTC0", -1, "\"1969-12-31T23:59:59.999999999+00:00\"");
	time_is("EST5", t, "\"2023-11-14T17:13:20-05:00\"");
	time_is("IST-5:30", t, "\"2023-11-15T03:43:20+05:30\"");
	time_is("NST3:30", t, "\"2023-11-14T18:43:20-03:30\"");
}

static void test_a_missing_string_is_refused(void **state)
{
	const struct wire_description_reply reply = { NULL };
	struct text text;

	text_init(&text, SIZE_MAX);
	assert_int_equal(description_reply_encode(&reply, 0, &text), -EINVAL);
	text_fini(&text);
}

static void test_the_limit_holds(void **state)
{
	struct wire_description_reply reply = { "0123456789" };
	struct text text;

	text_init(&text, SIZE_MAX);
	assert_int_equal(description_reply_encode(&reply, 0, &text), 0);
	text.limit = text.len;
	text_reset(&text);
	assert_int_equal(description_reply_encode(&reply, 0, &text), 0);
	reply.description = "0123456789a";
	text_reset(&text);
	assert_int_equal(description_reply_encode(&reply, 0, &text), -EMSGSIZE);
	assert_true(text.len <= text.limit);
	text_fini(&text);
}

static void parts_decode(struct text *text, size_t size, size_t n_rows, struct arena *arena)
{
	size_t rows = 0, at = 0;
	bool is_last = false;

	while (at < text->len) {
		struct varlink_message *message = NULL;
		struct wire_snapshot_reply reply;
		struct codec_error error;
		size_t len = strlen(text->data + at);

		assert_false(is_last);
		assert_true(len + 1 <= size);
		assert_int_equal(varlink_reply_parse(text->data + at, len, &message), 0);
		assert_int_equal(snapshot_reply_decode(message, arena, &reply, &error), 0);
		assert_true(reply.rows.n > 0);
		assert_int_equal(reply.totals.threads, 77);
		for (size_t i = 0; i < reply.rows.n; i++)
			assert_int_equal(reply.rows.v[i].count, rows + i);
		rows += reply.rows.n;
		is_last = !message->continues;
		at += len + 1;
		varlink_message_free(message);
	}
	assert_true(is_last);
	assert_int_equal(rows, n_rows);
}

static void test_parts_make_the_whole(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	struct wire_snapshot_reply reply;
	struct wire_row *rows;
	int64_t seed = 0;
	const size_t n = 300, size = 32768;
	struct text text;
	size_t next = 0, parts = 0;

	fill(&record_snapshot_reply, &reply, arena, &seed);
	rows = arena_array(arena, n, sizeof(*rows));
	for (size_t i = 0; i < n; i++) {
		fill(&record_row, &rows[i], arena, &seed);
		rows[i].count = (int64_t)i;
	}
	reply.totals.threads = 77;
	reply.rows = (struct wire_rows){ rows, n };
	text_init(&text, SIZE_MAX);
	do {
		size_t end = text.len + size;
		int r = snapshot_part_begin(&reply, &text);

		text.limit = end;
		while (next < n && (r = snapshot_part_add(&rows[next], &text)) == 0)
			next++;
		assert_true(r == 0 || r == -EMSGSIZE);
		assert_int_equal(snapshot_part_end(next < n, &text), 0);
		text.limit = SIZE_MAX;
		parts++;
	} while (next < n);
	assert_true(parts > 10 && parts < n);
	parts_decode(&text, size, n, arena);
	text_fini(&text);
}

static void test_a_row_that_never_fits(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	struct wire_snapshot_reply reply;
	char *name = arena_alloc(arena, VARLINK_MAX_REPLY + 1);
	int64_t seed = 0;
	struct wire_row row;
	struct text text;
	size_t len;

	fill(&record_snapshot_reply, &reply, arena, &seed);
	reply.totals.threads = 77;
	((struct wire_row *)reply.rows.v)[0].count = 0;
	memset(name, 'x', VARLINK_MAX_REPLY);
	row = reply.rows.v[0];
	row.comm = name;
	text_init(&text, VARLINK_MAX_REPLY);
	assert_int_equal(snapshot_part_begin(&reply, &text), 0);
	assert_int_equal(snapshot_part_add(&reply.rows.v[0], &text), 0);
	len = text.len;
	assert_int_equal(snapshot_part_add(&row, &text), -EMSGSIZE);
	assert_int_equal(text.len, len);
	assert_int_equal(snapshot_part_end(false, &text), 0);
	parts_decode(&text, VARLINK_MAX_REPLY, 1, arena);
	text_fini(&text);
}

/* An answer that is printed piece by piece is the same document as the whole. */
static void test_printed_pieces_make_the_whole(void **state)
{
	_cleanup_(arena_freep) struct arena *arena = arena_new();
	struct wire_snapshot_reply reply;
	struct wire_row rows[5];
	struct text whole, pieces;
	int64_t seed = 0;

	fill(&record_snapshot_reply, &reply, arena, &seed);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		fill(&record_row, &rows[i], arena, &seed);
	text_init(&whole, SIZE_MAX);
	text_init(&pieces, SIZE_MAX);
	for (size_t k = 0; k < 8; k++) {
		bool is_pretty = k % 2;
		size_t n = k / 2 == 3 ? ARRAY_SIZE(rows) : k / 2, at = 0;

		reply.rows = (struct wire_rows){ rows, n };
		text_reset(&whole);
		text_reset(&pieces);
		assert_int_equal(snapshot_reply_print(&reply, is_pretty, &whole), 0);
		assert_int_equal(snapshot_print_begin(&reply, is_pretty, &pieces), 0);
		for (size_t piece = 0; piece < 3; piece++) {
			struct wire_rows some = { rows + at, piece == 2 ? n - at : n / 3 };

			assert_int_equal(snapshot_print_rows(&some, at, is_pretty, &pieces), 0);
			at += some.n;
		}
		assert_int_equal(snapshot_print_end(n, is_pretty, &pieces), 0);
		assert_int_equal(whole.len, pieces.len);
		assert_memory_equal(whole.data, pieces.data, whole.len);
	}
	text_fini(&whole);
	text_fini(&pieces);
}

static void test_print(void **state)
{
	const struct wire_description_reply reply = { "d" };
	struct text text;

	text_init(&text, SIZE_MAX);
	assert_int_equal(description_reply_print(&reply, true, &text), 0);
	text_put(&text, "", 1);
	assert_string_equal(text.data, "{\n\t\"description\": \"d\"\n}");
	text_reset(&text);
	assert_int_equal(description_reply_print(&reply, false, &text), 0);
	text_put(&text, "", 1);
	assert_string_equal(text.data, "{\"description\":\"d\"}");
	text_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_struct_survives),
		cmocka_unit_test(test_every_struct_is_copied),
		cmocka_unit_test(test_structs_are_those_of_the_definition),
		cmocka_unit_test(test_errors_are_those_of_the_definition),
		cmocka_unit_test(test_absent_is_not_zero),
		cmocka_unit_test(test_wrong_types_are_named),
		cmocka_unit_test(test_strings_are_utf8),
		cmocka_unit_test(test_any_bytes_become_valid),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_a_missing_string_is_refused),
		cmocka_unit_test(test_the_limit_holds),
		cmocka_unit_test(test_parts_make_the_whole),
		cmocka_unit_test(test_a_row_that_never_fits),
		cmocka_unit_test(test_printed_pieces_make_the_whole),
		cmocka_unit_test(test_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
