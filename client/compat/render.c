/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/message.h"
#include "client/base/term.h"
#include "client/compat/compat.h"
#include "client/render/folded.h"
#include "client/render/render.h"
#include "common/base.h"

static const char *const missed[] = { "[Missed User Stack]", "[Missed Kernel Stack]" };

/*
 * True if a stack could not be taken: it has a flag with the reason, and no frames except perhaps
 * one that stands for the missing stack.
 */
static bool stack_is_missed(const struct wire_stack *stack)
{
	if (!stack || stack->flags.n == 0)
		return false;
	return stack->frames.n == 0 ||
	       (stack->frames.n == 1 && strcmp(stack->frames.v[0].kind, "pseudo") == 0);
}

static bool stack_is_there(const struct wire_stack *stack)
{
	return stack && stack->frames.n > 0 && !stack_is_missed(stack);
}

static bool has_border(const struct compat_run *run, const struct wire_stack *kernel,
		       const struct wire_stack *user)
{
	return run->options.delimited && stack_is_there(kernel) && stack_is_there(user);
}

static void print_frame(FILE *out, const struct view *view, const struct wire_frame *frame,
			bool is_kernel)
{
	_cleanup_(freep) char *label = frame_label(view, frame, is_kernel);
	_cleanup_(freep) char *name = name_escape(label);

	int indent = view->frame_indent ? view->frame_indent : 4;

	if (view->verbose)
		fprintf(out, "%*s%-16s %s\n", indent, "", frame->address ? frame->address : "-",
			name);
	else
		fprintf(out, "%*s%s\n", indent, "", name);
}

static void print_stack(FILE *out, const struct view *view, const struct wire_stack *stack,
			bool is_kernel, bool root_first)
{
	size_t n = stack ? stack->frames.n : 0;

	if (stack_is_missed(stack)) {
		fprintf(out, "    %s\n", missed[is_kernel]);
		return;
	}
	for (size_t i = 0; i < n; i++)
		print_frame(out, view, &stack->frames.v[root_first ? n - 1 - i : i], is_kernel);
}

/*
 * Returns the name that an entry shows: that of the process, or of the thread if the daemon does
 * not know the process's name.
 */
static const char *entry_name(const struct compat_run *run, const struct wire_row *row)
{
	const char *name = row->process.comm;

	return run->tool->by_process && name[0] != '\0' ? name : row->comm;
}

/* Prints the stacks of calls of a function, and with -P the process that made the calls. */
static void print_calls(FILE *out, const struct compat_run *run, const struct view *view,
			const struct compat_entry *entry)
{
	const struct wire_row *row = entry->row;
	_cleanup_(freep) char *comm = name_escape(entry_name(run, row));
	struct view inner = *view;

	inner.frame_indent = 2;
	print_stack(out, &inner, row->kernel, true, false);
	if (has_border(run, row->kernel, row->user))
		fputs("    --\n", out);
	print_stack(out, &inner, row->user, false, false);
	if (run->per_process)
		fprintf(out, "    %s [%" PRId64 "]\n", comm, row->process.pid);
	fputs("    ", out);
	run->tool->print_value(out, entry);
	fputs("\n\n", out);
}

static void print_entry(FILE *out, const struct compat_run *run, const struct view *view,
			const struct compat_entry *entry)
{
	const struct wire_row *row = entry->row;
	_cleanup_(freep) char *comm = name_escape(entry_name(run, row));

	print_stack(out, view, row->kernel, true, false);
	if (has_border(run, row->kernel, row->user))
		fputs("    --\n", out);
	print_stack(out, view, row->user, false, false);
	fprintf(out, "    %-16s %s (%" PRId64 ")\n        ", "-", comm, row->process.pid);
	run->tool->print_value(out, entry);
	fputs("\n\n", out);
}

/*
 * Prints the waker and its stacks. The root comes first, so that the wakeup stands next to the wait
 * that it ended.
 */
static void print_waker(FILE *out, const struct compat_run *run, const struct view *view,
			const struct wire_waker *waker)
{
	const struct wire_link *link = waker->path.n > 0 ? &waker->path.v[0] : NULL;
	const char *word = !link ? "unknown" : link->comm ? link->comm : link->context;
	_cleanup_(freep) char *name = name_escape(word);

	fprintf(out, "    %-16s %s ", "waker:", name);
	if (link && link->pid != WIRE_ABSENT)
		fprintf(out, "%" PRId64 "\n", link->pid);
	else
		fputs("-\n", out);
	print_stack(out, view, waker->user, false, true);
	if (has_border(run, waker->kernel, waker->user))
		fprintf(out, "    %-16s %s\n", "-", "-");
	print_stack(out, view, waker->kernel, true, true);
}

static void print_pair(FILE *out, const struct compat_run *run, const struct view *view,
		       const struct compat_entry *entry)
{
	static const struct wire_waker nobody;
	const struct wire_row *row = entry->row;
	_cleanup_(freep) char *comm = name_escape(entry_name(run, row));

	print_waker(out, run, view, row->waker ? row->waker : &nobody);
	fprintf(out, "    %-16s %s\n", "--", "--");
	print_stack(out, view, row->kernel, true, false);
	if (has_border(run, row->kernel, row->user))
		fprintf(out, "    %-16s %s\n", "-", "-");
	print_stack(out, view, row->user, false, false);
	fprintf(out, "    %-16s %s %" PRId64 "\n        ", "target:", comm, row->process.pid);
	run->tool->print_value(out, entry);
	fputs("\n\n", out);
}

static void fold_stack(FILE *out, const struct view *view, const struct wire_stack *stack,
		       bool is_kernel, bool root_first)
{
	size_t n = stack ? stack->frames.n : 0;

	if (stack_is_missed(stack)) {
		fprintf(out, ";%s", missed[is_kernel]);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		_cleanup_(freep) char *label =
			frame_label(view, &stack->frames.v[root_first ? n - 1 - i : i], is_kernel);

		fputc(';', out);
		folded_put_name(out, label);
	}
}

static void fold_waker(FILE *out, const struct compat_run *run, const struct view *view,
		       const struct wire_waker *waker)
{
	const struct wire_link *link = waker->path.n > 0 ? &waker->path.v[0] : NULL;

	fputs(";--", out);
	fold_stack(out, view, waker->kernel, true, false);
	if (has_border(run, waker->kernel, waker->user))
		fputs(";-", out);
	fold_stack(out, view, waker->user, false, false);
	fputc(';', out);
	folded_put_name(out, !link ? "unknown" : link->comm ? link->comm : link->context);
}

static bool by_stacks(const struct compat_run *run)
{
	return run->tool->has_calls && !run->per_process;
}

static void fold_entry(FILE *stream, const struct compat_run *run, const struct view *view,
		       const struct compat_entry *entry)
{
	const struct wire_row *row = entry->row;
	_cleanup_(freep) char *text = NULL;
	FILE *out = stream;
	size_t size;

	if (by_stacks(run))
		out = must(open_memstream(&text, &size));
	else
		folded_put_name(out, row->comm);
	fold_stack(out, view, row->user, false, true);
	if (has_border(run, row->kernel, row->user))
		fputs(";-", out);
	fold_stack(out, view, row->kernel, true, true);
	if (run->tool->with_waker && row->waker)
		fold_waker(out, run, view, row->waker);
	if (by_stacks(run)) {
		fclose(out);
		out = stream;
		/* No name was printed before the stack: skip the ; in front of its first frame. */
		fputs(must(text) + (text[0] == ';'), out);
	}
	fputc(' ', out);
	run->tool->print_value(out, entry);
	fputc('\n', out);
}

static size_t count_missed(const struct wire_row *row)
{
	size_t n = (size_t)stack_is_missed(row->kernel) + (size_t)stack_is_missed(row->user);

	if (row->waker)
		n += (size_t)stack_is_missed(row->waker->kernel) +
		     (size_t)stack_is_missed(row->waker->user);
	return n;
}

size_t compat_render(FILE *out, const struct compat_run *run,
		     const struct wire_snapshot_reply *reply)
{
	const struct compat_tool *tool = run->tool;
	struct view view = {
		.is_short = run->options.is_short,
		.offset = run->options.offset,
		.verbose = run->options.verbose,
		.annotations = run->options.annotations,
	};
	struct compat_entry *entries;
	size_t n, n_missed = 0;

	report_estimates(reply);
	if (run->tool->render)
		return run->tool->render(out, run, reply);
	entries = compat_entries_new(reply,
				     by_stacks(run)	? COMPAT_BY_STACKS
				     : tool->by_process ? COMPAT_BY_PROCESS
							: COMPAT_BY_NAME,
				     tool->value, &n);
	qsort(entries, n, sizeof *entries, tool->compare);
	for (size_t i = 0; i < n; i++) {
		if (run->is_folded)
			fold_entry(out, run, &view, &entries[i]);
		else if (tool->has_calls)
			print_calls(out, run, &view, &entries[i]);
		else if (tool->with_waker)
			print_pair(out, run, &view, &entries[i]);
		else
			print_entry(out, run, &view, &entries[i]);
		n_missed += count_missed(entries[i].row);
	}
	free(entries);
	if (n_missed > 0)
		print_message("WARNING: %zu stack trace%s could not be displayed", n_missed,
			      n_missed == 1 ? "" : "s");
	return n;
}
