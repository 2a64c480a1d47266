/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/option/options.h"

#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "client/base/message.h"
#include "client/option/spec.h"
#include "client/option/suggest.h"
#include "client/render/formats.h"
#include "common/base.h"
#include "common/io_words.h"
#include "common/pid_namespace.h"
#include "common/probe_kind.h"
#include "proto/wire.h"

#define AT(m) offsetof(struct options, m)

/* "|word": the words of a list make "|read|write"; one is added to skip the first bar. */
#define CHOICE(constant, word) "|" word

/* The help of --format for verbs without stacks. */
static const char help_without_stacks[] = "print the answer in this format: text for people (the "
					  "default), json for programs";

/* All options of all verbs. A letter stands for the same option in every verb. */
static const struct option_spec specs[] = {
	{ 'p', "pid", "P,..", OPTIONS_FILTER, option_read_ids, AT(pids),
	  "include only these processes, by process id (pid), such as 17,42" },
	{ 't', "tid", "T,..", OPTIONS_FILTER, option_read_ids, AT(tids),
	  "include only these threads, by thread id, such as 17,42" },
	{ 'u', "user-threads", NULL, OPTIONS_FILTER, option_read_flag, AT(user_threads),
	  "include only threads of programs, not those of the kernel" },
	{ 'k', "kernel-threads", NULL, OPTIONS_FILTER, option_read_flag, AT(kernel_threads),
	  "include only threads of the kernel" },
	{ 'U', "user-stacks", NULL, OPTIONS_FILTER, option_read_flag, AT(user_stacks),
	  "include only the user-space frames of each stack" },
	{ 'K', "kernel-stacks", NULL, OPTIONS_FILTER, option_read_flag, AT(kernel_stacks),
	  "include only the kernel frames of each stack" },
	{ 'm', "min-block-time", "US", OPTIONS_WAITS, option_read_micros, AT(min_block_ns),
	  "include only waits that took US microseconds or more; US may have a unit, as in "
	  "10ms" },
	{ 'M', "max-block-time", "US", OPTIONS_WAITS, option_read_micros, AT(max_block_ns),
	  "include only waits that took US microseconds or less; US may have a unit, as in "
	  "10ms" },
	{ 0, "state", "STATE,..", OPTIONS_WAITS, option_read_states, AT(states),
	  "include only waits of threads in these task states, such as S (sleeping) or D "
	  "(uninterruptible)" },
	{ 0, "reason", "REASON,..", OPTIONS_PICK, option_read_reasons, AT(reasons),
	  "include only waits for these reasons, such as flock, mutex, tcp or 'kernel-*'; "
	  "stackctl(1) lists them" },
	{ 0, "comm", "GLOB", OPTIONS_FILTER, option_read_names, AT(comms),
	  "include only threads whose name matches the shell pattern GLOB, such as 'kworker*'; "
	  "given several times, those that match one of them" },
	{ 0, "cgroup", "PATH", OPTIONS_FILTER, option_read_names, AT(cgroups),
	  "include only processes in the control group PATH or below it, such as "
	  "/system.slice; may be given several times" },
	{ 0, "unit", "NAME", OPTIONS_FILTER, option_read_names, AT(units),
	  "include only processes of the systemd unit NAME, such as ssh.service; may be given "
	  "several times" },
	{ 0, "function", "NAME", OPTIONS_PICK, option_read_names, AT(in_functions),
	  "include only stacks with the function NAME, such as commit_txn or 'ext4_*'; * stands "
	  "for anything; given several times, stacks with one of them" },
	{ 0, "callers", "NAME", OPTIONS_PICK, option_read_names, AT(callers),
	  "show who called the function NAME: include only stacks with it, and begin them there" },
	{ 0, "not-pid", "P,..", OPTIONS_PICK, option_read_ids, AT(not_pids),
	  "leave out these processes" },
	{ 0, "not-comm", "GLOB", OPTIONS_PICK, option_read_names, AT(not_comms),
	  "leave out threads whose name matches the shell pattern GLOB; may be given several "
	  "times, as all that follow" },
	{ 0, "not-cgroup", "PATH", OPTIONS_PICK, option_read_names, AT(not_cgroups),
	  "leave out processes in the control group PATH or below it" },
	{ 0, "not-unit", "NAME", OPTIONS_PICK, option_read_names, AT(not_units),
	  "leave out processes of the systemd unit NAME" },
	{ 0, "not-state", "STATE,..", OPTIONS_PICK, option_read_states, AT(not_states),
	  "leave out waits of threads in these task states" },
	{ 0, "not-reason", "REASON,..", OPTIONS_PICK, option_read_reasons, AT(not_reasons),
	  "leave out waits for these reasons, such as sleep or 'futex*'" },
	{ 0, "not-function", "NAME", OPTIONS_PICK, option_read_names, AT(not_functions),
	  "leave out stacks with the function NAME" },
	{ 0, "host", "GLOB", OPTIONS_HOSTS, option_read_names, AT(hosts),
	  "with --fleet: include only hosts whose name matches the shell pattern GLOB, such as "
	  "'web*'; may be given several times" },
	{ 0, "layer", &IO_LAYER_WORDS(CHOICE)[1], OPTIONS_LAYERS, option_read_text, AT(layer),
	  "with the probe iolat (I/O latency): include only operations in this layer of the "
	  "kernel" },
	{ 0, "op", &IO_OP_WORDS(CHOICE) "|CALL"[1], OPTIONS_LAYERS, option_read_text, AT(op),
	  "with the probe iolat (I/O latency): include only operations of this kind, or system "
	  "calls of the name CALL, such as pread64" },
	{ 0, "disk", "NAME", OPTIONS_LAYERS, option_read_text, AT(disk),
	  "with the probe iolat (I/O latency): include only I/O on this disk or partition, "
	  "such as sda" },
	{ 'C', "cpu", "N,..", OPTIONS_SESSION | OPTIONS_CALLS, option_read_cpus, AT(cpus),
	  "record only samples and function calls on these CPUs, such as 0,2" },
	{ 'F', "frequency", "HZ", OPTIONS_SESSION, option_read_positive, AT(frequency),
	  "with the probe oncpu (CPU samples): take HZ samples a second on each CPU (default "
	  "49)" },
	{ 0, "count", "PERIOD", OPTIONS_SESSION, option_read_positive, AT(period_ns),
	  "with the probe oncpu (CPU samples): take a sample on each CPU every PERIOD "
	  "nanoseconds" },
	{ 0, "event", "cpu-clock|cycles", OPTIONS_SESSION, option_read_choice, AT(event),
	  "with the probe oncpu (CPU samples): take samples by a timer (cpu-clock, the "
	  "default), or each time the CPU has run so many cycles (cycles) that there are HZ "
	  "samples a second, or PERIOD cycles" },
	{ 'r', "regexp", NULL, OPTIONS_CALLS | OPTIONS_LIST, option_read_flag, AT(regexp),
	  "treat the given function name as a regular expression, such as '^tcp_(send|recv)'" },
	{ 0, "rate", "N", OPTIONS_CALLS, option_read_positive, AT(rate),
	  "with the probe stacksnoop (calls of a function, one by one): print at most N "
	  "calls a second and count the rest (default: [probe.stacksnoop] rate)" },
	{ 0, "functions", "PATTERN", OPTIONS_LIST, option_read_text, AT(functions),
	  "instead of the probes, list the functions that match PATTERN and can be traced" },
	{ 0, "for", "D", OPTIONS_START, option_read_length, AT(duration_ns),
	  "end the session by itself after the time D, such as 30s or 1h" },
	{ 0, "for", "D", OPTIONS_RECORD, option_read_length, AT(duration_ns),
	  "record for the time D, such as 30s or 5min, then stop" },
	{ 0, "name", "NAME", OPTIONS_START, option_read_text, AT(name),
	  "give the session a name, which can be used instead of its id" },
	{ 0, "duration", "D", OPTIONS_START | OPTIONS_RECORD, option_read_length, AT(duration_ns),
	  "the same as --for" },
	{ 'i', "interval", "D", OPTIONS_WATCH, option_read_length, AT(interval_ns),
	  "time from one answer to the next, such as 10s (default 2s)" },
	{ 0, "for", "D", OPTIONS_RANGE, option_read_window, AT(window),
	  "show what happened during the past D, such as 30s or 5min (default: snapshot and "
	  "diff 30s, stuck 1s, report 5min, windows all time)" },
	{ 0, "window", "D", OPTIONS_RANGE, option_read_window, AT(window), "the same as --for" },
	{ 0, "since", "T", OPTIONS_RANGE, option_read_text, AT(since),
	  "show what happened from the time T on, such as 14:00 or -3min" },
	{ 0, "until", "T", OPTIONS_RANGE, option_read_text, AT(until),
	  "show what happened before the time T, such as 14:30; needs --since" },
	{ 0, "at", "T", OPTIONS_RANGE, option_read_text, AT(at),
	  "show only the recorded window (5 s by default) that contains the time T, such as "
	  "14:00:30" },
	{ 0, "range", "T..T", OPTIONS_SLICES, option_read_range, AT(ranges),
	  "show what happened from the first time T to the second, such as 14:00..14:05; given "
	  "several times, print an answer for each range" },
	{ 0, "base", "T..T|-D", OPTIONS_DIFF, option_read_text, AT(base),
	  "compare with the range from the first time T to the second, or with the same range D "
	  "earlier, such as -1d (default: the time just before, of the same length)" },
	{ 0, "each", "D|window", OPTIONS_SLICES, option_read_each, AT(each_ns),
	  "print a line for each part of the range that is D long, such as 10s, or for each "
	  "recorded window: how many threads ran and waited, and the row with the most time" },
	{ 0, "sort", "total|max|count|bytes", OPTIONS_ORDER, option_read_choice, AT(sort),
	  "order the rows by total time (the default), by the longest wait (max), by the number "
	  "of waits or samples (count) or, with the probe iolat, by bytes" },
	{ 0, "by", "process|comm|cgroup|unit|container|user|module|function|reason", OPTIONS_STUCK,
	  option_read_choice, AT(by),
	  "what each row stands for: all threads that wait in the same process, with the same "
	  "name, control group, systemd unit, container, user, module or function, or for the same "
	  "reason" },
	{ 0, "by",
	  "stack|line|thread|process|comm|cgroup|unit|container|user|module|function|reason|"
	  "operation|host",
	  OPTIONS_DIFF, option_read_choice, AT(by),
	  "compare stacks (the default with --stacks and --format); line, the default of text: all "
	  "waits for one reason, or all samples, of the processes of one name; or threads, "
	  "processes, thread names (comm), control groups, systemd units, containers, login users, "
	  "programs and libraries (module), functions, reasons of waits, "
	  "operations of the probe iolat or, with --fleet, hosts" },
	{ 0, "by",
	  "stack|line|thread|process|comm|cgroup|unit|container|user|module|function|reason|"
	  "operation|host|parent",
	  OPTIONS_ORDER, option_read_choice, AT(by),
	  "print one row for each stack (the default with --stacks and --format); line, the "
	  "default of text: all waits for one reason, or all samples, of the processes of one name "
	  "and of those threads whose names differ in digits only; thread, process, thread name "
	  "(comm), control group, systemd unit, container, login user, program or library "
	  "(module), function, reason of waits, "
	  "operation of the probe iolat or, with --fleet, host; "
	  "parent, only with `stackctl snapshot` without PROBE: count the processes that each "
	  "parent process started" },
	{ 'n', "top", "N", OPTIONS_STACKS, option_read_top, AT(top),
	  "show at most N rows (default 20 or, in lines on a terminal, as many as fit); 0 shows "
	  "all rows" },
	{ 0, "reverse", NULL, OPTIONS_STACKS, option_read_flag, AT(reverse),
	  "show the same rows in reverse order: the smallest first; with `stackctl stuck`, the "
	  "newest wait first" },
	{ 0, "idle", NULL, OPTIONS_STACKS | OPTIONS_SESSION, option_read_flag, AT(idle),
	  "include threads that only wait for new work and, with the probe oncpu (CPU "
	  "samples), idle CPUs" },
	{ 0, "no-idle", NULL, OPTIONS_STACKS, option_read_flag, AT(no_idle),
	  "leave out threads that only wait for new work, even if the filter names them or the "
	  "format is for programs" },
	{ 0, "fail", NULL, OPTIONS_STUCK, option_read_flag, AT(fail),
	  "exit with code 9 if anybody is waiting whom the filter selects, as in --fail -m 30s; "
	  "idle waits count only with --idle" },
	{ 0, "strict", NULL, OPTIONS_ONCE, option_read_flag, AT(strict),
	  "exit with code 5 if the answer is incomplete: if it has gaps, or if events were "
	  "lost" },
	{ 'f', "folded", NULL, OPTIONS_STACKS, option_read_named_format, 0,
	  "print each stack as one line, the format that programs read to draw flame graphs" },
	{ 'd', "delimited", NULL, OPTIONS_STACKS, option_read_flag, AT(delimited),
	  "with -f: put a frame named - between the user frames and the kernel frames" },
	{ 'a', "annotations", NULL, OPTIONS_STACKS, option_read_flag, AT(annotations),
	  "append _[k] to the name of each kernel function" },
	{ 0, "stacks", NULL, OPTIONS_ROWS, option_read_flag, AT(stacks),
	  "in text, print each row with all its figures and its stacks, not as one line; -U, -K, "
	  "-v, -s, -a, --lines and --debuginfod do so, too" },
	{ 0, "queued", NULL, OPTIONS_VIEWS, option_read_flag, AT(queued),
	  "with the probe iolat (I/O latency): also print histograms of how long disk "
	  "requests were in the queue, and how long they took in all" },
	{ 0, "milliseconds", NULL, OPTIONS_VIEWS, option_read_flag, AT(milliseconds),
	  "with the probe iolat (I/O latency): print all times in milliseconds" },
	{ 0, "breakdown", NULL, OPTIONS_VIEWS, option_read_flag, AT(breakdown),
	  "with the probe iolat (I/O latency): show for each kind of operation how much of "
	  "its time each layer of the kernel took" },
	{ 0, "over-time", NULL, OPTIONS_VIEWS, option_read_flag, AT(over_time),
	  "with the probe iolat (I/O latency): draw for each kind of operation a map of its "
	  "latencies over time" },
	{ 0, "chain", NULL, OPTIONS_VIEWS, option_read_flag, AT(chain),
	  "with the probe offwake (waits, and who ended them): also show who woke the thread "
	  "that ended the wait, and so on, for up to 5 steps" },
	{ 's', "offset", NULL, OPTIONS_STACKS | OPTIONS_SNOOP, option_read_flag, AT(offset),
	  "append to each function name the offset of the address within the function, as in "
	  "read+0x1c" },
	{ 'v', "verbose", NULL, OPTIONS_STACKS | OPTIONS_SNOOP, option_read_flag, AT(verbose),
	  "show the address of each frame, and all frames of a stack, also those of the "
	  "scheduler" },
	{ 'v', "verbose", NULL, OPTIONS_CHECK, option_read_flag, AT(verbose),
	  "also show what each probe cannot see, the windows on disk, what the cost consists of, "
	  "and which programs' stacks were cut short" },
	{ 0, "short", NULL, OPTIONS_STACKS | OPTIONS_SNOOP, option_read_flag, AT(is_short),
	  "show names of C++ and Rust functions without their arguments" },
	{ 0, "lines", NULL, OPTIONS_ONCE, option_read_flag, AT(lines),
	  "show the source line of each frame, and functions that were inlined; needs debug "
	  "information" },
	{ 0, "build-ids", NULL, OPTIONS_ONCE, option_read_flag, AT(build_ids),
	  "with --format json: give the build-id of each function's file, and the position in it, "
	  "for tools that look up names; pprof has both in any case" },
	{ 0, "debuginfod", NULL, OPTIONS_ONCE, option_read_flag, AT(debuginfod),
	  "name functions of stripped programs and libraries by debug information that stackctl "
	  "fetches from the servers in $DEBUGINFOD_URLS" },
	{ 0, "debuginfod-timeout", "D", OPTIONS_ONCE, option_read_length, AT(debuginfod_ns),
	  "with --debuginfod: fetch for at most D (default 30s), then print what is known" },
	{ 'o', "output", "FILE|DIR/", OPTIONS_ONCE | OPTIONS_OUTPUT, option_read_output, 0,
	  "write the answer to FILE (- is standard output), or to a new file in the directory DIR; "
	  "a FILE such as x.json gets the format that it is named after" },
	{ 0, "max-size", "SIZE", OPTIONS_REPORT, option_read_size, AT(max_size),
	  "make a file of at most SIZE, such as 2M (default 8M): small rows are summed up" },
	{ 0, "format", "page|perfetto", OPTIONS_REPORT, option_read_choice, AT(report_format),
	  "write a page for a browser (the default), or a trace for https://ui.perfetto.dev; "
	  "without this option, the end of the name of --output FILE chooses" },
	{ 0, "format", FORMAT_NAMES, OPTIONS_FORMAT, option_read_format, 0,
	  "print the answer in this format: text is for people (the default), svg a picture, the "
	  "others are for programs; without this option, the end of the name of --output FILE "
	  "chooses" },
	{ 0, "json", NULL, OPTIONS_FORMAT, option_read_named_format, 0,
	  "print the answer as JSON, like --format json" },
	{ 'p', "pid", "PID", OPTIONS_CHECK, option_read_ids, AT(pids),
	  "instead, say whether the files of the process PID are known, so that its next stacks "
	  "are whole" },
	{ 0, "check", NULL, OPTIONS_CHECK, option_read_flag, AT(check),
	  "print the daemon's health on one line, for monitoring; exit with 0 if all is well" },
	{ 0, "no-pager", NULL, OPTIONS_PAGER, option_read_flag, AT(no_pager),
	  "print to the terminal, not through $SYSTEMD_PAGER, $PAGER or less" },
	{ 'S', "socket", "PATH", OPTIONS_COMMON, option_read_text, AT(socket),
	  "ask the daemon that listens on the socket PATH" },
	{ 0, "fleet", NULL, OPTIONS_COMMON, option_read_flag, AT(fleet),
	  "ask the gateway of a fleet of hosts, see stackd-fleet(1)" },
	{ 'h', "help", NULL, OPTIONS_COMMON, option_read_flag, AT(help), "print this text" },
	{ 0, "version", NULL, OPTIONS_COMMON, option_read_flag, AT(version),
	  "print the version of stackctl" },
};

enum {
	N_SPECS = ARRAY_SIZE(specs),
	FIRST_LONG = 256, /* getopt_long() returns FIRST_LONG + i for the long option specs[i] */
	HELP_LEFT = 27,	  /* width of the options in --help, in columns */
	HELP_WIDTH = 80,  /* width of a line of help, in columns */
	HELP_VALUES = 11, /* indentation of values in the second line of an option */
};

void options_init(struct options *options)
{
	*options = (struct options){
		.format = &format_text,
		.min_block_ns = WIRE_ABSENT,
		.max_block_ns = WIRE_ABSENT,
		.top = WIRE_ABSENT,
		.max_size = WIRE_ABSENT,
		.frequency = WIRE_ABSENT,
		.period_ns = WIRE_ABSENT,
		.rate = WIRE_ABSENT,
		.duration_ns = WIRE_ABSENT,
		.interval_ns = WIRE_ABSENT,
		.each_ns = WIRE_ABSENT,
		.debuginfod_ns = WIRE_ABSENT,
	};
}

/*
 * Fills the arrays for getopt_long() with the short and the long options of the groups in `sets`.
 */
static void build_getopt(unsigned sets, char letters[static 2 * N_SPECS + 3],
			 struct option longs[static N_SPECS + 1])
{
	size_t n = 0;

	/*
	 * A colon first: getopt_long() returns ':' for a missing value and '?' for an unknown
	 * option.
	 */
	*letters++ = ':';
	for (size_t i = 0; i < N_SPECS; i++) {
		if (!(specs[i].set & sets))
			continue;
		longs[n++] = (struct option){
			.name = specs[i].name,
			.has_arg = specs[i].value ? required_argument : no_argument,
			.val = FIRST_LONG + (int)i,
		};
		if (specs[i].letter) {
			*letters++ = specs[i].letter;
			if (specs[i].value)
				*letters++ = ':';
		}
	}
	*letters = '\0';
	longs[n] = (struct option){ 0 };
}

static const struct option_spec *find_spec(int value)
{
	if (value >= FIRST_LONG)
		return &specs[value - FIRST_LONG];
	for (size_t i = 0; i < N_SPECS; i++)
		if (specs[i].letter == value)
			return &specs[i];
	return NULL;
}

static bool spec_is_word(const struct option_spec *spec, const char *word)
{
	size_t n = strlen(spec->name);

	return strncmp(word, "--", 2) == 0 && strncmp(word + 2, spec->name, n) == 0 &&
	       (word[2 + n] == '\0' || word[2 + n] == '=');
}

/* Writes the message for an abbreviation that fits several options, and names these. */
static int complain_ambiguous(struct options *options, unsigned sets, const char *word)
{
	size_t n = strcspn(word + 2, "="), used = 0;
	char names[256] = "";

	for (size_t i = 0; i < N_SPECS && used < sizeof(names); i++) {
		if (!(specs[i].set & (sets | OPTIONS_COMMON)) ||
		    strncmp(specs[i].name, word + 2, n) != 0)
			continue;
		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s--%s",
					 used > 0 ? ", " : "", specs[i].name);
	}
	return option_complain(options, "%s is the beginning of several options: %s", word, names);
}

/* Words that users of other tools try, and the option that does the same here. */
static const struct {
	const char *word, *option;
} option_wishes[] = {
	{ "last", "for" },    { "duration", "for" }, { "from", "since" },  { "start", "since" },
	{ "end", "until" },   { "to", "until" },     { "process", "pid" }, { "thread", "tid" },
	{ "name", "comm" },   { "service", "unit" }, { "limit", "top" },   { "group", "by" },
	{ "group-by", "by" },
};

/* Returns the option of a verb that somebody who typed a word, as --word or --word=VALUE, wants. */
static const struct option_spec *option_wish(unsigned sets, const char *word)
{
	size_t n = strcspn(word + 2, "=");

	for (size_t i = 0; i < ARRAY_SIZE(option_wishes); i++) {
		if (strlen(option_wishes[i].word) != n ||
		    strncmp(option_wishes[i].word, word + 2, n) != 0)
			continue;
		for (size_t j = 0; j < N_SPECS; j++)
			if ((specs[j].set & sets) &&
			    strcmp(specs[j].name, option_wishes[i].option) == 0)
				return &specs[j];
	}
	return NULL;
}

/*
 * Writes the message for an unknown long option, or for an abbreviation that fits several options.
 */
static int complain_long(struct options *options, unsigned sets, const char *verb, const char *word)
{
	size_t n = strcspn(word + 2, "="), starts = 0;
	struct suggestion near;

	suggestion_init(&near, word + 2, n);
	for (size_t i = 0; i < N_SPECS; i++) {
		if (!(specs[i].set & (sets | OPTIONS_COMMON)))
			continue;
		suggestion_try(&near, specs[i].name);
		starts += strncmp(specs[i].name, word + 2, n) == 0;
	}
	if (starts > 1)
		return complain_ambiguous(options, sets, word);
	if (near.best)
		return option_complain(options,
				       "unknown option %s; did you mean --%s? stackctl %s --help",
				       word, near.best, verb);
	return option_complain(options, "unknown option %s; stackctl %s --help", word, verb);
}

/*
 * Writes the message for an unexpected argument. It mentions -p, because users often mean a
 * process.
 */
static int complain_unexpected(struct options *options, unsigned sets, const char *verb,
			       const char *word)
{
	int64_t id;

	if (!(sets & OPTIONS_FILTER) || word[0] == '-')
		return option_complain(options, "%s: unexpected \"%s\"; stackctl %s --help", verb,
				       word, verb);
	if (option_read_number(word, strlen(word), &id) == 0)
		return option_complain(options,
				       "%s: unexpected \"%s\"; a process is -p %s, a thread -t %s",
				       verb, word, word, word);
	return option_complain(
		options,
		"%s: unexpected \"%s\"; processes of that name are --comm '%s', one is "
		"-p PID",
		verb, word, word);
}

/*
 * Writes the message for a word that getopt_long() refused with '?'. optopt is the letter of an
 * unknown short option, the number of a known long option that was given a value but takes none, or
 * 0 for an unknown long option. For an option that only other verbs take, the message says so.
 */
static int complain_unknown(struct options *options, unsigned sets, const char *verb,
			    const char *word)
{
	const struct option_spec *wish;

	if (optopt >= FIRST_LONG)
		return option_complain(options, "--%s takes no value", find_spec(optopt)->name);
	wish = optopt ? NULL : option_wish(sets, word);
	if (wish)
		return option_complain(options, "unknown option %s; here it is --%s %s", word,
				       wish->name, wish->value);
	for (size_t i = 0; i < N_SPECS; i++)
		if (optopt ? specs[i].letter == optopt : spec_is_word(&specs[i], word))
			return option_complain(options, "%s takes no --%s; stackctl %s --help",
					       verb, specs[i].name, verb);
	if (optopt)
		return option_complain(options, "unknown option -%c; stackctl %s --help", optopt,
				       verb);
	return complain_long(options, sets, verb, word);
}

static int read_option(struct options *options, unsigned sets, int value, const char *verb,
		       const char *word)
{
	const struct option_spec *spec;

	if (value == '?')
		return complain_unknown(options, sets, verb, word);
	spec = find_spec(value == ':' ? optopt : value);
	if (value == ':')
		return option_complain(options, "--%s needs a value: %s", spec->name, spec->value);
	if (spec->value && optarg[0] == '\0')
		return option_complain(options, "--%s has an empty value; it takes %s", spec->name,
				       spec->value);
	return spec->read(options, spec, spec->value ? optarg : NULL);
}

/* Says whose pids are meant, where the user may think of others. */
static void pids_note(const struct options *options)
{
	if (options->pids.n + options->not_pids.n + options->tids.n > 0 &&
	    !pid_namespace_is_first())
		print_message("note: pids and tids are those of the host; in this pid namespace, "
			      "processes have others");
}

/* An option, and whether it was given. */
struct given {
	bool is_given;
	const char *name;
};

/* Returns the name of the first option of a list that was given; NULL: none was. */
static const char *first_given(const struct given *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].is_given)
			return list[i].name;
	return NULL;
}

#define FIRST_GIVEN(list) first_given(list, ARRAY_SIZE(list))

/* Refuses pairs of options that exclude or need each other. */
static int check_pairs(struct options *options)
{
	bool has_both_times =
		options->min_block_ns != WIRE_ABSENT && options->max_block_ns != WIRE_ABSENT;
	const struct {
		bool is_refused;
		const char *why;
	} pairs[] = {
		{ options->socket && options->fleet, "--socket and --fleet exclude each other" },
		{ options->pids.n > 0 && options->tids.n > 0,
		  "--pid and --tid exclude each other" },
		{ options->idle && options->no_idle, "--idle and --no-idle exclude each other" },
		{ options->user_threads && options->kernel_threads,
		  "--user-threads and --kernel-threads exclude each other; without either, both "
		  "are shown" },
		{ options->user_stacks && options->kernel_stacks,
		  "--user-stacks and --kernel-stacks exclude each other; without either, both are "
		  "shown" },
		{ has_both_times && options->min_block_ns > options->max_block_ns,
		  "--min-block-time is longer than --max-block-time" },
		{ options->debuginfod_ns != WIRE_ABSENT && !options->debuginfod,
		  "--debuginfod-timeout needs --debuginfod" },
		{ options->frequency != WIRE_ABSENT && options->period_ns != WIRE_ABSENT,
		  "--frequency and --count exclude each other" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (pairs[i].is_refused)
			return option_complain(options, "%s", pairs[i].why);
	return 0;
}

/* Refuses what does not go with several answers: --over-time, --range and --each. */
static int check_ranges(struct options *options)
{
	const bool has_each = options->each_ns != WIRE_ABSENT;
	const struct given rows[] = { { options->by, "by" }, { options->breakdown, "breakdown" } };
	const struct given times[] = { { options->window, options->window_name },
				       { options->since, "since" },
				       { options->until, "until" },
				       { options->at, "at" },
				       { has_each, "each" } };
	const struct given several[] = { { options->ranges.n > 0, "range" }, { has_each, "each" } };
	const struct given lines[] = { { options->over_time, "over-time" },
				       { options->breakdown, "breakdown" },
				       { options->reverse, "reverse" },
				       { options->lines, "lines" } };
	const char *row = FIRST_GIVEN(rows), *time = FIRST_GIVEN(times);
	const char *answers = FIRST_GIVEN(several), *line = FIRST_GIVEN(lines);

	if (options->over_time && row)
		return option_complain(options, "--over-time has rows of its own: without --%s",
				       row);
	if (options->ranges.n > 0 && time)
		return option_complain(options, "--range and --%s exclude each other", time);
	if (answers && options->format->has_only_stacks)
		return option_complain(options, "--%s has no %s output: text or json", answers,
				       options->format->name);
	if (has_each && line)
		return option_complain(options, "--each prints lines of its own: without --%s",
				       line);
	return 0;
}

/*
 * Refuses rows that --callers does not have, --top where all rows are needed, and options about
 * stacks where there are none.
 */
static int check_rows(struct options *options)
{
	const struct given stacks[] = { { options->stacks, "stacks" },
					{ options->verbose, "verbose" },
					{ options->lines, "lines" },
					{ options->offset, "offset" },
					{ options->annotations, "annotations" },
					{ options->user_stacks, "user-stacks" },
					{ options->kernel_stacks, "kernel-stacks" } };
	const bool has_top = options->top != WIRE_ABSENT && options->top != 0;
	const char *stack = FIRST_GIVEN(stacks);

	if (options->callers.n > 0 && options->lines)
		return option_complain(options, "--callers and --lines exclude each other");
	if (options->callers.n > 0 && options->by &&
	    (strcmp(options->by, "function") == 0 || strcmp(options->by, "module") == 0))
		return option_complain(options,
				       "--callers shows stacks that begin with the function: "
				       "without --by %s",
				       options->by);
	if (options->format->has_all_rows && has_top)
		return option_complain(options,
				       "--top does not go with %s output, whose sum is the "
				       "whole time; leave it out",
				       options->format->name);
	if (options->fail && !options->format->is_for_people && has_top)
		return option_complain(options, "--fail has to see all rows: without --top, or "
						"with the text output");
	if (options->is_stuck && options->by && options->format->is_for_people && stack)
		return option_complain(options,
				       "--by prints a line for each row, without stacks: it does "
				       "not go with --%s",
				       stack);
	return 0;
}

/* Refuses options that exclude each other, and combinations of values that make no sense. */
static int check_together(struct options *options)
{
	int r = check_pairs(options);

	r = r < 0 ? r : check_ranges(options);
	return r < 0 ? r : check_rows(options);
}

/* Returns what a verb with these options prints in a format. */
static enum format_use format_use(unsigned sets)
{
	return !(sets & OPTIONS_STACKS) ? FORMAT_OF_LISTS
	       : sets & OPTIONS_WATCH	? FORMAT_OF_MANY
	       : sets & OPTIONS_DIFF	? FORMAT_OF_CHANGES
					: FORMAT_OF_STACKS;
}

/*
 * Takes the format from the name of the output file, unless an option says it. Refuses a format
 * that the verb cannot print.
 */
static int choose_format(struct options *options, unsigned sets, const char *verb)
{
	const struct format *format =
		options->output && sets & OPTIONS_FORMAT ? format_of_file(options->output) : NULL;
	char names[FORMAT_NAMES_MAX], suffixes[FORMAT_SUFFIXES_MAX];

	if (format && !options->format_option)
		options->format = format;
	if (options->output && !options->format_option && sets & OPTIONS_STACKS &&
	    (format_is_trace_file(options->output) || format_is_page_file(options->output)))
		return option_complain(options,
				       "--output %s: a page or a trace is of each window of a "
				       "range: stackctl report --output %s",
				       options->output, options->output);
	if (options->output && !options->format_option && sets & OPTIONS_FORMAT &&
	    format_is_unknown_file(options->output)) {
		format_suffixes(format_use(sets), suffixes);
		return option_complain(options,
				       "--output %s: no format has this suffix; known are %s; "
				       "--format text writes text to a file of any name",
				       options->output, suffixes);
	}
	format = options->format;
	if (format_use(sets) == FORMAT_OF_LISTS && !format_fits(format, FORMAT_OF_LISTS))
		return option_complain(options,
				       "%s has no stacks, and --format %s prints nothing else; "
				       "leave it out",
				       verb, format->name);
	if (!format_fits(format, format_use(sets))) {
		format_names(format_use(sets), names);
		return option_complain(options,
				       "a file of the format %s has one answer, and %s prints "
				       "%s: --format %s",
				       format->name, verb,
				       sets & OPTIONS_DIFF ? "a comparison" : "several", names);
	}
	if (format->is_binary && !options->output && isatty(STDOUT_FILENO))
		return option_complain(options,
				       "the format %s is not for a terminal; --output FILE.%s",
				       format->name, format->suffix);
	return 0;
}

/* Refuses options that affect only the output of one probe, where another one is named. */
static int check_views(struct options *options)
{
	const char *of_iolat = options->breakdown      ? "breakdown"
			       : options->over_time    ? "over-time"
			       : options->queued       ? "queued"
			       : options->milliseconds ? "milliseconds"
						       : NULL;
	enum probe_kind kind;

	if (!options->argument || !probe_kind_find(options->argument, &kind))
		return 0;
	if (of_iolat && !probe_kind_has(kind, PROBE_IO))
		return option_complain(options, "--%s shows answers of the probe iolat, not of %s",
				       of_iolat, options->argument);
	if (options->chain && kind != PROBE_OFFWAKE)
		return option_complain(options,
				       "--chain shows answers of the probe offwake, not of %s",
				       options->argument);
	return 0;
}

/* Refuses --by parent where rows are of waits, samples or operations; only snapshot has slices. */
static int check_by(struct options *options, unsigned sets)
{
	if (!options->by || strcmp(options->by, "parent") != 0)
		return 0;
	if (options->argument || !(sets & OPTIONS_SLICES))
		return option_complain(options, "--by parent counts processes, and goes without a "
						"probe: stackctl snapshot --by parent");
	return 0;
}

int options_parse(struct options *options, unsigned sets, size_t max_arguments, int argc,
		  char **argv)
{
	char letters[2 * N_SPECS + 3];
	struct option longs[N_SPECS + 1];
	int value, r;

	build_getopt(sets | OPTIONS_COMMON, letters, longs);
	opterr = 0;
	/* makes getopt_long() start with the first word, even if it stopped in a word before */
	optind = 0;
	for (;;) {
		value = getopt_long(argc, argv, letters, longs, NULL);
		if (value == -1)
			break;
		r = read_option(options, sets, value, argv[0], argv[optind - 1]);
		if (r < 0)
			return r;
	}
	if (argc - optind > (int)max_arguments)
		return complain_unexpected(options, sets, argv[0],
					   argv[optind + (int)max_arguments]);
	if (optind < argc)
		options->argument = argv[optind];
	if (optind + 1 < argc)
		options->function = argv[optind + 1];
	r = sets & OPTIONS_VIEWS ? check_views(options) : 0;
	if (r < 0)
		return r;
	r = check_by(options, sets);
	if (r < 0)
		return r;
	r = choose_format(options, sets, argv[0]);
	if (r < 0)
		return r;
	options->is_stuck = sets & OPTIONS_STUCK;
	r = check_together(options);
	if (r < 0)
		return r;
	pids_note(options);
	return 0;
}

bool options_name_somebody(const struct options *options)
{
	return options->pids.n > 0 || options->tids.n > 0 || options->comms.n > 0 ||
	       options->cgroups.n > 0 || options->units.n > 0;
}

bool options_pick_rows(const struct options *options)
{
	return options->states.n > 0 || options->reasons.n > 0 ||
	       options->min_block_ns != WIRE_ABSENT || options->max_block_ns != WIRE_ABSENT ||
	       options->not_states.n > 0 || options->not_reasons.n > 0 ||
	       options->in_functions.n > 0 || options->not_functions.n > 0 ||
	       options->callers.n > 0;
}

void options_drop_picks(struct options *options)
{
	options->reasons.n = options->not_reasons.n = options->not_states.n = 0;
	options->not_pids.n = options->not_comms.n = 0;
	options->not_cgroups.n = options->not_units.n = 0;
	options->in_functions.n = options->not_functions.n = options->callers.n = 0;
}

/* Returns where a line of at most `room` columns of the text ends: at a space, or at its end. */
static size_t line_end(const char *text, size_t room)
{
	size_t n = strlen(text);

	if (n <= room)
		return n;
	for (n = room; n > 0 && text[n] != ' '; n--)
		;
	return n > 0 ? n : room;
}

/*
 * Prints an option that is too long for its column, in a line of its own. If the values of the
 * option, such as "total|max", do not fit in the line, it ends with a bar, and they go on in the
 * next one.
 */
static void print_long_option(FILE *out, const char *left)
{
	size_t n = HELP_WIDTH - 2;

	if (strlen(left) <= n) {
		fprintf(out, "  %s\n", left);
		return;
	}
	while (n > 0 && left[n - 1] != '|')
		n--;
	fprintf(out, "  %.*s\n%*s%s\n", (int)n, left, HELP_VALUES, "", left + n);
}

void option_print_help(FILE *out, const char *left, int width, const char *help)
{
	size_t room = HELP_WIDTH - 3 - (size_t)width;

	if (strlen(left) > (size_t)width)
		print_long_option(out, left);
	fprintf(out, "  %-*s", width, strlen(left) > (size_t)width ? "" : left);
	for (;;) {
		size_t n = line_end(help, room);

		fprintf(out, " %.*s\n", (int)n, help);
		help += n + strspn(help + n, " ");
		if (*help == '\0')
			return;
		fprintf(out, "  %*s", width, "");
	}
}

/*
 * The groups under which help prints options. An option is in the first group that has one of its
 * sets; of diff, what orders rows is not in the group about time. An example is shown by a verb
 * that takes the options of all of its sets.
 */
static const struct help_group {
	unsigned sets;
	const char *title;
	struct {
		unsigned sets;
		const char *text;
	} examples[2];
} help_groups[] = {
	{ OPTIONS_RANGE | OPTIONS_SLICES | OPTIONS_DIFF,
	  "Which time",
	  { { OPTIONS_RANGE, "--since 03:10 --until 03:14" } } },
	{ OPTIONS_WATCH, "How often", { { OPTIONS_WATCH, "-i 10s" } } },
	{ OPTIONS_FILTER | OPTIONS_WAITS,
	  "Whose events, and which waits",
	  { { OPTIONS_WAITS, "--unit ssh.service -m 10ms" },
	    { OPTIONS_FILTER, "--unit ssh.service" } } },
	{ OPTIONS_HOSTS, "Which hosts of a fleet", { { OPTIONS_HOSTS, "--fleet --host 'web*'" } } },
	{ OPTIONS_PICK,
	  "Reasons and functions",
	  { { OPTIONS_PICK, "--function commit_txn --not-comm 'kworker*'" } } },
	{ OPTIONS_LAYERS,
	  "With the probe iolat",
	  { { OPTIONS_LAYERS | OPTIONS_VIEWS, "--breakdown --disk sda" },
	    { OPTIONS_LAYERS, "--disk sda" } } },
	{ OPTIONS_VIEWS, "How iolat and offwake are shown", { { OPTIONS_VIEWS, "--chain" } } },
	{ OPTIONS_START | OPTIONS_RECORD,
	  "How long",
	  { { OPTIONS_START, "--for 10min" }, { OPTIONS_RECORD, "--for 20s" } } },
	{ OPTIONS_SESSION | OPTIONS_CALLS | OPTIONS_LIST,
	  "What is recorded",
	  { { OPTIONS_SESSION, "-C 0,1" }, { OPTIONS_CALLS, "--rate 100" } } },
	{ OPTIONS_STUCK | OPTIONS_ORDER | OPTIONS_ROWS | OPTIONS_DIFF,
	  "Which rows",
	  { { OPTIONS_ORDER, "--by process --sort max" }, { OPTIONS_STUCK, "--by reason" } } },
	{ OPTIONS_STACKS | OPTIONS_SNOOP,
	  "Rows and stacks",
	  { { OPTIONS_STACKS, "-n 5 -U" }, { OPTIONS_SNOOP, "--short" } } },
	{ OPTIONS_FORMAT | OPTIONS_ONCE | OPTIONS_OUTPUT | OPTIONS_REPORT | OPTIONS_CHECK |
		  OPTIONS_PAGER,
	  "Output",
	  { { OPTIONS_FORMAT, "--json" }, { OPTIONS_REPORT, "-o incident.html" } } },
	{ OPTIONS_COMMON, "For every verb", { { OPTIONS_COMMON, "-S /run/stackd/stackd.sock" } } },
};

static void print_spec(FILE *out, const struct option_spec *spec, unsigned sets)
{
	bool has_stacks = sets & OPTIONS_STACKS, is_format = spec->read == option_read_format;
	char formats[FORMAT_NAMES_MAX], left[160];
	const char *value = spec->value;

	if (is_format) {
		format_names(format_use(sets), formats);
		value = formats;
	}
	snprintf(left, sizeof left, "%c%c%s--%s%s%s", spec->letter ? '-' : ' ',
		 spec->letter ? spec->letter : ' ', spec->letter ? ", " : "  ", spec->name,
		 value ? " " : "", value ? value : "");
	option_print_help(out, left, HELP_LEFT,
			  is_format && !has_stacks ? help_without_stacks : spec->help);
}

/* Prints the title of a group, and an example that the verb takes. */
static void print_title(FILE *out, const struct help_group *group, unsigned sets)
{
	for (size_t i = 0; i < ARRAY_SIZE(group->examples); i++)
		if (group->examples[i].text &&
		    (group->examples[i].sets & ~(sets | OPTIONS_COMMON)) == 0) {
			fprintf(out, "%s, as in %s\n", group->title, group->examples[i].text);
			return;
		}
	fprintf(out, "%s\n", group->title);
}

/* Returns the group of an option of a verb with these sets. */
static const struct help_group *group_of(const struct option_spec *spec, unsigned sets)
{
	for (size_t i = 0; i < ARRAY_SIZE(help_groups); i++)
		if (spec->set & sets & help_groups[i].sets &&
		    !(spec->set & OPTIONS_ORDER && help_groups[i].sets & OPTIONS_RANGE))
			return &help_groups[i];
	return NULL;
}

void options_print_help(FILE *out, unsigned sets)
{
	sets |= OPTIONS_COMMON;
	for (size_t g = 0; g < ARRAY_SIZE(help_groups); g++) {
		bool has_title = false;

		for (size_t i = 0; i < N_SPECS; i++) {
			if (group_of(&specs[i], sets) != &help_groups[g])
				continue;
			if (!has_title)
				print_title(out, &help_groups[g], sets);
			has_title = true;
			print_spec(out, &specs[i], sets);
		}
	}
}
