/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/option/options.h"
#include "client/option/range.h"
#include "client/render/formats.h"
#include "client/verb/verb.h"
#include "common/base.h"
#include "proto/wire.h"

#define ALL                                                                               \
	(OPTIONS_FORMAT | OPTIONS_RANGE | OPTIONS_FILTER | OPTIONS_WAITS | OPTIONS_PICK | \
	 OPTIONS_STACKS | OPTIONS_ORDER | OPTIONS_CHECK | OPTIONS_VIEWS | OPTIONS_SLICES)

/* Parses words separated by |, behind a verb. The words stay allocated, as options point to them.
 */
static int parse(struct options *options, unsigned sets, const char *line)
{
	static char words[8192];
	char *argv[2 * OPTION_RANGES_MAX + 8] = { (char *)"snapshot" };
	int argc = 1;

	assert_true(strlen(line) < sizeof words);
	strcpy(words, line);
	for (char *at = words; line[0] != '\0';) {
		char *bar = strchr(at, '|');

		argv[argc++] = at;
		if (!bar)
			break;
		*bar = '\0';
		at = bar + 1;
	}
	argv[argc] = NULL;
	options_init(options);
	return options_parse(options, sets, 1, argc, argv);
}

static void test_values(void **state)
{
	struct options o;

	assert_int_equal(parse(&o, ALL, ""), 0);
	assert_null(o.argument);
	assert_true(o.top == WIRE_ABSENT && o.min_block_ns == WIRE_ABSENT);
	assert_ptr_equal(o.format, &format_text);

	assert_int_equal(parse(&o, ALL, "offcpu|-p|1,4194304|--pid=7|-p8"), 0);
	assert_string_equal(o.argument, "offcpu");
	assert_int_equal(o.pids.n, 4);
	assert_int_equal(o.pids.v[1], 4194304);
	assert_int_equal(o.pids.v[3], 8);

	assert_int_equal(parse(&o, ALL, "-uKsn5|-m100|-M|2ms|--since|-3min|offcpu"), 0);
	assert_true(o.user_threads && o.kernel_stacks && o.offset);
	assert_int_equal(o.top, 5);
	assert_int_equal(o.min_block_ns, 100 * NS_PER_US);
	assert_int_equal(o.max_block_ns, 2 * NS_PER_MS);
	assert_string_equal(o.since, "-3min");

	assert_int_equal(parse(&o, ALL, "--state|D,preempted,0x2,8|--state|S"), 0);
	assert_int_equal(o.states.n, 5);
	assert_string_equal(o.states.v[1], "preempted");
	assert_string_equal(o.states.v[4], "S");

	assert_int_equal(parse(&o, ALL, "--reason|flock,kernel-*|--reason|tcp"), 0);
	assert_int_equal(o.reasons.n, 3);
	assert_string_equal(o.reasons.v[1], "kernel-*");
	assert_string_equal(o.reasons.v[2], "tcp");

	assert_int_equal(parse(&o, ALL, "--state|uninterruptible,idle"), 0);
	assert_string_equal(o.states.v[0], "uninterruptible");

	assert_int_equal(parse(&o, ALL, "-n|0|--comm|my*|--cgroup|/a|--unit|ssh.service"), 0);
	assert_int_equal(o.top, 0);
	assert_true(options_name_somebody(&o));
	assert_int_equal(parse(&o, ALL, "-n|0|-u"), 0);
	assert_false(options_name_somebody(&o));
}

static void test_names_and_exceptions(void **state)
{
	struct options o;

	assert_int_equal(parse(&o, ALL, "--comm|a*|--comm|\\!b|--unit|x|--cgroup|/c|--cgroup|/d"),
			 0);
	assert_int_equal(o.comms.n, 2);
	assert_string_equal(o.comms.v[1], "\\!b");
	assert_int_equal(o.units.n, 1);
	assert_int_equal(o.cgroups.n, 2);
	assert_false(options_pick_rows(&o));

	assert_int_equal(parse(&o, ALL, "--not-pid|1,2|--not-comm|a|--not-unit|x|--not-cgroup|/a"),
			 0);
	assert_int_equal(o.not_pids.n, 2);
	assert_int_equal(o.not_comms.n + o.not_units.n + o.not_cgroups.n, 3);
	assert_false(options_name_somebody(&o));
	assert_false(options_pick_rows(&o));

	assert_int_equal(parse(&o, ALL, "--not-state|D,S|--not-reason|tcp,nano*"), 0);
	assert_int_equal(o.not_states.n, 2);
	assert_int_equal(o.not_reasons.n, 2);
	assert_true(options_pick_rows(&o));

	assert_int_equal(parse(&o, ALL, "--function|a::b(int, char)|--function|c*|--callers|d"), 0);
	assert_int_equal(o.in_functions.n, 2);
	assert_string_equal(o.in_functions.v[0], "a::b(int, char)");
	assert_string_equal(o.callers.v[0], "d");
	assert_true(options_pick_rows(&o));
	options_drop_picks(&o);
	assert_false(options_pick_rows(&o));
}

/* An option given again replaces its value. */
static void test_last_wins(void **state)
{
	struct options o;

	assert_int_equal(
		parse(&o, ALL, "--format|json|--format|text|-n3|-n4|--sort=max|--sort=count"), 0);
	assert_ptr_equal(o.format, &format_text);
	assert_int_equal(o.top, 4);
	assert_string_equal(o.sort, "count");
	assert_int_equal(parse(&o, ALL, "-f|-f|--format|folded"), 0);
	assert_ptr_equal(o.format, &format_folded);
}

/* Each line is refused with a message that says what would be right. */
static void test_refused(void **state)
{
	static const struct {
		const char *line;
		const char *says;
	} cases[] = {
		{ "-p|", "empty" },
		{ "--pid=", "empty" },
		{ "-p", "needs a value" },
		{ "--since", "needs a value" },
		{ "-p|0", "\"0\"" },
		{ "-p|-1", "\"-1\"" },
		{ "-p|4194305", "4194304" },
		{ "-p|99999999999999999999", "9999" },
		{ "-p|12x", "\"12x\"" },
		{ "-p|1,,2", "\"\"" },
		{ "-p|1,", "\"\"" },
		{ "-p| 1", "\" 1\"" },
		{ "-t|abc", "--tid" },
		{ "-p|1|-t|1", "exclude" },
		{ "-uk", "exclude" },
		{ "-U|-K", "exclude" },
		{ "--json|-f", "--json and --folded exclude each other" },
		{ "-f|--format|text", "--folded and --format exclude each other" },
		{ "-m|0", "more than 0" },
		{ "-m|-5", "500 (microseconds)" },
		{ "-m|99999999999999999999", "too long" },
		{ "-m|5x", "--min-block-time 5x" },
		{ "-m|10|-M|9", "longer" },
		{ "--state|Q", "\"Q\"" },
		{ "--state|S,", "\"\"" },
		{ "--state|0x", "\"0x\"" },
		{ "--state|X", "D (uninterruptible)" },
		{ "-p|abc", "is no pid" },
		{ "--comm|", "empty" },
		{ "--comm|!my*", "--comm !my*: what is to be left out is --not-comm 'my*'; a name "
				 "that begins with ! is '\\!my*'" },
		{ "--unit|!a.service", "--not-unit 'a.service'" },
		{ "--function|!f", "--not-function 'f'" },
		{ "--by|parent|offcpu", "goes without a probe: stackctl snapshot --by parent" },
		{ "--function|", "empty" },
		{ "--not-pid|abc", "is no pid; numbers from 1 to 4194304, with commas between; a "
				   "name goes to --not-comm" },
		{ "--not-cgroup|a", "--not-cgroup a: the path of a control group begins with /" },
		{ "--not-state|Q", "--not-state Q: \"Q\"" },
		{ "--callers|a|--by|function", "without --by function" },
		{ "--cgroup|a/b", "begins with /" },
		{ "-n|-1", "20, or 0" },
		{ "-n|1e3", "1e3" },
		{ "-n|99999999999", "99999999999" },
		{ "--sort|min", "total|max|count" },
		{ "--sort|tot", "total|max|count" },
		{ "--by|pid", "stack|line|thread|process" },
		{ "--format|xml", "text|folded|json" },
		{ "-f|-n|5", "--top" },
		{ "--over-time|--by|process", "without --by" },
		{ "--over-time|--breakdown", "without --breakdown" },
		{ "--idle=1", "--idle takes no value" },
		{ "--idle|--no-idle", "exclude each other" },
		{ "--reason|flock,", "\"\" is no reason" },
		{ "-x", "-x" },
		{ "--idle|-xp", "option -x" },
		{ "--nonsense", "unknown option --nonsense; stackctl" },
		{ "--last|5m", "unknown option --last; here it is --for D" },
		{ "--process=7", "here it is --pid" },
		{ "--windw|5s", "did you mean --window?" },
		{ "--windwo=5s", "did you mean --window?" },
		{ "--processes", "unknown option --processes; stackctl" },
		{ "--user", "is the beginning of several" },
		{ "offcpu|shopd", "--comm 'shopd'" },
		{ "offcpu|4242", "a process is -p 4242" },
		{ "offcpu|oncpu", "unexpected \"oncpu\"" },
		{ "--|offcpu|-p", "unexpected \"-p\"" },
	};
	struct options o;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = parse(&o, ALL, cases[i].line);

		if (r != -EINVAL || !strstr(o.message, cases[i].says))
			fail_msg("\"%s\": %d, \"%s\" without \"%s\"", cases[i].line, r,
				 r < 0 ? o.message : "", cases[i].says);
	}
}

/* The message differs for an option of another verb and for an unknown option. */
static void test_other_verbs(void **state)
{
	struct options o;

	assert_int_equal(parse(&o, OPTIONS_FORMAT, "--pid=3"), -EINVAL);
	assert_non_null(strstr(o.message, "takes no --pid"));
	assert_int_equal(parse(&o, OPTIONS_FORMAT, "-n|5"), -EINVAL);
	assert_non_null(strstr(o.message, "takes no --top"));
	assert_int_equal(parse(&o, OPTIONS_FORMAT, "--format|folded"), -EINVAL);
	assert_non_null(strstr(o.message, "no stacks"));
}

static void test_bounds(void **state)
{
	char line[8000] = "-p|1";
	struct options o;

	for (int i = 1; i < OPTION_IDS_MAX; i++)
		strcat(line, ",1");
	assert_int_equal(parse(&o, ALL, line), 0);
	assert_int_equal(o.pids.n, OPTION_IDS_MAX);
	strcat(line, ",1");
	assert_int_equal(parse(&o, ALL, line), -EINVAL);
	assert_non_null(strstr(o.message, "too many"));

	strcpy(line, "--state|S");
	for (int i = 0; i < OPTION_STATES_MAX; i++)
		strcat(line, ",D");
	assert_int_equal(parse(&o, ALL, line), -EINVAL);
	assert_non_null(strstr(o.message, "too many"));

	/* A long value is truncated in the message, which stays within its bounds. */
	memset(line, 'x', 2000);
	memcpy(line, "-p|", 3);
	line[2000] = '\0';
	assert_int_equal(parse(&o, ALL, line), -EINVAL);
	assert_true(strlen(o.message) < OPTION_MESSAGE_MAX);

	strcpy(line, "--range|1..");
	for (int i = 1; i < OPTION_RANGES_MAX; i++)
		strcat(line, "|--range|1..");
	assert_int_equal(parse(&o, ALL, line), 0);
	assert_int_equal(o.ranges.n, OPTION_RANGES_MAX);
	strcat(line, "|--range|1..");
	assert_int_equal(parse(&o, ALL, line), -EINVAL);
	assert_non_null(strstr(o.message, "too many"));
}

#define NOW (INT64_C(1784118600) * NS_PER_S) /* 2026-07-15 12:30:00 UTC */

static int resolve(struct options *o, const char *line, struct range *range)
{
	assert_int_equal(parse(o, ALL, line), 0);
	return range_resolve(o, NOW, range);
}

static void test_range(void **state)
{
	struct range range;
	struct options o;

	setenv("TZ", "UTC", 1);
	assert_int_equal(resolve(&o, "", &range), 0);
	assert_true(range.window_ns == WIRE_ABSENT && range.since_ns == WIRE_ABSENT);
	assert_int_equal(resolve(&o, "--window|5min", &range), 0);
	assert_int_equal(range.window_ns, 300 * NS_PER_S);
	assert_int_equal(resolve(&o, "--window|5", &range), 0);
	assert_int_equal(range.window_ns, 5 * NS_PER_S);
	assert_int_equal(resolve(&o, "--since|12:00|--until|12:10", &range), 0);
	assert_int_equal(range.since_ns, NOW - 1800 * NS_PER_S);
	assert_int_equal(range.until_ns, NOW - 1200 * NS_PER_S);
	assert_int_equal(resolve(&o, "--since|23:50|--until|00:10", &range), 0);
	assert_int_equal(range.until_ns - range.since_ns, 1200 * NS_PER_S);
	/* The end is tomorrow, or later today: the range ends now. */
	assert_int_equal(resolve(&o, "--since|12:29|--until|00:10", &range), 0);
	assert_true(range.until_ns == WIRE_ABSENT);
	assert_int_equal(resolve(&o, "--since|00:10|--until|23:50", &range), 0);
	assert_true(range.until_ns == WIRE_ABSENT);
	assert_int_equal(resolve(&o, "--since|13:00", &range), 0);
	assert_int_equal(range.since_ns, NOW - (23 * 3600 + 1800) * NS_PER_S);
	assert_int_equal(resolve(&o, "--since|12:00|--until|now", &range), 0);
	assert_int_equal(range.until_ns, NOW);
	assert_int_equal(resolve(&o, "--at|12:00", &range), 0);
	assert_int_equal(range.until_ns, range.since_ns + 1);
}

/* Each range is read as --since and --until are, and they keep their order. */
static void test_ranges(void **state)
{
	struct wire_span spans[OPTION_RANGES_MAX];
	struct options o;

	setenv("TZ", "UTC", 1);
	assert_int_equal(parse(&o, ALL, "--range|12:10..12:20|--range|-1h..-30min|--range|12:00.."),
			 0);
	assert_int_equal(o.ranges.n, 3);
	assert_int_equal(ranges_resolve(&o, NOW, spans), 0);
	assert_int_equal(spans[0].since_ns, NOW - 1200 * NS_PER_S);
	assert_int_equal(spans[0].until_ns, NOW - 600 * NS_PER_S);
	assert_int_equal(spans[1].since_ns, NOW - 3600 * NS_PER_S);
	assert_int_equal(spans[1].until_ns, NOW - 1800 * NS_PER_S);
	assert_int_equal(spans[2].since_ns, NOW - 1800 * NS_PER_S);
	assert_true(spans[2].until_ns == WIRE_ABSENT);
	/* 00:10 is the first one after 23:50; 12:45 is in the future, so the range ends now. */
	assert_int_equal(
		parse(&o, ALL,
		      "--range|23:50..00:10|--range|12:29..12:45|--range|12:00:00.5..12:01"),
		0);
	assert_int_equal(ranges_resolve(&o, NOW, spans), 0);
	assert_int_equal(spans[0].until_ns - spans[0].since_ns, 1200 * NS_PER_S);
	assert_true(spans[1].until_ns == WIRE_ABSENT);
	assert_int_equal(spans[2].since_ns, NOW - 1800 * NS_PER_S + NS_PER_S / 2);
}

static void test_ranges_refused(void **state)
{
	static const struct {
		const char *line;
		const char *says;
	} cases[] = {
		{ "--range|12:00", "a range is T..T" },
		{ "--range|..12:00", "a range is T..T" },
		{ "--range|..", "a range is T..T" },
		{ "--range|12:00..|--range|noon..", "--range noon" },
		{ "--range|12:00..noon", "--range noon" },
		{ "--range|-5min..-6min", "--range -5min..-6min: -5min is" },
		{ "--range|12:00..11:00", "not after" },
		{ "--range|tomorrow..", "in the future" },
		{ "--range|1969-01-01..", "too far" },
	};
	static const char *const together[] = { "--window|5s", "--since|12:00", "--at|12:00",
						"--each|10s", "-f" };
	struct wire_span spans[OPTION_RANGES_MAX];
	struct options o;
	char line[64];

	setenv("TZ", "UTC", 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(parse(&o, ALL, cases[i].line), 0);
		assert_int_equal(ranges_resolve(&o, NOW, spans), -EINVAL);
		if (!strstr(o.message, cases[i].says))
			fail_msg("\"%s\": \"%s\"", cases[i].line, o.message);
	}
	for (size_t i = 0; i < ARRAY_SIZE(together); i++) {
		snprintf(line, sizeof(line), "%s|--range|-5min..", together[i]);
		assert_int_equal(parse(&o, ALL, line), -EINVAL);
		assert_non_null(strstr(o.message, "--range "));
	}
}

static void test_suffix_of_the_output(void **state)
{
	static const char *const texts[] = { "x",      "x.txt",		 "x.log", "d.d/x", ".rc",
					     "x.2026", "tmp.Xa1Xa1Xa1X", "x.",	  "d.pdf/" };
	static const char *const unknown[] = { "x.pdf", "x.json.gz", "d/x.xlsx" };
	char line[64];
	struct options o;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		snprintf(line, sizeof(line), "--output|%s", texts[i]);
		assert_int_equal(parse(&o, ALL | OPTIONS_OUTPUT, line), 0);
		assert_string_equal(o.format->name, "text");
	}
	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		snprintf(line, sizeof(line), "--output|%s", unknown[i]);
		assert_int_equal(parse(&o, ALL | OPTIONS_OUTPUT, line), -EINVAL);
		assert_non_null(strstr(o.message, "no format has this suffix; known are .txt, "));
		snprintf(line, sizeof(line), "--output|%s|--format|text", unknown[i]);
		assert_int_equal(parse(&o, ALL | OPTIONS_OUTPUT, line), 0);
	}
}

static void test_range_refused(void **state)
{
	static const struct {
		const char *line;
		const char *says;
	} cases[] = {
		{ "--window|0", "--window 0: has to be more than 0" },
		{ "--for|0", "--for 0: has to be more than 0" },
		{ "--for|-5s", "--for -5s: not a length" },
		{ "--for|100y", "--for 100y: too long" },
		{ "--for|5s|--since|12:00", "--for, --since and --at exclude" },
		{ "--since|12:00|--at|12:00", "--for, --since and --at exclude" },
		{ "--window|0s", "more than 0" },
		{ "--window|-5s", "30s, 5min" },
		{ "--window|5s5", "30s, 5min" },
		{ "--window|100y", "too long" },
		{ "--window|9999999999999999999", "too long" },
		{ "--since|later", "14:00" },
		{ "--since|2026-07-16", "in the future" },
		{ "--since|+5min", "in the future" },
		{ "--since|1969-01-01", "too far" },
		{ "--at|tomorrow", "in the future" },
		{ "--since|2026-07-15 12:00|--until|2026-07-15 11:00", "not after" },
		{ "--since|12:00|--until|@5", "not after" },
		/* Today, --until is before --since; tomorrow's 11:00 is in the future. */
		{ "--since|12:00|--until|11:00", "not after" },
		{ "--since|2026-07-15 12:00|--until|11:00", "not after" },
		{ "--since|tomorrow|--until|12:00", "in the future" },
		{ "--since|12:00|--until|noon", "--until noon" },
		{ "--until|12:00", "needs --since" },
		{ "--window|5s|--since|12:00", "exclude" },
		{ "--window|5s|--at|12:00", "exclude" },
	};
	struct range range = { 1, 2, 3 };
	struct options o;

	setenv("TZ", "UTC", 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = resolve(&o, cases[i].line, &range);

		if (r != -EINVAL || !strstr(o.message, cases[i].says))
			fail_msg("\"%s\": %d, \"%s\" without \"%s\"", cases[i].line, r,
				 r < 0 ? o.message : "", cases[i].says);
	}
	assert_true(range.window_ns == 1 && range.until_ns == 3);
}

/* No line of a verb's help is wider than a terminal. */
static void test_help(void **state)
{
	for (size_t i = 0; i < n_verbs; i++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		options_print_help(out, verbs[i].sets);
		fclose(out);
		assert_non_null(strstr(text, "--help"));
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
			if (strlen(line) > 80)
				fail_msg("%s: %s", verbs[i].name, line);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),	       cmocka_unit_test(test_last_wins),
		cmocka_unit_test(test_refused),	       cmocka_unit_test(test_other_verbs),
		cmocka_unit_test(test_bounds),	       cmocka_unit_test(test_range),
		cmocka_unit_test(test_help),	       cmocka_unit_test(test_suffix_of_the_output),
		cmocka_unit_test(test_range_refused),  cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_ranges_refused), cmocka_unit_test(test_names_and_exceptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
