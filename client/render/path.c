/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/path.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/iolat.h"
#include "common/array.h"
#include "common/base.h"
#include "common/pool_name.h"

static void path_clear(struct path *path)
{
	for (size_t i = 0; i < path->n; i++)
		free(path->v[i].name);
	path->n = 0;
}

void path_fini(struct path *path)
{
	path_clear(path);
	free(path->v);
	*path = (struct path){ 0 };
}

/* Appends a frame; escapes its name. */
static struct path_frame *path_add(struct path *path, const char *name)
{
	struct path_frame *frame;

	if (array_reserve(path->v, path->capacity, path->n + 1) < 0)
		must(NULL);
	frame = &path->v[path->n++];
	*frame = (struct path_frame){
		.name = name_escape(name && name[0] != '\0' ? name : "[unknown]"),
		.line = WIRE_ABSENT,
		.file_offset = WIRE_ABSENT,
	};
	return frame;
}

static void add_frame(struct path *path, const struct view *view, const struct wire_frame *from,
		      bool is_kernel)
{
	_cleanup_(freep) char *label = frame_label(view, from, is_kernel);
	struct path_frame *frame = path_add(path, label);

	if (from->module && from->module[0] != '\0')
		frame->module = from->module;
	frame->build_id = from->build_id;
	frame->file_offset = from->file_offset;
	if (from->source && from->source->file) {
		frame->file = from->source->file;
		frame->line = from->source->line;
	}
	frame->is_kernel = is_kernel;
}

/* Appends what stands for a stack that is missing. */
static void add_no_stack(struct path *path, bool is_kernel)
{
	path_add(path, is_kernel ? "[no kernel stack]" : "[no user stack]")->is_kernel = is_kernel;
}

/*
 * True if the only frame of a stack says why the stack is missing. A thread that never ran before,
 * and waits that were added up, have no stack of which one could say so.
 */
static bool is_missing(const struct wire_stack *stack)
{
	static const char *const reasons[] = { "fault", "lost", "no_hook", "unread" };

	if (stack->frames.n != 1 || strcmp(stack->frames.v[0].kind, "pseudo") != 0)
		return false;
	for (size_t i = 0; i < stack->flags.n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(reasons); k++)
			if (strcmp(stack->flags.v[i], reasons[k]) == 0)
				return true;
	return false;
}

/* Appends the frames of a stack, the outermost function first, or last if is_leaf_first is true. */
static void add_stack(struct path *path, const struct view *view, const struct wire_stack *stack,
		      bool is_kernel, bool is_leaf_first)
{
	size_t n = stack ? stack->frames.n : 0;

	for (size_t i = 0; i < n; i++)
		add_frame(path, view, &stack->frames.v[is_leaf_first ? i : n - 1 - i], is_kernel);
	/* If there are flags but no frames, the stack could not be taken. */
	if (stack && n == 0 && stack->flags.n > 0)
		add_no_stack(path, is_kernel);
}

/* Returns a name, or the one name that stands for it with PATH_NO_REASONS. */
static const char *without_reason(const char *name)
{
	static const struct {
		const char *begin, *other;
	} names[] = {
		{ "[stack not taken]", "[no user stack]" },
		{ "[stack unreadable]", "[no user stack]" },
		{ "[user stack lost]", "[no user stack]" },
		{ "[user stack not read]", "[no user stack]" },
		{ "[kernel stack lost]", "[no kernel stack]" },
		{ "[waits under ", "[short waits]" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(name, names[i].begin, strlen(names[i].begin)) == 0)
			return names[i].other;
	return name;
}

/* Appends a stack of a row with PATH_NO_REASONS. */
static void add_stack_without_reason(struct path *path, const struct view *view,
				     const struct wire_stack *stack, bool is_kernel)
{
	const struct wire_frame *first = stack && stack->frames.n == 1 ? stack->frames.v : NULL;

	if (first && is_missing(stack))
		add_no_stack(path, is_kernel);
	else if (first && strcmp(first->kind, "pseudo") == 0 && first->name)
		path_add(path, without_reason(first->name))->is_kernel = is_kernel;
	else
		add_stack(path, view, stack, is_kernel, false);
}

/* Returns the kernel stack of a wait without the functions of the scheduler at its leaf. */
static struct wire_stack without_scheduler(const struct wire_stack *kernel)
{
	struct wire_stack place = *kernel;
	size_t skip = kernel->scheduler > 0 ? (size_t)kernel->scheduler : scheduler_frames(kernel);

	if (skip < place.frames.n) {
		place.frames.v += skip;
		place.frames.n -= skip;
	}
	return place;
}

/* Appends both stacks of a row. */
static void add_stacks(struct path *path, const struct view *view, const struct wire_row *row,
		       unsigned parts)
{
	const struct wire_stack *kernel = row->kernel;
	struct wire_stack place;

	/* A row of samples has no state: there, the scheduler is what ran. */
	if (kernel && row->state && parts & PATH_NO_SCHEDULER) {
		place = without_scheduler(kernel);
		kernel = &place;
	}
	if (parts & PATH_NO_REASONS) {
		add_stack_without_reason(path, view, row->user, false);
		add_stack_without_reason(path, view, kernel, true);
		return;
	}
	add_stack(path, view, row->user, false, false);
	add_stack(path, view, kernel, true, false);
}

/* Appends a thread or context of a path of wakeups. */
static void path_add_link(struct path *path, const struct wire_link *link)
{
	path_add(path, link->comm ? link->comm : link->context);
}

/* Appends what woke the thread, its leaf first, so that it is next to the leaf of the sleeper. */
static void add_waker(struct path *path, const struct view *view, const struct wire_waker *waker)
{
	path_add(path, "--");
	add_stack(path, view, waker->kernel, true, true);
	add_stack(path, view, waker->user, false, true);
	for (size_t i = 0; i < waker->path.n; i++) {
		const struct wire_link *link = &waker->path.v[i];

		if (i > 0 && !view->chain)
			break;
		path_add_link(path, link);
	}
}

/* Appends the name that the row stands for; with PATH_IDS, and the id of its thread or process. */
static void add_name(struct path *path, const struct wire_row *row, unsigned parts)
{
	_cleanup_(freep) char *name = NULL;
	bool has_tid = row->tid != WIRE_ABSENT;
	int64_t id = has_tid ? row->tid : row->process.pid;

	if (row->key) {
		path_add(path, parts & PATH_NO_REASONS ? without_reason(row->key) : row->key);
		return;
	}
	if (!(parts & PATH_IDS) || id <= 0) {
		name = must(strdup(row->comm ? row->comm : ""));
		if (parts & PATH_POOL)
			pool_name(row->comm ? row->comm : "", name, strlen(name) + 1);
		path_add(path, name);
		return;
	}
	if (asprintf(&name, "%s (%s %" PRId64 ")", row->comm, has_tid ? "thread" : "pid", id) < 0)
		name = NULL;
	path_add(path, must(name));
}

/* Appends the name of a row as lines have it: the process and, if its name differs, the thread. */
static void add_line_name(struct path *path, const struct wire_row *row, unsigned parts)
{
	const char *comm = row->comm ? row->comm : "", *process = row->process.comm;
	_cleanup_(freep) char *name = must(strdup(comm)), *both = NULL;

	if (row->own == 1) {
		path_add(path, "stackd itself");
		return;
	}
	if (row->key || parts & PATH_IDS || !process || !process[0] || strcmp(process, comm) == 0) {
		add_name(path, row, parts);
		return;
	}
	pool_name(comm, name, strlen(name) + 1);
	both = must_printf("%s/%s", process, name);
	path_add(path, both);
}

static void path_add_function(struct path *path, const char *function)
{
	_cleanup_(freep) char *words = function_words(function, false);

	path_add(path, words);
}

/* Fills the path of a row, see PATH_LINE. */
static void fill_line(struct path *path, const struct view *view, const struct wire_row *row,
		      unsigned parts)
{
	bool is_by_line = !view->by || strcmp(view->by, "line") == 0;
	_cleanup_(freep) char *one = NULL, *other = NULL;

	if (parts & PATH_COMM)
		add_line_name(path, row, parts);
	if (row->own == 1 || (!row->io && !is_by_line))
		return;
	if (row->io) {
		one = io_operation(row->io);
		other = io_target(row->io);
	} else if (row->state && reason_text(row->reason)) {
		/* The same waits may have one state in one range, and several in the other. */
		one = name_escape(row->reason);
	} else if (row->state && row->state[0] == '-') {
		one = name_escape(state_word(row));
	}
	if (one)
		path_add(path, one);
	if (row->waker && row->waker->path.n > 0)
		path_add_link(path, row->waker->path.v);
	else if (other)
		path_add(path, other);
	else if (row->function)
		path_add_function(path, row->function);
}

void path_fill(struct path *path, const struct view *view, const struct wire_row *row,
	       unsigned parts)
{
	path_clear(path);
	if (parts & PATH_LINE) {
		fill_line(path, view, row, parts);
		return;
	}
	if (row->io) {
		_cleanup_(freep) char *place = io_target(row->io);

		path_add(path, row->io->layer);
		path_add(path, row->io->op);
		path_add(path, place);
	}
	if (parts & PATH_COMM)
		add_name(path, row, parts);
	add_stacks(path, view, row, parts);
	if (path->n == 0)
		add_name(path, row, parts);
	if (row->waker && parts & PATH_WAKER)
		add_waker(path, view, row->waker);
}
