/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/render.h"
#include "common/base.h"

static bool hook_is_known(const char *hook)
{
	return strcmp(hook, "none") != 0;
}

static void render_row(const struct view *view, const struct wire_row *row, int64_t whole)
{
	_cleanup_(freep) char *title = row_title(view, row), *right = NULL;

	if (asprintf(&right, "%s call%s  %5s", count_text(row->count), row->count == 1 ? "" : "s",
		     share_text(row->count, whole)) < 0)
		right = NULL;
	must(right);
	page_break(&view->page);
	page_pair(&view->page, STYLE_BOLD, title, right);
	render_frames(view, row, RENDER_FRAME_INDENT, 0);
}

void render_calls(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_totals *t = &reply->totals;
	_cleanup_(freep) char *hook = name_escape(reply->hook);
	int64_t shown = 0, length = coverage_length(&reply->coverage);
	struct view inner = *view;

	inner.keeps_scheduler = true;
	page_wrap(&view->page, STYLE_PLAIN, "calls", RENDER_LABEL_WIDTH,
		  "%s by %s process%s, %s a second%s%s", count_text(t->calls),
		  count_text(t->processes), t->processes == 1 ? "" : "es",
		  count_text(length > 0 ? (int64_t)((double)t->calls * NS_PER_S / (double)length)
					: 0),
		  hook_is_known(hook) ? ", by " : "", hook_is_known(hook) ? hook : "");
	for (size_t i = 0; i < reply->rows.n; i++) {
		render_row(&inner, &reply->rows.v[i], t->calls);
		shown += reply->rows.v[i].count;
	}
	page_break(&view->page);
	if (reply->rows.n == 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "no calls");
	if (reply->rest.rows > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s more, %s: -n 0 shows all",
			  count_text(reply->rest.rows), share_text(t->calls - shown, t->calls));
}

/* Columns in front of what was executed. */
enum { EXEC_INDENT = RENDER_FRAME_INDENT + 10 };

/* True if a shell would read the word as one, and as it is. */
static bool word_is_plain(const char *word)
{
	return word[0] && !strpbrk(word, " \t\n'\"\\$`|&;<>()*?[]#~{}!");
}

/* Returns the arguments in a line. Those that a shell would not read as one word are in quotes. */
static char *arguments_text(const struct wire_exec *exec)
{
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	for (size_t i = 0; i < exec->arguments.n; i++) {
		const char *word = exec->arguments.v[i], *quote = word_is_plain(word) ? "" : "'";
		_cleanup_(freep) char *name = name_escape(word);

		fprintf(out, "%s%s%s%s", i ? " " : "", quote, name, quote);
	}
	if (exec->arguments_more != WIRE_ABSENT)
		fprintf(out, "... %s bytes more", count_text(exec->arguments_more));
	fclose(out);
	return must(text);
}

static void render_exec(const struct view *view, const struct wire_exec *exec)
{
	_cleanup_(freep) char *path = name_escape(exec->path), *arguments = arguments_text(exec),
			      *parent = name_escape(exec->parent_comm);

	page_wrap(&view->page, STYLE_PLAIN, "      program", EXEC_INDENT, "%s", path);
	page_wrap(&view->page, STYLE_PLAIN, "      arguments", EXEC_INDENT, "%s", arguments);
	page_wrap(&view->page, STYLE_PLAIN, "      parent", EXEC_INDENT, "%s (pid %" PRId64 ")",
		  parent, exec->parent);
}

void render_call(const struct view *view, const struct wire_call *call)
{
	const struct wire_row row = { .kernel = call->kernel, .user = call->user };
	_cleanup_(freep) char *comm = name_escape(call->comm), *right = NULL;
	char time[TERM_TIME_MAX], *title;

	time_format(call->time, TIME_CLOCK, time);
	if (asprintf(&title,
		     "%s.%09" PRId64 "  %s (pid %" PRId64 ", thread %" PRId64 ", CPU %" PRId64 ")",
		     time, call->time % NS_PER_S, comm, call->pid, call->tid, call->cpu) < 0)
		title = NULL;
	must(title);
	if (asprintf(&right, call->count > 1 ? "for %s calls" : "%s",
		     call->count > 1 ? count_text(call->count) : "") < 0)
		right = NULL;
	must(right);
	page_pair(&view->page, STYLE_BOLD, title, right);
	if (call->exec)
		render_exec(view, call->exec);
	render_frames(view, &row, RENDER_FRAME_INDENT, 0);
	page_break(&view->page);
	free(title);
}
