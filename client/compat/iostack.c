/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/compat/compat.h"
#include "client/render/iolat.h"
#include "common/base.h"

enum { GROUP_LAYER = 1, GROUP_PROCESS };

static const struct compat_option options[] = {
	{ 'T', "type", "LAYER", NULL,
	  "measure in this layer: syscall (system calls, the default), vfs, ext4 or blk "
	  "(requests to disks)",
	  GROUP_LAYER, COMPAT_CHOICE },
	{ 'p', "pid", "P", "--pid", "include only the process with the process id (pid) P",
	  GROUP_PROCESS, COMPAT_NATIVE },
	{ 'd', "disk", "DISK", "--disk", "include only I/O on this disk, such as sda", 0,
	  COMPAT_NATIVE },
	{ 'Q', "queued", NULL, "--queued",
	  "with -T blk: include the time that requests spend in the queue", 0, COMPAT_NATIVE },
	{ 'm', "milliseconds", NULL, "--milliseconds",
	  "print the latencies in milliseconds instead of nanoseconds", 0, COMPAT_NATIVE },
	{ 0, "ebpf", NULL, NULL, NULL, 0, COMPAT_PROGRAMS },
	{ 'h', "help", NULL, NULL, "print this text", 0, COMPAT_HELP },
};

/*
 * The tool's names for operations. Each name stands for rows of one layer and one kind of
 * operation.
 */
static const struct {
	const char *type;
	const char *name;
	const char *layer;
	const char *kind; /* the kind of operation, such as "read"; NULL: all kinds */
} names[] = {
	{ "syscall", "sysc_r", "syscall", "read" }, { "syscall", "sysc_w", "syscall", "write" },
	{ "syscall", "sysc_s", "syscall", "sync" }, { "vfs", "vfs_r", "vfs", "read" },
	{ "vfs", "vfs_w", "vfs", "write" },	    { "vfs", "vfs_o", "vfs", "open" },
	{ "vfs", "vfs_f", "vfs", "sync" },	    { "ext4", "extread", "fs", "read" },
	{ "ext4", "extwrite", "fs", "write" },	    { "ext4", "extopen", "fs", "open" },
	{ "ext4", "extfsync", "fs", "sync" },	    { "blk", "bio_op", "device", NULL },
};

struct operation {
	const char *name;
	int64_t total_ns;
	int64_t buckets[IO_HIST_BUCKETS];
};

static const char *type_of(const struct compat_run *run)
{
	return run->chosen[GROUP_LAYER] ? run->chosen[GROUP_LAYER] : "syscall";
}

/* True if names[i] is the name that the original tool has for the operation of a row. */
static bool row_has_name(const struct compat_run *run, const struct wire_io *io, size_t i)
{
	const char *layer = names[i].layer;

	if (strcmp(layer, "device") == 0 && run->options.queued)
		layer = "block";
	if (strcmp(io->layer, layer) != 0 ||
	    (strcmp(names[i].type, "ext4") == 0 &&
	     !(io->filesystem && strcmp(io->filesystem, "ext4") == 0)))
		return false;
	return !names[i].kind || strcmp(names[i].kind, io_kind(io)) == 0;
}

static void operation_add(struct operation *operation, const struct wire_row *row)
{
	operation->total_ns += row->total_ns;
	for (size_t i = 0; i < row->buckets.n && i < IO_HIST_BUCKETS; i++)
		operation->buckets[i] += row->buckets.v[i];
}

static int compare_totals(const void *a, const void *b)
{
	const struct operation *x = a, *y = b;

	return x->total_ns > y->total_ns ? 1 : x->total_ns < y->total_ns ? -1 : 0;
}

static void print_operation(FILE *out, const struct compat_run *run,
			    const struct operation *operation)
{
	int64_t ms[IO_HIST_BUCKETS];
	size_t n;

	fprintf(out, "\noperation = %s\n", operation->name);
	if (run->options.milliseconds) {
		n = histogram_to_ms(operation->buckets, IO_HIST_BUCKETS, ms);
		render_histogram(out, "msecs", ms, n, false);
	} else {
		render_histogram(out, "nsecs", operation->buckets, IO_HIST_BUCKETS, false);
	}
}

static size_t render(FILE *out, const struct compat_run *run,
		     const struct wire_snapshot_reply *reply)
{
	struct operation operations[ARRAY_SIZE(names)] = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i].type, type_of(run)) != 0)
			continue;
		operations[n].name = names[i].name;
		for (size_t k = 0; k < reply->rows.n; k++)
			if (row_has_name(run, reply->rows.v[k].io, i))
				operation_add(&operations[n], &reply->rows.v[k]);
		n += operations[n].total_ns > 0;
	}
	for (size_t i = 0; i < n; i++)
		print_operation(out, run, &operations[i]);
	qsort(operations, n, sizeof(*operations), compare_totals);
	fputc('\n', out);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s total: %" PRId64 " ns\n", operations[i].name,
			operations[i].total_ns);
	return n;
}

static void print_header(FILE *out, const struct compat_run *run)
{
	fprintf(out, "Tracing I/O latency of %s", type_of(run));
	if (run->letters[GROUP_PROCESS])
		fprintf(out, " of PID %s", run->chosen[GROUP_PROCESS]);
	compat_print_length(out, run);
}

static int prepare(struct compat_run *run)
{
	run->has_timestamps = true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i].type, type_of(run)) == 0)
			return 0;
	return option_complain(&run->options,
			       "IOStackBreakdown: -T %s: one of syscall, vfs, ext4 or blk",
			       type_of(run));
}

const struct compat_tool compat_iostack = {
	.name = "IOStackBreakdown",
	.probe = "iolat",
	.unit = "histograms of I/O latency in one layer",
	.options = options,
	.n_options = ARRAY_SIZE(options),
	.examples = "  stackctl IOStackBreakdown               read, write and sync calls\n"
		    "  stackctl IOStackBreakdown -T vfs 10     the VFS, for 10 seconds\n"
		    "  stackctl IOStackBreakdown -T ext4 -p 9  ext4, only process 9\n"
		    "  stackctl IOStackBreakdown -T blk -d sda -Q -m  requests to sda, ms\n",
	.print_header = print_header,
	.prepare = prepare,
	.render = render,
};
