/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/folded.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/formats.h"
#include "client/render/iolat.h"
#include "client/render/parts.h"
#include "common/array.h"
#include "common/base.h"

struct folded_line {
	char *text;
	int64_t ns;  /* the value of the line in ns, which is printed in us; each call of a function
			counts as 1000 ns, and so is printed as 1 */
	size_t rank; /* number of the line in the order in which lines were added */
};

/* The lines that have been added and not printed yet. Initialised with zeroes. */
struct folded {
	struct folded_line *lines;
	size_t n, capacity;
};

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
	_cleanup_(freep) char *place = io_place(io);

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

static void folded_add(struct folded *folded, const struct view *view, const char *root,
		       const struct wire_row *row, int64_t ns)
{
	if (array_reserve(folded->lines, folded->capacity, folded->n + 1) < 0)
		must(NULL);
	folded->lines[folded->n] =
		(struct folded_line){ line_text(view, root, row), ns, folded->n };
	folded->n++;
}

static void folded_print(struct folded *folded, FILE *out)
{
	size_t n = merge_lines(folded->lines, folded->n);
	int64_t rest = 0;

	for (size_t i = 0; i < n; i++) {
		/*
		 * Add the remainder of the division to the next line, so that the sum of all lines
		 * is exact to 1 us.
		 */
		int64_t us = (folded->lines[i].ns + rest) / NS_PER_US;

		rest = (folded->lines[i].ns + rest) % NS_PER_US;
		if (us > 0)
			fprintf(out, "%s %" PRId64 "\n", folded->lines[i].text, us);
		free(folded->lines[i].text);
	}
	free(folded->lines);
	*folded = (struct folded){ 0 };
}

void render_folded(const struct view *view, const struct wire_snapshot_reply *reply)
{
	bool has_calls = reply_has_calls(reply);
	struct folded folded = { 0 };

	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];

		folded_add(&folded, view, NULL, row,
			   has_calls ? row->count * NS_PER_US : line_ns(row));
	}
	folded_print(&folded, view->page.out);
}

void render_overview_folded(const struct view *view, const struct wire_snapshot_reply *waits,
			    const struct wire_snapshot_reply *samples)
{
	const struct wire_row unsampled = { .comm = "[no samples]" };
	struct folded folded = { 0 };

	if (!samples)
		folded_add(&folded, view, parts[0].name, &unsampled, waits->totals.on_cpu_ns);
	for (size_t k = 0; k < PARTS; k++) {
		const struct wire_snapshot_reply *reply = parts[k].is_of_waits ? waits : samples;

		for (size_t i = 0; reply && i < reply->rows.n; i++) {
			const struct wire_row *row = &reply->rows.v[i];
			int64_t ns = parts[k].time(row);

			if (ns > 0)
				folded_add(&folded, view, parts[k].name, row, ns);
		}
	}
	folded_print(&folded, view->page.out);
}

/*
 * Prints the waits and the samples of an overview as folded lines. Ignores `why`, the reason for
 * missing samples, because folded lines have no room for messages.
 */
static void print_overview(const struct view *view, const struct wire_snapshot_reply *waits,
			   const struct wire_snapshot_reply *samples, const char *why)
{
	render_overview_folded(view, waits, samples);
}

const struct format format_folded = {
	.name = "folded",
	.suffix = "folded",
	.has_all_rows = true,
	.has_only_stacks = true,
	.snapshot = render_folded,
	.overview = print_overview,
};
