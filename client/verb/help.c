/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "client/call/output.h"
#include "client/compat/compat.h"
#include "client/verb/verb.h"

static void print_verb(FILE *out, const struct verb *verb)
{
	fprintf(out, "stackctl %s%s%s%s\n%s\n\n", verb->name, verb->sets ? " [OPTION]..." : "",
		verb->argument ? " " : "", verb->argument ? verb->argument : "", verb->summary);
	options_print_help(out, verb->sets);
	if (verb->sets & (OPTIONS_CALLS | OPTIONS_LIST))
		fputs("\nFunctions are vfs_read, \"vfs_*\", t:sched:sched_process_exec, u:c:malloc,\n"
		      "u:/usr/bin/bash:readline, usdt:stdc++:throw.\n",
		      out);
	if (verb->sets & OPTIONS_RANGE)
		fputs("\nTimes (T) are 14:00, \"today 14:00\", yesterday, -3min, \"3min ago\",\n"
		      "2026-03-09T14:00:00+01:00, @1773061200; lengths (D) are 30s, 5min, 1h 30min.\n",
		      out);
}

static void print_all(FILE *out)
{
	fputs("stackctl [-S SOCKET] VERB [OPTION]...: ask stackd where time went\n\n", out);
	for (size_t i = 0; i < n_verbs; i++) {
		char left[32];

		snprintf(left, sizeof left, "%s %s", verbs[i].name,
			 verbs[i].argument ? verbs[i].argument : "");
		fprintf(out, "  %-23s %s\n", left, verbs[i].summary);
	}
	fputs("\nWithout a verb: status. For every verb:\n", out);
	options_print_help(out, 0);
	fputs("\nTry\n"
	      "  stackctl stuck                        who is waiting right now\n"
	      "  stackctl snapshot offcpu -p 4242      what process 4242 waited for, last 30 s\n"
	      "  stackctl snapshot offcpu --since 03:10 --until 03:14 --sort max\n"
	      "  stackctl record oncpu -p 4242 --duration 20s\n"
	      "  stackctl help VERB                    its options; all of it: man stackctl\n",
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
