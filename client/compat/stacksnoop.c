/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/base/term.h"
#include "client/compat/compat.h"
#include "common/base.h"

static const struct compat_option options[] = {
	{ 'p', "pid", "P,..", "--pid",
	  "include only these processes, by process id (pid), such as 17,42", 0, COMPAT_NATIVE },
	{ 's', "offset", NULL, "--offset",
	  "append to each function name the offset of the address within the function, as in "
	  "read+0x1c",
	  0, COMPAT_NATIVE },
	{ 'v', "verbose", NULL, "--verbose",
	  "also print the name and pid of the calling process, and the CPU", 0, COMPAT_NATIVE },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "print this text", 0, COMPAT_HELP },
};

static void print_header(FILE *out, const struct compat_run *run)
{
	if (run->options.verbose)
		fprintf(out, "%-18s %-12s %-6s %-3s %s\n", "TIME(s)", "COMM", "PID", "CPU",
			"STACK");
	else
		fprintf(out, "%-18s %s\n", "TIME(s)", "STACK");
}

/*
 * Prints what stands to the left of a call's frames: the time and, with -v, command, pid and CPU.
 */
static void print_left(FILE *out, const struct compat_run *run, const struct wire_call *call,
		       int64_t since)
{
	_cleanup_(freep) char *comm = name_escape(call->pid ? call->comm : "<idle>");
	int64_t ns = call->time - since;

	/* The time of the first calls may be a little before the start of the session. */
	if (ns < 0)
		ns = 0;
	fprintf(out, "%8" PRId64 ".%09" PRId64, ns / NS_PER_S, ns % NS_PER_S);
	if (run->options.verbose)
		fprintf(out, " %-12.12s %-6" PRId64 " %-3" PRId64, comm, call->pid, call->cpu);
	fputc(' ', out);
}

static void print_stack(FILE *out, const struct compat_run *run, const struct wire_call *call,
			int64_t since, const struct wire_stack *stack, bool is_kernel,
			size_t *place)
{
	const struct view view = { .offset = run->options.offset };
	size_t n = stack ? stack->frames.n : 0;

	for (size_t i = 0; i < n; i++) {
		const struct wire_frame *frame = &stack->frames.v[i];
		_cleanup_(freep) char *label = frame_label(&view, frame, is_kernel);
		_cleanup_(freep) char *name = name_escape(label);
		const char *address = frame->address ? frame->address : "-";

		if (strncmp(address, "0x", 2) == 0)
			address += 2;
		print_left(out, run, call, since);
		if (*place == 0)
			fprintf(out, "ip: %s %s\n", address, name);
		else
			fprintf(out, "r%zu: %s %s\n", *place - 1, address, name);
		++*place;
	}
}

/* Prints each call: a line with the time, then a line for each frame of the call's stacks. */
static void print_calls(FILE *out, const struct compat_run *run, int64_t since,
			const struct wire_calls *calls)
{
	for (size_t i = 0; i < calls->n; i++) {
		const struct wire_call *call = &calls->v[i];
		size_t place = 0;

		print_left(out, run, call, since);
		fputc('\n', out);
		print_stack(out, run, call, since, call->kernel, true, &place);
		print_stack(out, run, call, since, call->user, false, &place);
	}
}

const struct compat_tool compat_stacksnoop = {
	.name = "stacksnoop",
	.probe = "stacksnoop",
	.unit = "each call of a function, with its stacks",
	.pattern = "FUNCTION",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl stacksnoop ext4_sync_fs         each call, until Ctrl-C\n"
		    "  stackctl stacksnoop -s ext4_sync_fs      with offsets\n"
		    "  stackctl stacksnoop -v ext4_sync_fs      with command, process and CPU\n"
		    "  stackctl stacksnoop -p 185 ext4_sync_fs  only process 185\n",
	.print_header = print_header,
	.print_calls = print_calls,
};
