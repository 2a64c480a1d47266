/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/host/remote_mounts.h"

static const char lines[] =
	"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"40 22 0:9001 / /srv/a\\040-\\040b rw shared:2 master:3 - nfs4 server:/export rw,hard\n"
	"41 22 0:9002 / /home/u/s rw - fuse.sshfs u@h: rw,user_id=0\n"
	"42 22 8:9003 / /media/w rw - fuseblk /dev/sdb1 rw\n"
	"43 22 0:9004 / /run rw - tmpfs tmpfs rw\n"
	"44 22 0:9005 / /sys/fs/fuse/connections rw - fusectl fusectl rw\n"
	"45 22 0:9006 / /x rw - overlay overlay rw\n"
	"not a line\n46 22 0:9007 / /y rw\n\n";

static void test_types(void **state)
{
	static const struct {
		unsigned int major, minor;
		bool is_remote;
	} expected[] = {
		{ 0, 9001, true },  { 0, 9002, true },	{ 8, 9003, true },  { 0, 9004, false },
		{ 0, 9005, false }, { 0, 9006, false }, { 0, 9007, false }, { 8, 1, false },
	};
	FILE *in = fmemopen((char *)(uintptr_t)lines, sizeof(lines) - 1, "r");
	struct remote_mounts *mounts = remote_mounts_new();
	size_t i;

	assert_non_null(in);
	remote_mounts_read(mounts, in);
	fclose(in);
	/* There is no process whose mountinfo could be read: only what was read before is known. */
	for (i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
		assert_int_equal(remote_mounts_contain(
					 mounts, -1, makedev(expected[i].major, expected[i].minor)),
				 expected[i].is_remote);
	remote_mounts_free(mounts);
}

/* The device that the test runs from is never remote, whatever its type. */
static void test_own_files_are_read(void **state)
{
	struct remote_mounts *mounts = remote_mounts_new();
	char line[128];
	struct stat st;
	FILE *in;

	assert_int_equal(stat("/proc/self/exe", &st), 0);
	snprintf(line, sizeof(line), "22 1 %u:%u / / rw - nfs s:/ rw\n", major(st.st_dev),
		 minor(st.st_dev));
	in = fmemopen(line, strlen(line), "r");
	assert_non_null(in);
	remote_mounts_read(mounts, in);
	fclose(in);
	assert_false(remote_mounts_contain(mounts, -1, st.st_dev));
	remote_mounts_free(mounts);
}

static void test_a_process_is_asked(void **state)
{
	int fd = open("/proc/self", O_PATH | O_DIRECTORY);
	struct remote_mounts *mounts = remote_mounts_new();
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(stat("/proc", &st), 0);
	assert_false(remote_mounts_contain(mounts, fd, st.st_dev));
	assert_false(remote_mounts_contain(mounts, fd, makedev(0, 99999)));
	close(fd);
	remote_mounts_free(mounts);
}

static void test_many_devices(void **state)
{
	struct remote_mounts *mounts = remote_mounts_new();
	unsigned int i;

	for (i = 0; i < 2000; i++)
		assert_false(remote_mounts_contain(mounts, -1, makedev(7, i)));
	remote_mounts_free(mounts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_own_files_are_read),
		cmocka_unit_test(test_a_process_is_asked),
		cmocka_unit_test(test_many_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
