/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds windows to the totals: nothing is lost or counted twice with any number of units, counters
 * never fall, and a unit that is gone makes room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/process/process.h"
#include "daemon/session/totals.h"

enum { UNITS = 120 };

static struct process_table *processes;
static struct totals *totals;
static struct totals_data data;

static int set_up(void **state)
{
	return process_table_new_stored(&processes) || totals_new(&totals) ? -1 : 0;
}

static int tear_down(void **state)
{
	totals = totals_free(totals);
	processes = process_table_free(processes);
	return 0;
}

static struct window *window_make(int64_t start_ns, int64_t length_ns)
{
	struct window *window = window_new();

	assert_non_null(window);
	window->kind = PROBE_OFFCPU;
	window->start_ns = start_ns;
	window->end_ns = start_ns + length_ns;
	window->real_offset_ns = 1000;
	return window;
}

/* Adds a thread of a control group, which is blocked and runnable for so long. */
static uint32_t image_add_in(struct window *window, uint32_t unit, const char *cgroup,
			     uint64_t blocked_ns, uint64_t runnable_ns)
{
	struct window_image *image = window_add_image(window);
	const struct process_info info = {
		.id = { .pid = 1000 + (int32_t)unit, .start_boot_ns = unit + 1 },
		.comm = "comm",
		.cgroup = cgroup,
	};

	assert_non_null(image);
	image->process = process_table_add_stored(processes, &info);
	assert_non_null(image->process);
	image->uid = unit + 1;
	image->tid = info.id.pid;
	image->sums.blocked_ns = blocked_ns;
	image->sums.runnable_ns = runnable_ns;
	return (uint32_t)window->n_images - 1;
}

/* Adds a thread of the unit with this number. */
static uint32_t image_add(struct window *window, uint32_t unit, uint64_t blocked_ns,
			  uint64_t runnable_ns)
{
	char cgroup[64];

	snprintf(cgroup, sizeof(cgroup), "/system.slice/unit%u.service/payload", unit);
	return image_add_in(window, unit, cgroup, blocked_ns, runnable_ns);
}

/* Adds a wait in uninterruptible sleep without stacks, whose class is `other`. */
static void row_add(struct window *window, uint32_t image, uint64_t blocked_ns)
{
	struct window_row *row = window_add_row(window);

	assert_non_null(row);
	row->image = image;
	row->state = 2;
	row->count = 1;
	row->blocked_ns = blocked_ns;
}

static void window_done(struct window *window)
{
	window_seal(window);
	totals_add(totals, window);
	window_unref(window);
	totals_read(totals, &data);
}

static const struct totals_unit *find(uint32_t unit)
{
	char path[64];

	snprintf(path, sizeof(path), "/system.slice/unit%u.service", unit);
	for (size_t i = 0; i < data.n_units; i++)
		if (strcmp(data.units[i].path, path) == 0)
			return &data.units[i];
	return NULL;
}

static uint64_t blocked_of(const struct totals_unit *unit)
{
	uint64_t ns = 0;

	for (unsigned int i = 0; i < WAIT_CLASS_N; i++)
		ns += unit->blocked_ns[i];
	return ns;
}

static uint64_t blocked_sum(void)
{
	uint64_t ns = blocked_of(&data.others);

	for (size_t i = 0; i < data.n_units; i++)
		ns += blocked_of(&data.units[i]);
	return ns;
}

static void test_unit_of_a_path(void **state)
{
	static const struct {
		const char *cgroup, *unit;
	} paths[] = {
		{ "/", "/" },
		{ "", "" },
		{ "/a", "/a" },
		{ "/a/b.service", "/a" },
		{ "/system.slice", "/system.slice" },
		{ "/system.slice/a.service", "/system.slice/a.service" },
		{ "/system.slice/a.service/b.slice/c", "/system.slice/a.service" },
		{ "/user.slice/user-1.slice/session-2.scope",
		  "/user.slice/user-1.slice/session-2.scope" },
		{ "/.slice/a", "/.slice" },
		{ "/x.slices/a", "/x.slices" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		assert_int_equal(totals_unit_length(paths[i].cgroup), strlen(paths[i].unit));
}

static void test_units_are_bounded(void **state)
{
	uint64_t sum = 0;

	for (unsigned int round = 0; round < 3; round++) {
		struct window *window = window_make(round * NS_PER_S, NS_PER_S);

		for (uint32_t i = 0; i < UNITS; i++) {
			/* The last units are the busiest; a part of the time is of short waits. */
			row_add(window, image_add(window, i, 1000 + i, 10), 900 + i);
			sum += 1000 + i;
		}
		window_done(window);
		assert_int_equal(data.n_units, TOTALS_UNITS);
		assert_int_equal(blocked_sum(), sum);
		assert_int_equal(data.others.runnable_ns,
				 (round + 1) * 10 * (UNITS - TOTALS_UNITS));
	}
	assert_null(find(UNITS - TOTALS_UNITS - 1));
	assert_non_null(find(UNITS - TOTALS_UNITS));
	assert_int_equal(find(UNITS - 1)->blocked_ns[WAIT_CLASS_OTHER], 3 * (900 + UNITS - 1));
	assert_int_equal(find(UNITS - 1)->blocked_ns[WAIT_CLASS_SHORT], 300);
	assert_int_equal(data.given_up, 0);
	assert_int_equal(data.probes[PROBE_OFFCPU].windows, 3);
	assert_int_equal(data.probes[PROBE_OFFCPU].covered_ns, 3 * NS_PER_S);
	assert_int_equal(data.probes[PROBE_OFFCPU].gap_ns, 0);
	assert_int_equal(data.probes[PROBE_OFFCPU].last_ns, 3 * NS_PER_S + 1000);
}

static void test_a_unit_that_is_gone_makes_room(void **state)
{
	const int64_t later = TOTALS_GONE_NS + 10 * NS_PER_S;
	struct window *window = window_make(0, NS_PER_S);
	uint64_t others;

	for (uint32_t i = 0; i < TOTALS_UNITS; i++)
		image_add(window, i, 0, 100);
	window_done(window);
	/* All units but number 7 are still there; a new one finds no place yet. */
	window = window_make(NS_PER_S, later - NS_PER_S);
	for (uint32_t i = 0; i <= TOTALS_UNITS; i++)
		if (i != 7)
			image_add(window, i, 0, 100);
	window_done(window);
	assert_int_equal(data.given_up, 1);
	assert_null(find(7));
	assert_int_equal(find(TOTALS_UNITS)->runnable_ns, 100);
	assert_int_equal(find(6)->runnable_ns, 200);
	others = data.others.runnable_ns;
	/* The unit comes back: others are there, so it has no counters of its own. */
	window = window_make(later, NS_PER_S);
	image_add(window, 7, 0, 100);
	window_done(window);
	assert_null(find(7));
	assert_int_equal(data.others.runnable_ns, others + 100);
}

static void test_estimates_do_not_change_the_sum(void **state)
{
	struct window *window = window_make(0, NS_PER_S);

	/* The rows are estimates, and say more than the thread was blocked. */
	row_add(window, image_add(window, 1, 1000, 1), 1500);
	window_done(window);
	assert_int_equal(blocked_sum(), 1000);
	assert_int_equal(find(1)->blocked_ns[WAIT_CLASS_OTHER], 1000);
	window = window_make(NS_PER_S, NS_PER_S);
	image_add(window, 1, 1000, 1);
	window_done(window);
	assert_int_equal(blocked_sum(), 2000);
	assert_int_equal(find(1)->blocked_ns[WAIT_CLASS_OTHER], 1500);
	assert_int_equal(find(1)->blocked_ns[WAIT_CLASS_SHORT], 500);
}

/* Names that cannot be labels: not UTF-8, with control characters, or longer than there is room. */
static void test_names_that_are_no_labels(void **state)
{
	struct window *window = window_make(0, NS_PER_S);
	char path[TOTALS_UNIT_LEN + 2] = "/";

	memset(path + 1, 'x', TOTALS_UNIT_LEN);
	image_add_in(window, 1, "/a\xff.service", 0, 1);
	image_add_in(window, 2, "/a\xfe.service", 0, 2);
	image_add_in(window, 3, path, 0, 4);
	path[TOTALS_UNIT_LEN - 1] = '\0';
	image_add_in(window, 4, path, 0, 8);
	image_add_in(window, 5, "/\"\\\xc3\xa4.service/\xff", 0, 16);
	image_add_in(window, 6, "/a\n.service", 0, 32);
	image_add_in(window, 7, "/a\x1b[2J.service", 0, 64);
	window_done(window);
	assert_int_equal(data.n_units, 2);
	assert_int_equal(data.others.runnable_ns, 7 + 32 + 64);
	assert_string_equal(data.units[0].path, "/\"\\\xc3\xa4.service");
	assert_int_equal(data.units[0].runnable_ns, 16);
	assert_string_equal(data.units[1].path, path);
}

static void test_gaps_and_waits_over_the_end(void **state)
{
	struct window *window = window_make(NS_PER_S, NS_PER_S);
	uint32_t image = image_add(window, 1, NS_PER_S, 0);
	struct window_open *open = window_add_open(window);

	assert_non_null(open);
	*open = (struct window_open){ .image = image, .state = 2, .wake_ns = INT64_MAX };
	window_done(window);
	assert_int_equal(find(1)->blocked_ns[WAIT_CLASS_OTHER], NS_PER_S);
	/* It ends in the middle of a window that does not follow at once. */
	window = window_make(3 * NS_PER_S, NS_PER_S);
	image = image_add(window, 1, NS_PER_S / 2, 100);
	struct window_span *span = window_add_span(window);
	assert_non_null(span);
	*span = (struct window_span){
		.image = image,
		.state = 2,
		.wake_ns = 3 * NS_PER_S + NS_PER_S / 2,
		.end_ns = 3 * NS_PER_S + NS_PER_S / 2 + 100,
	};
	window_done(window);
	assert_int_equal(find(1)->blocked_ns[WAIT_CLASS_OTHER], NS_PER_S + NS_PER_S / 2);
	assert_int_equal(find(1)->blocked_ns[WAIT_CLASS_SHORT], 0);
	assert_int_equal(data.probes[PROBE_OFFCPU].gap_ns, NS_PER_S);
}

static void test_slow_operations_count_once(void **state)
{
	struct window *window = window_make(0, NS_PER_S);
	uint64_t buckets[IO_BUCKETS_N] = { [20] = 5 };

	window->kind = PROBE_IOLAT;
	for (unsigned int i = 0; i < 2; i++) {
		struct window_io *io = window_add_io(window);

		assert_non_null(io);
		io->layer = IO_LAYERS - 1;
		io->op = IO_OPS - 1;
		io->count = 5;
		io->total_ns = 5 << 20;
		io->is_slow = i ? WINDOW_IO_SLOW : 0;
		assert_int_equal(window_io_set_buckets(window, io, buckets), 0);
	}
	window_done(window);
	assert_int_equal(data.ios[IO_LAYERS - 1][IO_OPS - 1].count, 5);
	assert_int_equal(data.ios[IO_LAYERS - 1][IO_OPS - 1].buckets[20], 5);
	assert_int_equal(data.probes[PROBE_IOLAT].windows, 1);
	assert_int_equal(data.n_units, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unit_of_a_path),
		cmocka_unit_test_setup_teardown(test_units_are_bounded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_a_unit_that_is_gone_makes_room, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_estimates_do_not_change_the_sum, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_names_that_are_no_labels, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_gaps_and_waits_over_the_end, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_slow_operations_count_once, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
