/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/options.h"

/* The output of the last parse(), on stdout and stderr. */
static char said[4096];

static int parse(struct options *options, char *argv[])
{
	_cleanup_(fclosep) FILE *file = tmpfile();
	int saved_out = dup(STDOUT_FILENO), saved_err = dup(STDERR_FILENO), argc = 0, r;

	while (argv[argc])
		argc++;
	fflush(NULL);
	dup2(fileno(file), STDOUT_FILENO);
	dup2(fileno(file), STDERR_FILENO);
	r = options_parse(argc, argv, options);
	fflush(NULL);
	dup2(saved_out, STDOUT_FILENO);
	dup2(saved_err, STDERR_FILENO);
	close(saved_out);
	close(saved_err);
	rewind(file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	return r;
}

/* getopt may write to its arguments, so string literals are copied. */
#define ARG(s)	  ((char[]){ s })
#define ARGV(...) ((char *[]){ ARG("stackd"), __VA_ARGS__, NULL })

static void test_nothing(void **state)
{
	struct options options = { .n_overrides = 99 };

	assert_int_equal(parse(&options, ((char *[]){ ARG("stackd"), NULL })), 0);
	assert_int_equal(options.action, OPTIONS_RUN);
	assert_null(options.config_path);
	assert_int_equal(options.n_overrides, 0);
	assert_string_equal(said, "");
	options_fini(&options);
}

static void test_all(void **state)
{
	struct options options;

	assert_int_equal(parse(&options, ARGV(ARG("-c"), ARG("a.conf"), ARG("-o"), ARG("a.b=1"),
					      ARG("--option=c.d=2"), ARG("--dump-config"))),
			 0);
	assert_int_equal(options.action, OPTIONS_DUMP_CONFIG);
	assert_string_equal(options.config_path, "a.conf");
	assert_int_equal(options.n_overrides, 2);
	assert_string_equal(options.overrides[0], "a.b=1");
	assert_string_equal(options.overrides[1], "c.d=2");
	options_fini(&options);

	assert_int_equal(parse(&options, ARGV(ARG("--check-config"))), 0);
	assert_int_equal(options.action, OPTIONS_CHECK_CONFIG);
	options_fini(&options);

	assert_int_equal(parse(&options, ARGV(ARG("--serve-only"))), 0);
	assert_int_equal(options.action, OPTIONS_SERVE_ONLY);
	options_fini(&options);
}

static void check_refused(char *argv[], const char *part)
{
	struct options options = { .n_overrides = 99 };

	assert_int_equal(parse(&options, argv), -EINVAL);
	assert_non_null(strstr(said, part));
	assert_non_null(strstr(said, "see 'stackd --help'"));
	assert_int_equal(options.n_overrides, 99);
}

static void test_refused(void **state)
{
	check_refused(ARGV(ARG("--frobnicate")), "--frobnicate");
	check_refused(ARGV(ARG("-x")), "'x'");
	check_refused(ARGV(ARG("-c")), "requires an argument");
	check_refused(ARGV(ARG("start")), "unexpected argument 'start'");
	check_refused(ARGV(ARG("--check-config"), ARG("--dump-config")), "one of them");
}

static void test_help_and_version(void **state)
{
	static const char *const names[] = { "--config",      "--option",  "--check-config",
					     "--dump-config", "--version", "--help",
					     "--serve-only" };
	struct options options;

	assert_int_equal(parse(&options, ARGV(ARG("--help"))), 1);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		assert_non_null(strstr(said, names[i]));
	assert_int_equal(parse(&options, ARGV(ARG("--version"))), 1);
	assert_int_equal(strncmp(said, "stackd 0.", 9), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_help_and_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
