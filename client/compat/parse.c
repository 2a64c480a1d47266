/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/compat/compat.h"
#include "client/render/formats.h"
#include "common/base.h"

enum {
	OPTIONS_MAX = 32,
	FIRST_LONG = 256, /* getopt_long() returns FIRST_LONG + i for the long option options[i] */
	HELP_LEFT = 22,	  /* width of the options in help, in columns */
};

/* The command line, translated into stackctl's own options for options_parse(). */
struct native_line {
	char **v;
	int n;
};

static void build_getopt(const struct compat_tool *tool, char letters[static 2 * OPTIONS_MAX + 2],
			 struct option longs[static OPTIONS_MAX + 1])
{
	*letters++ = ':';
	for (size_t i = 0; i < tool->n_options; i++) {
		const struct compat_option *option = &tool->options[i];

		longs[i] = (struct option){
			.name = option->name,
			.has_arg = option->value ? required_argument : no_argument,
			.val = FIRST_LONG + (int)i,
		};
		if (option->letter) {
			*letters++ = option->letter;
			if (option->value)
				*letters++ = ':';
		}
	}
	*letters = '\0';
	longs[tool->n_options] = (struct option){ 0 };
}

static const struct compat_option *find_option(const struct compat_tool *tool, int value)
{
	if (value >= FIRST_LONG)
		return &tool->options[value - FIRST_LONG];
	for (size_t i = 0; i < tool->n_options; i++)
		if (tool->options[i].letter == value)
			return &tool->options[i];
	return NULL;
}

static bool is_seconds(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n <= 9 && text[n] == '\0' && strspn(text, "0") < n;
}

static int check_group(struct compat_run *run, const struct compat_option *option,
		       const char *value)
{
	char *letter = &run->letters[option->group];

	if (option->group == 0)
		return 0;
	if (*letter && *letter != option->letter)
		return option_complain(&run->options, "%s: -%c and -%c exclude each other",
				       run->tool->name, *letter, option->letter);
	*letter = option->letter;
	run->chosen[option->group] = value ? value : "";
	return 0;
}

static int take_duration(struct compat_run *run, char *value, struct native_line *line)
{
	if (!is_seconds(value))
		return option_complain(&run->options,
				       "%s: %s: the seconds to trace, a whole number from 1 on",
				       run->tool->name, value);
	run->duration = value;
	line->v[line->n++] = (char *)"--duration";
	line->v[line->n++] = value;
	return 0;
}

/* Applies an option to the run, or appends stackctl's own option to the translated command line. */
static int apply_option(struct compat_run *run, const struct compat_option *option, char *value,
			struct native_line *line)
{
	switch (option->action) {
	case COMPAT_NATIVE:
		line->v[line->n++] = (char *)option->native;
		if (value)
			line->v[line->n++] = value;
		return 0;
	case COMPAT_INTERVAL:
		if (!is_seconds(value))
			return option_complain(&run->options,
					       "%s: -%c %s: whole seconds, from 1 on",
					       run->tool->name, option->letter, value);
		run->interval_ns = strtoll(value, NULL, 10) * NS_PER_S;
		return 0;
	case COMPAT_TIMESTAMPS:
		run->has_timestamps = true;
		return 0;
	case COMPAT_STORAGE:
		if (!is_seconds(value))
			return option_complain(&run->options, "%s: --%s %s: a number from 1 on",
					       run->tool->name, option->name, value);
		run->has_storage = true;
		return 0;
	case COMPAT_PROGRAMS:
		run->shows_programs = true;
		return 0;
	case COMPAT_MISSING:
		return option_complain(&run->options, "%s: --%s is not taken here; %s",
				       run->tool->name, option->name, option->native);
	case COMPAT_PER_PROCESS:
		run->per_process = true;
		return 0;
	case COMPAT_DURATION:
		return take_duration(run, value, line);
	case COMPAT_CHOICE:
		return 0;
	case COMPAT_HELP:
		run->help = true;
		return 0;
	}
	return 0;
}

static int read_option(struct compat_run *run, int value, const char *word,
		       struct native_line *line)
{
	const struct compat_option *option;
	int r;

	if (value == '?' && optopt >= FIRST_LONG)
		return option_complain(&run->options, "%s: --%s takes no value", run->tool->name,
				       find_option(run->tool, optopt)->name);
	if (value == '?' && optopt)
		return option_complain(&run->options, "%s: unknown option -%c; stackctl help %s",
				       run->tool->name, optopt, run->tool->name);
	if (value == '?')
		return option_complain(&run->options, "%s: unknown option %s; stackctl help %s",
				       run->tool->name, word, run->tool->name);
	option = find_option(run->tool, value == ':' ? optopt : value);
	if (value == ':' && optopt == option->letter)
		return option_complain(&run->options, "%s: -%c needs a value: %s", run->tool->name,
				       option->letter, option->value);
	if (value == ':')
		return option_complain(&run->options, "%s: --%s needs a value: %s", run->tool->name,
				       option->name, option->value);
	r = check_group(run, option, option->value ? optarg : NULL);
	return r < 0 ? r : apply_option(run, option, option->value ? optarg : NULL, line);
}

static int read_line(struct compat_run *run, int argc, char **argv, struct native_line *line)
{
	char letters[2 * OPTIONS_MAX + 2];
	struct option longs[OPTIONS_MAX + 1];
	int value, r;

	build_getopt(run->tool, letters, longs);
	opterr = 0;
	optind = 0; /* makes getopt_long() start with the first word */
	while ((value = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
		r = read_option(run, value, argv[optind - 1], line);
		if (r < 0)
			return r;
	}
	if (argc - optind > 1)
		return option_complain(&run->options, "%s: unexpected \"%s\"; one %s",
				       run->tool->name, argv[optind + 1],
				       run->tool->pattern ? run->tool->pattern
							  : "number, the seconds to trace");
	if (optind == argc)
		return 0;
	if (run->tool->pattern) {
		run->options.function = argv[optind];
		return 0;
	}
	return take_duration(run, argv[optind], line);
}

/* Refuses a command line without a function if the tool traces functions. */
static int check_pattern(struct compat_run *run)
{
	if (!run->tool->pattern || run->options.function || run->help || run->shows_programs)
		return 0;
	return option_complain(&run->options, "%s: needs %s, as in: stackctl %s vfs_read",
			       run->tool->name, run->tool->pattern, run->tool->name);
}

static void option_to_letter(char *message, const struct compat_option *option)
{
	size_t n = strlen(option->native);
	char *at = strstr(message, option->native);

	if (!at || !strchr(" :", at[n]))
		return;
	at[1] = option->letter;
	memmove(at + 2, at + n, strlen(at + n) + 1);
}

/*
 * Replaces the names of stackctl's options in a message by the names that the tool has for them:
 * "--pid" becomes "-p".
 */
static void message_to_letters(struct compat_run *run)
{
	char message[OPTION_MESSAGE_MAX], *hint;

	if (strncmp(run->options.message, "--", 2) != 0)
		return;
	memcpy(message, run->options.message, sizeof message);
	for (size_t i = 0; i < run->tool->n_options; i++)
		if (run->tool->options[i].action == COMPAT_NATIVE && run->tool->options[i].letter)
			option_to_letter(message, &run->tool->options[i]);
	/*
	 * Cut the hint at --comm off the message: the tools that stackctl imitates do not have this
	 * option.
	 */
	hint = strstr(message, "; a name goes to --comm");
	if (hint)
		*hint = '\0';
	option_complain(&run->options, "%s: %s", run->tool->name, message);
}

int compat_parse(struct compat_run *run, int argc, char **argv)
{
	_cleanup_(freep) char **words = must(calloc(2 * (size_t)argc + 4, sizeof(*words)));
	struct native_line line = { .v = words };
	int r;

	line.v[line.n++] = argv[0];
	r = read_line(run, argc, argv, &line);
	if (r < 0)
		return r;
	r = check_pattern(run);
	if (r < 0)
		return r;
	r = options_parse(&run->options,
			  OPTIONS_FILTER | OPTIONS_WAITS | OPTIONS_LAYERS | OPTIONS_SESSION |
				  OPTIONS_CALLS | OPTIONS_RECORD | OPTIONS_STACKS | OPTIONS_ONCE |
				  OPTIONS_VIEWS | OPTIONS_FORMAT,
			  0, line.n, line.v);
	if (r < 0)
		message_to_letters(run);
	run->is_folded = run->options.format == &format_folded;
	run->options.argument = run->tool->probe;
	return r == 0 && run->tool->prepare ? run->tool->prepare(run) : r;
}

static void print_option(FILE *out, const struct compat_option *option)
{
	char left[64];

	if (!option->help)
		return;
	if (option->letter)
		snprintf(left, sizeof left, "-%c %s", option->letter,
			 option->value ? option->value : "");
	else
		snprintf(left, sizeof left, "--%s %s", option->name,
			 option->value ? option->value : "");
	option_print_help(out, left, HELP_LEFT, option->help);
}

void compat_print_help(FILE *out, const struct compat_tool *tool)
{
	fprintf(out,
		"stackctl %s [OPTION]... %s\nprint %s;\noptions and layout are those of the tool "
		"%s\n\n",
		tool->name, tool->pattern ? tool->pattern : "[SECONDS]", tool->unit, tool->name);
	for (size_t i = 0; i < tool->n_options; i++)
		print_option(out, &tool->options[i]);
	fprintf(out, "\nExamples\n%s", tool->examples);
}
