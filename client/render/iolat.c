/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/iolat.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/table.h"
#include "common/base.h"
#include "common/io_words.h"

enum { STARS = 40, MS_SHIFT = 20 };

/*
 * Widths of the table's columns, in characters. OP_WIDTH is for the operation. PLACE_WIDTH is for
 * the file system and device; that column is never narrower than PLACE_LEAST. FIGURES_WIDTH is for
 * all columns of numbers together, with the blanks between all columns.
 */
enum { OP_WIDTH = 9, PLACE_WIDTH = 13, PLACE_LEAST = 8, FIGURES_WIDTH = 54 };

static const char *const layers[] = {
#define X(layer, word) word,
	IO_LAYER_WORDS(X)
#undef X
};

/* A number for each kind of operation. The table of system calls below uses these numbers. */
enum op {
#define X(op, word) OP_##op,
	IO_OP_WORDS(X)
#undef X
};

static const char *const op_words[] = {
#define X(op, word) [OP_##op] = word,
	IO_OP_WORDS(X)
#undef X
};

static const struct {
	const char *name;
	enum op op;
} calls[] = {
#define X(name, op, file) { #name, OP_##op },
	IO_CALL_WORDS(X)
#undef X
};

bool io_is_part_of_request(const char *layer)
{
	return strcmp(layer, "queue") == 0 || strcmp(layer, "device") == 0 ||
	       strcmp(layer, "throttled") == 0;
}

char *io_target(const struct wire_io *io)
{
	bool has_both = io->filesystem && io->device;
	_cleanup_(freep) char *text = NULL;
	int r = asprintf(&text, "%s%s%s", io->filesystem ? io->filesystem : "", has_both ? " " : "",
			 io->device ? io->device : "");

	must(r < 0 ? NULL : text);
	return name_escape(text[0] ? text : "-");
}

int64_t io_moved(const struct wire_io *io)
{
	return strcmp(io->op, "discard") == 0 ? 0 : io->bytes;
}

const char *io_kind(const struct wire_io *io)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (strcmp(calls[i].name, io->op) == 0)
			return op_words[calls[i].op];
	return io->op;
}

char *io_operation(const struct wire_io *io)
{
	_cleanup_(freep) char *op = name_escape(io->op), *layer = name_escape(io->layer);

	if (strcmp(io->layer, "block") == 0)
		return must_printf("disk %s", op);
	/* Rows of a request and of its parts may stand side by side. */
	if (io_is_part_of_request(io->layer))
		return must_printf("%s %s", layer, op);
	return TAKE(op);
}

size_t histogram_to_ms(const int64_t *buckets, size_t n, int64_t ms[static IO_HIST_BUCKETS])
{
	memset(ms, 0, IO_HIST_BUCKETS * sizeof(*ms));
	for (size_t i = 0; i < n && i < IO_HIST_BUCKETS; i++)
		ms[i > MS_SHIFT ? i - MS_SHIFT : 0] += buckets[i];
	return n > MS_SHIFT ? n - MS_SHIFT : n > 0;
}

static void put_stars(FILE *out, int64_t count, int64_t most)
{
	int64_t n = most > 0 ? count * STARS / most : 0;

	for (int64_t i = 0; i < STARS; i++)
		fputc(i < n ? '*' : ' ', out);
}

void render_histogram(FILE *out, const char *label, const int64_t *buckets, size_t n,
		      bool skips_empty)
{
	bool has_begun = !skips_empty;
	int64_t most = 0;
	int width;

	while (n > 0 && buckets[n - 1] == 0)
		n--;
	for (size_t i = 0; i < n; i++)
		if (buckets[i] > most)
			most = buckets[i];
	if (n == 0)
		return;
	width = n > 32 ? 20 : 10;
	fprintf(out, "%*s%-*s : count     distribution\n", width / 2, "", width + width / 2 + 4,
		label);
	for (size_t i = 0; i < n; i++) {
		uint64_t low = i ? UINT64_C(1) << i : 0, high = (UINT64_C(2) << i) - 1;

		has_begun |= buckets[i] > 0;
		if (!has_begun)
			continue;
		fprintf(out, "%*" PRIu64 " -> %-*" PRIu64 " : %-8" PRId64 " |", width, low, width,
			high, buckets[i]);
		put_stars(out, buckets[i], most);
		fputs("|\n", out);
	}
}

/* The columns of figures, in the order in which they are printed. */
enum figure {
	FIGURE_COUNT,
	FIGURE_TOTAL,
	FIGURE_P50,
	FIGURE_P90,
	FIGURE_P99,
	FIGURE_LONGEST,
	FIGURES
};

static const int figure_widths[FIGURES] = { 9, 8, 7, 7, 7, 7 };

/*
 * The widths of the columns for the operation (op) and for its file system and device (place), and
 * which figures there are.
 */
struct widths {
	int op, place;
	bool has[FIGURES];
};

/* Leaves out figures, those that matter least first, until `room` columns are left for the place.
 */
static void leave_out_figures(struct widths *widths, int *room)
{
	static const enum figure order[] = { FIGURE_P50, FIGURE_P90, FIGURE_COUNT, FIGURE_LONGEST };

	for (size_t i = 0; i < ARRAY_SIZE(order) && *room < PLACE_LEAST; i++) {
		widths->has[order[i]] = false;
		*room += figure_widths[order[i]] + 1;
	}
}

/*
 * Returns widths at which no text is truncated. On a terminal, however, the column for file system
 * and device gets only the room that the other columns leave.
 */
static struct widths widths_of(const struct view *view, const struct wire_rows *rows)
{
	struct widths widths = { .op = OP_WIDTH,
				 .place = PLACE_WIDTH,
				 .has = { true, true, true, true, true, true } };
	int room;

	for (size_t i = 0; i < rows->n; i++) {
		const struct wire_io *io = rows->v[i].io;
		_cleanup_(freep) char *place = io ? io_target(io) : NULL;
		_cleanup_(freep) char *name = io ? name_escape(io->op) : NULL;
		int op = io ? (int)text_columns(name) : 0,
		    columns = io ? (int)text_columns(place) : 0;

		widths.op = op > widths.op ? op : widths.op;
		widths.place = columns > widths.place ? columns : widths.place;
	}
	room = (int)view->page.width - widths.op - FIGURES_WIDTH;
	if (view->page.cuts_names)
		leave_out_figures(&widths, &room);
	if (view->page.cuts_names && widths.place > room)
		widths.place = room > PLACE_LEAST ? room : PLACE_LEAST;
	return widths;
}

static void put_padded(FILE *out, const char *text, int columns)
{
	int width = (int)text_columns(text);

	fprintf(out, "%s%*s", text, width < columns ? columns - width : 0, "");
}

/* Prints the columns of figures, and ends the line. */
static void put_figures(FILE *out, const struct widths *widths, const char *const figures[FIGURES])
{
	for (size_t i = 0; i < FIGURES; i++)
		if (widths->has[i])
			fprintf(out, " %*s", figure_widths[i], figures[i]);
	fputc('\n', out);
}

static void render_row(const struct view *view, const struct wire_row *row, struct widths widths)
{
	_cleanup_(freep) char *place = io_target(row->io), *op = name_escape(row->io->op),
			      *where = NULL;
	char text[5][32], count[40], total[40];
	bool ms = view->milliseconds;

	snprintf(count, sizeof count, "%s%s", row_about(row), count_text(row->count));
	snprintf(total, sizeof total, "%s%s", row_about(row),
		 io_figure(row->total_ns, ms, text[0]));
	where = text_fit(place, (size_t)widths.place);
	fputs("  ", view->page.out);
	put_padded(view->page.out, op, widths.op);
	fputc(' ', view->page.out);
	put_padded(view->page.out, where, widths.place);
	put_figures(view->page.out, &widths,
		    (const char *const[FIGURES]){ count, total,
						  io_figure(row->io->p50_ns, ms, text[1]),
						  io_figure(row->io->p90_ns, ms, text[2]),
						  io_figure(row->io->p99_ns, ms, text[3]),
						  io_figure(row->max_ns, ms, text[4]) });
}

/*
 * Prints the numbers of a row for which the table has no columns: asynchronous and unfinished
 * operations, merged requests and errors.
 */
static void render_extras(const struct view *view, const struct wire_row *row)
{
	const struct wire_io *io = row->io;

	if (io->async > 0)
		page_wrap(&view->page, STYLE_WARN, "", 4,
			  "%s went on after the call returned: their time is not known here",
			  count_text(io->async));
	if (view->verbose && (io->merges > 0 || io->requeues > 0))
		page_wrap(&view->page, STYLE_PLAIN, "", 4,
			  "%s merged, %s returned to the queue by the driver",
			  count_text(io->merges), count_text(io->requeues));
	if (io->open > 0)
		page_wrap(&view->page, STYLE_WARN, "", 4,
			  "%s %s not ended; the oldest began %s ago (thread %" PRId64 ")",
			  count_text(io->open), io->open == 1 ? "has" : "have",
			  ns_text(io->oldest_ns), io->oldest_tid);
	if (io->errors > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 4, "%s%s failed", row_about(row),
			  count_text(io->errors));
}

/*
 * True if a histogram is printed for the row. Rows of the layers block and queue have a histogram
 * only with --queued or --layer.
 */
static bool has_histogram(const struct view *view, const struct wire_io *io)
{
	if (!view->histograms)
		return false;
	if (view->layer)
		return true;
	if (strcmp(io->layer, "block") == 0 || strcmp(io->layer, "queue") == 0)
		return view->queued;
	return true;
}

static void render_row_histogram(const struct view *view, const struct wire_row *row)
{
	int64_t ms[IO_HIST_BUCKETS];
	size_t n;

	if (!has_histogram(view, row->io) || row->count == 0)
		return;
	fputc('\n', view->page.out);
	if (view->milliseconds) {
		n = histogram_to_ms(row->buckets.v, row->buckets.n, ms);
		render_histogram(view->page.out, *row_about(row) ? "msecs ~" : "msecs", ms, n,
				 true);
	} else {
		render_histogram(view->page.out, *row_about(row) ? "nsecs ~" : "nsecs",
				 row->buckets.v, row->buckets.n, true);
	}
	fputc('\n', view->page.out);
}

static void render_owner(const struct view *view, const struct wire_row *row)
{
	_cleanup_(freep) char *comm = name_escape(row->process.comm);

	/* A row with the pid 0 stands for several processes. */
	if ((view->by_process || row->kernel || row->user) && row->folded > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 4, "%s (%s process%s)", comm,
			  count_text(row->folded), row->folded == 1 ? "" : "es");
	else if ((view->by_process || row->kernel || row->user) && !row->process.pid)
		page_wrap(&view->page, STYLE_PLAIN, "", 4, "%s", comm);
	else if (view->by_process || row->kernel || row->user)
		page_wrap(&view->page, STYLE_PLAIN, "", 4, "%s (pid %" PRId64 ")", comm,
			  row->process.pid);
	if (row->kernel || row->user)
		render_frames(view, row, RENDER_FRAME_INDENT, 0);
}

/* Prints the rows of a layer, `most` at most. Returns how many it has left out. */
static int64_t render_layer(const struct view *view, const struct wire_snapshot_reply *reply,
			    const char *layer, struct widths widths, size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];

		if (!row->io || strcmp(row->io->layer, layer) != 0 || n++ >= most)
			continue;
		if (n == 1)
			page_wrap(&view->page, STYLE_BOLD, "", 0, "%s", layer);
		render_row(view, row, widths);
		render_extras(view, row);
		render_owner(view, row);
		render_row_histogram(view, row);
	}
	return n > most ? (int64_t)(n - most) : 0;
}

/*
 * Returns how many rows of each layer to print: on a screen, as many as fit below the head of the
 * columns and above the two lines at the end, if each of them is one line.
 */
static size_t rows_of_layer(const struct view *view, const struct wire_rows *rows)
{
	size_t n = 0, room = view->height > 3 ? view->height - 3 : 1;

	if (view->height == 0 || view->verbose)
		return SIZE_MAX;
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		for (size_t k = 0; k < rows->n; k++)
			if (rows->v[k].io && strcmp(rows->v[k].io->layer, layers[i]) == 0) {
				n++;
				break;
			}
	return n > 0 && room / n > 2 ? room / n - 1 : 1;
}

void render_iolat(const struct view *view, const struct wire_snapshot_reply *reply)
{
	size_t most = rows_of_layer(view, &reply->rows);
	int64_t more = reply->rest.rows;
	_cleanup_(freep) char *hook = name_escape(reply->hook);
	struct widths widths = widths_of(view, &reply->rows);

	if (view->verbose)
		page_wrap(&view->page, STYLE_PLAIN, "seen", RENDER_LABEL_WIDTH,
			  "%s operation%s of %s%s process%s: %s", count_text(reply->totals.ios),
			  reply->totals.ios == 1 ? "" : "s", fold_at_most(reply->folded),
			  count_text(reply->totals.processes),
			  reply->totals.processes == 1 ? "" : "es", hook);
	if (reply->rows.n == 0) {
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "no operations");
		return;
	}
	fprintf(view->page.out, "  %-*s %-*s", widths.op, "", widths.place, "on");
	put_figures(view->page.out, &widths,
		    (const char *const[FIGURES]){ "count",
						  view->milliseconds ? "total/ms" : "total", "p50~",
						  "p90~", "p99~", "longest" });
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		more += render_layer(view, reply, layers[i], widths, most);
	if (more > 0)
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s more: -n 0 shows all",
			  count_text(more));
	page_wrap(&view->page, STYLE_DIM, "", 0,
		  "p50~, p90~, p99~: estimated from buckets of powers of two%s",
		  view->histograms ? "" : "; -v prints the buckets");
	if (view->verbose && reply->sample_below_ns > 0 &&
	    *sum_about(view, reply, reply->shown.sampled_ns))
		page_wrap(&view->page, STYLE_DIM, "", 0,
			  "~ before a figure: of operations under %s, only some are recorded by "
			  "stack, and stand for all",
			  ns_text(reply->sample_below_ns));
}
