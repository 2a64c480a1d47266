/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/iolat.h"
#include "common/base.h"

/* One tree that is printed: the times of one kind of operation on one file system and device. */
struct tree {
	/*
	 * the first row of the tree, which says the kind of operation, the file system and the
	 * device
	 */
	const struct wire_io *io;
	/*
	 * The sums are over the rows of one layer: `top`, the uppermost layer that has rows. Only
	 * own_ns[] has a sum for each layer: the time spent in that layer, without the time in the
	 * layers below it.
	 */
	int64_t count;
	int64_t total_ns;
	int64_t own_ns[3];
	int64_t cpu_ns, runnable_ns, device_ns, queue_ns, throttled_ns, other_ns;
	int top;
	bool is_estimate; /* some rows of the tree have estimates */
};

static const char *const file_layers[] = { "syscall", "vfs", "fs" };

static int layer_of(const struct wire_io *io)
{
	for (size_t i = 0; i < ARRAY_SIZE(file_layers); i++)
		if (strcmp(file_layers[i], io->layer) == 0)
			return (int)i;
	return -1;
}

static bool texts_equal(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool tree_is_of(const struct tree *tree, const struct wire_io *io)
{
	return strcmp(io_kind(tree->io), io_kind(io)) == 0 &&
	       texts_equal(tree->io->filesystem, io->filesystem) &&
	       texts_equal(tree->io->device, io->device);
}

static void tree_add(struct tree *tree, const struct wire_row *row, int layer)
{
	const struct wire_io *io = row->io;

	tree->is_estimate |= *row_about(row) != '\0';
	tree->own_ns[layer] += io->own_ns;
	if (layer > tree->top)
		return;
	if (layer < tree->top) {
		tree->top = layer;
		tree->count = tree->total_ns = tree->cpu_ns = tree->runnable_ns = 0;
		tree->device_ns = tree->queue_ns = tree->throttled_ns = tree->other_ns = 0;
	}
	tree->count += row->count;
	tree->total_ns += row->total_ns;
	tree->cpu_ns += io->cpu_ns;
	tree->runnable_ns += io->runnable_ns;
	tree->device_ns += io->device_ns;
	tree->queue_ns += io->queue_ns;
	tree->throttled_ns += io->throttled_ns;
	tree->other_ns += io->other_ns;
}

static size_t trees_make(const struct wire_snapshot_reply *reply, struct tree *trees)
{
	size_t n = 0, k;

	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];
		int layer = row->io ? layer_of(row->io) : -1;

		if (layer < 0 || row->count == 0)
			continue;
		for (k = 0; k < n && !tree_is_of(&trees[k], row->io); k++)
			;
		if (k == n)
			trees[n++] =
				(struct tree){ .io = row->io, .top = (int)ARRAY_SIZE(file_layers) };
		tree_add(&trees[k], row, layer);
	}
	return n;
}

static int compare_trees(const void *a, const void *b)
{
	const struct tree *x = a, *y = b;

	return x->total_ns < y->total_ns ? 1 : x->total_ns > y->total_ns ? -1 : 0;
}

static void render_part(const struct view *view, const struct tree *tree, const char *mark,
			const char *name, int64_t ns, const char *meaning)
{
	char text[40];

	if (ns <= 0)
		return;
	snprintf(text, sizeof text, "%s%s", tree->is_estimate ? "~" : "", ns_text(ns));
	fprintf(view->page.out, "  %s %-10s %9s %6s  %s\n", mark, name, text,
		share_text(ns, tree->total_ns), meaning);
}

static void render_tree(const struct view *view, const struct tree *tree)
{
	static const char *const own[] = { "in the system call itself", "in the VFS itself",
					   "in the file system and below" };
	static const char *const indents[] = { "+-", "+--", "+---" };
	const char *about = tree->is_estimate ? "~" : "";
	_cleanup_(freep) char *place = io_target(tree->io), *kind = name_escape(io_kind(tree->io));
	_cleanup_(freep) char *title = NULL, *right = NULL;
	int r = asprintf(&title, "%s on %s", kind, place);

	must(r < 0 ? NULL : title);
	r = asprintf(&right, "%s%s in all, %s%s each", about, ns_text(tree->total_ns), about,
		     ns_text(tree->count ? tree->total_ns / tree->count : 0));
	must(r < 0 ? NULL : right);
	page_break(&view->page);
	page_pair(&view->page, STYLE_BOLD, title, right);
	page_wrap(&view->page, STYLE_PLAIN, "", 2, "%s%s, by layer:", about,
		  count_text(tree->count));
	for (size_t i = 0; i < ARRAY_SIZE(file_layers); i++)
		render_part(view, tree, indents[i], file_layers[i], tree->own_ns[i], own[i]);
	page_wrap(&view->page, STYLE_PLAIN, "", 2, "by what the thread did:");
	render_part(view, tree, "+-", "on CPU", tree->cpu_ns, "running");
	render_part(view, tree, "+-", "runnable", tree->runnable_ns, "ready, without a CPU");
	render_part(view, tree, "+-", "device", tree->device_ns,
		    "asleep while the device worked for it");
	render_part(view, tree, "+-", "queue", tree->queue_ns,
		    "asleep while its requests were queued");
	render_part(view, tree, "+-", "throttled", tree->throttled_ns,
		    "asleep, held back by io.max");
	render_part(view, tree, "+-", "other", tree->other_ns,
		    "asleep: a lock, a peer, other threads' requests");
}

/* True if the answer has requests to disks. */
static bool has_requests(const struct wire_snapshot_reply *reply)
{
	for (size_t i = 0; i < reply->rows.n; i++)
		if (reply->rows.v[i].io && layer_of(reply->rows.v[i].io) < 0)
			return true;
	return false;
}

void render_breakdown(const struct view *view, const struct wire_snapshot_reply *reply)
{
	struct tree *trees = must(calloc(reply->rows.n + 1, sizeof(*trees)));
	size_t n = trees_make(reply, trees), top = (size_t)view->top;

	qsort(trees, n, sizeof(*trees), compare_trees);
	for (size_t i = 0; i < n && (!top || i < top); i++)
		render_tree(view, &trees[i]);
	page_break(&view->page);
	if (n == 0)
		page_wrap(
			&view->page, STYLE_PLAIN, "", 0, "%s",
			has_requests(reply)
				? "no operations above the disks were recorded, "
				  "which --breakdown is about; without it, requests to disks are shown"
				: "no operations");
	if (top && n > top)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%zu more: -n 0 shows all", n - top);
	free(trees);
}
