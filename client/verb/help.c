/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "client/call/output.h"
#include "client/compat/compat.h"
#include "client/verb/verb.h"
#include "common/base.h"
#include "common/probe_kind.h"

/* Each task has the command that one asks first. */
static const struct {
	const char *task, *command;
} tasks[] = {
	{ "hung", "stuck" },
	{ "slow now", "top" },
	{ "slow at 03:12", "snapshot --since 03:10 --until 03:14" },
	{ "who holds it", "stuck --stacks --reason 'mutex,flock,fcntl,*rwlock'" },
	{ "CPU", "snapshot oncpu --by process" },
	{ "disk", "snapshot iolat" },
	{ "many processes", "snapshot --by parent" },
	{ "who calls it", "snapshot offcpu --callers fsync" },
	{ "what changed", "diff --base -1d" },
	{ "keep it", "snapshot offcpu --since 03:10 --until 03:14 -o x.json" },
	{ "send it", "report --since 03:10 --until 03:14 -o incident.html" },
	{ "alert me", "stuck --fail --state D -m 30s" },
};

/*
 * Prints the names that the word PROBE stands for. `has_sessions`: it may also be a session.
 */
static void print_probes(FILE *out, bool has_sessions)
{
	fputs("\nPROBE is one of\n", out);
	for (enum probe_kind kind = 0; kind < PROBE_KIND_N; kind++)
		fprintf(out, "  %-10s  %s\n", probe_kind_name(kind), probe_kind_summary(kind));
	if (has_sessions)
		fputs("or the ID or name of a session, which stackctl sessions lists\n", out);
}

static void print_verb(FILE *out, const struct verb *verb)
{
	fprintf(out, "stackctl %s%s%s%s\n%s\n\n", verb->name, verb->sets ? " [OPTION]..." : "",
		verb->argument ? " " : "", verb->argument ? verb->argument : "", verb->summary);
	options_print_help(out, verb->sets);
	/* The verbs start and record take only a probe; other verbs take a session, too. */
	if (verb->argument && strstr(verb->argument, "PROBE"))
		print_probes(out, !(verb->sets & (OPTIONS_START | OPTIONS_RECORD)));
	if (verb->sets & (OPTIONS_CALLS | OPTIONS_LIST))
		fputs("\nA FUNCTION or PATTERN is written as\n"
		      "  vfs_read, 'vfs_*'           functions of the kernel; * stands for anything\n"
		      "  t:sched:sched_process_exec  a tracepoint\n"
		      "  u:c:malloc                  a function of a library, here of libc\n"
		      "  u:/usr/bin/bash:readline    a function of a program\n"
		      "  usdt:stdc++:throw           a static probe (USDT) of a library or program\n",
		      out);
	if (verb->sets & OPTIONS_RANGE)
		fputs("\nA time T is written as 14:00, \"today 14:00\", yesterday, -3min, \"3min ago\",\n"
		      "2026-03-09T14:00:00+01:00 or @1773061200; a length D as 30s, 5min or 1h 30min.\n",
		      out);
}

static void print_all(FILE *out)
{
	fputs("stackctl [-S SOCKET] VERB [OPTION]...: ask the recorder stackd where time went\n\n"
	      "What to ask first\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(tasks); i++)
		fprintf(out, "  %-14s stackctl %s\n", tasks[i].task, tasks[i].command);
	fputs("\nVerbs\n", out);
	for (size_t i = 0; i < n_verbs; i++) {
		char left[32];

		snprintf(left, sizeof left, "%s %s", verbs[i].name,
			 verbs[i].argument ? verbs[i].argument : "");
		fprintf(out, "  %-23s %s\n", left, verbs[i].summary);
	}
	fputs("\nWithout a verb, status is shown.\n", out);
	options_print_help(out, 0);
	print_probes(out, true);
	fputs("\nstackctl help VERB has the options of a verb, man stackctl has everything.\n",
	      out);
}

enum exit_code cmd_help(struct options *options)
{
	const struct verb *verb = NULL;
	struct output output;

	if (options->argument) {
		verb = verb_find(options->argument);
		if (!verb) {
			verb_report_unknown(options->argument);
			return EXIT_CODE_USAGE;
		}
	}
	output_open(&output, NULL, NULL, NULL, 0);
	if (verb && verb->tool)
		compat_print_help(output.out, verb->tool);
	else if (verb)
		print_verb(output.out, verb);
	else
		print_all(output.out);
	return output_close(&output);
}
