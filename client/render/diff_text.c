/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/cell.h"
#include "client/render/comments.h"
#include "client/render/coverage.h"
#include "client/render/diff.h"
#include "client/render/head.h"
#include "client/render/table.h"
#include "common/base.h"

enum { FIGURE_MAX = 64, PATH_INDENT = 4 };

/* A mark for estimates, the change, before, after, and after as a multiple of before. */
#define COLUMNS "%s%-11s %11s %11s  %7s  "

/* Writes a value, as "1.2 s" or "1,234". */
static void value_text(const struct diff *diff, int64_t value, char out[static FIGURE_MAX])
{
	snprintf(out, FIGURE_MAX, "%s", diff_has_calls(diff) ? count_text(value) : ns_text(value));
}

/* Writes a change with its sign. */
static void change_text(const struct diff *diff, int64_t change, char out[static FIGURE_MAX])
{
	char value[FIGURE_MAX];

	value_text(diff, change < 0 ? -change : change, value);
	snprintf(out, FIGURE_MAX, "%s%.*s",
		 change > 0   ? "+"
		 : change < 0 ? "-"
			      : "",
		 FIGURE_MAX - 2, value);
}

/* Writes how many times the base the new value is, as "x3.01"; "new" or "gone" if one is 0. */
static void ratio_text(int64_t base, int64_t value, char out[static FIGURE_MAX])
{
	double ratio = base > 0 ? (double)value / (double)base : 0;

	if (base <= 0 || value <= 0)
		snprintf(out, FIGURE_MAX, "%s", base > 0 ? "gone" : value > 0 ? "new" : "-");
	else if (ratio < 0.005)
		snprintf(out, FIGURE_MAX, "<x0.01");
	else
		snprintf(out, FIGURE_MAX, "x%.*f", ratio < 10 ? 2 : ratio < 100 ? 1 : 0, ratio);
}

static int64_t magnitude(int64_t change)
{
	return change < 0 ? -change : change;
}

static const char *sign_of(int64_t change)
{
	return change > 0 ? "+" : change < 0 ? "-" : "";
}

/* Writes how many times the base a row's new value is. A base that was scaled to 0 is not new. */
static void ratio_of_row(const struct diff_row *row, char out[static FIGURE_MAX])
{
	ratio_text(row->value[DIFF_BASE] > 0 && row->scaled == 0 ? 1 : row->scaled,
		   row->value[DIFF_NEW], out);
}

struct labelled {
	const struct view *view;
	const char *label;
};

static void put_missing(void *context, const char *line)
{
	static const char note[] = "note: ";
	const struct labelled *to = context;
	bool is_note = strncmp(line, note, strlen(note)) == 0;

	if (to->view->verbose)
		page_wrap(&to->view->page, STYLE_WARN, to->label, RENDER_LABEL_WIDTH, "%s", line);
	else if (!is_note || !note_is_of_detail(line + strlen(note)))
		head_line(&to->view->page, STYLE_WARN, to->label, "%s", line);
}

/* Prints the range of one answer, how much of it is covered, and what is missing in it. */
static void print_side(const struct diff *diff, enum diff_side side)
{
	const struct wire_snapshot_reply *reply = &diff->sides[side];
	struct labelled to = { diff->view, side == DIFF_BASE ? "base" : "new" };
	_cleanup_(freep) char *summary = comments_summary(reply, false);
	char when[3 * TERM_TIME_MAX];

	range_text(&reply->coverage.used, when, sizeof when);
	page_wrap(&to.view->page, STYLE_PLAIN, to.label, RENDER_LABEL_WIDTH, "%s: %s", when,
		  summary);
	comments_of_missing(reply, put_missing, &to);
}

/* Prints a line for each thing that makes the comparison less than one of equals. */
static void print_doubts(const struct diff *diff)
{
	const struct wire_snapshot_reply *base = &diff->sides[DIFF_BASE];
	const struct wire_snapshot_reply *new = &diff->sides[DIFF_NEW];
	const struct page *page = &diff->view->page;
	const char *length = ns_text(diff->covered[DIFF_NEW]),
		   *base_length = ns_text(diff->covered[DIFF_BASE]);
	int64_t overlap = diff_overlap(diff);

	/* A difference that the figures do not show is none to the reader. */
	if (strcmp(length, base_length) != 0)
		page_wrap(page, STYLE_PLAIN, "scaled", RENDER_LABEL_WIDTH,
			  "before: as if %s were covered, as after, not %s", length, base_length);
	if (overlap > 0)
		page_wrap(page, STYLE_WARN, "note", RENDER_LABEL_WIDTH,
			  "%s are in both ranges, because ranges have whole windows",
			  ns_text(overlap));
	if (base->min_wait_ns != new->min_wait_ns && base->min_wait_ns > 0 && new->min_wait_ns > 0)
		page_wrap(page, STYLE_WARN, "note", RENDER_LABEL_WIDTH,
			  "waits have stacks from %s on before, and from %s on after",
			  ns_text(base->min_wait_ns), ns_text(new->min_wait_ns));
	if (diff->n_others > 0)
		page_wrap(page, STYLE_WARN, "note", RENDER_LABEL_WIDTH,
			  "%s rows had no room in %d MiB and are one, [others]",
			  count_text((long long)diff->n_others), DIFF_BYTES_MAX >> 20);
}

/* Returns what the sums are of where rows may be parts of others; "" elsewhere. */
static const char *sums_words(const struct diff *diff)
{
	if (!reply_is_iolat(&diff->sides[DIFF_NEW]))
		return "";
	if (!diff->has_lines)
		return "each layer's own";
	return diff->view->layer ? diff->view->layer : "calls and requests";
}

/* True if rows have a column of errors: those by line, if any has an error. */
static bool has_errors(const struct diff *diff)
{
	for (size_t i = 0; diff->has_lines && i < diff->n; i++)
		if (diff->rows[i].error > 0)
			return true;
	return false;
}

/* Says what the column of errors means, if there is one. */
static void print_accuracy(const struct diff *diff)
{
	const struct wire_snapshot_reply *base = &diff->sides[DIFF_BASE],
					 *new = &diff->sides[DIFF_NEW];
	int64_t below_ns = new->sample_below_ns > base->sample_below_ns ? new->sample_below_ns
									: base->sample_below_ns;

	if (!has_errors(diff))
		return;
	if (reply_is_sampled(new))
		head_line(&diff->view->page, STYLE_PLAIN, "accuracy",
			  "error of a change: 2 sigma of the number of samples");
	else if (below_ns > 0)
		head_line(&diff->view->page, STYLE_PLAIN, "accuracy",
			  "error of a change: 2 sigma; %s under %s sampled%s%s",
			  reply_is_iolat(new) ? "operations" : "waits", ns_text(below_ns),
			  new->fleet ? "" : "; exact: record ", new->fleet ? "" : new->probe);
}

static void print_head(const struct diff *diff)
{
	const char *sums = sums_words(diff);
	const struct page *page = &diff->view->page;
	char before[FIGURE_MAX], after[FIGURE_MAX], change[FIGURE_MAX], ratio[FIGURE_MAX];

	print_side(diff, DIFF_BASE);
	print_side(diff, DIFF_NEW);
	print_doubts(diff);
	value_text(diff, diff->scaled_total, before);
	value_text(diff, diff->total[DIFF_NEW], after);
	change_text(diff, diff->total[DIFF_NEW] - diff->scaled_total, change);
	ratio_text(diff->scaled_total, diff->total[DIFF_NEW], ratio);
	print_accuracy(diff);
	head_line(page, STYLE_BOLD, "total", "%s before, %s after: %s, %s%s%s", before, after,
		  change, ratio, sums[0] ? "; " : "", sums);
	if (diff->idle[DIFF_BASE] > 0 || diff->idle[DIFF_NEW] > 0)
		head_line(page, STYLE_PLAIN, "hidden",
			  "idle: %s before, not scaled; %s after (--idle)",
			  ns_text(diff->idle[DIFF_BASE]), ns_text(diff->idle[DIFF_NEW]));
}

/* Prints the head on a view. To be used by head_counted(). */
static void put_head(const struct view *view, const void *context)
{
	struct diff diff = *(const struct diff *)context;

	diff.view = view;
	print_head(&diff);
}

static void print_row(const struct diff *diff, const struct diff_row *row)
{
	const struct page *page = &diff->view->page;
	_cleanup_(freep) char *path = diff_path(diff, row, 0), *line = NULL;
	char before[FIGURE_MAX], after[FIGURE_MAX], change[FIGURE_MAX], ratio[FIGURE_MAX];
	char *rest = strchr(path, ';');

	if (rest)
		*rest++ = '\0';
	value_text(diff, row->scaled, before);
	value_text(diff, row->value[DIFF_NEW], after);
	change_text(diff, row->change, change);
	ratio_of_row(row, ratio);
	if (asprintf(&line, COLUMNS, row->is_estimated ? "~" : " ", change, before, after, ratio) <
	    0)
		line = NULL;
	page_name(page, STYLE_BOLD, 0, must(line), path);
	if (rest)
		page_name(page, STYLE_PLAIN, PATH_INDENT, "", rest);
}

static void print_titles(const struct diff *diff)
{
	bool is_io = reply_is_iolat(&diff->sides[DIFF_NEW]);
	char line[128];

	snprintf(line, sizeof line, COLUMNS, " ", "change", "before", "after", "");
	page_name(&diff->view->page, STYLE_DIM, 0, line,
		  is_io ? "layer; its operation below" : "process; its stack below");
}

enum { WHO_LEAST = 14, WHY_LEAST = 12, FUNCTION_LEAST = 12, WHERE_LEAST = 6, NAMES = 3 };

/* The columns of rows by line: figures, then the names of a path, see PATH_LINE. */
static const struct table_column figure_columns[] = {
	{ "change", 0, 0, NULL }, { "error", 0, 0, NULL }, { "before", 0, 0, NULL },
	{ "after", 0, 0, NULL },  { "", 0, 0, NULL },
};

/* The rates of operations, before and after; only rows of iolat have some. */
static const struct table_column rate_columns[] = {
	{ "MB/s", 0, 1, NULL },
	{ "after", 0, 1, NULL },
};

static const struct table_column line_names[NAMES] = {
	{ "process", WHO_LEAST, 0, NULL },
	{ "waits for", WHY_LEAST, 0, cell_fit_why },
	{ "function", FUNCTION_LEAST, 1, NULL },
};

static const struct table_column sample_names[NAMES] = {
	{ "process", WHO_LEAST, 0, NULL },
	{ "function", FUNCTION_LEAST, 1, NULL },
	{ "", 0, 0, NULL },
};

static const struct table_column io_names[NAMES] = {
	{ "process", WHO_LEAST, 0, NULL },
	{ "operation", WHY_LEAST, 0, NULL },
	{ "where", WHERE_LEAST, 2, NULL },
};

/* The columns of rows that are of all processes. */
static const struct table_column operation_names[NAMES] = {
	{ "operation", WHY_LEAST, 0, NULL },
	{ "where", WHERE_LEAST, 2, NULL },
	{ "", 0, 0, NULL },
};

static const struct table_column *names_of(const struct diff *diff)
{
	const struct wire_snapshot_reply *new = &diff->sides[DIFF_NEW];
	const char *by = diff->view->by;

	if (reply_is_iolat(new))
		return by && strcmp(by, "operation") == 0 ? operation_names : io_names;
	return reply_is_sampled(new) ? sample_names : line_names;
}

/* Adds a row by line to the table. */
static void add_line(struct table *table, const struct diff *diff, const struct diff_row *row)
{
	const char *about = row->is_estimated ? "~" : "";
	char **cells = table_add(table, STYLE_PLAIN)->cells, ratio[FIGURE_MAX];
	_cleanup_(freep) char *change = table_time("", magnitude(row->change), "");
	size_t n = diff_frames(diff, row);

	ratio_of_row(row, ratio);
	*cells++ = must_printf("%s%s%s", about, sign_of(row->change), change);
	*cells++ = row->error > 0 ? table_time("", row->error, "") : NULL;
	*cells++ = table_time(row->scaled != 0 ? about : "", row->scaled, "");
	*cells++ = table_time(row->value[DIFF_NEW] != 0 ? about : "", row->value[DIFF_NEW], "");
	*cells++ = must(strdup(ratio));
	for (enum diff_side side = 0; side < DIFF_SIDES; side++)
		*cells++ = table_rate(row->bytes[side], diff->covered[side]);
	for (size_t i = 0; i < n && i < NAMES; i++)
		*cells++ = must(strdup(diff_frame(diff, row, i)));
}

/* Prints the first rows, one line each. */
static void print_lines(const struct diff *diff, size_t top)
{
	enum { FIGURES = ARRAY_SIZE(figure_columns), RATES = ARRAY_SIZE(rate_columns) };
	struct table_column columns[FIGURES + RATES + NAMES], *names = columns + FIGURES + RATES;
	struct table table;

	memcpy(columns, figure_columns, sizeof figure_columns);
	memcpy(columns + FIGURES, rate_columns, sizeof rate_columns);
	memcpy(names, names_of(diff), sizeof line_names);
	if (reply_has_wakers(&diff->sides[DIFF_NEW]))
		names[NAMES - 1].head = "woken by";
	if (diff->view->by && strcmp(diff->view->by, "line") != 0)
		names[0].head = diff->view->by;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < top; i++)
		add_line(&table, diff, diff_row_at(diff, top, i));
	table_print(&table, &diff->view->page, true, false);
	table_fini(&table);
}

static void print_stacks(const struct diff *diff, size_t top)
{
	print_titles(diff);
	for (size_t i = 0; i < top; i++)
		print_row(diff, diff_row_at(diff, top, i));
}

void diff_print_text(const struct diff *diff)
{
	const struct view *view = diff->view;
	size_t head = head_counted(view, put_head, diff), top;
	struct diff shown = *diff;
	struct view inner = *view;
	struct diff_row rest;
	char text[FIGURE_MAX];

	/* On a terminal, rows of one line each fill the screen: with their head and a last line. */
	if (diff->has_lines && view->height > 0)
		inner.top = view->height > head + 3 ? (int64_t)(view->height - head - 2) : 1;
	shown.view = &inner;
	top = diff_top(&shown, &rest);
	change_text(diff, rest.change, text);
	if (diff->n == 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "no rows in either range");
	else if (diff->has_lines)
		print_lines(diff, top);
	else
		print_stacks(diff, top);
	if (top < diff->n || (diff->has_lines && diff->n > 0))
		head_line(&view->page, STYLE_PLAIN, "rows", "%s of %s%s%s%s%s",
			  count_text((long long)top), count_text((long long)diff->n),
			  top < diff->n ? "; the rest " : "", top < diff->n ? text : "",
			  top < diff->n ? "; all: -n 0" : "",
			  diff->has_lines ? "; stacks: --stacks" : "");
}
