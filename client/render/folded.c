/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/folded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/diff.h"
#include "client/render/formats.h"
#include "client/render/iolat.h"
#include "client/render/parts.h"
#include "client/render/render.h"
#include "common/array.h"
#include "common/base.h"

struct folded_line {
	char *text;
	int64_t ns;  /* the value of the line in ns, which is printed in us; each call of a function
			counts as 1000 ns, and so is printed as 1 */
	size_t rank; /* lines are printed in the order of their ranks */
};

/* The rank of a line is its tower, in the bits from TOWER_SHIFT on, and the number of the line. */
enum { TOWER_SHIFT = 56 };

/*
 * The lines that have been added and not printed yet. When they take LINES_BYTES, those with equal
 * text are merged; if that does not halve them, all are printed. The same text may then be printed
 * again later: programs that read folded lines add them up. Initialised with zeroes.
 */
struct folded {
	struct folded_line *lines;
	size_t n, capacity;
	size_t rank;  /* number of lines that have been added */
	size_t bytes; /* length of the texts of all lines */
	int64_t rest; /* a part of a microsecond that is to be added to the next line, in ns */
};

enum { LINES_BYTES = 4 * 1024 * 1024 };

/*
 * Programs that read folded lines split them at each ; and at the last space. This function
 * therefore prints : for each ; of the name and _ for each space at its end. Escapes invisible
 * characters, as on a terminal.
 */
void folded_put_name(FILE *out, const char *name)
{
	_cleanup_(freep) char *safe = name_escape(name);
	size_t n = strlen(safe);

	for (size_t i = 0; i < n; i++)
		if (safe[i] == ';')
			safe[i] = ':';
	while (n > 0 && safe[n - 1] == ' ')
		safe[--n] = '_';
	fputs(n > 0 ? safe : "[unknown]", out);
}

static void put_frames(FILE *out, const struct view *view, const struct wire_stack *stack,
		       bool is_kernel)
{
	for (size_t i = stack->frames.n; i > 0; i--) {
		_cleanup_(freep) char *label =
			frame_label(view, &stack->frames.v[i - 1], is_kernel);

		fputc(';', out);
		folded_put_name(out, label);
	}
	/* If there are flags but no frames, the stack could not be taken. */
	if (stack->frames.n == 0 && stack->flags.n > 0)
		fputs(is_kernel ? ";[no kernel stack]" : ";[no user stack]", out);
}

static bool has_frames(const struct wire_stack *stack)
{
	return stack && (stack->frames.n > 0 || stack->flags.n > 0);
}

static void put_frames_leaf_first(FILE *out, const struct view *view,
				  const struct wire_stack *stack, bool is_kernel)
{
	for (size_t i = 0; i < stack->frames.n; i++) {
		_cleanup_(freep) char *label = frame_label(view, &stack->frames.v[i], is_kernel);

		fputc(';', out);
		folded_put_name(out, label);
	}
}

/*
 * Prints the stacks of the waker with the leaf first. The leaf, which did the wakeup, is then next
 * to the leaf of the thread that waited.
 */
static void put_waker(FILE *out, const struct view *view, const struct wire_waker *waker)
{
	fputs(";--", out);
	if (waker->kernel)
		put_frames_leaf_first(out, view, waker->kernel, true);
	if (view->delimited && has_frames(waker->user) && has_frames(waker->kernel))
		fputs(";-", out);
	if (waker->user)
		put_frames_leaf_first(out, view, waker->user, false);
	for (size_t i = 0; i < waker->path.n; i++) {
		const struct wire_link *link = &waker->path.v[i];

		if (i > 0 && !view->chain)
			break;
		fputc(';', out);
		folded_put_name(out, link->comm ? link->comm : link->context);
	}
}

/*
 * Prints "layer;operation;place;", where place is the file system and device. The layer is first,
 * so that a flame graph has one tower for each layer.
 */
static void put_io(FILE *out, const struct wire_io *io)
{
	_cleanup_(freep) char *place = io_target(io);

	folded_put_name(out, io->layer);
	fputc(';', out);
	folded_put_name(out, io->op);
	fputc(';', out);
	folded_put_name(out, place);
	fputc(';', out);
}

/*
 * Returns the value of a row's line, in ns. For an I/O operation, that is the time that it spent
 * outside the layers below, because those have lines of their own. For a disk request it is 0,
 * because each part of the request has a line of its own.
 */
static int64_t line_ns(const struct wire_row *row)
{
	if (!row->io)
		return row->total_ns;
	return strcmp(row->io->layer, "block") == 0 ? 0 : row->io->own_ns;
}

static char *line_text(const struct view *view, const char *root, const struct wire_row *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	if (root)
		fprintf(out, "%s;", root);
	if (row->io)
		put_io(out, row->io);
	folded_put_name(out, row->key ? row->key : row->comm);
	if (row->user)
		put_frames(out, view, row->user, false);
	if (view->delimited && has_frames(row->user) && has_frames(row->kernel))
		fputs(";-", out);
	if (row->kernel)
		put_frames(out, view, row->kernel, true);
	if (row->waker)
		put_waker(out, view, row->waker);
	if (fclose(out) != 0)
		free(TAKE(text));
	return must(text);
}

static int compare_text(const void *a, const void *b)
{
	const struct folded_line *x = a, *y = b;
	int r = strcmp(x->text, y->text);

	return r != 0 ? r : (x->rank > y->rank) - (x->rank < y->rank);
}

static int compare_rank(const void *a, const void *b)
{
	const struct folded_line *x = a, *y = b;

	return (x->rank > y->rank) - (x->rank < y->rank);
}

/*
 * Replaces lines with equal text by the first of them, with the sum of their values. Returns how
 * many lines are left.
 */
static size_t merge_lines(struct folded_line *lines, size_t n)
{
	size_t kept = 0;

	if (n == 0)
		return 0;
	qsort(lines, n, sizeof *lines, compare_text);
	for (size_t i = 1; i < n; i++) {
		if (strcmp(lines[kept].text, lines[i].text) == 0) {
			lines[kept].ns += lines[i].ns;
			free(lines[i].text);
		} else {
			lines[++kept] = lines[i];
		}
	}
	kept++;
	qsort(lines, kept, sizeof *lines, compare_rank);
	return kept;
}

static void folded_merge(struct folded *folded)
{
	folded->n = merge_lines(folded->lines, folded->n);
	folded->bytes = 0;
	for (size_t i = 0; i < folded->n; i++)
		folded->bytes += strlen(folded->lines[i].text);
}

/* Prints all lines, and removes them. */
static void folded_print(struct folded *folded, FILE *out)
{
	folded_merge(folded);
	for (size_t i = 0; i < folded->n; i++) {
		/*
		 * Add the remainder of the division to the next line, so that the sum of all lines
		 * is exact to 1 us.
		 */
		int64_t ns = folded->lines[i].ns + folded->rest, us = ns / NS_PER_US;

		folded->rest = ns % NS_PER_US;
		if (us > 0)
			fprintf(out, "%s %" PRId64 "\n", folded->lines[i].text, us);
		free(folded->lines[i].text);
	}
	folded->n = folded->bytes = 0;
}

static void folded_fini(struct folded *folded)
{
	free(folded->lines);
	*folded = (struct folded){ 0 };
}

/*
 * Adds a line for a row, with `root` in front unless it is NULL. Lines are printed by `tower`, and
 * those of one tower in the order in which they were added.
 */
static void folded_add(struct folded *folded, const struct view *view, size_t tower,
		       const char *root, const struct wire_row *row, int64_t ns)
{
	struct folded_line *line;

	if (array_reserve(folded->lines, folded->capacity, folded->n + 1) < 0)
		must(NULL);
	line = &folded->lines[folded->n++];
	*line = (struct folded_line){ line_text(view, root, row), ns,
				      tower << TOWER_SHIFT | folded->rank++ };
	folded->bytes += strlen(line->text);
	if (folded->bytes < LINES_BYTES)
		return;
	folded_merge(folded);
	if (folded->bytes >= LINES_BYTES / 2)
		folded_print(folded, view->page.out);
}

/* Adds the rows of an answer. */
static void answer_add(struct folded *folded, const struct view *view,
		       const struct wire_snapshot_reply *reply)
{
	bool has_calls = reply_has_calls(reply);

	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];

		folded_add(folded, view, 0, NULL, row,
			   has_calls ? row->count * NS_PER_US : line_ns(row));
	}
}

static bool is_of_samples(const struct wire_snapshot_reply *reply)
{
	return strcmp(reply->probe, "oncpu") == 0;
}

/*
 * Adds the rows of one answer of an overview. Their lines begin with the part of the time to which
 * their value belongs: "on CPU;NAME;...".
 */
static void overview_add(struct folded *folded, const struct view *view,
			 const struct wire_snapshot_reply *reply)
{
	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];

		for (size_t k = 0; k < PARTS; k++) {
			bool is_here = parts[k].is_of_waits != is_of_samples(reply);
			int64_t ns = is_here ? parts[k].time(row) : 0;

			if (ns > 0)
				folded_add(folded, view, k, parts[k].name, row, ns);
		}
	}
}

/* Adds the time on CPUs, of which there are no samples, as one line. */
static void unsampled_add(struct folded *folded, const struct view *view, int64_t on_cpu_ns)
{
	const struct wire_row unsampled = { .comm = "[no samples]" };

	folded_add(folded, view, 0, parts[0].name, &unsampled, on_cpu_ns);
}

void render_folded(const struct view *view, const struct wire_snapshot_reply *reply)
{
	struct folded folded = { 0 };

	answer_add(&folded, view, reply);
	folded_print(&folded, view->page.out);
	folded_fini(&folded);
	report_estimates(reply);
}

/* An answer, or an overview, that is printed while its replies arrive. */
struct folded_stream {
	const struct view *view;
	struct folded folded;
	bool is_overview;
	bool has_samples;
	int64_t on_cpu_ns; /* for an overview: the time on CPUs that the waits say */
	bool has_reported; /* report_estimates() was called for a reply that has estimates */
};

static void *stream_new(const struct view *view, enum stream_kind kind)
{
	struct folded_stream *stream = must(calloc(1, sizeof(*stream)));

	stream->view = view;
	stream->is_overview = kind == STREAM_OVERVIEW;
	return stream;
}

static void stream_add(void *opaque, const struct wire_snapshot_reply *reply, bool is_first)
{
	struct folded_stream *stream = opaque;

	if (!stream->has_reported)
		stream->has_reported = report_estimates(reply);
	if (!stream->is_overview) {
		answer_add(&stream->folded, stream->view, reply);
		return;
	}
	if (is_of_samples(reply))
		stream->has_samples = !reply->missing && reply->coverage.windows > 0;
	else if (is_first)
		stream->on_cpu_ns = reply->totals.on_cpu_ns;
	overview_add(&stream->folded, stream->view, reply);
}

static void stream_end(void *opaque, bool is_whole)
{
	struct folded_stream *stream = opaque;

	if (is_whole && stream->is_overview && !stream->has_samples)
		unsampled_add(&stream->folded, stream->view, stream->on_cpu_ns);
	folded_print(&stream->folded, stream->view->page.out);
	folded_fini(&stream->folded);
	free(stream);
}

const struct format format_folded = {
	.name = "folded",
	.suffix = "folded",
	.has_all_rows = true,
	.has_only_stacks = true,
	.snapshot = render_folded,
	.stream_new = stream_new,
	.stream_add = stream_add,
	.stream_end = stream_end,
	.diff = diff_print_folded,
};
