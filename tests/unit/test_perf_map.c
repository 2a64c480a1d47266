/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/process/perf_map.h"

static int file_of(const char *text, size_t size)
{
	int fd = memfd_create("perf_map", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	return fd;
}

static struct perf_map *read_text(const char *text)
{
	int fd = file_of(text, strlen(text));
	struct perf_map *map = NULL;

	assert_int_equal(perf_map_read(NULL, fd, 0, NULL, &map), 0);
	close(fd);
	return map;
}

static void assert_name(const struct perf_map *map, uint64_t address, const char *expected)
{
	uint64_t start = 0;
	const char *name = perf_map_lookup(map, address, &start);

	if (!expected) {
		assert_null(name);
		return;
	}
	assert_non_null(name);
	assert_string_equal(name, expected);
	assert_true(start <= address);
}

static void names_what_the_lines_say(void **state)
{
	struct perf_map *map = read_text("7f0000001000 20 LazyCompile:*work /a b/x.js:12\n"
					 "0x7f0000001040 0x10 plain\n"
					 "7f0000001020 8 \n"
					 "zz 10 junk\n\n10\n10 20\n10 0 empty\n"
					 "ffffffffffffffff 10 wraps\n"
					 "20 100000000 huge\n"
					 "7f0000000000 1000 first\n"
					 "7f0000002000 10 unfinished");

	assert_name(map, 0x7f0000000fff, "first");
	assert_name(map, 0x7f0000001000, "LazyCompile:*work /a b/x.js:12");
	assert_name(map, 0x7f000000101f, "LazyCompile:*work /a b/x.js:12");
	assert_name(map, 0x7f0000001020, NULL);
	assert_name(map, 0x7f000000104f, "plain");
	assert_name(map, 0x7f0000001050, NULL);
	assert_name(map, 0x7f0000002000, NULL);
	assert_name(map, 0, NULL);
	assert_name(map, 0x10, NULL);
	assert_name(map, UINT64_MAX, NULL);
	perf_map_unref(map);
	assert_int_equal(perf_maps_bytes(), 0);
}

static void the_last_written_counts(void **state)
{
	struct perf_map *map = read_text("1000 100 old\n1100 100 old2\n1180 100 later\n"
					 "1000 100 new\n3000 10 a\n3010 10 b\n2ff0 100 over\n");

	assert_name(map, 0x1000, "new");
	assert_name(map, 0x1170, NULL); /* code that was replaced since */
	assert_name(map, 0x1180, "later");
	assert_name(map, 0x3000, "over");
	assert_name(map, 0x3010, "over");
	perf_map_unref(map);
}

/* A complete reading of the same file gives the same. */
static void assert_as_read_anew(int fd, const struct perf_map *map)
{
	struct perf_map *anew = NULL;
	uint64_t start = 0, anew_start = 0;

	assert_int_equal(perf_map_read(NULL, fd, 0, NULL, &anew), 0);
	for (uint64_t address = 0xf00; address < 0x4000; address += 0x10) {
		const char *name = perf_map_lookup(map, address, &start);
		const char *expected = perf_map_lookup(anew, address, &anew_start);

		assert_int_equal(!name, !expected);
		if (name) {
			assert_string_equal(name, expected);
			assert_int_equal(start, anew_start);
		}
	}
	perf_map_unref(anew);
}

static void text_add(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void goes_on_where_it_was(void **state)
{
	static const char *const pieces[] = {
		"1000 100 one\n2000 100 two\n",
		"3000 100 three\n3100 10 half a li",
		"ne\n1080 100 over one\n",
		"",
		"3000 100 another\n2000 80 over two\n",
	};
	struct perf_map *map = NULL, *next;
	int fd = file_of("", 0);

	for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
		text_add(fd, pieces[i]);
		assert_int_equal(perf_map_read(NULL, fd, 0, map, &next), 0);
		assert_as_read_anew(fd, next);
		perf_map_unref(map);
		map = next;
	}
	assert_name(map, 0x3008, "another");
	assert_name(map, 0x3108, "half a line");
	assert_name(map, 0x1088, "over one");
	perf_map_unref(map);
	close(fd);
	assert_int_equal(perf_maps_bytes(), 0);
}

static void another_file_is_read_anew(void **state)
{
	struct perf_map *map = read_text("1000 100 one\n2000 100 two\n"), *next = NULL;
	const char *other = "1000 100 eno\n2000 100 owt\n3000 100 eerht\n";
	int fd = file_of(other, strlen(other));

	assert_int_equal(perf_map_read(NULL, fd, 0, map, &next), 0);
	assert_name(next, 0x1000, "eno");
	assert_name(next, 0x3000, "eerht");
	perf_map_unref(next);
	assert_int_equal(ftruncate(fd, 5), 0);
	assert_int_equal(perf_map_read(NULL, fd, 0, map, &next), 0);
	assert_name(next, 0x1000, NULL);
	perf_map_unref(next);
	perf_map_unref(map);
	close(fd);
	assert_int_equal(perf_maps_bytes(), 0);
}

static void a_huge_file_costs_no_more_than_the_limit(void **state)
{
	char path[] = "/tmp/test_perf_map.XXXXXX";
	int fd = mkstemp(path);
	struct perf_map *map = NULL, *second = NULL;
	FILE *out = fdopen(dup(fd), "we");

	unlink(path);
	for (int i = 0; i < 1000000; i++)
		fprintf(out, "%x 10 function_%d_with_a_name_of_some_length\n", 0x1000 + i * 16, i);
	fclose(out);
	assert_int_equal(ftruncate(fd, INT64_C(5) << 30), 0);
	assert_int_equal(perf_map_read(NULL, fd, 0, NULL, &map), 0);
	assert_true(perf_map_is_truncated(map));
	assert_name(map, 0x1000, "function_0_with_a_name_of_some_length");
	assert_true(perf_maps_bytes() <= PERF_MAPS_MEMORY_MAX);
	/* The next map gets the little memory that is left. */
	perf_map_read(NULL, fd, 0, NULL, &second);
	assert_true(perf_maps_bytes() <= PERF_MAPS_MEMORY_MAX);
	perf_map_unref(second);
	perf_map_unref(map);
	assert_int_equal(ftruncate(fd, 0), 0); /* 5 GiB without a newline */
	assert_int_equal(ftruncate(fd, INT64_C(5) << 30), 0);
	assert_int_equal(perf_map_read(NULL, fd, 0, NULL, &map), 0);
	assert_name(map, 0, NULL);
	perf_map_unref(map);
	close(fd);
	assert_int_equal(perf_maps_bytes(), 0);
}

/* Reads a large map four times: that takes no more than a share, and another owner's map has room.
 */
static void check_share(int fd, uint64_t group, int other_fd, uint64_t other_group)
{
	struct perf_map *maps[4] = { NULL }, *other = NULL;
	size_t i;

	for (i = 0; i < 4; i++)
		perf_map_read(NULL, fd, group, NULL, &maps[i]);
	assert_true(perf_maps_bytes() <= PERF_MAPS_USER_MAX);
	assert_true(perf_maps_bytes() > PERF_MAPS_USER_MAX / 2);
	assert_int_equal(perf_map_read(NULL, other_fd, other_group, NULL, &other), 0);
	assert_name(other, 0x1000, "other");
	for (i = 0; i < 4; i++)
		perf_map_unref(maps[i]);
	perf_map_unref(other);
	assert_int_equal(perf_maps_bytes(), 0);
}

/* What one user writes does not take the memory that others need. */
static void each_user_has_a_share(void **state)
{
	char path[] = "/tmp/test_perf_map.XXXXXX";
	int fd = mkstemp(path), other_fd;
	struct perf_map *other = NULL;
	FILE *out = fdopen(dup(fd), "we");
	size_t i;

	unlink(path);
	if (geteuid()) {
		fclose(out);
		close(fd);
		skip();
	}
	for (i = 0; i < 500000; i++)
		fprintf(out, "%zx 10 function_%zu_with_a_name_of_some_length\n", 0x1000 + i * 16,
			i);
	fclose(out);
	assert_int_equal(fchown(fd, 12345, 12345), 0);
	other_fd = file_of("1000 20 other\n", strlen("1000 20 other\n"));
	check_share(fd, 0, other_fd, 0);
	/* Root of one container does not take the memory of root of another one. */
	assert_int_equal(fchown(fd, 0, 0), 0);
	check_share(fd, 1, other_fd, 2);
	/* The share is free again. */
	assert_int_equal(perf_map_read(NULL, fd, 0, NULL, &other), 0);
	perf_map_unref(other);
	close(other_fd);
	close(fd);
}

static void opens_only_its_own(void **state)
{
	int proc_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;
	struct file_state key = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	assert_int_equal(perf_map_open(proc_fd, NULL, &key), -ENOENT);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	fd = perf_map_open(proc_fd, NULL, &key);
	assert_true(fd >= 0 && key.inode && !key.size);
	close(fd);
	if (geteuid() == 0) {
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_int_equal(perf_map_open(proc_fd, NULL, &key), -EPERM);
	}
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(perf_map_open(proc_fd, NULL, &key), -ENOENT);
	unlink(path);
	assert_int_equal(symlink("/proc/kcore", path), 0);
	assert_int_equal(perf_map_open(proc_fd, NULL, &key), -ENOENT);
	unlink(path);
	close(proc_fd);
}

/* Another user's process may have bound a file of root to the path. */
static void opens_no_file_of_root(void **state)
{
	char path[64], name[32];
	struct file_state key;
	int proc_fd, fd, ready[2];
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setresuid(12345, 12345, 12345) == 0 && write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], name, 1), 1);
	snprintf(name, sizeof(name), "/proc/%d", (int)pid);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	proc_fd = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(proc_fd >= 0);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(perf_map_open(proc_fd, NULL, &key), -EPERM);
	assert_int_equal(chown(path, 12345, 12345), 0);
	fd = perf_map_open(proc_fd, NULL, &key);
	assert_true(fd >= 0);
	close(fd);
	unlink(path);
	close(proc_fd);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(ready[0]);
	close(ready[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_what_the_lines_say),
		cmocka_unit_test(the_last_written_counts),
		cmocka_unit_test(goes_on_where_it_was),
		cmocka_unit_test(another_file_is_read_anew),
		cmocka_unit_test(a_huge_file_costs_no_more_than_the_limit),
		cmocka_unit_test(each_user_has_a_share),
		cmocka_unit_test(opens_only_its_own),
		cmocka_unit_test(opens_no_file_of_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
