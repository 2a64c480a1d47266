/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/host/open_file.h"

/* The executable of this test, as the kernel numbers it. */
static void self_read(struct stat *st, uint32_t *generation, char *path)
{
	_Alignas(struct file_handle) char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	struct file_handle *handle = (void *)room;
	int mount_id;
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	assert_true(n > 0);
	path[n] = '\0';
	assert_int_equal(stat(path, st), 0);
	handle->handle_bytes = MAX_HANDLE_SZ;
	if (geteuid() || name_to_handle_at(AT_FDCWD, path, handle, &mount_id, 0) ||
	    handle->handle_type != 1 || handle->handle_bytes != 8) {
		print_message("no root, or no file system whose files can be opened by inode\n");
		skip();
	}
	memcpy(generation, handle->f_handle + sizeof(uint32_t), sizeof(*generation));
}

static uint32_t dev_of(const struct stat *st)
{
	return (uint32_t)(major(st->st_dev) << 20 | minor(st->st_dev));
}

static void opens_by_inode(void **state)
{
	char expected[PATH_MAX], path[PATH_MAX];
	struct stat st, found;
	uint32_t generation;
	int fd, r;

	self_read(&st, &generation, expected);
	r = open_by_inode(dev_of(&st), st.st_ino, generation, path, &fd);
	if (r == -EOPNOTSUPP || r == -ENOENT || r == -EPERM)
		skip();
	assert_int_equal(r, 0);
	assert_int_equal(fstat(fd, &found), 0);
	assert_int_equal(found.st_ino, st.st_ino);
	assert_int_equal(found.st_dev, st.st_dev);
	assert_string_equal(path, expected);
	close(fd);
	/* The generation of a file that had the inode before: opening must fail. */
	assert_int_equal(open_by_inode(dev_of(&st), st.st_ino, generation ^ 0x5a5a5a5a, path, &fd),
			 -ESTALE);
}

static void refuses_what_it_cannot_open(void **state)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	assert_int_equal(open_by_inode(UINT32_MAX, 2, 0, path, &fd), -ENOENT);
	assert_int_equal(open_by_inode(0, UINT64_MAX, 0, path, &fd), -EOPNOTSUPP);
	assert_int_equal(stat("/proc", &st), 0);
	assert_int_equal(open_by_inode(dev_of(&st), st.st_ino, 0, path, &fd), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_by_inode),
		cmocka_unit_test(refuses_what_it_cannot_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
