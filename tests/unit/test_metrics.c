/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints metrics: names are escaped, buckets add up, and times have all their digits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/render/metrics.h"
#include "common/base.h"

static char *text;

static void print(const struct wire_metrics_reply *metrics)
{
	const struct wire_status_reply status = {
		.version = "1",
		.bpf_ns = WIRE_ABSENT,
		.user_ns = 3 * NS_PER_S + 7,
	};
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	render_metrics(out, metrics, &status);
	fclose(out);
}

static void check_line(const char *line)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(text, whole))
		fail_msg("no line %s in:\n%s", line, text);
}

static int tear_down(void **state)
{
	free(text);
	text = NULL;
	return 0;
}

static void test_units(void **state)
{
	static const struct wire_class_total classes[] = { { "lock", 1234567890123456789 } };
	static const struct wire_unit_total units[] = {
		{ "/a\\x2d\"b\"\n.service", { classes, 1 }, 5, 0 },
		{ "", { NULL, 0 }, NS_PER_S, 1 },
	};
	const struct wire_metrics_reply metrics = { .units = { units, ARRAY_SIZE(units) } };

	print(&metrics);
	check_line("stackd_unit_blocked_seconds_total{unit=\"/a\\\\x2d\\\"b\\\"\\n.service\","
		   "reason=\"lock\"} 1234567890.123456789");
	check_line("stackd_unit_runnable_seconds_total{unit=\"other\"} 1.000000000");
	check_line("stackd_unit_throttled_seconds_total{unit=\"other\"} 0.000000001");
	check_line("stackd_cpu_seconds_total{part=\"user\"} 3.000000007");
	assert_null(strstr(text, "part=\"bpf\""));
}

static void test_buckets(void **state)
{
	/* Of waits, the first bucket ends at 2^10 ns, and the fifth one at 2^14. */
	static const int64_t waits[] = { 1, 0, 0, 0, 2, 4, [22] = 8, 16 };
	/* Of operations, the first one ends at 2 ns, and number 13 at 2^14. */
	static const int64_t ios[] = { [13] = 3, 5, [40] = 7 };
	static const struct wire_io_total io = {
		.layer = "device",
		.op = "read",
		.total_ns = 77,
		.buckets = { ios, ARRAY_SIZE(ios) },
	};
	const struct wire_metrics_reply metrics = {
		.preempted = { waits, ARRAY_SIZE(waits) },
		.preempted_ns = 1,
		.ios = { &io, 1 },
	};

	print(&metrics);
	check_line("stackd_preempted_wait_seconds_bucket{le=\"1.6384e-05\"} 3");
	check_line("stackd_preempted_wait_seconds_bucket{le=\"0.000131072\"} 7");
	check_line("stackd_preempted_wait_seconds_bucket{le=\"4.294967296\"} 15");
	check_line("stackd_preempted_wait_seconds_bucket{le=\"+Inf\"} 31");
	check_line("stackd_preempted_wait_seconds_sum 0.000000001");
	check_line("stackd_preempted_wait_seconds_count 31");
	check_line(
		"stackd_io_latency_seconds_bucket{layer=\"device\",op=\"read\",le=\"1.6384e-05\"} 3");
	check_line(
		"stackd_io_latency_seconds_bucket{layer=\"device\",op=\"read\",le=\"0.000131072\"} 8");
	check_line("stackd_io_latency_seconds_bucket{layer=\"device\",op=\"read\",le=\"+Inf\"} 15");
	check_line("stackd_io_latency_seconds_count{layer=\"device\",op=\"read\"} 15");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_units, tear_down),
		cmocka_unit_test_teardown(test_buckets, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
