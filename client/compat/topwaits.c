/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>

#include "client/compat/compat.h"
#include "common/base.h"

enum { GROUP_THREADS = 1 };

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid",
	  "include only these processes, by process id (pid), such as 17,42", GROUP_THREADS,
	  COMPAT_NATIVE },
	{ 't', "tid", "T,..", "--tid", "include only these threads, by thread id, such as 17,42",
	  GROUP_THREADS, COMPAT_NATIVE },
	{ 'm', "min-block-time", "US", "--min-block-time",
	  "include only waits that took US microseconds or more", 0, COMPAT_NATIVE },
	{ 'M', "max-block-time", "US", "--max-block-time",
	  "include only waits that took US microseconds or less", 0, COMPAT_NATIVE },
	{ 0, "state", "BITS", "--state",
	  "include only waits of threads in the task state with this number in the kernel, "
	  "such as 2 (D, uninterruptible)",
	  0, COMPAT_NATIVE },
	{ 0, "stack-storage-size", "N", NULL,
	  "has no effect; accepted because the original tool has this option", 0, COMPAT_STORAGE },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "print this text", 0, COMPAT_HELP },
};

/*
 * Prints the sum of the waits and the longest wait in us, and when the longest wait ended, in
 * seconds since 1970.
 */
static void print_value(FILE *out, const struct compat_entry *entry)
{
	fprintf(out, "%" PRId64 " %" PRId64, entry->value / NS_PER_US, entry->max_ns / NS_PER_US);
	if (entry->max_end == WIRE_ABSENT)
		fputs(" -", out);
	else
		fprintf(out, " %" PRId64 ".%06" PRId64, entry->max_end / NS_PER_S,
			entry->max_end % NS_PER_S / NS_PER_US);
}

static int compare_longest(const void *a, const void *b)
{
	const struct compat_entry *x = a, *y = b;

	if (x->max_ns != y->max_ns)
		return x->max_ns > y->max_ns ? 1 : -1;
	return compat_compare_value(a, b);
}

static void print_header(FILE *out, const struct compat_run *run)
{
	fputs("Tracing waits (us: total, longest; end of the longest) of ", out);
	compat_print_threads(out, run, GROUP_THREADS);
	fputs(" by process and stack", out);
	compat_print_length(out, run);
}

/* Selects names of functions without arguments, as the tool prints them. */
static int prepare(struct compat_run *run)
{
	run->options.is_short = true;
	return 0;
}

const struct compat_tool compat_topwaits = {
	.name = "topwaits",
	.probe = "offcpu",
	.unit = "total and longest waits in microseconds, by process and stack",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl topwaits               all threads, until Ctrl-C\n"
		    "  stackctl topwaits 10            for 10 seconds\n"
		    "  stackctl topwaits -p 185 10     only process 185\n"
		    "  stackctl topwaits --state 2 10  only uninterruptible waits\n"
		    "  stackctl topwaits -m 1000 10    only waits of 1 ms and more\n",
	.by_process = true,
	.value = compat_value_waits,
	.compare = compare_longest,
	.print_value = print_value,
	.print_header = print_header,
	.prepare = prepare,
};
