/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/host/cpu_list.h"

static void test_lists(void **state)
{
	static const struct {
		const char *text;
		int count;
		uint16_t cpus;
	} lists[] = {
		{ "0\n", 1, 0x1 },	{ "0-3\n", 4, 0xf },	   { "0-1,4,6-7\n", 5, 0xd3 },
		{ "\n", 0, 0 },		{ "5-20\n", 3, 0xe0 },	   { "9\n", 0, 0 },
		{ "x\n", -EINVAL, 0 },	{ "3-1\n", -EINVAL, 0 },   { "1-\n", -EINVAL, 0x0 },
		{ "-1\n", -EINVAL, 0 }, { "1;2\n", -EINVAL, 0x2 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		bool cpus[8] = { false };
		unsigned int bits = 0;

		assert_int_equal(cpu_list_parse(lists[i].text, cpus, 8), lists[i].count);
		for (unsigned int cpu = 0; cpu < 8; cpu++)
			bits |= (unsigned int)cpus[cpu] << cpu;
		assert_int_equal(bits, lists[i].cpus);
	}
}

static void test_files(void **state)
{
	bool cpus[1] = { false };

	assert_int_equal(cpu_list_read("/proc/no/such", cpus, 1), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
