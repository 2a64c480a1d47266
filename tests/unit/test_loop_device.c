/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Builds directories as sysfs has them, for devices that lie on others. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/host/loop_device.h"

enum { DM_MAJOR = 253, SD_MAJOR = 8, MISSING_MAJOR = 9 };

static char sys[] = "/tmp/stackd_loop_XXXXXX";

static void dir_make(const char *path)
{
	assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
}

/* Makes the directories of a device, and a link to it by its number. */
static void device_add(const char *name, unsigned int major, unsigned int minor)
{
	char path[256], target[256];

	snprintf(path, sizeof(path), "%s/block/%s", sys, name);
	dir_make(path);
	snprintf(path, sizeof(path), "%s/block/%s/slaves", sys, name);
	dir_make(path);
	snprintf(path, sizeof(path), "%s/dev/block/%u:%u", sys, major, minor);
	snprintf(target, sizeof(target), "../../block/%s", name);
	assert_int_equal(symlink(target, path), 0);
}

/* Puts a device upon another one. */
static void slave_add(const char *name, const char *slave)
{
	char path[256], target[256];

	snprintf(path, sizeof(path), "%s/block/%s/slaves/%s", sys, name, slave);
	snprintf(target, sizeof(target), "../../%s", slave);
	assert_int_equal(symlink(target, path), 0);
}

static int sys_make(void **state)
{
	char path[256];

	(void)state;
	if (!mkdtemp(sys))
		return -1;
	snprintf(path, sizeof(path), "%s/block", sys);
	dir_make(path);
	snprintf(path, sizeof(path), "%s/dev", sys);
	dir_make(path);
	snprintf(path, sizeof(path), "%s/dev/block", sys);
	dir_make(path);
	device_add("sda1", SD_MAJOR, 1);
	device_add("sdb1", SD_MAJOR, 17);
	device_add("loop3", 7, 3);
	return 0;
}

static int sys_remove(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", sys);
	return system(command);
}

/* A loop device is found through any number of layers up to the limit, and beside other devices. */
static void test_layers(void **state)
{
	(void)state;
	device_add("dm-0", DM_MAJOR, 0);
	device_add("dm-1", DM_MAJOR, 1);
	device_add("dm-2", DM_MAJOR, 2);
	device_add("dm-3", DM_MAJOR, 3);
	slave_add("dm-0", "loop3");
	slave_add("dm-1", "dm-0");
	slave_add("dm-2", "sda1");
	slave_add("dm-2", "dm-1");
	slave_add("dm-3", "sda1");
	slave_add("dm-3", "sdb1");
	assert_true(loop_device_is_below(sys, DM_MAJOR, 0));
	assert_true(loop_device_is_below(sys, DM_MAJOR, 1));
	assert_true(loop_device_is_below(sys, DM_MAJOR, 2));
	assert_false(loop_device_is_below(sys, DM_MAJOR, 3));
	assert_false(loop_device_is_below(sys, SD_MAJOR, 1));
	assert_false(loop_device_is_below(sys, MISSING_MAJOR, 1));
}

/* Devices that lie on each other without end count as a loop device; a deep stack does not. */
static void test_limit_of_layers(void **state)
{
	char name[16], below[16];

	(void)state;
	device_add("dm-50", DM_MAJOR, 50);
	slave_add("dm-50", "dm-50");
	assert_true(loop_device_is_below(sys, DM_MAJOR, 50));
	device_add("dm-100", DM_MAJOR, 100);
	for (int i = 1; i <= LOOP_LAYERS_MAX + 1; i++) {
		snprintf(name, sizeof(name), "dm-%d", 100 + i);
		snprintf(below, sizeof(below), "dm-%d", 99 + i);
		device_add(name, DM_MAJOR, 100 + (unsigned int)i);
		slave_add(name, below);
		assert_int_equal(loop_device_is_below(sys, DM_MAJOR, 100 + (unsigned int)i),
				 i > LOOP_LAYERS_MAX);
	}
}

/* A device upon more devices than are looked at counts as one upon a loop device. */
static void test_limit_of_devices(void **state)
{
	char name[16];

	(void)state;
	device_add("md9", MISSING_MAJOR, 9);
	for (unsigned int i = 0; i <= LOOP_DEVICES_MAX; i++) {
		assert_false(loop_device_is_below(sys, MISSING_MAJOR, 9));
		snprintf(name, sizeof(name), "sdz%u", i);
		device_add(name, SD_MAJOR, 1000 + i);
		slave_add("md9", name);
	}
	assert_true(loop_device_is_below(sys, MISSING_MAJOR, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_limit_of_layers),
		cmocka_unit_test(test_limit_of_devices),
	};

	return cmocka_run_group_tests(tests, sys_make, sys_remove);
}
