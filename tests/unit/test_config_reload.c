/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/config/reload.h"

static const struct config_paths nowhere;

static struct config *load(char *const *overrides, size_t n)
{
	struct config_error error = {};
	struct config *config = NULL;

	if (config_load_from(&nowhere, overrides, n, &config, &error))
		fail_msg("%s", error.text);
	return config;
}

struct told {
	char applied[256];
	char refused[256];
};

static void on_change(void *userdata, const char *section, const char *key, const char *value,
		      bool is_applied)
{
	struct told *told = userdata;
	char *out = is_applied ? told->applied : told->refused;
	size_t len = strlen(out);

	snprintf(out + len, sizeof(told->applied) - len, "%s.%s=%s ", section, key, value);
}

static void test_what_can_change_does(void **state)
{
	char *set[] = { (char[]){ "window.length=2s" }, (char[]){ "control.max_clients=7" } };
	_cleanup_(config_freep) struct config *config = load(NULL, 0), *fresh = load(set, 2);
	struct told told = {};

	assert_int_equal(config_reload(config, fresh, on_change, &told), 2);
	assert_string_equal(told.applied, "window.length=2s control.max_clients=7 ");
	assert_string_equal(told.refused, "");
	assert_int_equal(config->window_length_ns, 2 * NS_PER_S);
	assert_int_equal(config->control_max_clients, 7);
}

static void test_what_cannot_is_told(void **state)
{
	char *set[] = { (char[]){ "control.group=wheel" }, (char[]){ "probe.offcpu.min_wait=1ms" },
			(char[]){ "window.keep=1h" } };
	_cleanup_(config_freep) struct config *config = load(NULL, 0), *fresh = load(set, 3);
	struct told told = {};

	assert_int_equal(config_reload(config, fresh, on_change, &told), 1);
	assert_string_equal(told.applied, "window.keep=1h ");
	assert_string_equal(told.refused, "control.group=wheel probe.offcpu.min_wait=1ms ");
	assert_string_equal(config->control_group, "stackd");
	assert_int_equal(config->offcpu_min_wait_ns, 100 * NS_PER_US);
}

static void test_nothing_changed(void **state)
{
	_cleanup_(config_freep) struct config *config = load(NULL, 0), *fresh = load(NULL, 0);
	struct told told = {};

	assert_int_equal(config_reload(config, fresh, on_change, &told), 0);
	assert_string_equal(told.applied, "");
	assert_string_equal(told.refused, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_can_change_does),
		cmocka_unit_test(test_what_cannot_is_told),
		cmocka_unit_test(test_nothing_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
