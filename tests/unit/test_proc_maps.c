/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/host/proc_maps.h"

static int parse(const char *text, struct proc_maps *out)
{
	FILE *in = fmemopen((char *)(uintptr_t)text, strlen(text), "r");
	int r;

	assert_non_null(in);
	r = proc_maps_read(in, out);
	fclose(in);
	return r;
}

static void keeps_only_executable_ones(void **state)
{
	struct proc_maps m;

	assert_int_equal(
		parse("55eff3af1000-55eff3af3000 r--p 00000000 fe:00 247134    /usr/bin/cat\n"
		      "55eff3af3000-55eff3af8000 r-xp 00002000 fe:01 247134    /usr/bin/cat\n"
		      "55f02033f000-55f020360000 rw-p 00000000 00:00 0         [heap]\n"
		      "7f2773984000-7f27739a6000 rwxp 00000000 00:00 0 \n"
		      "7f2773bfc000-7f2773bfe000 r-xp 00000000 00:00 0         [vdso]\n"
		      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n",
		      &m),
		0);
	assert_int_equal(m.n, 4);
	assert_int_equal(m.items[0].start, 0x55eff3af3000);
	assert_int_equal(m.items[0].end, 0x55eff3af8000);
	assert_int_equal(m.items[0].pgoff, 0x2000);
	assert_int_equal(m.items[0].dev, makedev(0xfe, 1));
	assert_int_equal(m.items[0].inode, 247134);
	assert_string_equal(m.items[0].path, "/usr/bin/cat");
	assert_false(m.items[0].is_deleted);
	assert_string_equal(m.items[1].path, "");
	assert_int_equal(m.items[1].inode, 0);
	assert_string_equal(m.items[2].path, "[vdso]");
	assert_string_equal(m.items[3].path, "[vsyscall]");
	assert_true(m.items[3].end == 0xffffffffff601000);
	assert_false(m.is_truncated);
	proc_maps_fini(&m);
}

/* One that begins where the one before it ends does not overlap it. */
static void keeps_neighbours(void **state)
{
	struct proc_maps m;

	assert_int_equal(parse("1000-2000 r-xp 00000000 fe:00 5 /a\n"
			       "2000-3000 r-xp 00000000 fe:00 6 /b\n"
			       "3000-4000 r-xp 00001000 fe:00 6 /b\n",
			       &m),
			 0);
	assert_int_equal(m.n, 3);
	assert_int_equal(m.items[1].start, 0x2000);
	assert_int_equal(m.items[2].pgoff, 0x1000);
	proc_maps_fini(&m);
}

/* Lines of shared memory are parsed one by one, but for their paths; no others are. */
static void parses_shared_memory(void **state)
{
	static const char *const others[] = {
		"1000-2000 rw-p 00000000 fe:00 5 /a\n",
		"1000-2000 rw-s 00000000 fe:00\n",
		"2000-1000 rw-s 00000000 fe:00 5 /a\n",
		"1000-2000 rw-s",
		"x",
	};
	struct proc_mapping m;

	assert_true(proc_maps_shared_parse(
		"7f00-7f10 rw-s 00003000 00:01 1029 /dev/zero (deleted)\n", &m));
	assert_int_equal(m.start, 0x7f00);
	assert_int_equal(m.end, 0x7f10);
	assert_int_equal(m.pgoff, 0x3000);
	assert_int_equal(m.dev, makedev(0, 1));
	assert_int_equal(m.inode, 1029);
	assert_null(m.path);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(proc_maps_shared_parse(others[i], &m));
}

static void decodes_paths(void **state)
{
	struct proc_maps m;

	assert_int_equal(
		parse("1000-2000 r-xp 00000000 fe:00 1          /opt/my app/a  b\n"
		      "3000-4000 r-xp 00000000 fe:00 2          /tmp/gone (deleted)\n"
		      "5000-6000 r-xp 00000000 fe:00 3          /tmp/two\\012lines\n"
		      "7000-8000 r-xp 00000000 00:05 4          /memfd:jit code (deleted)\n"
		      "9000-a000 r-xp 00000000 00:05 5          (deleted)",
		      &m),
		0);
	assert_int_equal(m.n, 5);
	assert_string_equal(m.items[0].path, "/opt/my app/a  b");
	assert_string_equal(m.items[1].path, "/tmp/gone");
	assert_true(m.items[1].is_deleted);
	assert_string_equal(m.items[2].path, "/tmp/two\nlines");
	assert_string_equal(m.items[3].path, "/memfd:jit code");
	assert_true(m.items[3].is_deleted);
	assert_string_equal(m.items[4].path, "(deleted)");
	proc_maps_fini(&m);
}

static void sorts_and_drops_what_was_read_twice(void **state)
{
	struct proc_maps m;

	assert_int_equal(parse("5000-6000 r-xp 00000000 fe:00 1 /b\n"
			       "1000-3000 r-xp 00000000 fe:00 2 /a\n"
			       "2000-4000 r-xp 00000000 fe:00 3 /again\n",
			       &m),
			 0);
	assert_int_equal(m.n, 2);
	assert_string_equal(m.items[0].path, "/a");
	assert_string_equal(m.items[1].path, "/b");
	proc_maps_fini(&m);
}

static void refuses_other_text(void **state)
{
	static const char *const texts[] = {
		"hello\n",
		"1000 r-xp 00000000 fe:00 1 /a\n",
		"1000-2000\n",
		"1000-2000 r-xp\n",
		"2000-1000 r-xp 00000000 fe:00 1 /a\n",
		"1000-2000 r-xp zz fe:00 1 /a\n",
		"1000-2000 r-xp 0 fe00 1 /a\n",
		"1000-2000 r-xp 0 fe:00 0x1 /a\n",
		"11111111111111111-2000 r-xp 0 fe:00 1 /a\n",
	};
	struct proc_maps m;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(parse(texts[i], &m), -EBADMSG);
}

/*
 * Reads this number of mappings with these flags, whose paths are this long; neighbours have the
 * same path or not.
 */
static void read_flags(const char *flags, size_t count, int path_len, bool is_same_path,
		       struct proc_maps *out)
{
	size_t size = count * (80 + (size_t)path_len), n = 0;
	char *text = malloc(size);

	assert_non_null(text);
	for (size_t i = 0; i < count; i++)
		n += (size_t)snprintf(text + n, size - n, "%zx-%zx %s 00000000 fe:00 1 /%0*zu\n",
				      (2 * i + 1) << 12, (2 * i + 2) << 12, flags, path_len,
				      is_same_path ? 0 : i);
	assert_int_equal(parse(text, out), 0);
	free(text);
}

static void read_many(size_t count, int path_len, bool is_same_path, struct proc_maps *out)
{
	read_flags("r-xp", count, path_len, is_same_path, out);
}

static size_t bytes_of(const struct proc_maps *m)
{
	size_t bytes = 0;

	for (size_t i = 0; i < m->n; i++)
		bytes += proc_mapping_bytes(m, i);
	return bytes;
}

static void has_a_path_once(void **state)
{
	struct proc_maps m;

	read_many(1000, 3900, true, &m);
	assert_int_equal(m.n, 1000);
	assert_false(m.is_truncated);
	assert_ptr_equal(m.items[0].path, m.items[999].path);
	assert_int_equal(strlen(m.items[0].path), 3901);
	assert_true(bytes_of(&m) < 1000 * sizeof(m.items[0]) + 4000);
	proc_maps_fini(&m);
}

/* Reads too many mappings with paths of this length, and checks that it keeps the first ones. */
static void check_left_out(int path_len, size_t most)
{
	struct proc_maps m;

	read_many(40000, path_len, false, &m);
	assert_true(m.is_truncated);
	assert_in_range(m.n, most / 2, most);
	assert_in_range(bytes_of(&m), PROC_MAPS_BYTES_MAX / 2, PROC_MAPS_BYTES_MAX);
	assert_int_equal(m.items[0].start, 0x1000);
	assert_int_equal(m.items[m.n - 1].start, (2 * m.n - 1) << 12);
	proc_maps_fini(&m);
}

static void reports_what_it_leaves_out(void **state)
{
	struct proc_maps m;

	check_left_out(5, PROC_MAPS_BYTES_MAX / 60);
	check_left_out(1000, PROC_MAPS_BYTES_MAX / 1000);
	read_many(12000, 3900, true, &m);
	assert_true(m.is_truncated);
	assert_in_range(m.n, 1000, PROC_MAPS_TEXT_MAX / 3900);
	proc_maps_fini(&m);
	/* Also if none of them is executable. */
	read_flags("r--p", 12000, 3900, true, &m);
	assert_true(m.is_truncated);
	assert_int_equal(m.n, 0);
	proc_maps_fini(&m);
}

static void reads_its_own(void **state)
{
	FILE *in = fopen("/proc/self/maps", "re");
	uintptr_t here = (uintptr_t)&reads_its_own;
	bool is_found = false;
	struct proc_maps m;

	assert_non_null(in);
	assert_int_equal(proc_maps_read(in, &m), 0);
	fclose(in);
	for (size_t i = 0; i < m.n; i++) {
		if (here >= m.items[i].start && here < m.items[i].end)
			is_found = strstr(m.items[i].path, "test_proc_maps") != NULL;
	}
	assert_true(is_found);
	proc_maps_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_only_executable_ones),
		cmocka_unit_test(keeps_neighbours),
		cmocka_unit_test(parses_shared_memory),
		cmocka_unit_test(decodes_paths),
		cmocka_unit_test(sorts_and_drops_what_was_read_twice),
		cmocka_unit_test(refuses_other_text),
		cmocka_unit_test(has_a_path_once),
		cmocka_unit_test(reports_what_it_leaves_out),
		cmocka_unit_test(reads_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
