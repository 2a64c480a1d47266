/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "common/array.h"
#include "common/base.h"
#include "proto/wire.h"

/*
 * The number of spaces before a column of text, and before one of figures; and the greatest width
 * of a column where nothing is shortened: one long name does not move the columns of all lines.
 */
enum { TEXT_GAP = 2, FIGURE_GAP = 1, WIDEST = 64 };

void table_init(struct table *table, const struct table_column *columns, size_t n_columns)
{
	*table = (struct table){ .columns = columns, .n_columns = n_columns };
}

void table_fini(struct table *table)
{
	for (size_t i = 0; i < table->n; i++)
		for (size_t c = 0; c < table->n_columns; c++)
			free(table->rows[i].cells[c]);
	free(table->rows);
	*table = (struct table){};
}

struct table_row *table_add(struct table *table, enum style style)
{
	struct table_row *row;

	must(array_reserve(table->rows, table->capacity, table->n + 1) < 0 ? NULL : table);
	row = &table->rows[table->n++];
	*row = (struct table_row){ .style = style };
	return row;
}

/* The columns that are printed, and their widths; a width of 0: the column is left out. */
struct layout {
	size_t widths[TABLE_COLUMNS_MAX];
	bool cuts; /* a text that is wider than its column is shortened */
};

static size_t gap_of(const struct table_column *column)
{
	return column->least > 0 ? TEXT_GAP : FIGURE_GAP;
}

static size_t layout_width(const struct table *table, const struct layout *layout)
{
	size_t width = 0;

	for (size_t c = 0; c < table->n_columns; c++)
		if (layout->widths[c] > 0)
			width += layout->widths[c] + (width > 0 ? gap_of(&table->columns[c]) : 0);
	return width;
}

/* Returns the layout in which nothing is shortened. */
static struct layout layout_natural(const struct table *table)
{
	struct layout layout = {};

	for (size_t c = 0; c < table->n_columns; c++) {
		size_t head = text_columns(table->columns[c].head);

		for (size_t i = 0; i < table->n; i++) {
			const char *cell = table->rows[i].cells[c];
			size_t width = cell ? text_columns(cell) : 0;

			if (width > layout.widths[c])
				layout.widths[c] = width;
		}
		if (layout.widths[c] > 0 && layout.widths[c] < head)
			layout.widths[c] = head;
	}
	return layout;
}

/* Returns how wide the columns are at least, if all texts are shortened. */
static size_t layout_least(const struct table *table, const struct layout *layout)
{
	struct layout least = *layout;

	for (size_t c = 0; c < table->n_columns; c++)
		if (table->columns[c].least > 0 && least.widths[c] > table->columns[c].least)
			least.widths[c] = table->columns[c].least;
	return layout_width(table, &least);
}

/* Leaves out the column that matters least. Returns false if none is left that may be left out. */
static bool layout_drop(const struct table *table, struct layout *layout)
{
	size_t worst = table->n_columns;

	for (size_t c = 0; c < table->n_columns; c++)
		if (layout->widths[c] > 0 && table->columns[c].drop > 0 &&
		    (worst == table->n_columns ||
		     table->columns[c].drop > table->columns[worst].drop))
			worst = c;
	if (worst == table->n_columns)
		return false;
	layout->widths[worst] = 0;
	return true;
}

/*
 * Makes the widest column of text narrower by one. Returns false if none is wider than `least`
 * times its least width, where `least` is 1, or 0 to go below it.
 */
static bool layout_shrink(const struct table *table, struct layout *layout, size_t least)
{
	size_t widest = table->n_columns;

	for (size_t c = 0; c < table->n_columns; c++)
		if (table->columns[c].least > 0 && layout->widths[c] > 1 &&
		    layout->widths[c] > least * table->columns[c].least &&
		    (widest == table->n_columns || layout->widths[c] > layout->widths[widest]))
			widest = c;
	if (widest == table->n_columns)
		return false;
	layout->widths[widest]--;
	return true;
}

/* Makes the layout fit into `width` columns. */
static void layout_fit(const struct table *table, struct layout *layout, size_t width)
{
	while (layout_least(table, layout) > width && layout_drop(table, layout))
		;
	while (layout_width(table, layout) > width && layout_shrink(table, layout, 1))
		;
	while (layout_width(table, layout) > width && layout_shrink(table, layout, 0))
		;
}

/* Returns what a cell says, in at most `width` columns. */
static char *column_fit(const struct table_column *column, const char *text, size_t width)
{
	return column->fit ? column->fit(text, width) : text_fit_tail(text, width);
}

/* Appends a line with the cells to `out`; the last one is not padded. */
static void put_line(FILE *out, const struct table *table, const struct layout *layout,
		     char *const *cells)
{
	size_t pending = 0;
	bool is_first = true;

	for (size_t c = 0; c < table->n_columns; c++) {
		_cleanup_(freep) char *fit = NULL;
		size_t width = layout->widths[c], used, pad;

		if (width == 0)
			continue;
		fit = column_fit(&table->columns[c], cells[c] ? cells[c] : "",
				 layout->cuts ? width : SIZE_MAX);
		used = text_columns(fit);
		pad = used < width ? width - used : 0;
		pending += is_first ? 0 : gap_of(&table->columns[c]);
		is_first = false;
		if (table->columns[c].least == 0)
			pending += pad;
		if (used > 0) {
			fprintf(out, "%*s%s", (int)pending, "", fit);
			pending = 0;
		} else {
			pending += used;
		}
		if (table->columns[c].least > 0)
			pending += pad;
	}
}

static void print_row(const struct table *table, const struct layout *layout,
		      const struct page *page, enum style style, char *const *cells)
{
	_cleanup_(freep) char *line = NULL;
	size_t size;
	FILE *out = must(open_memstream(&line, &size));

	put_line(out, table, layout, cells);
	must(fclose(out) == 0 ? line : NULL);
	page_line(page, style, line);
}

void table_print(const struct table *table, const struct page *page, bool with_head, bool reverse)
{
	struct layout layout = layout_natural(table);
	char *heads[TABLE_COLUMNS_MAX];

	layout.cuts = page->cuts_names;
	if (layout.cuts)
		layout_fit(table, &layout, page->width);
	for (size_t c = 0; !layout.cuts && c < table->n_columns; c++)
		if (layout.widths[c] > WIDEST)
			layout.widths[c] = WIDEST;
	for (size_t c = 0; c < table->n_columns; c++)
		heads[c] = (char *)table->columns[c].head;
	if (with_head && table->n > 0)
		print_row(table, &layout, page, STYLE_DIM, heads);
	for (size_t i = 0; i < table->n; i++) {
		const struct table_row *row = &table->rows[reverse ? table->n - 1 - i : i];

		print_row(table, &layout, page, row->style, row->cells);
	}
}

const char *io_figure(int64_t ns, bool is_ms, char text[static 32])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double value = (double)ns;
	size_t unit = 0;

	if (ns == WIRE_ABSENT)
		return "-";
	if (is_ms) {
		snprintf(text, 32, "%.3f", value / (double)NS_PER_MS);
		return text;
	}
	for (; value >= 999.5 && unit + 1 < ARRAY_SIZE(units); unit++)
		value /= 1000;
	snprintf(text, 32,
		 value >= 99.95 || !unit ? "%.0f%s"
		 : value >= 9.995	 ? "%.1f%s"
					 : "%.2f%s",
		 value, units[unit]);
	return text;
}

char *table_time(const char *about, int64_t ns, const char *more)
{
	double s = (double)ns / (double)NS_PER_S;
	char figure[32], *text = NULL;
	const char *words = figure;
	int r;

	if (s < 99.95)
		words = io_figure(ns, false, figure);
	else if (s < 999.5)
		snprintf(figure, sizeof figure, "%.0fs", s);
	else if (s < 99.5 * 60)
		snprintf(figure, sizeof figure, "%.0fmin", s / 60);
	else if (s < 99.5 * 3600)
		snprintf(figure, sizeof figure, "%.1fh", s / 3600);
	else
		snprintf(figure, sizeof figure, "%.0fd", s / 86400);
	r = asprintf(&text, "%s%s%s", about, words, more);
	return must(r < 0 ? NULL : text);
}

char *table_rate(int64_t bytes, int64_t length_ns)
{
	double rate = length_ns > 0 ? (double)bytes / 1e6 / ((double)length_ns / NS_PER_S) : 0;

	if (bytes <= 0)
		return NULL;
	return rate < 0.05 ? must(strdup("<0.1"))
			   : must_printf(rate < 99.95 ? "%.1f" : "%.0f", rate);
}
