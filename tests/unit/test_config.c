/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base.h"
#include "daemon/config/config.h"
#include "daemon/config/ini.h"
#include "daemon/config/keys.h"

#define FILE_NAME "stackd.conf"

static char top[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

/* Each test runs in an empty directory of its own, so that the paths in messages are short. */
static int setup(void **state)
{
	strcpy(top, "/tmp/stackd-config-XXXXXX");
	if (!mkdtemp(top) || chdir(top) < 0)
		return -1;
	return 0;
}

static int teardown(void **state)
{
	return chdir("/") < 0 ? -1 : nftw(top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put_bytes(const char *path, const char *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static int load(const char *override, struct config **config_out, struct config_error *error)
{
	const struct config_paths paths = { "vendor", FILE_NAME, FILE_NAME ".d", false };
	char *overrides[] = { (char *)(uintptr_t) override };

	error->text[0] = '\0';
	return config_load_from(&paths, overrides, override != NULL, config_out, error);
}

static struct config *load_good(const char *override)
{
	struct config *config = NULL;
	struct config_error error;
	int r = load(override, &config, &error);

	assert_string_equal(error.text, "");
	assert_int_equal(r, 0);
	assert_non_null(config);
	return config;
}

/* Checks that the configuration is refused with this message, and that *config_out stays NULL. */
static void check_refused(const char *override, const char *message)
{
	struct config *config = NULL;
	struct config_error error;
	int r = load(override, &config, &error);

	assert_string_equal(error.text, message);
	assert_int_equal(r, -EINVAL);
	assert_null(config);
}

static void check_file_refused(const char *text, const char *message)
{
	put(FILE_NAME, text);
	check_refused(NULL, message);
}

static void test_defaults(void **state)
{
	_cleanup_(config_freep) struct config *config = load_good(NULL);
	bool has_epoll = false;

	assert_int_equal(config->window_length_ns, 5 * NS_PER_S);
	assert_int_equal(config->window_min_length_ns, 500 * NS_PER_MS);
	assert_int_equal(config->window_keep_ns, 600 * NS_PER_S);
	assert_int_equal(config->window_max_memory, 24 << 20);
	assert_string_equal(config->control_socket, "/run/stackd/stackd.sock");
	assert_string_equal(config->control_group, "stackd");
	assert_int_equal(config->control_max_clients, 64);
	assert_int_equal(config->control_max_message, 1 << 20);
	assert_int_equal(config->symbols_max_memory, 8 << 20);
	assert_int_equal(config->unwind_max_memory, 16 << 20);
	assert_true(config->offcpu_enabled);
	assert_int_equal(config->offcpu_min_wait_ns, 100 * NS_PER_US);
	assert_int_equal(config->offcpu_max_threads, 16384);
	assert_int_equal(config->offcpu_max_keys, 19500);
	assert_int_equal(config->offcpu_stack_ring, 4 << 20);
	for (char **f = config->idle_functions; *f; f++) {
		has_epoll |= strcmp(*f, "epoll_wait") == 0;
		/* A thread in a deadlock waits in these functions: it must not look idle. */
		assert_null(strstr(*f, "futex"));
		assert_null(strstr(*f, "mutex"));
		assert_string_not_equal(*f, "__lll_lock_wait");
	}
	assert_true(has_epoll);
}

static void test_idle_names_are_unique(void **state)
{
	_cleanup_(config_freep) struct config *config = load_good(NULL);

	for (char **a = config->idle_functions; *a; a++)
		for (char **b = a + 1; *b; b++)
			assert_string_not_equal(*a, *b);
}

static void test_file_syntax(void **state)
{
	_cleanup_(config_freep) struct config *config = NULL;

	put(FILE_NAME, "\xef\xbb\xbf# comment\n  ; another\n\n"
		       " [ window ] \r\n\tlength=10s\r\n  keep   =  1h 30min  \n"
		       "[probe.offcpu]\nenabled = off\nmin_wait = 0\n"
		       "[idle]\nfunctions = one \\\n# skipped\n   two\\\nthree\n"
		       "[window]\nmin_length = 1");
	config = load_good(NULL);
	assert_int_equal(config->window_length_ns, 10 * NS_PER_S);
	assert_int_equal(config->window_keep_ns, 90 * 60 * NS_PER_S);
	assert_int_equal(config->window_min_length_ns, NS_PER_S);
	assert_false(config->offcpu_enabled);
	assert_int_equal(config->offcpu_min_wait_ns, 0);
	assert_string_equal(config->idle_functions[0], "one");
	assert_string_equal(config->idle_functions[1], "two");
	assert_string_equal(config->idle_functions[2], "three");
	assert_null(config->idle_functions[3]);
}

static void test_list_is_replaced_and_emptied(void **state)
{
	_cleanup_(config_freep) struct config *config = NULL;

	put(FILE_NAME, "[idle]\nfunctions = a b c\nfunctions = d\n");
	config = load_good(NULL);
	assert_string_equal(config->idle_functions[0], "d");
	assert_null(config->idle_functions[1]);
	config = config_free(config);

	config = load_good("idle.functions=");
	assert_null(config->idle_functions[0]);
}

static void test_order_of_places(void **state)
{
	_cleanup_(config_freep) struct config *config = NULL;

	assert_int_equal(mkdir("vendor", 0700), 0);
	assert_int_equal(mkdir(FILE_NAME ".d", 0700), 0);
	put("vendor/10.conf", "[control]\nmax_clients = 1\ngroup = v\n[window]\nlength = 1s\n");
	put(FILE_NAME, "[control]\nmax_clients = 2\ngroup = f\n");
	put(FILE_NAME ".d/20.conf", "[control]\nmax_clients = 4\n");
	put(FILE_NAME ".d/10.conf", "[control]\nmax_clients = 3\nmax_message = 8K\n");
	put(FILE_NAME ".d/30.conf~", "[control]\nmax_clients = 5\n");
	put(FILE_NAME ".d/.40.conf", "[control]\nmax_clients = 6\n");
	config = load_good(NULL);
	assert_int_equal(config->window_length_ns, NS_PER_S);
	assert_string_equal(config->control_group, "f");
	assert_int_equal(config->control_max_message, 8192);
	assert_int_equal(config->control_max_clients, 4);
	config = config_free(config);

	config = load_good("control.max_clients=7");
	assert_int_equal(config->control_max_clients, 7);
}

static void test_named_file(void **state)
{
	_cleanup_(config_freep) struct config *config = NULL;
	struct config_error error;

	assert_int_equal(config_load("gone.conf", NULL, 0, &config, &error), -ENOENT);
	assert_string_equal(error.text, "gone.conf: No such file or directory");
	assert_null(config);

	assert_int_equal(mkdir("x.conf.d", 0700), 0);
	put("x.conf", "[window]\nlength = 2s\n");
	put("x.conf.d/a.conf", "[control]\nmax_clients = 9\n");
	assert_int_equal(config_load("x.conf", NULL, 0, &config, &error), 0);
	assert_int_equal(config->window_length_ns, 2 * NS_PER_S);
	assert_int_equal(config->control_max_clients, 9);
	config = config_free(config);

	assert_int_equal(config_load("/dev/null", NULL, 0, &config, &error), 0);
}

static void test_durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{ "0", 0 },
		{ "7ns", 7 },
		{ "100us", 100000 },
		{ "500ms", 500000000 },
		{ "5s", 5 * NS_PER_S },
		{ "5", 5 * NS_PER_S },
		{ "10min", 600 * NS_PER_S },
		{ "1h", 3600 * NS_PER_S },
		{ "1s 500ms", 1500 * NS_PER_MS },
		{ "1min30s", 90 * NS_PER_S },
	};
	static const char *const bad[] = { "s",	  "5x", "5 s 3", "-1s",	 "1.5s", "0x10", "5sec",
					   "5s,", "5m", "+1",	 "0s 3", "1e3",	 "5s 3" };
	struct config_error error;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_(config_freep) struct config *config = NULL;
		char text[64];

		snprintf(text, sizeof(text), "probe.offcpu.min_wait=%s", good[i].text);
		config = load_good(text);
		assert_int_equal(config->offcpu_min_wait_ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct config *config = NULL;
		char text[64];

		snprintf(text, sizeof(text), "probe.offcpu.min_wait=%s", bad[i]);
		assert_int_equal(load(text, &config, &error), -EINVAL);
		assert_non_null(strstr(error.text, "must be whole numbers with a unit"));
		assert_null(config);
	}
}

static void test_ranges(void **state)
{
	check_refused("window.length=0", "-o window.length=0: must be between 100ms and 10min");
	check_refused("window.length=99ms",
		      "-o window.length=99ms: must be between 100ms and 10min");
	check_refused("window.length=601", "-o window.length=601: must be between 100ms and 10min");
	/* 2^64 ns, 2^64 + 4 ns, and more: an overflow must not turn them into small values. */
	check_refused("probe.offcpu.min_wait=18446744073709551616ns",
		      "-o probe.offcpu.min_wait=18446744073709551616ns: must be between 0 and 1h");
	check_refused("probe.offcpu.min_wait=18446744073709551620ns",
		      "-o probe.offcpu.min_wait=18446744073709551620ns: must be between 0 and 1h");
	check_refused("probe.offcpu.min_wait=18446744073709551615s",
		      "-o probe.offcpu.min_wait=18446744073709551615s: must be between 0 and 1h");
	check_refused("probe.offcpu.min_wait=18446744073709551615ns 2ns",
		      "-o probe.offcpu.min_wait=18446744073709551615ns 2ns: "
		      "must be between 0 and 1h");
	check_refused("control.max_clients=4097",
		      "-o control.max_clients=4097: must be between 1 and 4096");
	check_refused("control.max_message=17M",
		      "-o control.max_message=17M: must be between 4K and 16M");
	check_refused("probe.offcpu.stack_ring=3M",
		      "-o probe.offcpu.stack_ring=3M: must be a power of two between 1M and 256M");
	check_refused("probe.offcpu.enabled=maybe",
		      "-o probe.offcpu.enabled=maybe: must be yes or no (also true, false, on, "
		      "off, 1, 0)");
	check_refused("control.max_clients=4K",
		      "-o control.max_clients=4K: must be a whole number");
	check_refused("control.max_message=4k",
		      "-o control.max_message=4k: must be a whole number of bytes, or one with K, "
		      "M or G, like 64M");
	check_refused("control.socket=run/x", "-o control.socket=run/x: must be an absolute path");
	check_refused("control.socket=/run/",
		      "-o control.socket=/run/: must name a file, not a directory");
	check_refused("control.group=a b",
		      "-o control.group=a b: must be a name of letters, digits, '_', '-' and '.'");
	check_refused("control.group=", "-o control.group=: needs a value");
}

static void test_tiers(void **state)
{
	_cleanup_(config_freep) struct config *config =
		load_good("store.tiers= 1s:1h:0%,60s:24h:100% ");
	const struct config_tiers *tiers = &config->store_tiers;
	char text[128] = "";
	FILE *f;

	assert_int_equal(tiers->n, 2);
	assert_int_equal(tiers->tier[0].length_ns, NS_PER_S);
	assert_int_equal(tiers->tier[0].keep_ns, 3600 * NS_PER_S);
	assert_int_equal(tiers->tier[0].share, 0);
	assert_int_equal(tiers->tier[1].share, 100);
	f = fmemopen(text, sizeof(text), "w");
	config_tiers_print(tiers, f);
	fclose(f);
	assert_string_equal(text, "1s:1h:0%, 1min:1d:100%");
}

static void test_tiers_refused(void **state)
{
	static const struct {
		const char *text, *reason;
	} bad[] = {
		{ "5s", "tier 1 \"5s\": must be LENGTH:KEEP:SHARE, like 60s:24h:35%" },
		{ "5s:1h:25%,", "tier 2 \"\": must be LENGTH:KEEP:SHARE, like 60s:24h:35%" },
		{ "5s:1h:25%:1",
		  "tier 1 \"5s:1h:25%:1\": must be LENGTH:KEEP:SHARE, like 60s:24h:35%" },
		{ "5:1h:25", "tier 1 \"5:1h:25\": its share must be between 0% and 100%" },
		{ "5s:1h:101%", "tier 1 \"5s:1h:101%\": its share must be between 0% and 100%" },
		{ "5s:1h:-1%", "tier 1 \"5s:1h:-1%\": its share must be between 0% and 100%" },
		{ "1h:2h:9%",
		  "tier 1 \"1h:2h:9%\": the length of its windows must be between 100ms "
		  "and 30min" },
		{ "5s:1s:9%",
		  "tier 1 \"5s:1s:9%\": the time it reaches back must be between 10s and "
		  "3650d" },
		{ "5s:1h:9%, 12s:2h:9%",
		  "tier 2 \"12s:2h:9%\": the length of its windows must be a "
		  "multiple of the length in the tier before" },
		{ "5s:1h:9%, 10s:1h:9%",
		  "tier 2 \"10s:1h:9%\": must reach further back than the tier before" },
		{ "5s:1h:60%, 10s:2h:41%",
		  "tier 2 \"10s:2h:41%\": the shares must not add up to more than 100%" },
		{ "5s:1h:9%, 10s:2h:0%", "tier 2 \"10s:2h:0%\": the last tier must have a share" },
		{ "1s:1h:1%,2s:2h:1%,4s:3h:1%,8s:4h:1%,16s:5h:1%",
		  "tier 5 \"16s:5h:1%\": there may be at most 4 tiers" },
	};
	struct config_error error;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct config *config = NULL;
		char text[128];

		snprintf(text, sizeof(text), "store.tiers=%s", bad[i].text);
		assert_int_equal(load(text, &config, &error), -EINVAL);
		assert_non_null(strstr(error.text, bad[i].reason));
		assert_null(config);
	}
}

static void check_percent(const char *text, uint64_t millionths, const char *dumped)
{
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_(freep) char *dump = NULL;
	char line[64], override[64];
	size_t size = 0;
	FILE *f = open_memstream(&dump, &size);

	snprintf(override, sizeof(override), "budget.cpu=%s", text);
	config = load_good(override);
	assert_int_equal(config->budget_ppm, millionths);
	config_dump(config, f);
	fclose(f);
	snprintf(line, sizeof(line), "\ncpu = %s\n", dumped);
	assert_non_null(strstr(dump, line));
}

static void test_percents(void **state)
{
	check_percent("1%", 10000, "1%");
	check_percent("0.5", 5000, "0.5%");
	check_percent("0.5 %", 5000, "0.5%");
	check_percent("0.01%", 100, "0.01%");
	check_percent("1000%", 10000000, "1000%");
	check_percent("12.3456%", 123456, "12.3456%");
	check_percent("OFF", 0, "off");
	check_refused("budget.cpu=0.009%",
		      "-o budget.cpu=0.009%: must be between 0.01% and 1000%, or off");
	check_refused("budget.cpu=1001%",
		      "-o budget.cpu=1001%: must be between 0.01% and 1000%, or off");
	check_refused(
		"budget.cpu=99999999999999999999%",
		"-o budget.cpu=99999999999999999999%: must be between 0.01% and 1000%, or off");
	check_refused("budget.cpu=%", "-o budget.cpu=%: must be a percentage, like 0.5%, or off");
	check_refused("budget.cpu=-1%",
		      "-o budget.cpu=-1%: must be a percentage, like 0.5%, or off");
	check_refused("budget.cpu=1%%",
		      "-o budget.cpu=1%%: must be a percentage, like 0.5%, or off");
}

static void test_socket_path_length(void **state)
{
	_cleanup_(config_freep) struct config *config = NULL;
	struct config_error error;
	char text[160] = "control.socket=/";
	const size_t start = strlen("control.socket=");

	/* sun_path has 108 bytes, one of them for the NUL. */
	memset(text + start + 1, 'a', 106);
	config = load_good(text);
	assert_int_equal(strlen(config->control_socket), 107);
	config = config_free(config);

	memset(text + start + 1, 'a', 107);
	assert_int_equal(load(text, &config, &error), -EINVAL);
	assert_non_null(strstr(error.text, "must be at most 107 bytes long"));
}

static void test_list_limit(void **state)
{
	_cleanup_(freep) char *text = malloc(16 + 2 * 1025 + 1);
	struct config *config = NULL;
	struct config_error error;

	strcpy(text, "idle.functions=");
	for (int i = 0; i < 1025; i++)
		strcat(text, "f ");
	assert_int_equal(load(text, &config, &error), -EINVAL);
	assert_non_null(strstr(error.text, "must be at most 1024 names, but has 1025"));
}

/* A value that could not be read back from the output of --dump-config is refused. */
static void test_values_of_one_line(void **state)
{
	check_refused("idle.functions=a #b", "-o idle.functions=a #b: a name cannot begin with "
					     "'#' or ';'");
	check_refused("idle.functions=;",
		      "-o idle.functions=;: a name cannot begin with '#' or ';'");
	check_refused(
		"control.socket=/a\nb",
		"-o control.socket=/a?b: must have no control bytes and no backslash at its end");
	check_refused(
		"control.socket=/a\\",
		"-o control.socket=/a\\: must have no control bytes and no backslash at its end");
	config_free(load_good("idle.functions=a\tb#"));
}

static void test_unknown_names(void **state)
{
	check_refused(
		"window.lenght=5s",
		"-o window.lenght: unknown key, did you mean "
		"\"length\"? allowed: length min_length keep max_memory max_rows max_folded recent_rows preempted");
	check_refused(
		"windows.length=5s",
		"-o windows.length: unknown section, did you mean \"window\"? allowed: window "
		"store control pressure query symbols unwind probe.offcpu probe.oncpu "
		"probe.offwake probe.stackcount probe.stacksnoop budget probe.iolat idle");
	check_refused("window.xyzzyxyz=1", "-o window.xyzzyxyz: unknown key; allowed: length "
					   "min_length keep max_memory max_rows "
					   "max_folded recent_rows preempted");
	check_refused("nodot", "-o nodot: must be section.key=value, like window.length=5s");
	check_refused("nodot=1", "-o nodot=1: must be section.key=value, like window.length=5s");
	check_refused("window.length",
		      "-o window.length: must be section.key=value, like window.length=5s");
	check_refused("window.=1",
		      "-o window.=1: must be section.key=value, like window.length=5s");
	check_refused(".length=1",
		      "-o .length=1: must be section.key=value, like window.length=5s");
	check_file_refused(
		"[window]\n\nLength = 5s\n",
		"stackd.conf:3: [window] Length: unknown key, did you mean \"length\"? "
		"allowed: length min_length keep max_memory max_rows max_folded recent_rows preempted");
}

static void test_file_errors(void **state)
{
	check_file_refused("[window]\nlength = 0s\n",
			   "stackd.conf:2: [window] length = 0s: must be "
			   "between 100ms and 10min");
	check_file_refused("length = 5s\n",
			   "stackd.conf:1: expected a [section] before the first key");
	check_file_refused("[window]\n\nlength 5s\n",
			   "stackd.conf:3: expected \"key = value\" or \"[section]\"");
	check_file_refused("[window]\n= 5s\n",
			   "stackd.conf:2: expected \"key = value\" or \"[section]\"");
	check_file_refused("[window\n",
			   "stackd.conf:1: a section is written as [name], with nothing "
			   "after it");
	check_file_refused("[window] # why\n",
			   "stackd.conf:1: a section is written as [name], with "
			   "nothing after it");
	check_file_refused("[]\n", "stackd.conf:1: the section's name is empty");
	check_file_refused("[\n", "stackd.conf:1: a section is written as [name], with nothing "
				  "after it");
	check_file_refused("[window]\nlength = 5s \\",
			   "stackd.conf:2: ends in a backslash, but no line follows");
	check_file_refused("[window]\nlength =\n",
			   "stackd.conf:2: [window] length = : needs a value");
	/*
	 * The message names the line of the key, not of the value that continues on a later line.
	 */
	check_file_refused("[window]\nlength = \\\n  \\\n 0\nkeep = 1h\n",
			   "stackd.conf:2: [window] length = 0: must be between 100ms and 10min");
	/* Control bytes, which a terminal would act on, are replaced in messages. */
	check_file_refused(
		"[window]\nlength = \033[2J\n",
		"stackd.conf:2: [window] length = ?[2J: must be whole numbers with a unit "
		"ns, us, ms, s, min, h or d, like 500ms");
}

static void test_file_bytes(void **state)
{
	static const char nul[] = "[window]\nlength = 5s\0\n";
	_cleanup_(freep) char *big = malloc(CONFIG_FILE_MAX + 1);
	_cleanup_(config_freep) struct config *config = NULL;
	struct config_error error;

	/* Only one mark, and only at the beginning of the file. */
	put(FILE_NAME, "\xef\xbb\xbf[window]\n\xef\xbb\xbf[window]\n");
	check_refused(NULL, "stackd.conf:2: expected \"key = value\" or \"[section]\"");
	put(FILE_NAME, "\xef\xbb\xbf[window]\nlength = 10s\n");
	config_free(load_good(NULL));

	put_bytes(FILE_NAME, nul, sizeof(nul) - 1);
	check_refused(NULL, "stackd.conf:2: has a NUL byte; is this a text file?");

	memset(big, '#', CONFIG_FILE_MAX + 1);
	put_bytes(FILE_NAME, big, CONFIG_FILE_MAX + 1);
	assert_int_equal(load(NULL, &config, &error), -EFBIG);
	assert_string_equal(error.text, "stackd.conf: is larger than 1M");

	memset(big, '\n', CONFIG_FILE_MAX);
	put_bytes(FILE_NAME, big, CONFIG_FILE_MAX);
	config = load_good(NULL);

	memset(big, 'x', CONFIG_LINE_MAX + 1);
	big[0] = '\n';
	put_bytes(FILE_NAME, big, CONFIG_LINE_MAX + 1);
	check_refused(NULL, "stackd.conf:2: line is longer than 16383 bytes");
}

static void test_file_kinds(void **state)
{
	struct config *config = NULL;
	struct config_error error;

	assert_int_equal(mkdir(FILE_NAME, 0700), 0);
	assert_int_equal(load(NULL, &config, &error), -EISDIR);
	assert_string_equal(error.text, "stackd.conf: is a directory, not a configuration file");
	assert_int_equal(rmdir(FILE_NAME), 0);

	/* A FIFO without a writer must not block the reader. */
	assert_int_equal(mkfifo(FILE_NAME, 0600), 0);
	check_refused(NULL, "stackd.conf: is not a regular file");
	assert_int_equal(unlink(FILE_NAME), 0);

	assert_int_equal(symlink("loop", "loop"), 0);
	assert_int_equal(config_load("loop", NULL, 0, &config, &error), -ELOOP);
	put(FILE_NAME ".d", "");
	assert_int_equal(load(NULL, &config, &error), -ENOTDIR);
	assert_string_equal(error.text, "stackd.conf.d: Not a directory");
	assert_null(config);
}

static void test_checks_together(void **state)
{
	check_refused("window.min_length=6s",
		      "-o: [window] min_length = 6000ms: must not be longer than length = 5000ms "
		      "(default)");
	check_file_refused(
		"[window]\nkeep = 10s\nlength = 11s\n",
		"stackd.conf:3: [window] length = 11000ms: must not be longer than keep = "
		"10000ms (stackd.conf:2)");
}

static char *dump(const struct config *config)
{
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	config_dump(config, f);
	fclose(f);
	return text;
}

static void test_dump_says_where_from(void **state)
{
	_cleanup_(config_freep) struct config *config = NULL;
	_cleanup_(freep) char *text = NULL;

	put(FILE_NAME, "[window]\n\nlength = 60s\n");
	config = load_good("control.max_clients=12");
	text = dump(config);
	assert_non_null(strstr(text, "[window]\n# stackd.conf:3\nlength = 1min\n# default\n"));
	assert_non_null(strstr(text, "# -o\nmax_clients = 12\n"));
}

/* The output of --dump-config is a configuration file that gives the same value for every key. */
static void test_dump_loads_again(void **state)
{
	_cleanup_(config_freep) struct config *config = load_good("window.length=1234567us"),
					      *again;
	_cleanup_(freep) char *first = dump(config), *second = NULL;
	char *a, *b, *save_a, *save_b;
	size_t keys = 0;

	put(FILE_NAME, first);
	again = load_good(NULL);
	assert_int_equal(again->window_length_ns, 1234567 * NS_PER_US);
	second = dump(again);
	a = strtok_r(first, "\n", &save_a);
	b = strtok_r(second, "\n", &save_b);
	for (; a && b; a = strtok_r(NULL, "\n", &save_a), b = strtok_r(NULL, "\n", &save_b)) {
		if (*a != '#')
			assert_string_equal(a, b);
		keys += strstr(a, " = ") != NULL;
	}
	assert_null(a);
	assert_null(b);
	assert_int_equal(keys, config_n_keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_defaults, setup, teardown),
		cmocka_unit_test_setup_teardown(test_idle_names_are_unique, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_syntax, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_is_replaced_and_emptied, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order_of_places, setup, teardown),
		cmocka_unit_test_setup_teardown(test_named_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_durations, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tiers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tiers_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_percents, setup, teardown),
		cmocka_unit_test_setup_teardown(test_socket_path_length, setup, teardown),
		cmocka_unit_test_setup_teardown(test_list_limit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values_of_one_line, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_file_kinds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_checks_together, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dump_says_where_from, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dump_loads_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
