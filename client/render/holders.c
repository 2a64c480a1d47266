/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/cell.h"
#include "client/render/coverage.h"
#include "client/render/render.h"
#include "common/base.h"

enum {
	ROW_INDENT = 2,
	OBJECT_INDENT = 10, /* the indentation, and the words before a name: "lock at " */
};

/* Returns a holder as "name (pid 17)" or "name (thread 18)". The caller frees it. */
static char *holder_text(const struct wire_holder *holder)
{
	_cleanup_(freep) char *comm = name_escape(holder->comm);
	bool is_thread = holder->tid != WIRE_ABSENT && holder->tid != holder->pid;
	char *text = NULL;
	int r = asprintf(&text, "%s (%s %" PRId64 ")", comm, is_thread ? "thread" : "pid",
			 is_thread ? holder->tid : holder->pid);

	return must(r < 0 ? NULL : text);
}

/*
 * Returns an object as "file /run/lock", "lock at 0x7f..." or "pipe 17", an empty text if it is not
 * known. On a terminal, it takes one line at most, so that who holds the file stays in sight; only
 * what is said of a connection wraps. The caller frees it.
 */
static char *object_text(const struct view *view, const char *object)
{
	_cleanup_(freep) char *whole = name_escape(object ? object : "");
	_cleanup_(freep) char *name = view->page.cuts_names && !object_is_connection(whole)
					      ? text_fit(whole, view->page.width - OBJECT_INDENT)
					      : must(strdup(whole));
	char *text = NULL;
	int r = asprintf(&text, "%s%s",
			 name[0] == '/'				  ? "file "
			 : strncmp(name, "0x", strlen("0x")) == 0 ? "lock at "
								  : "",
			 name);

	return must(r < 0 ? NULL : text);
}

/* Prints the steps of a chain: for what each holder waits itself. */
static void render_chain_of(const struct view *view, const struct wire_row *row)
{
	for (size_t i = 0; i < row->chain.n; i++) {
		const struct wire_holder *step = &row->chain.v[i];
		_cleanup_(freep) char *who = holder_text(step);
		_cleanup_(freep) char *object = object_text(view, step->object);
		const char *words = reason_text(step->reason);

		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s waits for %s%s%s, for %s",
			  who, words ? words : "something unknown", object[0] ? ": " : "", object,
			  ns_text(step->for_ns));
	}
	if (row->deadlock == 1)
		page_wrap(&view->page, STYLE_WARN, "", ROW_INDENT,
			  row->chain.n > 0 ? "deadlock: the last of these waits for this thread"
					   : "deadlock: it holds the lock itself");
}

/* Returns what those are to the thread that hold what it waits for, or have to do it. */
static const char *holder_role(const char *reason)
{
	static const struct {
		const char *words, *role;
	} roles[] = {
		{ " child vfork ", "child" },
		{ " join ", "thread" },
		{ " debugger ", "debugger" },
		{ " stopped ", "sender" },
		{ " pipe-read pipe-write fifo-open eventfd accept connect tcp udp unix unix-send socket "
		  "socket-send poll select tty-read tty-write mq msgrcv msgsnd ",
		  "other end" },
	};
	char word[64];

	snprintf(word, sizeof(word), " %s ", reason ? reason : "");
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		if (strstr(roles[i].words, word))
			return roles[i].role;
	return NULL;
}

void render_holders(const struct view *view, const struct wire_row *row, const char *label,
		    const struct wire_range *used)
{
	_cleanup_(freep) char *object = object_text(view, row->object), *who = NULL;
	_cleanup_(freep) char *unknown =
		name_escape(row->holders_unknown ? row->holders_unknown : "");
	const char *role = holder_role(row->reason);
	char moment[TERM_TIME_MAX], as_of[TERM_TIME_MAX + 16] = "";
	size_t size;
	FILE *out = must(open_memstream(&who, &size));

	for (size_t i = 0; i < row->holders.n; i++) {
		_cleanup_(freep) char *one = holder_text(&row->holders.v[i]);

		fprintf(out, "%s%s", i > 0 ? ", " : "", one);
	}
	if (row->holders_more > 0)
		fprintf(out, " and %s more", count_text(row->holders_more));
	must(fclose(out) == 0 ? who : NULL);
	if (row->holders_at > 0) {
		moment_text(row->holders_at, used->end, moment);
		snprintf(as_of, sizeof as_of, ", as of %s", moment);
	}
	if (row->holders.n > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s%s%s%s%s%s%s", label, object,
			  object[0] ? ", " : "", role ? role : "held by", role ? ": " : " ", who,
			  as_of);
	else if (object[0])
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s%s%s", label, object, as_of);
	if (unknown[0])
		page_wrap(&view->page, STYLE_PLAIN, "", ROW_INDENT, "%s%s %s: %s",
			  row->holders.n > 0 || object[0] ? "" : label,
			  row->holders.n > 0 ? "others"
			  : role	     ? role
					     : "holder",
			  row->holders_missed == 1 ? "not looked up" : "unknown", unknown);
	render_chain_of(view, row);
}
