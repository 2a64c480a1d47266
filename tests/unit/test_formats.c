/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "client/base/gzip.h"
#include "client/base/intern.h"
#include "client/render/flame.h"
#include "client/render/formats.h"
#include "client/render/protobuf.h"
#include "common/base.h"
#include "proto/varlink.h"

#define T0 (INT64_C(1772334610) * NS_PER_S) /* 2026-03-01 03:10:10 UTC */

/* A name that would end strings, fields, lines and scripts, and one that is not UTF-8. */
#define HOSTILE	 "=cmd();</script>]]>\",'\n\t\r\\\x1b\x01\xe2\x80\xae"
#define NOT_UTF8 "a\xff\xc0\x80z"

enum { LONG_NAME = 1024 * 1024 };

static const struct wire_frame user_frames[] = {
	{ .kind = "native", .name = "wait_for_data", .offset = 4, .module = "/bin/db" },
	{ .kind = "native", .name = HOSTILE, .offset = 4, .module = HOSTILE },
	{ .kind = "native", .offset = 0x1234, .module = NOT_UTF8 },
	{ .kind = "native", .name = "main", .offset = 16, .module = "/bin/db" },
};
static const struct wire_frame kernel_frames[] = {
	{ .kind = "kernel", .name = "schedule", .offset = WIRE_ABSENT },
};
static const struct wire_stack user_stack = { "b1", { user_frames, 4 }, { 0 }, WIRE_ABSENT };
static const struct wire_stack kernel_stack = { "a1", { kernel_frames, 1 }, { 0 }, WIRE_ABSENT };

static struct wire_row row_of(const char *comm)
{
	return (struct wire_row){
		.process = { .pid = 42,
			     .start = T0,
			     .comm = comm,
			     .cgroup = "/system.slice/db.service" },
		.tid = WIRE_ABSENT,
		.comm = comm,
		.state = "S",
		.count = 3,
		.total_ns = 3000000001,
		.blocked_ns = 2000000000,
		.runnable_ns = 1000000001,
		.throttled_ns = 400000000,
		.max_ns = 5,
		.max_end = WIRE_ABSENT,
		.sampled = WIRE_ABSENT,
		.sampled_ns = WIRE_ABSENT,
		.open = 0,
		.open_ns = 0,
		.unseen = WIRE_ABSENT,
		.max_tid = WIRE_ABSENT,
		.folded = WIRE_ABSENT,
		.window = WIRE_ABSENT,
		.user = &user_stack,
		.kernel = &kernel_stack,
	};
}

static struct wire_snapshot_reply reply_of(const struct wire_row *rows, size_t n)
{
	return (struct wire_snapshot_reply){
		.probe = "offcpu",
		.hook = "tp_btf/sched_exit_tp",
		.min_wait_ns = 100 * NS_PER_US,
		.sample_below_ns = WIRE_ABSENT,
		.coverage = {
			.asked = { T0, T0 + 30 * NS_PER_S },
			.used = { T0, T0 + 30 * NS_PER_S },
			.used_ns = WIRE_ABSENT,
			.asked_ns = 30 * NS_PER_S,
			.covered_ns = 30 * NS_PER_S,
			.windows = 6,
			.complete = true,
		},
		.totals = { .samples = WIRE_ABSENT, .calls = WIRE_ABSENT },
		.shown = { .rows = (int64_t)n, .sampled_ns = WIRE_ABSENT },
		.rows = { rows, n },
	};
}

/* Prints an answer in a format; the caller frees the text. */
static char *printed(const struct format *format, const struct wire_snapshot_reply *reply,
		     size_t *size_out)
{
	char *text = NULL;
	struct view view = { .page.out = open_memstream(&text, size_out) };

	format_print(format, &view, reply);
	assert_int_equal(fclose(view.page.out), 0);
	assert_non_null(text);
	return text;
}

/* Counts the fields of a line of CSV, and stores where the next line begins. Checks the quotes. */
static size_t csv_fields(const char **at)
{
	const char *s = *at;
	size_t n = 1;

	for (; strncmp(s, "\r\n", 2) != 0; s++) {
		assert_true(*s >= ' ');
		if (*s == ',')
			n++;
		if (*s != '"')
			continue;
		for (s++; *s != '"' || s[1] == '"'; s++) {
			assert_true((unsigned char)*s >= ' ');
			s += *s == '"';
		}
		assert_true(s[1] == ',' || s[1] == '\r');
	}
	*at = s + 2;
	return n;
}

static void test_csv(void **state)
{
	const struct wire_row rows[] = { row_of("db"), row_of(HOSTILE), row_of(NOT_UTF8) };
	const struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));
	size_t size, columns;
	char *text = printed(&format_csv, &reply, &size);
	const char *at = text;

	columns = csv_fields(&at);
	assert_true(columns > 40);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(csv_fields(&at), columns);
	assert_int_equal(at - text, size);
	assert_non_null(strstr(text, ",42,,\"db\",\"db\",,\"/system.slice/db.service\",0,0,,0,"
				     "\"S\",3,3000000001,2000000000,1000000001,400000000,0,"));
	/* A spreadsheet must not run the name, and a ; in a name must not look like a frame. */
	assert_non_null(
		strstr(text, ",\"'=cmd();</script>]]>\"\",'\\n\\t\\x0d\\\\x1b\\x01\\u202e\","));
	assert_non_null(strstr(text, "\"main;a\\xff\\xc0\\x80z+0x1234;=cmd():</script>"));
	assert_non_null(strstr(text, ";wait_for_data\",\"schedule\"\r\n"));
	free(text);
}

/* Each operation of iolat has as many fields as other rows. */
static void test_csv_io(void **state)
{
	const struct wire_io io = { .layer = "fs",
				    .op = "read",
				    .filesystem = "ext4",
				    .own_ns = 7,
				    .runnable_ns = 8,
				    .bytes = 4096 };
	struct wire_row row = row_of("db");
	struct wire_snapshot_reply reply = reply_of(&row, 1);
	size_t size, columns;
	const char *at;
	char *text;

	row.io = &io;
	row.state = NULL;
	reply.probe = "iolat";
	text = printed(&format_csv, &reply, &size);
	at = text;
	columns = csv_fields(&at);
	assert_int_equal(csv_fields(&at), columns);
	assert_non_null(strstr(text, ",\"fs\",\"read\",\"ext4\",,7,0,0,0,0,0,0,0,4096,,"));
	free(text);
}

/* Checks that strings have no character that JSON forbids in them, and that brackets match. */
static void check_json(const char *text, size_t size)
{
	char open[16];
	size_t depth = 0;

	for (size_t i = 0; i < size; i++) {
		if (text[i] == '"') {
			for (i++; text[i] != '"'; i++) {
				assert_true((unsigned char)text[i] >= ' ' && text[i] != '<');
				i += text[i] == '\\';
			}
		} else if (text[i] == '{' || text[i] == '[') {
			open[depth++] = text[i] == '{' ? '}' : ']';
			assert_true(depth < sizeof(open));
		} else if (text[i] == '}' || text[i] == ']') {
			assert_true(depth > 0 && open[--depth] == text[i]);
		}
	}
	assert_int_equal(depth, 0);
}

static void test_speedscope(void **state)
{
	struct wire_row rows[] = { row_of("db"), row_of("db"), row_of(HOSTILE), row_of(NOT_UTF8) };
	struct wire_snapshot_reply reply = reply_of(rows, ARRAY_SIZE(rows));
	static const struct wire_lost lost[] = { { "stacks", 3 } };
	char *text;
	size_t size;

	/* The states are not in the file, so that these two rows are one stack. */
	rows[1].state = "D";
	reply.lost = (struct wire_losts){ lost, 1 };
	reply.sample_below_ns = NS_PER_MS;
	reply.shown.sampled_ns = NS_PER_S;
	text = printed(&format_speedscope, &reply, &size);
	check_json(text, size);
	assert_non_null(strstr(text, "\"blocked (30 s covered, lost 3, 1 s of the sums "
				     "estimated)\",\"unit\":\"nanoseconds\""));
	assert_non_null(strstr(text, "\"weights\":[4000000000,2000000000,2000000000],"
				     "\"startValue\":0,\"endValue\":8000000000}"));
	assert_non_null(strstr(text, "\"weights\":[1200000002,600000001,600000001]"));
	assert_non_null(strstr(text, "\"weights\":[800000000,400000000,400000000]"));
	assert_non_null(strstr(text, "\"samples\":[[0,1,2,3,4,5],\n[6,1,2,3,4,5],"));
	assert_non_null(strstr(text, "{\"name\":\"main\",\"file\":\"/bin/db\"}"));
	assert_null(strstr(text, "\"waits ("));
	free(text);
}

/* The line of a frame is in a field of its own: it does not split a function. */
static void test_speedscope_lines(void **state)
{
	const struct wire_source source = { .file = "db.c", .line = 12 };
	const struct wire_frame frame = { .kind = "native",
					  .name = "work",
					  .offset = 4,
					  .module = "/bin/db",
					  .source = &source };
	const struct wire_stack stack = { "b2", { &frame, 1 }, { 0 }, WIRE_ABSENT };
	struct wire_row row = row_of("db");
	const struct wire_snapshot_reply reply = reply_of(&row, 1);
	char *text = NULL;
	size_t size;
	struct view view = { .page.out = open_memstream(&text, &size), .lines = true };

	row.user = &stack;
	format_print(&format_speedscope, &view, &reply);
	fclose(view.page.out);
	check_json(text, size);
	assert_non_null(strstr(text, "{\"name\":\"work\",\"file\":\"db.c\",\"line\":12}"));
	free(text);
}

/* Calls have no length: their number is the weight. */
static void test_speedscope_calls(void **state)
{
	struct wire_row row = row_of("db");
	struct wire_snapshot_reply reply = reply_of(&row, 1);
	char *text;
	size_t size;

	reply.totals.calls = 3;
	text = printed(&format_speedscope, &reply, &size);
	check_json(text, size);
	assert_non_null(strstr(text, "\"unit\":\"none\""));
	assert_non_null(strstr(text, "\"weights\":[3]"));
	free(text);
}

/* The samples of an overview have a profile of their own, with what was lost of them. */
static void test_speedscope_overview(void **state)
{
	static const struct wire_lost lost[] = { { "samples", 7 } };
	const struct wire_row row = row_of("db");
	const struct wire_snapshot_reply waits = reply_of(&row, 1);
	struct wire_snapshot_reply samples = waits;
	char *text = NULL;
	size_t size;
	struct view view = { .page.out = open_memstream(&text, &size) };
	void *stream = format_speedscope.stream_new(&view, STREAM_OVERVIEW);

	samples.probe = "oncpu";
	samples.totals.samples = 3;
	samples.lost = (struct wire_losts){ lost, 1 };
	format_speedscope.stream_add(stream, &waits, true);
	format_speedscope.stream_add(stream, &samples, true);
	format_speedscope.stream_end(stream, true);
	fclose(view.page.out);
	check_json(text, size);
	assert_non_null(strstr(text, "\"cpu (30 s covered, lost 7)\""));
	assert_non_null(strstr(text, "\"blocked (30 s covered, lost nothing)\""));
	assert_non_null(strstr(text, "\"weights\":[3000000001],"));
	assert_non_null(strstr(text, "\"weights\":[2000000000],"));
	assert_non_null(strstr(text, "\"activeProfileIndex\":1}"));
	free(text);
}

/* A name of 1 MiB is whole in each format but in pictures, and an answer without rows is a valid
 * file. */
static void test_sizes(void **state)
{
	const struct format *const formats[] = { &format_csv, &format_speedscope, &format_pprof,
						 &format_svg };
	char *name = malloc(LONG_NAME + 1);

	memset(name, 'x', LONG_NAME);
	name[LONG_NAME] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		const struct wire_row row = row_of(name);
		struct wire_snapshot_reply reply = reply_of(&row, 1);
		size_t size;
		char *text = printed(formats[i], &reply, &size);

		if (formats[i] == &format_svg)
			assert_true(strstr(text, "xxx: 3 s, 100 %") && size < 20000);
		else
			assert_true(formats[i]->is_binary || strstr(text, name));
		free(text);
		reply.rows.n = 0;
		text = printed(formats[i], &reply, &size);
		assert_true(size > 0);
		if (formats[i] == &format_speedscope)
			check_json(text, size);
		free(text);
	}
	free(name);
}

/* The examples of the documentation of the encoding, and the largest numbers. */
static void test_protobuf(void **state)
{
	static const int64_t numbers[] = { 3, 270, 86942, 0 };
	struct text text;

	text_init(&text, SIZE_MAX);
	protobuf_put_int(&text, 1, 150);
	protobuf_put_int(&text, 1, 0);
	protobuf_put_bytes(&text, 2, "testing", 7);
	protobuf_put_ints(&text, 6, numbers, ARRAY_SIZE(numbers));
	protobuf_put_int(&text, 1, -1);
	protobuf_put_int(&text, 1, INT64_MAX);
	protobuf_put_double(&text, 44, 1.5);
	assert_int_equal(text.error, 0);
	assert_int_equal(text.len, 52);
	assert_memory_equal(text.data,
			    "\x08\x96\x01\x12\x07testing\x32\x07\x03\x8e\x02\x9e\xa7\x05\0"
			    "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
			    "\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"
			    "\xe1\x02\0\0\0\0\0\0\xf8\x3f",
			    52);
	text_fini(&text);
}

/* What is compressed comes out again, also more than the buffers hold and what is written bytewise.
 */
static void test_gzip(void **state)
{
	enum { N = 300000 };
	char *text = NULL, *back = malloc(N + 1);
	z_stream z = { .avail_out = N + 1, .next_out = (Bytef *)back };
	size_t size;
	FILE *out = open_memstream(&text, &size), *gzip = gzip_open(out);

	for (unsigned i = 0; i < N; i++)
		fputc((int)(i * i >> 7 & 0xff), gzip);
	assert_int_equal(fclose(gzip), 0);
	assert_int_equal(fclose(out), 0);
	z.next_in = (Bytef *)text;
	z.avail_in = (uInt)size;
	assert_int_equal(inflateInit2(&z, 31), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, N);
	assert_int_equal(z.avail_in, 0);
	for (unsigned i = 0; i < N; i++)
		assert_int_equal((unsigned char)back[i], i * i >> 7 & 0xff);
	inflateEnd(&z);
	free(text);
	free(back);
}

static void test_format_of_file(void **state)
{
	assert_ptr_equal(format_of_file("a.json"), &format_json);
	assert_ptr_equal(format_of_file("/x/a.speedscope.json"), &format_speedscope);
	assert_ptr_equal(format_of_file("a.csv"), &format_csv);
	assert_ptr_equal(format_of_file("a.b.pb.gz"), &format_pprof);
	assert_ptr_equal(format_of_file("a.folded"), &format_folded);
	assert_ptr_equal(format_of_file("a.svg"), &format_svg);
	assert_null(format_of_file("a.log"));
	assert_null(format_of_file("json"));
	assert_null(format_of_file(".json/"));
}

/* Frames are side by side by name, and have the sums of the frames that they call. */
static void test_flame(void **state)
{
	struct flame flame;
	size_t b, a, c;

	flame_init(&flame);
	b = flame_child(&flame, 0, "b", FLAME_USER);
	a = flame_child(&flame, 0, "a", FLAME_USER);
	c = flame_child(&flame, b, "c", FLAME_USER);
	assert_int_equal(flame_child(&flame, 0, "b", FLAME_USER), b);
	assert_int_not_equal(flame_child(&flame, 0, "b", FLAME_KERNEL), b);
	flame_add(&flame, a, FLAME_NEW, 5);
	flame_add(&flame, b, FLAME_NEW, 7);
	flame_add(&flame, c, FLAME_NEW, 11);
	flame_add(&flame, c, FLAME_BASE, 2);
	flame_place(&flame);
	assert_int_equal(flame.frames[0].value[FLAME_NEW], 23);
	assert_int_equal(flame.frames[b].value[FLAME_NEW], 18);
	assert_int_equal(flame.frames[b].start[FLAME_NEW], 5);
	assert_int_equal(flame.frames[c].start[FLAME_NEW], 5);
	assert_int_equal(flame.frames[c].depth, 2);
	assert_int_equal(flame.frames[0].value[FLAME_BASE], 2);
	flame_fini(&flame);
}

/* Without room for a frame, its value is that of the frame that calls it: the sum stays. */
static void test_flame_full(void **state)
{
	struct flame flame;
	size_t a, b;

	flame_init(&flame);
	a = flame_child(&flame, 0, "a", FLAME_USER);
	flame.bytes_max = 1;
	assert_int_equal(flame_child(&flame, 0, "a", FLAME_USER), a);
	b = flame_child(&flame, a, "b", FLAME_USER);
	assert_int_equal(b, a);
	assert_int_equal(flame_child(&flame, a, "a", FLAME_USER), a);
	assert_int_equal(flame.n_missing, 2);
	assert_int_equal(flame.n, 2);
	assert_int_equal(intern_count(flame.names), 2);
	flame_fini(&flame);
}

static void test_intern(void **state)
{
	enum { N = 10000 };
	struct intern *set = intern_new();
	size_t number, size;
	bool is_new;

	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(intern_add(set, &i, sizeof i, NULL), i);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(intern_add(set, &i, sizeof i, &is_new), i);
		assert_false(is_new);
		assert_memory_equal(intern_key(set, i, &size), &i, sizeof i);
		assert_int_equal(size, sizeof i);
	}
	/* A key that is the beginning of another one, and the empty one, are keys of their own. */
	assert_int_equal(intern_add(set, "\0\0\0", 3, &is_new), N);
	assert_true(is_new);
	assert_int_equal(intern_add(set, "", 0, &is_new), N + 1);
	assert_true(intern_find(set, "", 0, &number));
	assert_int_equal(number, N + 1);
	assert_false(intern_find(set, "x", 1, &number));
	assert_int_equal(intern_count(set), N + 2);
	assert_int_equal(intern_bytes(set), N * sizeof(uint32_t) + 3);
	intern_free(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_csv_io),
		cmocka_unit_test(test_speedscope),
		cmocka_unit_test(test_speedscope_lines),
		cmocka_unit_test(test_speedscope_calls),
		cmocka_unit_test(test_speedscope_overview),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_protobuf),
		cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_format_of_file),
		cmocka_unit_test(test_flame),
		cmocka_unit_test(test_flame_full),
		cmocka_unit_test(test_intern),
	};

	setenv("TZ", "UTC", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
