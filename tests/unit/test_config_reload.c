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

struct changes {
	char applied[256];
	char refused[256];
};

static void on_change(void *userdata, const char *section, const char *key, const char *value,
		      bool is_applied)
{
	struct changes *changes = userdata;
	char *out = is_applied ? changes->applied : changes->refused;
	size_t len = strlen(out);

	snprintf(out + len, sizeof(changes->applied) - len, "%s.%s=%s ", section, key, value);
}

static void test_live_settings_are_applied(void **state)
{
	char *set[] = { (char[]){ "window.length=2s" }, (char[]){ "control.max_clients=7" } };
	_cleanup_(config_freep) struct config *config = load(NULL, 0), *fresh = load(set, 2);
	struct changes changes = {};

	assert_int_equal(config_reload(config, fresh, on_change, &changes), 2);
	assert_string_equal(changes.applied, "window.length=2s control.max_clients=7 ");
	assert_string_equal(changes.refused, "");
	assert_int_equal(config->window_length_ns, 2 * NS_PER_S);
	assert_int_equal(config->control_max_clients, 7);
}

static void test_other_settings_are_reported(void **state)
{
	char *set[] = { (char[]){ "control.group=wheel" }, (char[]){ "probe.offcpu.min_wait=1ms" },
			(char[]){ "window.keep=1h" } };
	_cleanup_(config_freep) struct config *config = load(NULL, 0), *fresh = load(set, 3);
	struct changes changes = {};

	assert_int_equal(config_reload(config, fresh, on_change, &changes), 1);
	assert_string_equal(changes.applied, "window.keep=1h ");
	assert_string_equal(changes.refused, "control.group=wheel probe.offcpu.min_wait=1ms ");
	assert_string_equal(config->control_group, "stackd");
	assert_int_equal(config->offcpu_min_wait_ns, 100 * NS_PER_US);
}

static void test_equal_settings_are_not_reported(void **state)
{
	_cleanup_(config_freep) struct config *config = load(NULL, 0), *fresh = load(NULL, 0);
	struct changes changes = {};

	assert_int_equal(config_reload(config, fresh, on_change, &changes), 0);
	assert_string_equal(changes.applied, "");
	assert_string_equal(changes.refused, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_live_settings_are_applied),
		cmocka_unit_test(test_other_settings_are_reported),
		cmocka_unit_test(test_equal_settings_are_not_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
