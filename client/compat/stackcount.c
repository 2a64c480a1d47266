/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>

#include "client/compat/compat.h"
#include "common/base.h"

enum { GROUP_STACKS = 1 };

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid", "these processes only", 0, COMPAT_NATIVE },
	{ 'c', "cpu", "CPU", "--cpu", "this CPU only", 0, COMPAT_NATIVE },
	{ 'i', "interval", "SECONDS", NULL, "print and clear so often", 0, COMPAT_INTERVAL },
	{ 'D', "duration", "SECONDS", NULL, "for so long", 0, COMPAT_DURATION },
	{ 'T', "timestamp", NULL, NULL, "the time above each output", 0, COMPAT_TIMESTAMPS },
	{ 'r', "regexp", NULL, "--regexp", "the pattern is a regular expression", 0,
	  COMPAT_NATIVE },
	{ 's', "offset", NULL, "--offset", "offsets within functions", 0, COMPAT_NATIVE },
	{ 'P', "perpid", NULL, NULL, "processes apart", 0, COMPAT_PER_PROCESS },
	{ 'K', "kernel-stacks-only", NULL, "--kernel-stacks", "frames of the kernel only",
	  GROUP_STACKS, COMPAT_NATIVE },
	{ 'U', "user-stacks-only", NULL, "--user-stacks", "frames of programs only", GROUP_STACKS,
	  COMPAT_NATIVE },
	{ 'v', "verbose", NULL, "--verbose", "raw addresses", 0, COMPAT_NATIVE },
	{ 'd', "delimited", NULL, "--delimited", "-- between kernel and user, folded -", 0,
	  COMPAT_NATIVE },
	{ 'f', "folded", NULL, "--folded", "one line a stack, for flame graphs", 0, COMPAT_NATIVE },
	{ 0, "debug", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "this text", 0, COMPAT_HELP },
};

static void print_value(FILE *out, const struct compat_entry *entry)
{
	fprintf(out, "%" PRId64, entry->value);
}

/* It says so whatever the duration. */
static void print_header(FILE *out, const struct compat_run *run)
{
	fprintf(out, "Tracing %" PRId64 " functions for \"%s\"... Hit Ctrl-C to end.\n",
		run->functions, run->options.function);
}

const struct compat_tool compat_stackcount = {
	.name = "stackcount",
	.probe = "stackcount",
	.unit = "calls of functions by their stacks",
	.pattern = "PATTERN",
	.has_calls = true,
	.by_process = true,
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl stackcount submit_bio             until Ctrl-C\n"
		    "  stackctl stackcount -D 5 'vfs_*'           all that begin so, 5 seconds\n"
		    "  stackctl stackcount -r '^tcp_(send|recv)'  by a regular expression\n"
		    "  stackctl stackcount -Ti 5 ip_output        each 5 seconds, with the time\n"
		    "  stackctl stackcount -p 185 ip_output       process 185 only\n"
		    "  stackctl stackcount -s ip_output           with offsets\n"
		    "  stackctl stackcount t:sched:sched_switch   a tracepoint\n"
		    "  stackctl stackcount c:malloc               a function of libc\n"
		    "  stackctl stackcount usdt:stdc++:throw      a static probe\n",
	.value = compat_value_samples,
	.compare = compat_compare_value,
	.print_value = print_value,
	.print_header = print_header,
};
