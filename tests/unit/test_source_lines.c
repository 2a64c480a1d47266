/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests source lines with this program itself, and with child processes that answer wrongly, too
 * late or not at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base.h"
#include "daemon/module/module.h"
#include "daemon/process/process.h"
#include "daemon/symbol/source_lines.h"
#include "daemon/symbol/source_lines_child.h"

static struct process_table *processes;
static struct source_lines_helper *helper;
static struct arena *arena;
static struct source_lines *lines;
static char self[4096], script[] = "/tmp/test_lines_XXXXXX";
static uint64_t self_id;

#ifdef __x86_64__
#define PC "lea -1(%%rip), %0"
#else
#define PC "adr %0, ."
#endif

/* Returns an address in its caller: it is inlined and has no code of its own. */
static inline __attribute__((always_inline)) uint64_t here(int *line)
{
	uint64_t address;

	*line = __LINE__ + 1;
	__asm__ volatile(PC : "=r"(address)::"memory");
	return address;
}

static uint64_t load_bias;

static int on_object(struct dl_phdr_info *info, size_t size, void *data)
{
	load_bias = info->dlpi_addr; /* the first mapping is that of the program itself */
	return 1;
}

static uint64_t file_id_of(const char *path)
{
	struct module_registry *registry = module_registry_new(1 << 20);
	int fd = open(path, O_PATH | O_CLOEXEC);
	struct module *module;
	uint64_t id;

	assert_non_null(registry);
	assert_int_equal(module_get(registry, -1, fd, path, &module), 0);
	id = module_file_id(module);
	module_unref(module);
	module_registry_free(registry);
	close(fd);
	return id;
}

static int open_file(void *userdata, uint64_t file_id, const char *path, int fd_min, int *fd_out,
		     int *debug_fd_out)
{
	return process_table_open_file(userdata, file_id, path, fd_min, fd_out, debug_fd_out);
}

static int set_up(void **state)
{
	struct source_lines_opener opener = { open_file, NULL };

	assert_int_equal(process_table_new_stored(&processes), 0);
	assert_int_equal(source_lines_helper_new(UINT64_C(4) << 30, &helper), 0);
	arena = arena_new();
	opener.userdata = processes;
	assert_int_equal(source_lines_new(arena, &opener, &lines), 0);
	return 0;
}

static int tear_down(void **state)
{
	source_lines_free(lines);
	arena_free(arena);
	source_lines_helper_free(helper);
	process_table_free(processes);
	return 0;
}

/* Runs a script of the test in place of the child process. */
static void answer_by(const char *text, int64_t run_ns)
{
	int fd = open(script, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	source_lines_helper_set_program(helper, script, run_ns);
}

static void assert_note(const char *expected)
{
	const char *notes[SOURCE_LINES_NOTES_MAX];
	size_t n;

	assert_int_equal(source_lines_notes(lines, notes, &n), 0);
	assert_int_equal(n, expected ? 1 : 0);
	if (expected && !strstr(notes[0], expected))
		fail_msg("%s: not said in: %s", expected, notes[0]);
}

static void test_lines_of_this_program(void **state)
{
	const struct source_frame *frames;
	uint64_t address;
	size_t n;
	int line, called;

	called = __LINE__ + 1;
	address = here(&line) - load_bias;
	assert_int_equal(source_lines_add(lines, self_id, self, address), 0);
	assert_int_equal(source_lines_add(lines, self_id, self, address), 0);
	assert_int_equal(source_lines_add(lines, self_id, self, 1), 0);
	assert_int_equal(source_lines_run(lines, helper), 0);
	frames = source_lines_find(lines, self_id, self, address, &n);
	assert_int_equal(n, 2);
	assert_string_equal(frames[0].name, "here");
	assert_non_null(strstr(frames[0].file, "test_source_lines.c"));
	assert_int_equal(frames[0].line, line);
	assert_null(frames[1].name);
	assert_non_null(strstr(frames[1].file, "test_source_lines.c"));
	assert_int_equal(frames[1].line, called);
	assert_null(source_lines_find(lines, self_id, self, 1, &n));
	assert_note(NULL);
}

static void test_a_file_that_is_another_now(void **state)
{
	size_t n;

	assert_int_equal(source_lines_add(lines, self_id + 1, self, 4096), 0);
	assert_int_equal(source_lines_add(lines, self_id + 2, "/nowhere/gone", 4096), 0);
	assert_int_equal(source_lines_run(lines, helper), 0);
	assert_null(source_lines_find(lines, self_id + 1, self, 4096, &n));
	assert_note("gone: no debug information was found, or the file is gone");
}

/* A file at another path answers for itself only, even if it says that it is the same one. */
static void test_the_same_id_at_another_path(void **state)
{
	size_t n;
	int line;
	uint64_t address = here(&line) - load_bias;

	assert_int_equal(source_lines_add(lines, self_id, "/nowhere/copy", address), 0);
	assert_int_equal(source_lines_add(lines, self_id, self, address), 0);
	assert_int_equal(source_lines_run(lines, helper), 0);
	assert_non_null(source_lines_find(lines, self_id, self, address, &n));
	assert_null(source_lines_find(lines, self_id, "/nowhere/copy", address, &n));
	assert_note("no source lines for copy:");
}

static void failing(const char *text, const char *note)
{
	struct source_lines_stats stats;
	size_t n;

	answer_by(text, NS_PER_S / 2);
	assert_int_equal(source_lines_add(lines, self_id, self, 4096), 0);
	assert_int_equal(source_lines_run(lines, helper), 0);
	assert_null(source_lines_find(lines, self_id, self, 4096, &n));
	source_lines_helper_stats(helper, &stats);
	assert_int_equal(stats.runs, 1);
	assert_note(note);
}

static void test_one_that_hangs(void **state)
{
	struct source_lines_stats stats;

	failing("#!/bin/sh\nexec sleep 600\n", "took too long");
	source_lines_helper_stats(helper, &stats);
	assert_int_equal(stats.failed, 1);
}

static void test_one_that_dies(void **state)
{
	failing("#!/bin/sh\nkill -SEGV $$\n", "broken, or too large");
}

static void test_one_that_says_nothing(void **state)
{
	failing("#!/bin/sh\nexit 0\n", "broken");
}

/* Replies with 4 GiB of frames, with texts longer than the reply, and with half a head. */
static void test_nonsense(void **state)
{
	failing("#!/bin/sh\nprintf '\\001\\0\\0\\0\\377\\377\\377\\377' >&4\n", "broken");
}

static void test_texts_beyond_the_end(void **state)
{
	failing("#!/bin/sh\nprintf '\\001\\0\\0\\0\\001\\0\\0\\0\\001\\0\\0\\0\\377\\377\\377\\377abc' >&4\n",
		"broken");
}

static void test_half_a_head(void **state)
{
	failing("#!/bin/sh\nprintf '\\001\\0' >&4\n", "broken");
}

static void test_limits(void **state)
{
	const char *notes[SOURCE_LINES_NOTES_MAX];
	size_t n, i;

	for (i = 0; i < LINES_CHILD_FILES_MAX + 3; i++)
		assert_int_equal(source_lines_add(lines, 1000 + i, "/nowhere", 4096), 0);
	assert_int_equal(source_lines_run(lines, helper), 0);
	assert_int_equal(source_lines_notes(lines, notes, &n), 0);
	assert_int_equal(n, 2);
	assert_non_null(strstr(notes[1], "for 3 frames: too many"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lines_of_this_program),
		TEST(test_a_file_that_is_another_now),
		TEST(test_the_same_id_at_another_path),
		TEST(test_one_that_hangs),
		TEST(test_one_that_dies),
		TEST(test_one_that_says_nothing),
		TEST(test_nonsense),
		TEST(test_texts_beyond_the_end),
		TEST(test_half_a_head),
		TEST(test_limits),
	};
	ssize_t size;
	int fd, r;

	if (strcmp(argv[0], LINES_CHILD_NAME) == 0)
		return lines_child_main();
	size = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[size > 0 ? size : 0] = '\0';
	self_id = file_id_of(self);
	dl_iterate_phdr(on_object, NULL);
	fd = mkostemp(script, O_CLOEXEC);
	if (fd < 0 || fchmod(fd, 0700) < 0)
		return EXIT_FAILURE;
	close(fd);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(script);
	return r;
}
