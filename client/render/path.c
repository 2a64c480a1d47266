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

/* Appends the frames of a stack, the outermost function first, or last if is_leaf_first is true. */
static void add_stack(struct path *path, const struct view *view, const struct wire_stack *stack,
		      bool is_kernel, bool is_leaf_first)
{
	size_t n = stack ? stack->frames.n : 0;

	for (size_t i = 0; i < n; i++)
		add_frame(path, view, &stack->frames.v[is_leaf_first ? i : n - 1 - i], is_kernel);
	/* If there are flags but no frames, the stack could not be taken. */
	if (stack && n == 0 && stack->flags.n > 0)
		path_add(path, is_kernel ? "[no kernel stack]" : "[no user stack]")->is_kernel =
			is_kernel;
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
		path_add(path, link->comm ? link->comm : link->context);
	}
}

/* Appends the name that the row stands for; with PATH_IDS, and the id of its thread or process. */
static void add_name(struct path *path, const struct wire_row *row, unsigned parts)
{
	_cleanup_(freep) char *name = NULL;
	bool has_tid = row->tid != WIRE_ABSENT;
	int64_t id = has_tid ? row->tid : row->process.pid;

	if (row->key) {
		path_add(path, row->key);
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

void path_fill(struct path *path, const struct view *view, const struct wire_row *row,
	       unsigned parts)
{
	path_clear(path);
	if (row->io) {
		_cleanup_(freep) char *place = io_target(row->io);

		path_add(path, row->io->layer);
		path_add(path, row->io->op);
		path_add(path, place);
	}
	if (parts & PATH_COMM)
		add_name(path, row, parts);
	add_stack(path, view, row->user, false, false);
	add_stack(path, view, row->kernel, true, false);
	if (path->n == 0)
		add_name(path, row, parts);
	if (row->waker && parts & PATH_WAKER)
		add_waker(path, view, row->waker);
}
