/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>

#include "client/compat/compat.h"
#include "common/base.h"

enum { GROUP_STACKS = 1 };

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid",
	  "include only these processes, by process id (pid), such as 17,42", 0, COMPAT_NATIVE },
	{ 'c', "cpu", "CPU", "--cpu", "include only function calls on the CPU with this number", 0,
	  COMPAT_NATIVE },
	{ 'i', "interval", "SECONDS", NULL,
	  "every SECONDS seconds, print what was recorded since the last output", 0,
	  COMPAT_INTERVAL },
	{ 'D', "duration", "SECONDS", NULL, "stop after SECONDS seconds", 0, COMPAT_DURATION },
	{ 'T', "timestamp", NULL, NULL, "print the time of day above each output", 0,
	  COMPAT_TIMESTAMPS },
	{ 'r', "regexp", NULL, "--regexp",
	  "take PATTERN as a regular expression, such as '^tcp_(send|recv)'", 0, COMPAT_NATIVE },
	{ 's', "offset", NULL, "--offset",
	  "append to each function name the offset of the address within the function, as in "
	  "read+0x1c",
	  0, COMPAT_NATIVE },
	{ 'P', "perpid", NULL, NULL, "count the calls of each process separately", 0,
	  COMPAT_PER_PROCESS },
	{ 'K', "kernel-stacks-only", NULL, "--kernel-stacks",
	  "include only the kernel frames of each stack", GROUP_STACKS, COMPAT_NATIVE },
	{ 'U', "user-stacks-only", NULL, "--user-stacks",
	  "include only the user-space frames of each stack", GROUP_STACKS, COMPAT_NATIVE },
	{ 'v', "verbose", NULL, "--verbose", "print the address of each frame, too", 0,
	  COMPAT_NATIVE },
	{ 'd', "delimited", NULL, "--delimited",
	  "put a line -- (with -f: a frame named -) between the kernel frames and the user "
	  "frames",
	  0, COMPAT_NATIVE },
	{ 'f', "folded", NULL, "--folded",
	  "print each stack as one line, the format that programs read to draw flame graphs", 0,
	  COMPAT_NATIVE },
	{ 0, "debug", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "print this text", 0, COMPAT_HELP },
};

static void print_value(FILE *out, const struct compat_entry *entry)
{
	fprintf(out, "%" PRId64, entry->value);
}

/* Prints the header. It mentions Ctrl-C even if a duration was given, as the tool's header does. */
static void print_header(FILE *out, const struct compat_run *run)
{
	fprintf(out, "Tracing %" PRId64 " functions for \"%s\"... Hit Ctrl-C to end.\n",
		run->functions, run->options.function);
}

const struct compat_tool compat_stackcount = {
	.name = "stackcount",
	.probe = "stackcount",
	.unit = "numbers of calls of functions, by stack",
	.pattern = "PATTERN",
	.has_calls = true,
	.by_process = true,
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples =
		"  stackctl stackcount submit_bio             until Ctrl-C\n"
		"  stackctl stackcount -D 5 'vfs_*'           all vfs_ functions, for 5 seconds\n"
		"  stackctl stackcount -r '^tcp_(send|recv)'  by a regular expression\n"
		"  stackctl stackcount -Ti 5 ip_output        every 5 seconds, with the time\n"
		"  stackctl stackcount -p 185 ip_output       only process 185\n"
		"  stackctl stackcount -s ip_output           with offsets\n"
		"  stackctl stackcount t:sched:sched_switch   a tracepoint\n"
		"  stackctl stackcount c:malloc               a function of libc\n"
		"  stackctl stackcount usdt:stdc++:throw      a static probe\n",
	.value = compat_value_samples,
	.compare = compat_compare_value,
	.print_value = print_value,
	.print_header = print_header,
};
