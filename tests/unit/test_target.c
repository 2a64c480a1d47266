/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/probe/target.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "tests/live/usdt.h"

static void check_parsed(const char *text, enum target_kind kind, const char *place,
			 const char *name)
{
	struct target_pattern pattern;
	char why[512] = "";

	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	assert_int_equal(pattern.kind, kind);
	assert_string_equal(pattern.name, name);
	if (place)
		assert_string_equal(pattern.scope, place);
	else
		assert_null(pattern.scope);
	target_pattern_fini(&pattern);
}

static void test_kinds(void **state)
{
	check_parsed("vfs_read", TARGET_FUNCTION, NULL, "vfs_read");
	check_parsed("p:vfs_*", TARGET_FUNCTION, NULL, "vfs_*");
	check_parsed("p::vfs_*", TARGET_FUNCTION, NULL, "vfs_*");
	check_parsed("t:sched:sched_*", TARGET_TRACEPOINT, "sched", "sched_*");
	check_parsed("u:c:malloc", TARGET_USER, "c", "malloc");
	check_parsed("c:malloc", TARGET_USER, "c", "malloc");
	check_parsed("p:c:malloc", TARGET_USER, "c", "malloc");
	check_parsed("u:/usr/bin/x:a::b(int)", TARGET_USER, "/usr/bin/x", "a::b(int)");
	check_parsed("u:/usr/bin/x:0x1234", TARGET_USER, "/usr/bin/x", "0x1234");
	check_parsed("usdt:c:setjmp", TARGET_USDT, "c", "setjmp");
	check_parsed("usdt:/usr/bin/x:libc:mem*", TARGET_USDT, "/usr/bin/x", "libc:mem*");
}

static void check_refused(const char *text, bool is_regex, const char *word)
{
	struct target_pattern pattern;
	char why[512] = "";

	assert_int_equal(target_parse(text, is_regex, &pattern, why, sizeof(why)), -EINVAL);
	if (!strstr(why, word))
		fail_msg("%s: \"%s\" says nothing of \"%s\"", text, why, word);
	target_pattern_fini(&pattern);
}

static void test_malformed(void **state)
{
	static const char *const texts[] = {
		"",	 "t:",	   "t:sched", "t::x",	 "u:c",	      "u::malloc",
		"p:",	 "p::",	   ":",	      "c:",	 "vfs read",  "vfs_[rw]*",
		"^vfs_", "usdt:c", "usdt::x", "usdt:c:", "usdt:c:x y"
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		check_refused(texts[i], false, "is no function");
}

static void test_regex_position(void **state)
{
	check_refused("a[b", true, "at its end");
	check_refused("vfs_(read|write", true, "at its end");
	check_refused("ab)c", true, "at character 3");
	check_refused("+a", true, "at character 1");
	check_refused("u:c:m[", true, "at its end");
	check_refused("(*UTF)a", true, "disabled");
	/* The expressions that took gigabytes or hours by the matcher of libc. */
	check_refused("a++++++++++++++++++++++++", true, "at character");
	check_refused("(?R", true, "at its end");
}

/*
 * Expressions that would take gigabytes to compile are refused, and a search with one that would
 * take hours to match ends at a limit, which is not the same as a search without a match.
 */
static void test_regex_limits(void **state)
{
	static const char *const slow[] = {
		"(.*)(.*)(.*)(.*)(.*)\\1\\2\\3\\4\\5[yz]$",
		"(a*)*(a*)*(a*)*(a*)*[bc]",
		"(a|aa)+[bc]",
		"((a?){1,50}){1,50}[bc]",
	};
	char name[64] = "", why[512], text[300];

	check_refused("((((a{1,200}){1,200}){1,200}){1,200})", true, "too large");
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	check_refused(text, true, "longer than 256 bytes");
	memset(name, 'a', sizeof(name) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		struct target_pattern pattern;

		assert_int_equal(target_parse(slow[i], true, &pattern, why, sizeof(why)), 0);
		assert_false(regex_is_costly(pattern.regex));
		assert_false(target_fits(&pattern, name));
		if (!regex_is_costly(pattern.regex))
			fail_msg("%s met no limit", slow[i]);
		/* The search is over: nothing matches any more. */
		assert_false(target_fits(&pattern, "a_zz"));
		target_pattern_fini(&pattern);
	}
}

/* This took hours by the matcher of libc: that _zz is missing is seen at once. */
static void test_regex_back_references(void **state)
{
	struct target_pattern pattern;
	char name[61] = "", why[512];
	int64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	memset(name, 'a', sizeof(name) - 1);
	assert_int_equal(
		target_parse("(.*)(.*)(.*)(.*)\\1\\2\\3\\4_zz", true, &pattern, why, sizeof(why)),
		0);
	for (size_t i = 0; i < 1000; i++)
		assert_false(target_fits(&pattern, name));
	assert_false(regex_is_costly(pattern.regex));
	assert_true(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns < NS_PER_S);
	target_pattern_fini(&pattern);
}

/* Names that each take a moment only take too long when there are very many of them. */
static void test_regex_time(void **state)
{
	struct target_pattern pattern;
	char name[61] = "", why[512];
	size_t n;

	memset(name, 'a', sizeof(name) - 1);
	assert_int_equal(target_parse(".*a.*a.*[bc]", true, &pattern, why, sizeof(why)), 0);
	assert_false(target_fits(&pattern, name));
	assert_false(regex_is_costly(pattern.regex));
	for (n = 1; n < 100000000 && !regex_is_costly(pattern.regex); n++)
		target_fits(&pattern, name);
	assert_true(regex_is_costly(pattern.regex));
	target_pattern_fini(&pattern);
}

/* Anchored, with * for anything; a regular expression fits anywhere. */
static void test_fits(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool is_regex, fits;
	} cases[] = {
		{ "vfs_read", "vfs_read", false, true },
		{ "vfs_read", "vfs_readv", false, false },
		{ "vfs_read", "do_vfs_read", false, false },
		{ "vfs_*", "vfs_", false, true },
		{ "vfs_*", "vfs_fsync_range", false, true },
		{ "*_fsync_*", "vfs_fsync_range", false, true },
		{ "*sync*range", "vfs_fsync_range", false, true },
		{ "*sync*ran", "vfs_fsync_range", false, false },
		{ "*a*b", "aab", false, true },
		{ "*a*b", "aaba", false, false },
		{ "*", "x", false, true },
		{ "fsync", "vfs_fsync_range", true, true },
		{ "^fsync", "vfs_fsync_range", true, false },
		{ "^vfs_(read|write)$", "vfs_write", true, true },
		{ "^vfs_(read|write)$", "vfs_writev", true, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct target_pattern pattern;
		char why[512];

		assert_int_equal(target_parse(cases[i].pattern, cases[i].is_regex, &pattern, why,
					      sizeof(why)),
				 0);
		if (target_fits(&pattern, cases[i].name) != cases[i].fits)
			fail_msg("%s and %s", cases[i].pattern, cases[i].name);
		target_pattern_fini(&pattern);
	}
}

/* Two names of one function would count its calls twice. */
static void test_one_address_once(void **state)
{
	_cleanup_(targets_fini) struct targets targets = {};

	assert_int_equal(targets_add(&targets, "__libc_malloc", 16), 0);
	assert_int_equal(targets_add(&targets, "free", 32), 0);
	assert_int_equal(targets_add(&targets, "malloc", 16), 0);
	assert_int_equal(targets_add(&targets, "free", 32), 0);
	targets_settle(&targets);
	assert_int_equal(targets.n, 2);
	assert_string_equal(targets.v[0].name, "free");
	assert_string_equal(targets.v[1].name, "malloc");
}

void target_test_function(void);

__attribute__((noinline)) void target_test_function(void)
{
	__asm__ volatile("");
}

/* In this very program, by its path, by name and by address. */
static void test_user(void **state)
{
	_cleanup_(targets_fini) struct targets named = {}, numbered = {};
	struct target_pattern pattern;
	char text[4200], path[4000], why[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	assert_true(n > 0);
	path[n] = '\0';
	snprintf(text, sizeof(text), "u:%s:target_test_*", path);
	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	assert_int_equal(target_find_user(&pattern, NULL, &named, why, sizeof(why)), 0);
	target_pattern_fini(&pattern);
	assert_int_equal(named.n, 1);
	assert_string_equal(named.v[0].name, "target_test_function");
	assert_string_equal(named.path, path);
	snprintf(text, sizeof(text), "u:%s:0x0", path);
	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	assert_int_equal(target_find_user(&pattern, NULL, &numbered, why, sizeof(why)), 0);
	target_pattern_fini(&pattern);
	assert_int_equal(numbered.n, 0);
}

static struct targets targets_of(const char *text)
{
	struct targets targets = {};
	struct target_pattern pattern;
	char why[512];

	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	assert_int_equal(target_find_user(&pattern, NULL, &targets, why, sizeof(why)), 0);
	target_pattern_fini(&pattern);
	return targets;
}

/* Returns the address in libc's file of a function that this program calls. */
static uint64_t called_address(void *function)
{
	Dl_info info;

	assert_true(dladdr(function, &info));
	return (uintptr_t)function - (uintptr_t)info.dli_fbase;
}

/*
 * libc has two of each of these functions: one that old programs call, and one that others do. An
 * old version without a newer one is taken.
 */
static void test_versions(void **state)
{
	_cleanup_(targets_fini) struct targets found = targets_of("u:c:pthread_cond_wait");
	_cleanup_(targets_fini) struct targets old = targets_of("u:c:cfree");
	_cleanup_(targets_fini) struct targets same = {};
	char text[64];

	assert_int_equal(found.n, 1);
	snprintf(text, sizeof(text), "u:c:0x%" PRIx64, called_address((void *)pthread_cond_wait));
	same = targets_of(text);
	assert_int_equal(same.n, 1);
	assert_int_equal(found.v[0].address, same.v[0].address);
	assert_int_equal(old.n, 1);
	assert_int_equal(found.forbidden + old.forbidden, 0);
}

/* What is chosen at run time is not traced, and neither is its old version. */
static void test_chosen(void **state)
{
	_cleanup_(targets_fini) struct targets one = targets_of("u:c:rawmemchr");
	_cleanup_(targets_fini) struct targets two = targets_of("u:c:memcpy");
	_cleanup_(targets_fini) struct targets many = targets_of("u:c:str*");

	assert_int_equal(one.n, 0);
	assert_int_equal(one.forbidden, 1);
	assert_string_equal(one.chosen, "rawmemchr");
	assert_int_equal(targets_chosen_address(&one), called_address((void *)rawmemchr));
	assert_int_equal(two.n, 0);
	assert_int_equal(two.forbidden, 1);
	assert_true(many.n > 0);
	assert_true(many.forbidden > 1);
	free(one.path);
	one.path = strdup("/proc/self/exe");
	assert_int_equal(targets_chosen_address(&one), 0);
}

/* The counter of probes at two places in this program; the second runs only while it is traced. */
static unsigned short target_test_counter USDT_COUNTER;

static void probes_pass(void)
{
	USDT(target_test, plain);
	if (target_test_counter)
		USDT_COUNTED(target_test, counted, target_test_counter);
}

static void check_probes(const char *name, size_t n, size_t counted)
{
	_cleanup_(targets_fini) struct targets found = {};
	struct target_pattern pattern;
	char text[128], why[512];
	size_t i;

	snprintf(text, sizeof(text), "%s", name);
	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	assert_int_equal(target_find_user(&pattern, NULL, &found, why, sizeof(why)), 0);
	target_pattern_fini(&pattern);
	assert_int_equal(found.n, n);
	if (n)
		assert_int_equal(found.kind, TARGET_USDT);
	for (i = 0; i < n; i++) {
		assert_true(strncmp(found.v[i].name, "target_test:", 12) == 0);
		counted -= found.v[i].counter > 0;
	}
	assert_int_equal(counted, 0);
}

static void test_static_probes(void **state)
{
	probes_pass();
	check_probes("usdt:/proc/self/exe:plain", 1, 0);
	check_probes("usdt:/proc/self/exe:target_test:*", 2, 1);
	check_probes("usdt:/proc/self/exe:other:*", 0, 0);
	check_probes("u:/proc/self/exe:counted", 1, 1);
	check_probes("u:/proc/self/exe:count", 0, 0);
}

static void check_no_user(const char *text, const char *word)
{
	_cleanup_(targets_fini) struct targets targets = {};
	struct target_pattern pattern;
	char why[512] = "";

	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	assert_true(target_find_user(&pattern, NULL, &targets, why, sizeof(why)) < 0);
	target_pattern_fini(&pattern);
	if (!strstr(why, word))
		fail_msg("%s: \"%s\" says nothing of \"%s\"", text, why, word);
}

static void check_file(const char *text, const char *name)
{
	_cleanup_(targets_fini) struct targets targets = {};
	struct target_pattern pattern;
	char why[512] = "";

	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	assert_int_equal(target_find_user(&pattern, NULL, &targets, why, sizeof(why)), 0);
	target_pattern_fini(&pattern);
	if (!strstr(targets.path, name))
		fail_msg("%s: %s", text, targets.path);
}

static void test_files(void **state)
{
	check_file("u:c:malloc", "/libc.so");
	check_file("u:libc:malloc", "/libc.so");
	check_file("u:libc.so.6:malloc", "/libc.so");
	check_file("u:libc.so:malloc", "/libc.so");
	check_file("u:sh:main", "/bin/");
}

static void test_no_user(void **state)
{
	check_no_user("u:/nowhere/x:f", "No such file");
	check_no_user("u:/etc/passwd:f", "not a program or library");
	check_no_user("u:there_is_no_such_library:f", "there is no library or program");
	check_no_user("u:bin/x:f", "begins with /");
	check_no_user("u:lib*:f", "without wildcards");
}

/* The file that was searched is traced, also if its owner puts another one in its place. */
static void test_a_file_that_is_replaced(void **state)
{
	_cleanup_(targets_fini) struct targets targets = {};
	char path[] = "/tmp/stackd-target.XXXXXX", text[64], why[512] = "";
	struct target_pattern pattern;
	struct stat searched, kept;
	FILE *copy = fdopen(mkstemp(path), "w"), *self = fopen("/proc/self/exe", "r");
	int c;

	while ((c = fgetc(self)) != EOF)
		fputc(c, copy);
	fclose(self);
	assert_int_equal(fclose(copy), 0);
	assert_int_equal(stat(path, &searched), 0);
	snprintf(text, sizeof(text), "u:%s:main", path);
	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	assert_int_equal(target_find_user(&pattern, NULL, &targets, why, sizeof(why)), 0);
	target_pattern_fini(&pattern);
	assert_int_equal(targets.n, 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(fstat(targets.fd, &kept), 0);
	unlink(path);
	assert_true(kept.st_ino == searched.st_ino && kept.st_dev == searched.st_dev);
}

/* Returns why a user who is not root may not trace this; "": the user may. */
static const char *forbidden(const char *text)
{
	static char why[512];
	_cleanup_(targets_fini) struct targets targets = {};
	struct target_pattern pattern;

	why[0] = '\0';
	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	pattern.is_restricted = true;
	if (target_find_user(&pattern, NULL, &targets, why, sizeof(why)) == 0)
		why[0] = '\0';
	target_pattern_fini(&pattern);
	return why;
}

/*
 * Files that not everybody may read are not read for users who are not root, and whether they exist
 * is not told.
 */
static void test_restricted(void **state)
{
	struct stat st;

	assert_string_equal(forbidden("u:c:malloc"), "");
	assert_non_null(strstr(forbidden("u:c:0x1000"), "only root may trace an address"));
	assert_non_null(strstr(forbidden("u:/etc/no_such_file:f"), "No such file"));
	assert_non_null(strstr(forbidden("u:/tmp/no_such_file:f"), "not everybody may read"));
	assert_non_null(strstr(forbidden("u:/proc/self/root/etc/no_such_file:f"),
			       "not everybody may read"));
	if (stat("/etc/shadow", &st) == 0 && !(st.st_mode & S_IROTH))
		assert_non_null(strstr(forbidden("u:/etc/shadow:f"), "not everybody may read"));
	if (stat("/root", &st) == 0 && !(st.st_mode & S_IXOTH))
		assert_non_null(
			strstr(forbidden("u:/root/no_such_file:f"), "not everybody may read"));
}

/* Returns the number of the kernel's functions that match the pattern. */
static size_t kernel_matches(const char *text)
{
	struct target_pattern pattern;
	struct targets targets;
	char why[512] = "";
	size_t n;

	assert_int_equal(target_parse(text, false, &pattern, why, sizeof(why)), 0);
	if (target_find_functions(&pattern, &targets, why, sizeof(why))) {
		target_pattern_fini(&pattern);
		print_message("%s\n", why);
		skip();
	}
	n = targets.n;
	targets_fini(&targets);
	target_pattern_fini(&pattern);
	return n;
}

/* Entry points in assembly, and jumps that the compiler or the linker made, are no functions. */
static void test_kernel_functions(void **state)
{
	assert_int_equal(kernel_matches("vfs_read"), 1);
	assert_true(kernel_matches("vfs_*") > 20);
	assert_int_equal(kernel_matches("__SCT__*"), 0);
	assert_int_equal(kernel_matches("entry_SYSCALL_64*"), 0);
	assert_int_equal(kernel_matches("no_such_function_at_all"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_regex_position),
		cmocka_unit_test(test_regex_limits),
		cmocka_unit_test(test_regex_back_references),
		cmocka_unit_test(test_regex_time),
		cmocka_unit_test(test_fits),
		cmocka_unit_test(test_one_address_once),
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_chosen),
		cmocka_unit_test(test_static_probes),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_no_user),
		cmocka_unit_test(test_a_file_that_is_replaced),
		cmocka_unit_test(test_restricted),
		cmocka_unit_test(test_kernel_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
