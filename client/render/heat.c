/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/iolat.h"
#include "client/render/table.h"
#include "common/base.h"

enum { LABEL_WIDTH = 8, COLUMNS_MIN = 10, COLUMNS_MAX = 240, MAPS = 6 };

/*
 * The characters for the number of operations in a cell of the map, from few to many, on a
 * logarithmic scale.
 */
static const char shades[] = ".:-=+*#%@";

/* The time axis of a map. Each column of the map stands for the same length of time. */
struct axis {
	int64_t start_ns;
	int64_t end_ns;
	/*
	 * median time from the start of one window to that of the next; 0: there is only one window
	 */
	int64_t step_ns;
	size_t columns;
};

/* The map of latencies over time for one kind of operation in one layer. */
struct heat {
	const struct wire_io *io;
	int64_t count;
	int64_t total_ns;
	/*
	 * The number of operations in each cell: by bucket of latency and by column of the time
	 * axis.
	 */
	int64_t cells[IO_HIST_BUCKETS][COLUMNS_MAX];
};

static int compare_ns(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * Returns the median time from the start of one window to that of the next, in ns; 0 if there is
 * only one window.
 */
static int64_t window_step(const struct wire_snapshot_reply *reply)
{
	int64_t *starts = must(calloc(reply->rows.n + 1, sizeof(*starts))), step = 0;
	size_t i, n = 0, steps = 0;

	for (i = 0; i < reply->rows.n; i++)
		if (reply->rows.v[i].window != WIRE_ABSENT)
			starts[n++] = reply->rows.v[i].window;
	qsort(starts, n, sizeof(*starts), compare_ns);
	for (i = 1; i < n; i++)
		if (starts[i] > starts[i - 1])
			starts[steps++] = starts[i] - starts[i - 1];
	qsort(starts, steps, sizeof(*starts), compare_ns);
	if (steps)
		step = starts[(steps - 1) / 2];
	free(starts);
	return step;
}

/*
 * Returns an axis with one column for each window, or with fewer if the page is too narrow. More
 * columns than windows would leave columns empty.
 */
static struct axis axis_make(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_range *used = &reply->coverage.used;
	int64_t step = window_step(reply), length = used->end - used->start, wanted;
	size_t room = view->page.width > LABEL_WIDTH + COLUMNS_MIN + 3
			      ? view->page.width - LABEL_WIDTH - 3
			      : COLUMNS_MIN;

	if (room > COLUMNS_MAX)
		room = COLUMNS_MAX;
	wanted = step > 0 && length > 0 ? (length + step / 2) / step : 1;
	return (struct axis){
		.start_ns = used->start,
		.end_ns = used->end,
		.step_ns = step,
		.columns = wanted < 1		     ? 1
			   : (uint64_t)wanted < room ? (size_t)wanted
						     : room,
	};
}

/*
 * Returns the column for a window: the column that contains the middle of the window. `window` is
 * the time at which the window starts.
 */
static size_t axis_column(const struct axis *axis, int64_t window)
{
	double length = (double)(axis->end_ns - axis->start_ns), at;

	if (window <= axis->start_ns || length <= 0)
		return 0;
	at = (double)(window - axis->start_ns + axis->step_ns / 2) / length * (double)axis->columns;
	return at < (double)axis->columns ? (size_t)at : axis->columns - 1;
}

static bool heat_is_of(const struct heat *heat, const struct wire_io *io)
{
	return strcmp(heat->io->layer, io->layer) == 0 && strcmp(heat->io->op, io->op) == 0;
}

static void heat_add(struct heat *heat, const struct axis *axis, const struct wire_row *row)
{
	size_t column = axis_column(axis, row->window);

	heat->count += row->count;
	heat->total_ns += row->total_ns;
	for (size_t i = 0; i < row->buckets.n && i < IO_HIST_BUCKETS; i++)
		heat->cells[i][column] += row->buckets.v[i];
}

/*
 * Makes a map for each kind of operation in each layer. Stores the array of maps in *out and
 * returns their number. The caller frees the maps and the array.
 */
static size_t heats_make(const struct wire_snapshot_reply *reply, const struct axis *axis,
			 struct heat ***out)
{
	struct heat **heats = must(calloc(reply->rows.n + 1, sizeof(struct heat *)));
	size_t n = 0, k;

	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];

		if (!row->io || row->window == WIRE_ABSENT || row->count == 0)
			continue;
		for (k = 0; k < n && !heat_is_of(heats[k], row->io); k++)
			;
		if (k == n) {
			heats[n] = must(calloc(1, sizeof(*heats[n])));
			heats[n++]->io = row->io;
		}
		heat_add(heats[k], axis, row);
	}
	*out = heats;
	return n;
}

static int compare_heats(const void *a, const void *b)
{
	const struct heat *const *x = a, *const *y = b;

	return (*x)->total_ns < (*y)->total_ns ? 1 : (*x)->total_ns > (*y)->total_ns ? -1 : 0;
}

/*
 * Returns an approximation of log2(n), exact for powers of two and linear between them. n is at
 * least 1.
 */
static double log2_near(int64_t n)
{
	int whole = 63 - __builtin_clzll((uint64_t)n);

	return whole + (double)n / (double)(UINT64_C(1) << whole) - 1;
}

static char shade(int64_t count, int64_t most)
{
	enum { LAST = sizeof(shades) - 2 };
	double part;

	if (count <= 0)
		return ' ';
	part = most > 1 ? log2_near(count) / log2_near(most) : 1;
	return shades[(size_t)(part * LAST + 0.5)];
}

/*
 * Finds the first and the last bucket of the map that have operations, and the largest cell.
 * Returns false if all cells are 0.
 */
static bool heat_extent(const struct heat *heat, const struct axis *axis, size_t *first,
			size_t *last, int64_t *most)
{
	*first = IO_HIST_BUCKETS;
	*most = 0;
	for (size_t i = 0; i < IO_HIST_BUCKETS; i++) {
		for (size_t k = 0; k < axis->columns; k++) {
			if (heat->cells[i][k] == 0)
				continue;
			*first = i < *first ? i : *first;
			*last = i;
			*most = heat->cells[i][k] > *most ? heat->cells[i][k] : *most;
		}
	}
	return *most > 0;
}

static void render_line(const struct view *view, const struct heat *heat, const struct axis *axis,
			size_t bucket, int64_t most)
{
	char line[COLUMNS_MAX + 1], label[32];

	for (size_t k = 0; k < axis->columns; k++)
		line[k] = shade(heat->cells[bucket][k], most);
	line[axis->columns] = '\0';
	fprintf(view->page.out, "%*s |%s|\n", LABEL_WIDTH,
		io_figure(bucket ? INT64_C(1) << bucket : 0, view->milliseconds, label), line);
}

static void render_times(const struct view *view, const struct axis *axis)
{
	char start[TERM_TIME_MAX], end[TERM_TIME_MAX];
	size_t room = axis->columns, wide;

	time_format(axis->start_ns,
		    time_same_day(axis->start_ns, axis->end_ns) ? TIME_CLOCK : TIME_DAY, start);
	time_format(axis->end_ns, TIME_CLOCK, end);
	wide = strlen(start) + 2 + strlen(end);
	fprintf(view->page.out, "%*s  %s%*s%s\n", LABEL_WIDTH, "", start,
		room > wide ? (int)(room - wide + 2) : 2, "", end);
}

static void render_heat(const struct view *view, const struct heat *heat, const struct axis *axis)
{
	_cleanup_(freep) char *layer = name_escape(heat->io->layer),
			      *op = name_escape(heat->io->op);
	_cleanup_(freep) char *title = NULL, *right = NULL;
	size_t first, last = 0;
	int64_t most;
	int r;

	if (!heat_extent(heat, axis, &first, &last, &most))
		return;
	r = asprintf(&title, "%s %s", layer, op);
	must(r < 0 ? NULL : title);
	r = asprintf(&right, "%s, %s in all, %s in the darkest", count_text(heat->count),
		     ns_text(heat->total_ns), count_text(most));
	must(r < 0 ? NULL : right);
	page_break(&view->page);
	page_pair(&view->page, STYLE_BOLD, title, right);
	for (size_t i = last + 1; i-- > first;)
		render_line(view, heat, axis, i, most);
	render_times(view, axis);
}

void render_heats(const struct view *view, const struct wire_snapshot_reply *reply)
{
	struct axis axis = axis_make(view, reply);
	int64_t length = axis.end_ns - axis.start_ns;
	struct heat **heats;
	size_t n = heats_make(reply, &axis, &heats),
	       top = view->top_is_given ? (size_t)view->top : MAPS;

	qsort(heats, n, sizeof(*heats), compare_heats);
	for (size_t i = 0; i < n && (!top || i < top); i++)
		render_heat(view, heats[i], &axis);
	page_break(&view->page);
	if (n == 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "no operations");
	else
		page_wrap(&view->page, STYLE_DIM, "", 0,
			  "a column is %s, a line the latencies from its figure up to twice that; "
			  "\"%s\" from one operation to the most, by logarithm",
			  ns_text(length / (int64_t)axis.columns), shades);
	if (top && n > top)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%zu more: -n 0 shows all", n - top);
	for (size_t i = 0; i < n; i++)
		free(heats[i]);
	free(heats);
}
