/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks a recorder that only serves a database: queries about made-up windows of known content. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/io_shared.h"
#include "common/base.h"
#include "daemon/query/query.h"
#include "daemon/session/recorder.h"

#define LENGTH_NS (5 * NS_PER_S)
#define REAL_NS	  (INT64_C(1700000000) * NS_PER_S)
#define END_NS	  (REAL_NS + WINDOWS * LENGTH_NS)

/* Each window has one wait of WAIT_MS, SAMPLES samples, READS reads and WRITES requests to a disk.
 */
enum { WINDOWS = 4, WAIT_MS = 40, SAMPLES = 3, READS = 5, WRITES = 7, NO_PID = 0x3f000000 };

enum { SESSION = SESSION_FIRST_ID + 5 };

static char directory[] = "/tmp/test_stored_answers.XXXXXX";
static char path[64];
static struct process_table *table;
static struct config *config;
static struct recorder recorder = { .is_serve_only = true };
static const struct query_peer root = { .is_root = true };
static struct wire_error error;

static struct window *window_make(size_t n, enum probe_kind kind, uint64_t session)
{
	struct process_info info = { .id = { .pid = NO_PID, .start_boot_ns = 5 },
				     .comm = "program",
				     .exe = "/usr/bin/a" };
	struct window *window = window_new();
	struct window_image *image = window_add_image(window);

	window->seq = n + 1;
	window->session = session;
	window->kind = kind;
	window->start_ns = (int64_t)n * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	window->real_offset_ns = REAL_NS;
	image->process = process_table_add_stored(table, &info);
	image->uid = 1;
	image->tid = NO_PID;
	image->start_boot_ns = 5;
	memcpy(image->comm, "thread", 7);
	return window;
}

static void wait_add(struct window *window)
{
	struct window_row *row = window_add_row(window);
	uint32_t buckets[WAIT_BUCKETS] = {};

	row->state = 1;
	row->count = 1;
	row->blocked_ns = row->max_ns = WAIT_MS * NS_PER_MS;
	row->max_end_ns = window->end_ns - 1;
	buckets[wait_bucket(row->max_ns)] = 1;
	assert_int_equal(window_row_set_buckets(window, row, buckets), 0);
	window->images[0].sums.blocked_ns = row->blocked_ns;
	window->images[0].sums.switches = 1;
}

static void ios_add(struct window *window, enum io_layer layer, enum io_op op, uint64_t count)
{
	uint64_t buckets[IO_BUCKETS_N] = { [20] = count };
	struct window_io *io = window_add_io(window);

	io->layer = layer;
	io->op = op;
	io->count = count;
	io->total_ns = io->own_ns = count * NS_PER_MS;
	io->max_ns = NS_PER_MS;
	assert_int_equal(window_io_set_buckets(window, io, buckets), 0);
}

static void window_write(struct store *store, size_t n, enum probe_kind kind, uint64_t session)
{
	struct window *window = window_make(n, kind, session);

	if (kind == PROBE_OFFCPU) {
		wait_add(window);
	} else if (kind == PROBE_ONCPU) {
		window_add_sample(window)->count = SAMPLES;
	} else {
		ios_add(window, IO_LAYER_SYSCALL, IO_OP_READ, READS);
		ios_add(window, IO_LAYER_BLOCK, IO_OP_WRITE, WRITES);
	}
	window_seal(window);
	store_add(store, window);
	window_unref(window);
}

static void database_make(void)
{
	const struct store_options options = { .path = path,
					       .max_size = 64 << 20,
					       .max_age_ns = INT64_MAX / 4,
					       .tiers = { { LENGTH_NS, INT64_MAX / 4, 100 } },
					       .n_tiers = 1,
					       .boot_id = "test" };
	const struct store_session session = {
		.number = SESSION,
		.name = "mine",
		.request = (char *)"{\"method\":\"io.stackd.Start\",\"parameters\":"
				   "{\"probe\":\"offcpu\"}}",
		.since_ns = REAL_NS + 1,
	};
	struct store_stats stats;
	struct store *store;
	size_t n;

	assert_int_equal(process_table_new_stored(&table), 0);
	assert_int_equal(store_start(&options, &store), 0);
	store_add_session(store, &session);
	for (n = 0; n < WINDOWS; n++) {
		window_write(store, n, PROBE_OFFCPU, 1 + PROBE_OFFCPU);
		window_write(store, n, PROBE_ONCPU, 1 + PROBE_ONCPU);
		window_write(store, n, PROBE_IOLAT, 1 + PROBE_IOLAT);
		window_write(store, n, PROBE_OFFCPU, SESSION);
	}
	do {
		usleep(1000);
		store_stats(store, &stats);
	} while (stats.written + stats.dropped_write + stats.dropped_queue < 4 * WINDOWS);
	assert_int_equal(stats.written, 4 * WINDOWS);
	store_stop(store);
}

static int set_up(void **state)
{
	struct config_error problem;
	char store[96], reason[256] = "";
	char *overrides[] = { store };

	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/db", directory);
	snprintf(store, sizeof(store), "store.path=%s", path);
	database_make();
	assert_int_equal(config_load("/dev/null", overrides, 1, &config, &problem), 0);
	assert_int_equal(recorder_start(config, &recorder, reason, sizeof(reason)), 0);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	recorder_stop(&recorder);
	config_free(config);
	process_table_free(table);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	return system(command);
}

static struct wire_snapshot_request request_of(const char *probe)
{
	return (struct wire_snapshot_request){
		.probe = probe,
		.window_ns = WIRE_ABSENT,
		.since_ns = WIRE_ABSENT,
		.until_ns = WIRE_ABSENT,
		.open = WIRE_BOOL_ABSENT,
		.reverse = WIRE_BOOL_ABSENT,
		.top = WIRE_ABSENT,
		.idle = WIRE_BOOL_ABSENT,
		.lines = WIRE_BOOL_ABSENT,
		.addresses = WIRE_BOOL_ABSENT,
		.each_ns = WIRE_ABSENT,
		.fold_own = WIRE_BOOL_ABSENT,
	};
}

static struct wire_filter filter_of_nothing(void)
{
	return (struct wire_filter){
		.user_threads = WIRE_BOOL_ABSENT,
		.kernel_threads = WIRE_BOOL_ABSENT,
		.user_stacks = WIRE_BOOL_ABSENT,
		.kernel_stacks = WIRE_BOOL_ABSENT,
		.min_block_ns = WIRE_ABSENT,
		.max_block_ns = WIRE_ABSENT,
	};
}

static struct answer *ask(const struct wire_snapshot_request *request)
{
	struct answer *answer = NULL;

	assert_int_equal(query_snapshot(&recorder, &root, request, &answer, &error), 0);
	return answer;
}

static const struct wire_snapshot_reply *reply_of(const struct answer *answer)
{
	return &answer_reply(answer)->snapshot;
}

static void assert_refused(const struct wire_snapshot_request *request, const char *message)
{
	struct answer *answer = NULL;

	assert_int_equal(query_snapshot(&recorder, &root, request, &answer, &error), -EINVAL);
	assert_non_null(strstr(error.message, message));
	wire_error_clear(&error);
}

/* Windows of all probes are listed by their start, and those that start together by probe. */
static void test_windows_are_in_the_order_of_time(void **state)
{
	static const char *const probes[] = { "iolat", "offcpu", "oncpu" };
	const struct wire_windows_request request = { .since_ns = WIRE_ABSENT,
						      .until_ns = WIRE_ABSENT };
	const struct wire_windows *windows;
	struct answer *answer = NULL;
	size_t i;

	assert_int_equal(query_windows(&recorder, &root, &request, &answer, &error), 0);
	windows = &answer_reply(answer)->windows.windows;
	assert_int_equal(windows->n, 3 * WINDOWS);
	for (i = 0; i < windows->n; i++) {
		assert_int_equal(windows->v[i].start, REAL_NS + (int64_t)(i / 3) * LENGTH_NS);
		assert_int_equal(windows->v[i].end, windows->v[i].start + LENGTH_NS);
		assert_string_equal(windows->v[i].probe, probes[i % 3]);
		assert_int_equal(windows->v[i].seq, i / 3 + 1);
	}
	assert_int_equal(answer_reply(answer)->windows.gaps.n, 0);
	answer_free(answer);
}

/* One answer for each range, in the order in which they were given. */
static void test_several_ranges(void **state)
{
	const struct wire_span spans[] = {
		{ REAL_NS + 2 * LENGTH_NS, REAL_NS + 3 * LENGTH_NS },
		{ REAL_NS, REAL_NS + 2 * LENGTH_NS },
	};
	struct wire_snapshot_request request = request_of("offcpu");
	struct answer *answer;

	request.ranges = (struct wire_spans){ .v = spans, .n = ARRAY_SIZE(spans) };
	answer = ask(&request);
	assert_int_equal(reply_of(answer)->totals.waits, 1);
	assert_int_equal(reply_of(answer)->coverage.asked.start, spans[0].since_ns);
	assert_true(answer_has_next(answer));
	assert_int_equal(query_snapshot_next(&recorder, &root, &request, &answer), 1);
	assert_int_equal(reply_of(answer)->totals.waits, 2);
	assert_int_equal(reply_of(answer)->coverage.asked.end, spans[1].until_ns);
	assert_false(answer_has_next(answer));
	answer_free(answer);
}

/* All ranges are checked before one is answered. */
static void test_ranges_that_make_no_sense(void **state)
{
	struct wire_span spans[] = { { REAL_NS, END_NS }, { REAL_NS, REAL_NS } };
	struct wire_snapshot_request request = request_of("offcpu");

	request.ranges = (struct wire_spans){ .v = spans, .n = ARRAY_SIZE(spans) };
	assert_refused(&request, "range number 2 ends before it begins, or when it begins");
	spans[1] = (struct wire_span){ -1, END_NS };
	assert_refused(&request, "range number 2 has a negative time");
	spans[1] = (struct wire_span){ INT64_MAX - 1, WIRE_ABSENT };
	assert_refused(&request, "range number 2 begins in the future");
	spans[1] = spans[0];
	request.window_ns = NS_PER_S;
	assert_refused(&request, "either a list of ranges, or one range");
}

/* A session that has ended is shown whole: from its first window to the end of its last one. */
static void test_all_of_a_past_session(void **state)
{
	struct wire_snapshot_request request = request_of(NULL);
	struct answer *answer;

	request.session = "mine";
	answer = ask(&request);
	assert_int_equal(reply_of(answer)->totals.waits, WINDOWS);
	assert_int_equal(reply_of(answer)->coverage.asked.start, REAL_NS);
	assert_int_equal(reply_of(answer)->coverage.asked.end, END_NS);
	assert_int_equal(reply_of(answer)->coverage.covered_ns, WINDOWS * LENGTH_NS);
	assert_int_equal(reply_of(answer)->coverage.gaps.n, 0);
	answer_free(answer);
}

static int64_t ios_of(const char *layer, const char *op)
{
	struct wire_snapshot_request request = request_of("iolat");
	struct wire_filter filter = filter_of_nothing();
	struct answer *answer;
	int64_t ios = 0;
	size_t i;

	filter.layer = layer;
	filter.op = op;
	request.filter = &filter;
	request.since_ns = REAL_NS;
	request.until_ns = END_NS;
	answer = ask(&request);
	for (i = 0; i < answer_n_rows(answer); i++) {
		const struct wire_row *row;

		assert_int_equal(answer_row(answer, i, &row), 0);
		ios += row->count;
	}
	answer_free(answer);
	return ios;
}

static void test_layers_and_operations(void **state)
{
	assert_int_equal(ios_of(NULL, NULL), WINDOWS * (READS + WRITES));
	assert_int_equal(ios_of("syscall", NULL), WINDOWS * READS);
	assert_int_equal(ios_of("block", NULL), WINDOWS * WRITES);
	assert_int_equal(ios_of(NULL, "write"), WINDOWS * WRITES);
	assert_int_equal(ios_of("syscall", "write"), 0);
}

/* The lengths, states and reasons of a filter are those of waits: samples and I/O are all shown. */
static void test_an_overview_of_some_waits(void **state)
{
	const char *sleeping = "S", *unknown = "unknown";
	struct wire_filter filter = filter_of_nothing();
	struct wire_overview_request request = {
		.window_ns = WIRE_ABSENT,
		.since_ns = REAL_NS,
		.until_ns = END_NS,
		.filter = &filter,
		.top = WIRE_ABSENT,
		.idle = 1,
		.io = 1,
		.fold_own = WIRE_BOOL_ABSENT,
	};
	struct answer *answer = NULL;

	filter.min_block_ns = NS_PER_MS;
	filter.max_block_ns = NS_PER_S;
	filter.states = (struct wire_strs){ .v = &sleeping, .n = 1 };
	filter.reasons = (struct wire_strs){ .v = &unknown, .n = 1 };
	assert_int_equal(query_overview(&recorder, &root, &request, &answer, &error), 0);
	assert_string_equal(reply_of(answer)->probe, "offcpu");
	assert_int_equal(reply_of(answer)->totals.waits, WINDOWS);
	assert_int_equal(query_overview_next(&recorder, &root, &request, &answer), 1);
	assert_string_equal(reply_of(answer)->probe, "oncpu");
	assert_null(reply_of(answer)->missing);
	assert_int_equal(reply_of(answer)->totals.samples, WINDOWS * SAMPLES);
	assert_int_equal(query_overview_next(&recorder, &root, &request, &answer), 1);
	assert_string_equal(reply_of(answer)->probe, "iolat");
	assert_null(reply_of(answer)->missing);
	assert_true(reply_of(answer)->totals.ios > 0);
	assert_int_equal(query_overview_next(&recorder, &root, &request, &answer), 0);
	answer_free(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows_are_in_the_order_of_time),
		cmocka_unit_test(test_several_ranges),
		cmocka_unit_test(test_ranges_that_make_no_sense),
		cmocka_unit_test(test_all_of_a_past_session),
		cmocka_unit_test(test_layers_and_operations),
		cmocka_unit_test(test_an_overview_of_some_waits),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
