/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/formats.h"
#include "common/base.h"

/* The columns. put_row() prints the fields in the same order. */
static const char header[] =
	"probe,start_ns,end_ns,covered_ns,"
	"pid,tid,comm,process,exe,cgroup,kernel_thread,exited,key,idle,"
	"state,count,total_ns,blocked_ns,runnable_ns,throttled_ns,"
	"estimated,sampled,sampled_ns,open,open_ns,unseen,"
	"max_ns,max_end_ns,max_tid,max_comm,folded,reason,object,"
	"layer,op,filesystem,device,own_ns,cpu_ns,device_ns,queue_ns,held_ns,other_ns,"
	"async,errors,bytes,window_ns,"
	"waker,user_stack,kernel_stack\r\n";

/* Prints escaped text within a quoted field. */
static void put_quoted(FILE *out, const char *text)
{
	for (const char *s = text; *s; s++) {
		if (*s == '"')
			fputc('"', out);
		fputc(*s, out);
	}
}

/*
 * Prints a name and a comma. Invisible characters and line breaks are escaped. Strangers choose
 * names, and a spreadsheet takes a field that begins with one of =+-@ as a formula: such a name
 * gets an apostrophe in front, with which a spreadsheet shows it as text.
 */
static void put_name(FILE *out, const char *name)
{
	if (name) {
		_cleanup_(freep) char *safe = name_escape(name);

		fputs(safe[0] != '\0' && strchr("=+-@", safe[0]) ? "\"'" : "\"", out);
		put_quoted(out, safe);
		fputc('"', out);
	}
	fputc(',', out);
}

/* Prints a number and a comma; only the comma if the value does not apply. */
static void put_number(FILE *out, int64_t value)
{
	if (value != WIRE_ABSENT)
		fprintf(out, "%" PRId64, value);
	fputc(',', out);
}

/* Prints as many empty fields. */
static void put_empty(FILE *out, int n)
{
	while (n-- > 0)
		fputc(',', out);
}

static void put_who(FILE *out, const struct wire_snapshot_reply *reply, const struct wire_row *row)
{
	put_name(out, reply->probe);
	put_number(out, reply->coverage.used.start);
	put_number(out, reply->coverage.used.end);
	put_number(out, coverage_length(&reply->coverage));
	put_number(out, row->process.pid);
	put_number(out, row->tid);
	put_name(out, row->comm);
	put_name(out, row->process.comm);
	put_name(out, row->process.exe);
	put_name(out, row->process.cgroup);
	put_number(out, row->process.kernel);
	put_number(out, row->process.exited);
	put_name(out, row->key);
	put_number(out, row->idle);
}

static void put_times(FILE *out, const struct wire_row *row)
{
	/* The state of the row of short waits is -, which is no formula. */
	if (row->state && strcmp(row->state, "-") == 0)
		fputs("-,", out);
	else
		put_name(out, row->state);
	put_number(out, row->count);
	put_number(out, row->total_ns);
	put_number(out, row->blocked_ns);
	put_number(out, row->io ? row->io->runnable_ns : row->runnable_ns);
	put_number(out, row->throttled_ns);
	put_number(out, row->estimated == 1);
	put_number(out, row->sampled);
	put_number(out, row->sampled_ns);
	put_number(out, row->open);
	put_number(out, row->open_ns);
	put_number(out, row->unseen);
	put_number(out, row->max_ns);
	put_number(out, row->max_end);
	put_number(out, row->max_tid);
	put_name(out, row->max_comm);
	put_number(out, row->folded);
	put_name(out, row->reason);
	put_name(out, row->object);
}

static void put_io(FILE *out, const struct wire_row *row)
{
	const struct wire_io *io = row->io;

	if (!io) {
		put_empty(out, 13);
		put_number(out, row->window);
		return;
	}
	put_name(out, io->layer);
	put_name(out, io->op);
	put_name(out, io->filesystem);
	put_name(out, io->device);
	put_number(out, io->own_ns);
	put_number(out, io->cpu_ns);
	put_number(out, io->device_ns);
	put_number(out, io->queue_ns);
	put_number(out, io->throttled_ns);
	put_number(out, io->other_ns);
	put_number(out, io->async);
	put_number(out, io->errors);
	put_number(out, io->bytes);
	put_number(out, row->window);
}

/* Prints the frames as folded stacks have them, the outermost function first, with ; between. */
static void put_stack(FILE *out, const struct view *view, const struct wire_stack *stack,
		      bool is_kernel)
{
	if (!stack)
		return;
	fputc('"', out);
	for (size_t i = stack->frames.n; i > 0; i--) {
		_cleanup_(freep) char *label =
			frame_label(view, &stack->frames.v[i - 1], is_kernel);
		_cleanup_(freep) char *safe = name_escape(label);

		for (char *s = safe; *s; s++)
			if (*s == ';')
				*s = ':';
		if (i < stack->frames.n)
			fputc(';', out);
		else if (safe[0] != '\0' && strchr("=+-@", safe[0]))
			fputc('\'', out);
		put_quoted(out, safe);
	}
	if (stack->frames.n == 0 && stack->flags.n > 0)
		fputs(is_kernel ? "[no kernel stack]" : "[no user stack]", out);
	fputc('"', out);
}

static void put_row(const struct view *view, const struct wire_snapshot_reply *reply,
		    const struct wire_row *row)
{
	FILE *out = view->page.out;
	const struct wire_link *waker =
		row->waker && row->waker->path.n > 0 ? &row->waker->path.v[0] : NULL;

	put_who(out, reply, row);
	put_times(out, row);
	put_io(out, row);
	put_name(out, !waker ? NULL : waker->comm ? waker->comm : waker->context);
	put_stack(out, view, row->user, false);
	fputc(',', out);
	put_stack(out, view, row->kernel, true);
	fputs("\r\n", out);
}

struct csv_stream {
	const struct view *view;
	bool has_header;
};

static void *stream_new(const struct view *view, enum stream_kind kind)
{
	struct csv_stream *stream = must(calloc(1, sizeof(*stream)));

	stream->view = view;
	return stream;
}

static void stream_add(void *opaque, const struct wire_snapshot_reply *reply, bool is_first)
{
	struct csv_stream *stream = opaque;

	if (!stream->has_header)
		fputs(header, stream->view->page.out);
	stream->has_header = true;
	for (size_t i = 0; i < reply->rows.n; i++)
		put_row(stream->view, reply, &reply->rows.v[i]);
}

static void stream_end(void *opaque, bool is_whole)
{
	free(opaque);
}

const struct format format_csv = {
	.name = "csv",
	.suffix = "csv",
	.has_only_stacks = true,
	.has_one_answer = true,
	.stream_new = stream_new,
	.stream_add = stream_add,
	.stream_end = stream_end,
};
