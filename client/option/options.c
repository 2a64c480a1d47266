/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/option/options.h"

#include <getopt.h>
#include <string.h>

#include "client/option/spec.h"
#include "client/option/suggest.h"
#include "client/render/formats.h"
#include "common/base.h"
#include "common/io_words.h"
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
	{ 'm', "min-block-time", "US", OPTIONS_FILTER, option_read_micros, AT(min_block_ns),
	  "include only waits that took US microseconds or more; US may have a unit, as in "
	  "10ms" },
	{ 'M', "max-block-time", "US", OPTIONS_FILTER, option_read_micros, AT(max_block_ns),
	  "include only waits that took US microseconds or less; US may have a unit, as in "
	  "10ms" },
	{ 0, "state", "STATE,..", OPTIONS_FILTER, option_read_states, AT(states),
	  "include only waits of threads in these task states, such as S (sleeping) or D "
	  "(uninterruptible)" },
	{ 0, "comm", "GLOB", OPTIONS_FILTER, option_read_text, AT(comm),
	  "include only threads whose name matches the shell pattern GLOB, such as 'kworker*'" },
	{ 0, "cgroup", "PATH", OPTIONS_FILTER, option_read_text, AT(cgroup),
	  "include only processes in the control group PATH or below it, such as "
	  "/system.slice" },
	{ 0, "unit", "NAME", OPTIONS_FILTER, option_read_text, AT(unit),
	  "include only processes of the systemd unit NAME, such as ssh.service" },
	{ 0, "layer", IO_LAYER_WORDS(CHOICE) + 1, OPTIONS_LAYERS, option_read_text, AT(layer),
	  "with the probe iolat (I/O latency): include only operations in this layer of the "
	  "kernel" },
	{ 0, "op", IO_OP_WORDS(CHOICE) "|CALL" + 1, OPTIONS_LAYERS, option_read_text, AT(op),
	  "with the probe iolat (I/O latency): include only operations of this kind, or system "
	  "calls of the name CALL, such as pread64" },
	{ 0, "disk", "NAME", OPTIONS_LAYERS, option_read_text, AT(disk),
	  "with the probe iolat (I/O latency): include only I/O on this disk or partition, "
	  "such as sda" },
	{ 'C', "cpu", "N,..", OPTIONS_SESSION | OPTIONS_SNOOP, option_read_cpus, AT(cpus),
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
	{ 0, "name", "NAME", OPTIONS_START, option_read_text, AT(name),
	  "give the session a name, which can be used instead of its id" },
	{ 0, "duration", "D", OPTIONS_RECORD, option_read_length, AT(duration_ns),
	  "record for the time D, such as 30s or 5min, then stop" },
	{ 'i', "interval", "D", OPTIONS_WATCH, option_read_length, AT(interval_ns),
	  "time from one answer to the next, such as 10s (default 2s)" },
	{ 0, "window", "D", OPTIONS_RANGE, option_read_text, AT(window),
	  "show what happened during the past D, such as 30s or 5min (default: snapshot 30s, "
	  "stuck 1s, windows all time)" },
	{ 0, "since", "T", OPTIONS_RANGE, option_read_text, AT(since),
	  "show what happened from the time T on, such as 14:00 or -3min" },
	{ 0, "until", "T", OPTIONS_RANGE, option_read_text, AT(until),
	  "show what happened before the time T, such as 14:30; needs --since" },
	{ 0, "at", "T", OPTIONS_RANGE, option_read_text, AT(at),
	  "show only the recorded window (5 s by default) that contains the time T, such as "
	  "14:00:30" },
	{ 0, "each", "D|window", OPTIONS_SLICES, option_read_each, AT(each_ns),
	  "print a line for each part of the range that is D long, such as 10s, or for each "
	  "recorded window: how many threads ran and waited, and the row with the most time" },
	{ 0, "sort", "total|max|count", OPTIONS_ORDER, option_read_choice, AT(sort),
	  "order the rows by total time (the default), by the longest wait (max), or by the "
	  "number of waits or samples (count)" },
	{ 0, "by", "stack|thread|process|comm|cgroup|module|function", OPTIONS_ORDER,
	  option_read_choice, AT(by),
	  "print one row for each stack (the default), thread, process, thread name (comm), "
	  "control group, program or library (module), or function" },
	{ 'n', "top", "N", OPTIONS_STACKS, option_read_top, AT(top),
	  "show at most N rows (default 20); 0 shows all rows" },
	{ 0, "reverse", NULL, OPTIONS_STACKS, option_read_flag, AT(reverse),
	  "show the same rows in reverse order: the smallest first; with `stackctl stuck`, the "
	  "newest wait first" },
	{ 0, "idle", NULL, OPTIONS_STACKS | OPTIONS_SESSION, option_read_flag, AT(idle),
	  "include threads that only wait for new work and, with the probe oncpu (CPU "
	  "samples), idle CPUs" },
	{ 0, "strict", NULL, OPTIONS_ONCE, option_read_flag, AT(strict),
	  "exit with code 5 if the answer is incomplete: if it has gaps, or if events were "
	  "lost" },
	{ 'f', "folded", NULL, OPTIONS_STACKS, option_read_named_format, 0,
	  "print each stack as one line, the format that programs read to draw flame graphs" },
	{ 'd', "delimited", NULL, OPTIONS_STACKS, option_read_flag, AT(delimited),
	  "with -f: put a frame named - between the user frames and the kernel frames" },
	{ 'a', "annotations", NULL, OPTIONS_STACKS, option_read_flag, AT(annotations),
	  "append _[k] to the name of each kernel function" },
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
	{ 0, "short", NULL, OPTIONS_STACKS | OPTIONS_SNOOP, option_read_flag, AT(is_short),
	  "show names of C++ and Rust functions without their arguments" },
	{ 0, "lines", NULL, OPTIONS_ONCE, option_read_flag, AT(lines),
	  "show the source line of each frame, and functions that were inlined; needs debug "
	  "information" },
	{ 0, "output", "FILE|DIR/", OPTIONS_ONCE, option_read_text, AT(output),
	  "write the answer to FILE, or to a new file in the directory DIR" },
	{ 0, "format", FORMAT_NAMES, OPTIONS_FORMAT, option_read_format, 0,
	  "print the answer in this format: text for people (the default), folded for flame "
	  "graphs, json for programs" },
	{ 0, "json", NULL, OPTIONS_FORMAT, option_read_named_format, 0,
	  "print the answer as JSON, like --format json" },
	{ 0, "check", NULL, OPTIONS_CHECK, option_read_flag, AT(check),
	  "print the daemon's health on one line, for monitoring; exit with 0 if all is well" },
	{ 'S', "socket", "PATH", OPTIONS_COMMON, option_read_text, AT(socket),
	  "ask the daemon that listens on the socket PATH" },
	{ 'h', "help", NULL, OPTIONS_COMMON, option_read_flag, AT(help), "print this text" },
	{ 0, "version", NULL, OPTIONS_COMMON, option_read_flag, AT(version),
	  "print the version of stackctl" },
};

enum {
	N_SPECS = ARRAY_SIZE(specs),
	FIRST_LONG = 256, /* getopt_long() returns FIRST_LONG + i for the long option specs[i] */
	HELP_LEFT = 27,	  /* width of the options in --help, in columns */
	HELP_WIDTH = 80,  /* width of a line of help, in columns */
};

void options_init(struct options *options)
{
	*options = (struct options){
		.format = &format_text,
		.min_block_ns = WIRE_ABSENT,
		.max_block_ns = WIRE_ABSENT,
		.top = WIRE_ABSENT,
		.frequency = WIRE_ABSENT,
		.period_ns = WIRE_ABSENT,
		.rate = WIRE_ABSENT,
		.duration_ns = WIRE_ABSENT,
		.interval_ns = WIRE_ABSENT,
		.each_ns = WIRE_ABSENT,
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
		return option_complain(options,
				       "%s is the beginning of several options; stackctl %s "
				       "--help",
				       word, verb);
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
	if (optopt >= FIRST_LONG)
		return option_complain(options, "--%s takes no value", find_spec(optopt)->name);
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

/* Refuses options that exclude each other, and combinations of values that make no sense. */
static int check_together(struct options *options)
{
	if (options->pids.n > 0 && options->tids.n > 0)
		return option_complain(options, "--pid and --tid exclude each other");
	if (options->user_threads && options->kernel_threads)
		return option_complain(options,
				       "--user-threads and --kernel-threads exclude each other; "
				       "without either, both are shown");
	if (options->user_stacks && options->kernel_stacks)
		return option_complain(options,
				       "--user-stacks and --kernel-stacks exclude each other; "
				       "without either, both are shown");
	if (options->min_block_ns != WIRE_ABSENT && options->max_block_ns != WIRE_ABSENT &&
	    options->min_block_ns > options->max_block_ns)
		return option_complain(options, "--min-block-time is longer than --max-block-time");
	if (options->frequency != WIRE_ABSENT && options->period_ns != WIRE_ABSENT)
		return option_complain(options, "--frequency and --count exclude each other");
	if (options->over_time && (options->by || options->breakdown))
		return option_complain(options, "--over-time has rows of its own: without --%s",
				       options->by ? "by" : "breakdown");
	if (options->each_ns != WIRE_ABSENT && options->format->has_only_stacks)
		return option_complain(options, "--each has no %s output: text or json",
				       options->format->name);
	if (options->each_ns != WIRE_ABSENT &&
	    (options->over_time || options->breakdown || options->reverse || options->lines))
		return option_complain(options, "--each prints lines of its own: without --%s",
				       options->over_time   ? "over-time"
				       : options->breakdown ? "breakdown"
				       : options->reverse   ? "reverse"
							    : "lines");
	if (options->cgroup && options->cgroup[0] != '/')
		return option_complain(
			options, "--cgroup %s: begins with /, as in /system.slice/ssh.service",
			options->cgroup);
	if (options->format->has_all_rows && options->top != WIRE_ABSENT && options->top != 0)
		return option_complain(options,
				       "--top does not go with %s output, whose sum is the "
				       "whole time; leave it out",
				       options->format->name);
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
	if (!(sets & OPTIONS_STACKS) && options->format->has_only_stacks)
		return option_complain(options,
				       "%s has no stacks, and --format %s prints nothing else; "
				       "leave it out",
				       argv[0], options->format->name);
	return check_together(options);
}

bool options_name_somebody(const struct options *options)
{
	return options->pids.n > 0 || options->tids.n > 0 || options->comm || options->cgroup ||
	       options->unit;
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

void option_print_help(FILE *out, const char *left, int width, const char *help)
{
	size_t room = HELP_WIDTH - 3 - (size_t)width;

	/* If the option is too long for its column, the help text begins on the next line. */
	if (strlen(left) > (size_t)width)
		fprintf(out, "  %s\n  %*s", left, width, "");
	else
		fprintf(out, "  %-*s", width, left);
	for (;;) {
		size_t n = line_end(help, room);

		fprintf(out, " %.*s\n", (int)n, help);
		help += n + strspn(help + n, " ");
		if (*help == '\0')
			return;
		fprintf(out, "  %*s", width, "");
	}
}

void options_print_help(FILE *out, unsigned sets)
{
	bool has_stacks = sets & OPTIONS_STACKS;
	char formats[FORMAT_NAMES_MAX];

	format_names(has_stacks, formats);
	for (size_t i = 0; i < N_SPECS; i++) {
		const struct option_spec *spec = &specs[i];
		bool is_format = spec->read == option_read_format;
		const char *value = is_format ? formats : spec->value;
		char left[64];

		if (!(spec->set & (sets | OPTIONS_COMMON)))
			continue;
		snprintf(left, sizeof left, "%c%c%s--%s%s%s", spec->letter ? '-' : ' ',
			 spec->letter ? spec->letter : ' ', spec->letter ? ", " : "  ", spec->name,
			 value ? " " : "", value ? value : "");
		option_print_help(out, left, HELP_LEFT,
				  is_format && !has_stacks ? help_without_stacks : spec->help);
	}
}
