/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/session/filter_fields.h"
#include "proto/wire_error.h"

static struct wire_filter wire_none(void)
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

static void assert_taken(const struct wire_filter *wire, enum probe_kind kind, enum filter_use use)
{
	struct wire_error error;

	assert_int_equal(filter_fields_check(wire, kind, use, &error), 0);
}

static void assert_refused(const struct wire_filter *wire, enum probe_kind kind,
			   enum filter_use use, const char *field, const char *text)
{
	struct wire_error error;

	assert_int_equal(filter_fields_check(wire, kind, use, &error), -EINVAL);
	assert_string_equal(error.what, field);
	if (!strstr(error.message, text))
		fail_msg("'%s' is not in '%s'", text, error.message);
	wire_error_clear(&error);
}

static void test_every_kind_takes_no_filter(void **state)
{
	const struct wire_filter none = wire_none();
	enum probe_kind kind;

	for (kind = 0; kind < PROBE_KIND_N; kind++) {
		assert_taken(NULL, kind, FILTER_OF_SESSION);
		assert_taken(&none, kind, FILTER_OF_SESSION);
		assert_taken(&none, kind, FILTER_OF_QUERY);
	}
}

static void test_times_are_for_waits(void **state)
{
	struct wire_filter wire = wire_none();

	wire.min_block_ns = 0;
	assert_taken(&wire, PROBE_OFFCPU, FILTER_OF_SESSION);
	assert_taken(&wire, PROBE_OFFWAKE, FILTER_OF_QUERY);
	assert_refused(&wire, PROBE_ONCPU, FILTER_OF_SESSION, "min_block_ns", "oncpu has no waits");
	assert_refused(&wire, PROBE_IOLAT, FILTER_OF_QUERY, "min_block_ns", "offcpu and offwake");
	wire = wire_none();
	wire.max_block_ns = 1;
	assert_refused(&wire, PROBE_STACKCOUNT, FILTER_OF_SESSION, "max_block_ns", "no waits");
}

static void test_states_are_for_waits(void **state)
{
	const char *name = "D";
	struct wire_filter wire = wire_none();

	wire.states = (struct wire_strs){ .v = &name, .n = 1 };
	assert_taken(&wire, PROBE_OFFWAKE, FILTER_OF_SESSION);
	assert_refused(&wire, PROBE_STACKSNOOP, FILTER_OF_QUERY, "states", "that have a state");
}

/* Every wait is recorded, so a reason can be asked for, but not recorded alone. */
static void test_reasons_are_for_answers(void **state)
{
	const char *name = "flock";
	struct wire_filter wire = wire_none();

	wire.reasons = (struct wire_strs){ .v = &name, .n = 1 };
	assert_taken(&wire, PROBE_OFFCPU, FILTER_OF_QUERY);
	assert_taken(&wire, PROBE_OFFWAKE, FILTER_OF_QUERY);
	assert_refused(&wire, PROBE_ONCPU, FILTER_OF_QUERY, "reasons", "see offcpu and offwake");
	assert_refused(&wire, PROBE_OFFCPU, FILTER_OF_SESSION, "reasons", "can be limited");
}

/* Sessions record without exceptions; rows of iolat have no functions. */
static void test_exceptions_are_for_answers(void **state)
{
	const char *names[] = { "a", "b" };
	const int64_t pid = 1;
	const struct wire_strs list = { .v = names, .n = 2 };
	struct {
		const char *field;
		struct wire_filter wire;
	} cases[] = {
		{ "comms", wire_none() },	{ "cgroups", wire_none() },
		{ "units", wire_none() },	{ "not_comms", wire_none() },
		{ "not_cgroups", wire_none() }, { "not_units", wire_none() },
		{ "not_states", wire_none() },	{ "not_reasons", wire_none() },
		{ "functions", wire_none() },	{ "not_functions", wire_none() },
		{ "callers", wire_none() },	{ "not_pids", wire_none() },
	};
	size_t i;

	cases[0].wire.comms = cases[1].wire.cgroups = cases[2].wire.units = list;
	cases[3].wire.not_comms = cases[4].wire.not_cgroups = cases[5].wire.not_units = list;
	cases[6].wire.not_states = cases[7].wire.not_reasons = list;
	cases[8].wire.functions = cases[9].wire.not_functions = cases[10].wire.callers = list;
	cases[11].wire.not_pids = (struct int_list){ .v = &pid, .n = 1 };
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_taken(&cases[i].wire, PROBE_OFFCPU, FILTER_OF_QUERY);
		assert_refused(&cases[i].wire, PROBE_OFFCPU, FILTER_OF_SESSION, cases[i].field,
			       "an answer can");
	}
	for (i = 8; i < 11; i++) {
		assert_taken(&cases[i].wire, PROBE_ONCPU, FILTER_OF_QUERY);
		assert_refused(&cases[i].wire, PROBE_IOLAT, FILTER_OF_QUERY, cases[i].field,
			       "not of stacks");
	}
	assert_refused(&cases[6].wire, PROBE_ONCPU, FILTER_OF_QUERY, "not_states", "no waits");
	assert_taken(&cases[3].wire, PROBE_IOLAT, FILTER_OF_QUERY);
}

static void test_layers_are_for_io(void **state)
{
	struct wire_filter wire = wire_none();

	wire.op = "read";
	assert_taken(&wire, PROBE_IOLAT, FILTER_OF_SESSION);
	assert_taken(&wire, PROBE_IOLAT, FILTER_OF_QUERY);
	assert_refused(&wire, PROBE_OFFCPU, FILTER_OF_SESSION, "op", "see iolat");
	wire.layer = "vfs";
	assert_refused(&wire, PROBE_STACKCOUNT, FILTER_OF_QUERY, "layer", "layers");
}

/* Programs can compare what no window keeps. */
static void test_a_session_takes_more_than_a_query(void **state)
{
	int64_t one = 1;
	struct wire_filter wire = wire_none();

	wire.cpus = (struct int_list){ .v = &one, .n = 1 };
	assert_taken(&wire, PROBE_ONCPU, FILTER_OF_SESSION);
	assert_taken(&wire, PROBE_STACKCOUNT, FILTER_OF_SESSION);
	assert_refused(&wire, PROBE_OFFCPU, FILTER_OF_SESSION, "cpus",
		       "see oncpu, stackcount and stacksnoop");
	assert_refused(&wire, PROBE_ONCPU, FILTER_OF_QUERY, "cpus", "can be started with");
	wire = wire_none();
	wire.tids = (struct int_list){ .v = &one, .n = 1 };
	assert_taken(&wire, PROBE_IOLAT, FILTER_OF_SESSION);
	assert_taken(&wire, PROBE_OFFCPU, FILTER_OF_QUERY);
	assert_refused(&wire, PROBE_IOLAT, FILTER_OF_QUERY, "tids", "can be started with");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_takes_no_filter),
		cmocka_unit_test(test_times_are_for_waits),
		cmocka_unit_test(test_states_are_for_waits),
		cmocka_unit_test(test_reasons_are_for_answers),
		cmocka_unit_test(test_exceptions_are_for_answers),
		cmocka_unit_test(test_layers_are_for_io),
		cmocka_unit_test(test_a_session_takes_more_than_a_query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
