/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/top/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/cell.h"
#include "client/render/coverage.h"
#include "client/render/iolat.h"
#include "client/render/lines.h"
#include "client/render/measures.h"
#include "client/render/parts.h"
#include "client/render/render.h"
#include "client/render/table.h"
#include "client/top/base.h"
#include "common/base.h"

/*
 * Widths of columns. LONGEST_FROM, COUNT_FROM, AVERAGE_FROM: the widths of a screen from which on
 * there are these columns.
 */
enum { CLASS = 10, SHARE = 6, TIME = 9, CHANGE = 10, COUNT = 8, TITLE_MIN = 16, TITLE_MAX = 32 };

/* The most columns of a holder in the text of a row. */
enum { HOLDER = 28 };
enum { LONGEST_FROM = 64, COUNT_FROM = 90, AVERAGE_FROM = 110 };

/* Compares rows for qsort(): that of stackd itself comes last, as in the daemon's order. */
static int by_value(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int own = (x->row->own == 1) - (y->row->own == 1);

	if (own != 0)
		return own;
	return (x->value < y->value) - (x->value > y->value);
}

/* Compares blocked rows for qsort(): those that hold others up come first, as in the overview. */
static int by_urgency(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	int urgent = (y->row->urgent == 1) - (x->row->urgent == 1);

	return urgent != 0 ? urgent : by_value(a, b);
}

/* Returns the time by which the rows of a part of the overview are sorted, or those of a tab. */
static int64_t value_of(const struct wire_row *row, const struct part *part, enum tab tab)
{
	if (tab == TAB_STUCK)
		return row->max_ns;
	return part ? part->time(row) : row->total_ns;
}

/*
 * Returns the time of all rows of a part, of a layer of I/O, as each has those below in it, or of
 * all rows in an answer.
 */
static int64_t whole_of(const struct wire_snapshot_reply *reply, const struct part *part,
			const struct wire_row *row)
{
	const char *name = row->io ? row->io->layer : part ? part->name : NULL;
	const struct wire_part *sums = name ? part_find(reply, name) : NULL;

	return sums ? sums->total_ns : reply->shown.total_ns + reply->rest.total_ns;
}

static struct top_row row_of(const struct top_answer *answer, const struct collection *c,
			     const struct part *part, const struct wire_row *row)
{
	const struct top_state *asked = &answer->question.state;
	const enum tab tab = asked->tab;

	return (struct top_row){
		.row = row,
		.asked = asked,
		.class = tab != TAB_OVERVIEW ? NULL
			 : part		     ? part->name
					     : "I/O",
		.value = value_of(row, part, tab),
		.whole = whole_of(&c->reply, part, row),
		.is_sample = reply_is_sampled(&c->reply),
		.is_io = reply_is_iolat(&c->reply),
		.is_of_all = tab == TAB_IO && strcmp(top_group(asked), "process") != 0,
		.is_ready = part == PART_RUNNABLE,
		/* The longest wait is known as a whole only, so not of a part of waits that
		   blocked. */
		.has_longest = !part || !part->is_of_waits || part == PART_BLOCKED ||
			       !row_was_blocked(row),
		.is_stuck = tab == TAB_STUCK,
		.end = c->reply.coverage.used.end,
	};
}

/* True if the threads of a row waited for a CPU and for nothing else: they are in another tab. */
static bool is_ready_only(const struct wire_row *row)
{
	return row->blocked_ns == 0 && row->runnable_ns > 0;
}

/*
 * Adds the rows of a collection that have time in a part of the overview, at most `most`, the
 * greatest first. part: NULL for I/O, and for the rows of the other tabs, which are in order.
 */
static void add_part(struct top_rows *out, const struct top_answer *answer,
		     const struct collection *c, const struct part *part, size_t most)
{
	const enum tab tab = answer->question.state.tab;
	size_t first = out->n;
	bool has_parts = tab == TAB_OVERVIEW || tab == TAB_RUNNABLE;

	if (!c->has_reply || c->n == 0)
		return;
	out->v = must(realloc(out->v, (first + c->n) * sizeof(*out->v)));
	for (size_t i = 0; i < c->n; i++) {
		struct top_row row = row_of(answer, c, part, &c->rows[i]);

		if (row.value > 0 && !(tab == TAB_BLOCKED && is_ready_only(row.row)))
			out->v[out->n++] = row;
	}
	if (has_parts)
		qsort(out->v + first, out->n - first, sizeof(*out->v),
		      part == PART_BLOCKED ? by_urgency : by_value);
	if (out->n - first > most)
		out->n = first + most;
}

/* Adds the parts of the overview. That of blocked time comes first if it holds others up. */
static void add_overview(struct top_rows *out, const struct top_answer *answer, size_t most)
{
	bool is_urgent;

	add_part(out, answer, &answer->waits, PART_BLOCKED, most);
	is_urgent = out->n > 0 && out->v[0].row->urgent == 1;
	if (!is_urgent)
		out->n = 0;
	for (const struct part *part = parts; part != PART_BLOCKED; part++)
		add_part(out, answer, part->is_of_waits ? &answer->waits : &answer->samples, part,
			 most);
	if (!is_urgent)
		add_part(out, answer, &answer->waits, PART_BLOCKED, most);
	add_part(out, answer, &answer->io, NULL, most);
}

/* Adds a row for each entry of `stackctl stuck`: in the same order, folded in the same way. */
static void add_entries(struct top_rows *out, const struct top_answer *answer)
{
	static const struct view view = { 0 };
	const struct collection *c = &answer->waits;
	const struct wire_rows rows = { c->rows, c->n };

	if (!c->has_reply)
		return;
	stuck_entries_init(&out->entries, &view, &rows);
	out->v = must(calloc(out->entries.n + 1, sizeof(*out->v)));
	for (size_t i = 0; i < out->entries.n; i++) {
		const struct stuck_entry *entry = &out->entries.v[i];

		out->v[i] = row_of(answer, c, NULL, entry->rows[0]);
		out->v[i].entry = entry;
	}
	out->n = out->entries.n;
}

void top_rows_init(struct top_rows *out, const struct top_answer *answer)
{
	const struct top_state *asked = &answer->question.state;
	const size_t most = (size_t)answer->question.top;

	*out = (struct top_rows){ 0 };
	if (top_is_folded(asked)) {
		add_entries(out, answer);
		return;
	}
	switch (asked->tab) {
	case TAB_OVERVIEW:
		add_overview(out, answer, most);
		break;
	case TAB_RUNNABLE:
		add_part(out, answer, &answer->waits, PART_RUNNABLE, most);
		break;
	default:
		add_part(out, answer, &answer->waits, NULL, most);
		add_part(out, answer, &answer->samples, NULL, most);
		add_part(out, answer, &answer->io, NULL, most);
		break;
	}
}

void top_rows_fini(struct top_rows *rows)
{
	free(rows->v);
	stuck_entries_fini(&rows->entries);
	*rows = (struct top_rows){ 0 };
}

bool top_row_is_urgent(const struct top_row *row)
{
	return row->row->urgent == 1 || (row->entry && row->entry->urgency >= URGENT_HELD);
}

/* Returns a row's function: on a CPU what runs, else the program's own or that of the kernel. */
static char *function_of(const struct wire_row *row, bool is_sample)
{
	static const struct view view = { .is_short = true };
	bool has_kernel = row->kernel && row->kernel->frames.n > 0,
	     has_user = row->user && row->user->frames.n > 0;
	_cleanup_(freep) char *label = NULL;
	char *function;

	/* A row by line has no stacks. Where a sample has both, the program's own function tells
	 * more. */
	if (is_sample && has_kernel != has_user && row->own != 1 && !row->function) {
		label = frame_label(&view, (has_kernel ? row->kernel : row->user)->frames.v,
				    has_kernel);
		return name_escape(label);
	}
	function = row_function(&view, row);
	return function ? function : must(strdup(""));
}

static void put_io(FILE *out, const struct wire_io *io)
{
	fprintf(out, "%s %s", io->layer, io->op);
	if (io->device)
		fprintf(out, " %s", io->device);
	if (io->p99_ns != WIRE_ABSENT)
		fprintf(out, ", p99 %s", ns_text(io->p99_ns));
}

/* Prints who keeps the row from going on, if it is known. */
static void put_culprit(FILE *out, const struct top_row *from)
{
	const struct wire_row *row = from->row;
	const bool is_looked_up = row->holders.n > 0 || row->holders_missed == 1;
	_cleanup_(freep) char *by = NULL, *fit = NULL;

	if (from->is_ready)
		by = row->ran_before ? culprit_name(row->ran_before, false) : NULL;
	else
		by = is_looked_up ? row_holders(row, from->end) : row_held_up_by(row);
	if (!by)
		return;
	/* The name stays, and not the time at which it was known. */
	fit = row->holders.n > 0 ? cell_fit_holder(by, HOLDER) : TAKE(by);
	fprintf(out, " %s %s",
		from->is_ready ? "longest behind"
		: is_looked_up ? "<-"
			       : "<- held up by",
		fit);
}

/* Returns what the row is about: the reason with its object and holder, and the function. */
static char *what_text(const struct top_row *from)
{
	const struct wire_row *row = from->row;
	_cleanup_(freep) char *function = function_of(row, from->is_sample), *raw = NULL;
	_cleanup_(freep) char *why = from->is_sample || row->io ? NULL : row_why(row);
	/* Where a row has several reasons, the one with the most time is named. */
	const char *reason = row->reasons.n > 0 ? row->reasons.v[0].reason : row->reason;
	bool has_reason = reason && strcmp(reason, "unknown") != 0;
	size_t size;
	FILE *out = must(open_memstream(&raw, &size));

	if (row->io)
		put_io(out, row->io);
	if (has_reason)
		fprintf(out, "%s%s", reason, row->reasons.n > 1 ? "+" : "");
	else if (why && row->own != 1)
		fputs(why, out);
	if (row->deadlock == 1)
		fputs(" DEADLOCK", out);
	/* First the holder: the name of an object may be a path of any length. */
	put_culprit(out, from);
	if (row->object && !from->is_ready)
		fprintf(out, " %s", row->object);
	if (function[0])
		fprintf(out, "%s%s", ftell(out) > 0 ? ": " : "", function);
	if (fclose(out) != 0)
		must(NULL);
	return name_escape(raw);
}

static char *title_text(const struct top_row *from)
{
	const struct wire_row *row = from->row;

	if (from->is_of_all)
		return must(strdup("(all processes)"));
	if (from->entry)
		return entry_who(from->entry);
	if (from->is_io && !row->key && row->process.pid <= 0 && row->processes == WIRE_ABSENT &&
	    row->folded <= 0)
		return must(strdup(""));
	return row_who(row);
}

/* Writes a text, cut and padded to `width` columns. */
static void put_cell(FILE *out, const char *text, size_t width, bool is_left)
{
	_cleanup_(freep) char *fit = text_fit(text, width);
	size_t columns = text_columns(fit), blanks = width > columns ? width - columns : 0;

	if (is_left)
		fputs(fit, out);
	fprintf(out, "%*s", (int)blanks, "");
	if (!is_left)
		fputs(fit, out);
}

static void put_number(FILE *out, const char *text, size_t width)
{
	put_cell(out, text, width - 1, false);
	fputc(' ', out);
}

/* Puts a time as 19min, nothing for none. Of a longer text the middle would be cut. */
static void put_time(FILE *out, int64_t ns, const char *doubt)
{
	_cleanup_(freep) char *text = table_time("", ns, doubt);

	put_number(out, ns > 0 ? text : "", TIME);
}

/* The columns before the title, and how wide the title is. */
struct layout {
	bool has_class, has_change, has_longest, has_count, has_average;
	size_t title, what;
};

static struct layout layout_of(enum tab tab, bool has_change, size_t columns)
{
	/* What has not ended has its age as its time, and no average. */
	bool is_stuck = tab == TAB_STUCK, has_class = tab == TAB_OVERVIEW;
	struct layout layout = {
		.has_class = has_class,
		.has_change = has_change,
		.has_longest = !is_stuck && columns >= LONGEST_FROM,
		.has_count = columns >= (is_stuck ? LONGEST_FROM : COUNT_FROM),
		.has_average = !is_stuck && columns >= AVERAGE_FROM,
	};
	size_t used = SHARE + TIME, left;

	used += has_class ? CLASS : 0;
	used += has_change ? CHANGE : 0;
	used += layout.has_average ? TIME : 0;
	used += layout.has_longest ? TIME : 0;
	used += layout.has_count ? COUNT : 0;
	left = columns > used ? columns - used : 0;
	layout.title = left * 2 / 5;
	if (layout.title < TITLE_MIN)
		layout.title = left < TITLE_MIN ? left : TITLE_MIN;
	if (layout.title > TITLE_MAX)
		layout.title = TITLE_MAX;
	layout.what = left > layout.title + 1 ? left - layout.title - 1 : 0;
	return layout;
}

static void put_texts(FILE *out, const struct layout *layout, const char *title, const char *what)
{
	_cleanup_(freep) char *who = text_fit_tail(title, layout->title);

	put_cell(out, who, layout->title, true);
	if (layout->what > 0) {
		_cleanup_(freep) char *fit = text_begin(what, layout->what);

		fprintf(out, " %s", fit);
	}
}

char *top_heading(enum tab tab, bool has_base, size_t columns)
{
	const struct layout layout = layout_of(tab, has_base, columns);
	bool is_stuck = tab == TAB_STUCK;
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	if (layout.has_class)
		put_cell(out, "", CLASS, true);
	put_number(out, is_stuck ? "STATE" : "SHARE", SHARE);
	put_number(out, is_stuck ? "FOR" : "TOTAL", TIME);
	if (layout.has_change)
		put_number(out, "CHANGE", CHANGE);
	if (layout.has_average)
		put_number(out, "AVERAGE", TIME);
	if (layout.has_longest)
		put_number(out, "LONGEST", TIME);
	if (layout.has_count)
		put_number(out, is_stuck ? "THREADS" : "COUNT", COUNT);
	put_texts(out, &layout, "PROCESS",
		  tab == TAB_ON_CPU	? "FUNCTION"
		  : tab == TAB_IO	? "OPERATION"
		  : tab == TAB_RUNNABLE ? "BEFORE THAT, BEHIND: FUNCTION"
					: "REASON: FUNCTION");
	if (fclose(out) != 0)
		must(NULL);
	return must(text);
}

static void put_change(FILE *out, int64_t change)
{
	_cleanup_(freep) char *text =
		table_time(change < 0 ? "-" : "+", change < 0 ? -change : change, "");

	put_number(out, text, CHANGE);
}

static void put_lengths(FILE *out, const struct layout *layout, const struct top_row *row)
{
	const struct wire_row *from = row->row;
	const int64_t n = from->count + (from->open > 0 ? from->open : 0);
	const int64_t ns = row->is_stuck ? from->total_ns : row->value;

	if (layout->has_average)
		put_time(out, !row->is_sample && n > 0 ? ns / n : 0, "");
	if (layout->has_longest)
		put_time(out, row->has_longest ? from->max_ns : 0, "");
	if (layout->has_count)
		put_number(out, count_text(row->entry ? (long long)row->entry->waits : n), COUNT);
}

char *top_row_text(const struct top_row *row, const struct top_base *base, int64_t length,
		   size_t columns)
{
	const struct layout layout = layout_of(row->asked->tab, base != NULL, columns);
	_cleanup_(freep) char *title = title_text(row), *what = what_text(row);
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	if (layout.has_class)
		put_cell(out, row->class, CLASS, true);
	put_number(out,
		   !row->is_stuck    ? share_text(row->value, row->whole)
		   : row->row->state ? row->row->state
				     : "",
		   SHARE);
	put_time(out, row->value, row->entry && row->entry->urgency == URGENT_DOUBT ? "?" : "");
	if (base)
		put_change(out, top_base_change(base, row, length));
	put_lengths(out, &layout, row);
	put_texts(out, &layout, title, what);
	if (fclose(out) != 0)
		must(NULL);
	return must(text);
}
