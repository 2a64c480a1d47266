/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Measures pressure out of files of made-up trees, and adds up that of several windows. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/drain/pressure_meter.h"
#include "daemon/store/pressure_section.h"

static char root[64];

static int set_up(void **state)
{
	snprintf(root, sizeof(root), "/tmp/stackd-pressure-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

/* Writes a file below the root; makes its directory if there is none. */
static void put(const char *path, const char *text)
{
	char full[256], *slash;
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* Writes the three files of a group; each has these totals, in us. */
static void group_put(const char *path, const char *suffix, unsigned int some, unsigned int full)
{
	static const char *const names[] = { "cpu", "io", "memory" };
	char file[128], text[256];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(file, sizeof(file), "%s/%s%s", path, names[i], suffix);
		snprintf(text, sizeof(text),
			 "some avg10=1.00 avg60=0.00 avg300=0.00 total=%u\n"
			 "full avg10=0.00 avg60=0.00 avg300=0.00 total=%u\n",
			 some + (unsigned int)i, full);
		put(file, text);
	}
}

static void unit_put(const char *path, unsigned int some, unsigned int full)
{
	group_put(path, ".pressure", some, full);
}

static struct pressure_meter *meter_make(bool with_units)
{
	char host[128], cgroup[128];
	const struct pressure_meter_options options = { host, cgroup, with_units };
	struct pressure_meter *meter;

	snprintf(host, sizeof(host), "%s/host", root);
	snprintf(cgroup, sizeof(cgroup), "%s/cgroup", root);
	assert_int_equal(pressure_meter_new(&options, &meter), 0);
	return meter;
}

static void test_parse(void **state)
{
	uint64_t some = 1, full = 1;

	assert_int_equal(pressure_parse("some avg10=0.00 total=18446744073709551\nfull total=2\n",
					&some, &full),
			 0);
	assert_int_equal(some, UINT64_C(18446744073709551000));
	assert_int_equal(full, 2000);
	assert_int_equal(pressure_parse("some avg10=0.00 total=7\n", &some, &full), 0);
	assert_int_equal(some, 7000);
	assert_int_equal(full, 0);
	assert_int_equal(pressure_parse("", &some, &full), -EBADMSG);
	assert_int_equal(pressure_parse("some avg10=0.00\nfull total=2\n", &some, &full), -EBADMSG);
	assert_int_equal(pressure_parse("some total=x\n", &some, &full), -EBADMSG);
	assert_int_equal(some, 7000);
}

static void test_host(void **state)
{
	struct window_pressure out = {};
	struct pressure_meter *meter = meter_make(false);
	struct pressure_stats stats;

	pressure_meter_read(meter, 8, &out);
	assert_int_equal(out.state, PRESSURE_NO_PSI);
	group_put("host", "", 100, 7);
	pressure_meter_read(meter, 8, &out);
	assert_int_equal(out.state, PRESSURE_READ);
	assert_int_equal(out.ns, 0);
	group_put("host", "", 150, 9);
	pressure_meter_read(meter, 8, &out);
	assert_true(out.ns > 0 && out.ns < (uint64_t)(60 * NS_PER_S));
	assert_int_equal(out.stalled.some_ns[PRESSURE_MEMORY], 50000);
	assert_int_equal(out.stalled.full_ns[PRESSURE_CPU], 2000);
	assert_int_equal(out.units_state, PRESSURE_NOT_ASKED);

	/* Totals that fall are not those of the same host: nothing is known of this window. */
	out = (struct window_pressure){};
	group_put("host", "", 10, 9);
	pressure_meter_read(meter, 8, &out);
	assert_int_equal(out.state, PRESSURE_READ);
	assert_int_equal(out.ns, 0);
	put("host/io", "nonsense\n");
	pressure_meter_read(meter, 8, &out);
	assert_int_equal(out.state, PRESSURE_UNREADABLE);
	pressure_meter_stats(meter, &stats);
	assert_int_equal(stats.state, PRESSURE_UNREADABLE);
	pressure_meter_free(meter);
}

static void test_units(void **state)
{
	struct pressure_meter *meter = meter_make(true);
	struct window_pressure out = {};

	group_put("host", "", 0, 0);
	unit_put("cgroup/system.slice", 900, 0); /* a slice is the sum of its units */
	unit_put("cgroup/system.slice/b.service", 10, 0);
	unit_put("cgroup/system.slice/b.service/below", 10, 0);
	unit_put("cgroup/system.slice/a.service", 20, 1);
	unit_put("cgroup/user.slice/user-0.slice/session-1.scope", 5, 0);
	put("cgroup/init.scope/cgroup.procs", ""); /* no pressure files */
	pressure_meter_read(meter, 8, &out);
	assert_int_equal(out.units_state, PRESSURE_READ);
	assert_int_equal(out.n_units, 0);
	assert_int_equal(out.unreadable, 1);

	unit_put("cgroup/system.slice/b.service", 15, 0);
	unit_put("cgroup/user.slice/user-0.slice/session-1.scope", 105, 3);
	pressure_meter_read(meter, 8, &out);
	assert_int_equal(out.n_units, 2);
	assert_true(out.units_ns > 0);
	assert_string_equal(out.units[0].path, "/system.slice/b.service");
	assert_int_equal(out.units[0].stalled.some_ns[PRESSURE_IO], 5000);
	assert_string_equal(out.units[1].path, "/user.slice/user-0.slice/session-1.scope");
	assert_int_equal(out.units[1].stalled.full_ns[PRESSURE_CPU], 3000);
	window_pressure_fini(&out);
	pressure_meter_free(meter);
}

/*
 * A unit that begins within a window counts with all of its time. One whose directory was made anew
 * is another unit. Where not all units were read before, nothing is known of a unit that was not.
 */
static void test_new_units(void **state)
{
	struct pressure_meter *meter = meter_make(true);
	struct window_pressure out = {};

	group_put("host", "", 0, 0);
	unit_put("cgroup/a.service", 10, 0);
	pressure_meter_read(meter, 8, &out);
	unit_put("cgroup/n.service", 40, 0);
	pressure_meter_read(meter, 8, &out);
	assert_int_equal(out.n_units, 1);
	assert_string_equal(out.units[0].path, "/n.service");
	assert_int_equal(out.units[0].stalled.some_ns[PRESSURE_CPU], 40000);
	window_pressure_fini(&out);

	out = (struct window_pressure){};
	pressure_meter_read(meter, 1, &out);
	assert_int_equal(out.beyond, 1);
	window_pressure_fini(&out);
	out = (struct window_pressure){};
	pressure_meter_read(meter, 8, &out);
	assert_int_equal(out.n_units, 0);
	assert_int_equal(out.beyond, 0);
	pressure_meter_free(meter);
}

static void test_no_cgroups(void **state)
{
	const struct pressure_meter_options options = { root, "/nonexistent/cgroup", true };
	struct window_pressure out = {};
	struct pressure_meter *meter;

	assert_int_equal(pressure_meter_new(&options, &meter), 0);
	pressure_meter_read(meter, 8, &out);
	assert_int_equal(out.units_state, PRESSURE_UNREADABLE);
	assert_non_null(pressure_state_text(out.units_state, true));
	assert_null(pressure_state_text(PRESSURE_READ, true));
	pressure_meter_free(meter);
}

static void unit_add(struct window_pressure *pressure, const char *path, uint64_t ns)
{
	const struct pressure stalled = { .some_ns = { ns, 2 * ns, 0 }, .full_ns = { 0, ns, 0 } };

	assert_int_equal(window_pressure_add_unit(pressure, strdup(path), &stalled), 0);
}

static void test_sum(void **state)
{
	struct window_pressure a = { .ns = 5, .units_ns = 5, .state = PRESSURE_READ }, sum = {};
	struct window_pressure b = {
		.ns = 7, .units_ns = 6, .state = PRESSURE_NO_PSI, .beyond = 3
	};

	a.units_state = PRESSURE_READ;
	a.stalled.some_ns[PRESSURE_IO] = 4;
	b.stalled.some_ns[PRESSURE_IO] = 3;
	unit_add(&a, "/a", 1);
	unit_add(&a, "/c", 2);
	unit_add(&b, "/b", 10);
	unit_add(&b, "/c", 20);
	assert_int_equal(window_pressure_add(&sum, &b), 0);
	assert_int_equal(sum.state, PRESSURE_NO_PSI);
	assert_int_equal(window_pressure_add(&sum, &a), 0);
	assert_int_equal(sum.state, PRESSURE_READ);
	assert_int_equal(sum.units_state, PRESSURE_READ);
	assert_int_equal(sum.ns, 12);
	assert_int_equal(sum.units_ns, 11);
	assert_int_equal(sum.beyond, 3);
	assert_int_equal(sum.stalled.some_ns[PRESSURE_IO], 7);
	assert_int_equal(sum.n_units, 3);
	assert_string_equal(sum.units[1].path, "/b");
	assert_int_equal(sum.units[2].stalled.some_ns[PRESSURE_IO], 44);
	assert_int_equal(sum.units[2].stalled.full_ns[PRESSURE_IO], 22);
	window_pressure_fini(&a);
	window_pressure_fini(&b);
	window_pressure_fini(&sum);
}

/* Of too many units, those with the least pressure go, and are counted. */
static void test_too_many(void **state)
{
	struct window_pressure sum = {}, other = {};
	char path[32];
	int i;

	for (i = 0; i < WINDOW_UNITS_MAX; i++) {
		snprintf(path, sizeof(path), "/%04d", 2 * i);
		unit_add(&sum, path, 10 + (uint64_t)(i == 77 ? -9 : i));
	}
	unit_add(&other, "/0001", 100000);
	assert_int_equal(window_pressure_add(&sum, &other), 0);
	assert_int_equal(sum.n_units, WINDOW_UNITS_MAX);
	assert_int_equal(sum.beyond, 1);
	assert_string_equal(sum.units[1].path, "/0001");
	for (i = 0; i < WINDOW_UNITS_MAX; i++)
		assert_string_not_equal(sum.units[i].path, "/0154");
	window_pressure_fini(&sum);
	window_pressure_fini(&other);
}

static int decode(struct bytes_reader *in, struct window_pressure *out)
{
	struct window window = {};
	int r = store_pressure_decode(in, &window);

	*out = window.pressure;
	return r;
}

static void test_section(void **state)
{
	struct window_pressure in = { .ns = UINT64_MAX, .units_ns = 3, .state = 1, .beyond = 2 };
	struct window_pressure out = {};
	struct bytes bytes = {};
	struct bytes_reader reader;
	size_t n;

	in.units_state = PRESSURE_NO_CGROUP2;
	in.stalled.full_ns[PRESSURE_MEMORY] = UINT64_MAX - 1;
	unit_add(&in, "/a", 5);
	unit_add(&in, "/b", 6);
	store_pressure_encode(&(struct window){ .pressure = in }, &bytes);
	reader = (struct bytes_reader){ .at = bytes.data, .end = bytes.data + bytes.n };
	assert_int_equal(decode(&reader, &out), 0);
	assert_int_equal(out.ns, in.ns);
	assert_int_equal(out.units_state, in.units_state);
	assert_memory_equal(&out.stalled, &in.stalled, sizeof(in.stalled));
	assert_int_equal(out.n_units, 2);
	assert_memory_equal(&out.units[1].stalled, &in.units[1].stalled, sizeof(in.stalled));
	window_pressure_fini(&out);

	for (n = 0; n < bytes.n; n++) {
		out = (struct window_pressure){};
		reader = (struct bytes_reader){ .at = bytes.data, .end = bytes.data + n };
		assert_int_equal(decode(&reader, &out), -EBADMSG);
		window_pressure_fini(&out);
	}
	bytes_fini(&bytes);
	window_pressure_fini(&in);
}

/* Units that are not sorted could not be merged. */
static void test_section_order(void **state)
{
	struct window_pressure in = {}, out = {};
	struct bytes bytes = {};
	struct bytes_reader reader;

	unit_add(&in, "/b", 5);
	unit_add(&in, "/b", 6);
	store_pressure_encode(&(struct window){ .pressure = in }, &bytes);
	reader = (struct bytes_reader){ .at = bytes.data, .end = bytes.data + bytes.n };
	assert_int_equal(decode(&reader, &out), -EBADMSG);
	window_pressure_fini(&out);
	bytes_fini(&bytes);
	window_pressure_fini(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test_setup_teardown(test_host, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_units, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_new_units, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_cgroups, set_up, tear_down),
		cmocka_unit_test(test_sum),
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_section),
		cmocka_unit_test(test_section_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
