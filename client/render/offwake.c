/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/render.h"
#include "common/base.h"

enum { WAKER_INDENT = 4 };

/*
 * Returns the name of a waker on the path of wakeups, as "sshd (pid 412)" or "sshd (pid 412, in a
 * softirq)", or a context such as "timer". The text is escaped; the caller frees it.
 */
static char *link_text(const struct wire_link *link)
{
	_cleanup_(freep) char *comm = name_escape(link->comm ? link->comm : link->context);
	const char *mark = strcmp(link->context, "softirq") == 0 ? ", in a softirq" : "";
	char *text = NULL;
	int r;

	if (!link->comm || link->pid == WIRE_ABSENT)
		return TAKE(comm);
	r = link->tid == link->pid
		    ? asprintf(&text, "%s (pid %" PRId64 "%s)", comm, link->pid, mark)
		    : asprintf(&text, "%s (thread %" PRId64 ", pid %" PRId64 "%s)", comm, link->tid,
			       link->pid, mark);
	return must(r < 0 ? NULL : text);
}

char *waker_title(const struct wire_waker *waker)
{
	static const struct wire_link unknown = { .context = "unknown" };

	return link_text(waker->path.n > 0 ? &waker->path.v[0] : &unknown);
}

/*
 * Prints the waker's stack with its leaf last. The leaf is then next to the stack of the woken
 * thread, which is printed below.
 */
static void render_root_first(const struct view *view, const struct wire_stack *stack,
			      bool is_kernel)
{
	for (size_t i = stack ? stack->frames.n : 0; i > 0; i--) {
		_cleanup_(freep) char *label =
			frame_label(view, &stack->frames.v[i - 1], is_kernel);
		_cleanup_(freep) char *safe = name_escape(label);

		page_name(&view->page, STYLE_PLAIN, RENDER_FRAME_INDENT, "", safe);
	}
}

static bool has_frames(const struct wire_stack *stack)
{
	return stack && stack->frames.n > 0;
}

void render_waker(const struct view *view, const struct wire_row *row)
{
	const struct wire_waker *waker = row->waker;
	_cleanup_(freep) char *title = NULL;

	if (!waker)
		return;
	title = waker_title(waker);
	page_wrap(&view->page, STYLE_PLAIN, "", WAKER_INDENT, "waker: %s", title);
	render_root_first(view, waker->user, false);
	if (view->delimited && has_frames(waker->user) && has_frames(waker->kernel))
		page_wrap(&view->page, STYLE_DIM, "", RENDER_FRAME_INDENT, "-");
	render_root_first(view, waker->kernel, true);
	page_wrap(&view->page, STYLE_DIM, "", RENDER_FRAME_INDENT, "--               --");
}

void render_chain(const struct view *view, const struct wire_row *row)
{
	_cleanup_(freep) char *comm = name_escape(row->comm), *line = NULL;
	size_t size;
	FILE *out;

	if (!row->waker)
		return;
	out = must(open_memstream(&line, &size));
	fprintf(out, "%s waits", comm);
	for (size_t i = 0; i < row->waker->path.n; i++) {
		const struct wire_link *link = &row->waker->path.v[i];
		_cleanup_(freep) char *text = link_text(link);

		fprintf(out, " <- %s%s", text, link->comm && i == 0 ? " woke it" : "");
	}
	fclose(out);
	must(line);
	page_wrap(&view->page, STYLE_PLAIN, "", WAKER_INDENT, "%s", line);
}

void render_wake_totals(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_totals *t = &reply->totals;
	bool is_sampled = reply->sample_below_ns > 0;
	const char *about = t->sampled_ns > 0 ? "~" : "";

	page_wrap(&view->page, STYLE_PLAIN, "seen", RENDER_LABEL_WIDTH,
		  "%s%s thread%s of %s process%s%s%s%s", fold_at_most(reply->folded),
		  count_text(t->threads), t->threads == 1 ? "" : "s", count_text(t->processes),
		  t->processes == 1 ? "" : "es", is_sampled ? "" : " that waited ",
		  is_sampled ? "" : ns_text(reply->min_wait_ns), is_sampled ? "" : " or more");
	page_wrap(&view->page, STYLE_PLAIN, "waits", RENDER_LABEL_WIDTH,
		  "%s%s that ended, %s%s blocked and %s%s runnable in all", about,
		  count_text(t->waits), about, ns_text(t->blocked_ns), about,
		  ns_text(t->runnable_ns));
	if (is_sampled)
		page_wrap(&view->page, STYLE_PLAIN, "", RENDER_LABEL_WIDTH,
			  "only some of those under %s are recorded, and stand for all; ~ marks "
			  "what they tell",
			  ns_text(reply->sample_below_ns));
}
