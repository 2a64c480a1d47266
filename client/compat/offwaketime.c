/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/compat/compat.h"
#include "common/base.h"

enum { GROUP_THREADS = 1, GROUP_STACKS };

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid", "targets of these processes only", GROUP_THREADS,
	  COMPAT_NATIVE },
	{ 't', "tid", "T,..", "--tid", "these threads as targets only", GROUP_THREADS,
	  COMPAT_NATIVE },
	{ 'u', "user-threads-only", NULL, "--user-threads", "threads of programs only",
	  GROUP_THREADS, COMPAT_NATIVE },
	{ 'k', "kernel-threads-only", NULL, "--kernel-threads", "threads of the kernel only",
	  GROUP_THREADS, COMPAT_NATIVE },
	{ 'U', "user-stacks-only", NULL, "--user-stacks", "frames of programs only", GROUP_STACKS,
	  COMPAT_NATIVE },
	{ 'K', "kernel-stacks-only", NULL, "--kernel-stacks", "frames of the kernel only",
	  GROUP_STACKS, COMPAT_NATIVE },
	{ 'd', "delimited", NULL, "--delimited", "- between kernel and user", 0, COMPAT_NATIVE },
	{ 'f', "folded", NULL, "--folded", "one line a pair of stacks", 0, COMPAT_NATIVE },
	{ 'm', "min-block-time", "US", "--min-block-time", "waits of at least that", 0,
	  COMPAT_NATIVE },
	{ 'M', "max-block-time", "US", "--max-block-time", "waits of at most that", 0,
	  COMPAT_NATIVE },
	{ 0, "state", "BITS", "--state", "waits in one of these states", 0, COMPAT_NATIVE },
	{ 0, "stack-storage-size", "N", NULL, "taken, and not needed", 0, COMPAT_STORAGE },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "this text", 0, COMPAT_HELP },
};

/* Up to the wakeup; the time until a CPU was free is none of the waker's. */
static int64_t value_of(const struct wire_row *row)
{
	int64_t open = row->open_ns == WIRE_ABSENT ? 0 : row->open_ns;

	if (compat_value_waits(row) <= 0 || row->blocked_ns == WIRE_ABSENT)
		return 0;
	return row->blocked_ns - open;
}

static void print_header(FILE *out, const struct compat_run *run)
{
	fprintf(out, "Tracing blocked time (us) by %s off-CPU and waker stack", compat_stacks(run));
	compat_print_length(out, run);
}

const struct compat_tool compat_offwaketime = {
	.name = "offwaketime",
	.probe = "offwake",
	.unit = "us blocked by the stacks of target and waker",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl offwaketime            all threads, until Ctrl-C\n"
		    "  stackctl offwaketime 5          for 5 seconds\n"
		    "  stackctl offwaketime -fu 5      folded, programs only\n"
		    "  stackctl offwaketime -m 1000    waits of 1 ms and more\n"
		    "  stackctl offwaketime -p 185     process 185 only\n",
	.with_waker = true,
	.value = value_of,
	.compare = compat_compare_value,
	.print_value = compat_print_us,
	.print_header = print_header,
};
