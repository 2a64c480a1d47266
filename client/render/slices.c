/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/head.h"
#include "client/render/iolat.h"
#include "client/render/lines.h"
#include "client/render/parts.h"
#include "client/render/render.h"
#include "common/base.h"

enum { TIME_WIDTH = 8, DAY_WIDTH = 19, COLUMN_WIDTH = 9, COLUMNS = 3, SHARE_WIDTH = 5 };

/* A column of figures: its head, and the figure of a slice, see figure_of(). */
struct column {
	const char *head;
	enum { OF_NOTHING, OF_ON_CPU, OF_PARTS, OF_COUNT } kind;
	const char *parts[2]; /* for OF_PARTS: names of the parts whose times are added up */
};

static const struct column of_waits[COLUMNS] = {
	{ "on CPU", OF_ON_CPU, {} },
	{ "runnable", OF_PARTS, { "runnable", "throttled" } },
	{ "blocked", OF_PARTS, { "blocked" } },
};
static const struct column of_samples[COLUMNS] = { { "on CPU", OF_ON_CPU, {} } };
static const struct column of_calls[COLUMNS] = { { "calls/s", OF_COUNT, {} } };
static const struct column of_io[COLUMNS] = {
	{ "I/O per s", OF_COUNT, {} },
	{ "fs", OF_PARTS, { "fs" } },
	{ "disks", OF_PARTS, { "block" } },
};

static const struct column *columns_of(const struct wire_snapshot_reply *reply)
{
	return reply_is_iolat(reply)	 ? of_io
	       : reply_has_calls(reply)	 ? of_calls
	       : reply_is_sampled(reply) ? of_samples
					 : of_waits;
}

static int64_t part_ns(const struct wire_snapshot_reply *reply, const char *name)
{
	const struct wire_part *part = name ? part_find(reply, name) : NULL;

	return part ? part->total_ns : 0;
}

/* Returns the time of a part that stands for sampled waits or operations. */
static int64_t part_sampled_ns(const struct wire_snapshot_reply *reply, const char *name)
{
	const struct wire_part *part = name ? part_find(reply, name) : NULL;

	return part && part->sampled_ns > 0 ? part->sampled_ns : 0;
}

/*
 * Writes a sum of parts as an average number of threads, with "~" in front if it is an estimate;
 * "-" if it is not known.
 */
static void parts_text(const struct view *view, const struct column *column,
		       const struct wire_snapshot_reply *reply, char text[static 40])
{
	const char *const *names = column->parts;
	char average[32];

	if (strcmp(names[0], "fs") == 0 && !part_ns(reply, names[0]) &&
	    cost_lacks(reply->cost, "calls")) {
		snprintf(text, 40, "-");
		return;
	}
	average_text(part_ns(reply, names[0]) + part_ns(reply, names[1]),
		     coverage_length(&reply->coverage), average);
	snprintf(text, 40, "%s%s",
		 sum_about(view, reply,
			   part_sampled_ns(reply, names[0]) + part_sampled_ns(reply, names[1])),
		 average);
}

/* Writes the figure of a slice: an average number of threads, or a number of events a second. */
static void figure_of(const struct view *view, const struct column *column,
		      const struct wire_snapshot_reply *reply, char text[static 40])
{
	int64_t length = coverage_length(&reply->coverage), count;

	switch (column->kind) {
	case OF_ON_CPU:
		if (totals_are_of_rows(reply) && !reply_is_sampled(reply))
			snprintf(text, 40, "?");
		else
			average_text(reply->totals.on_cpu_ns, length, text);
		break;
	case OF_PARTS:
		parts_text(view, column, reply, text);
		break;
	case OF_COUNT:
		count = reply_is_iolat(reply) ? reply->totals.ios : reply->totals.calls;
		snprintf(text, 32, "%s",
			 count_text(length > 0 ? (long long)((double)count * NS_PER_S /
								     (double)length +
							     0.5)
					       : 0));
		break;
	case OF_NOTHING:
		text[0] = '\0';
		break;
	}
}

/* Returns the same for a row that stands for a program. */
static char *line_words(const struct view *view, const struct wire_row *row)
{
	_cleanup_(freep) char *who = row_who(row), *function = NULL,
			      *what = row->io ? io_operation(row->io) : row_why(row),
			      *place = row->io ? io_target(row->io) : NULL;
	char *words = NULL;

	function = row->io ? NULL : row_function(view, row);
	must(asprintf(&words, "%s%s%s%s%s%s%s", who, what ? ": " : "", what ? what : "",
		      place ? ", " : "", place ? place : "", function ? ", " : "",
		      function ? function : "") < 0
		     ? NULL
		     : words);
	return words;
}

/* Returns what a row says in a line: who, and what it waits for or does. The caller frees it. */
static char *row_words(const struct view *view, const struct wire_row *row)
{
	_cleanup_(freep) char *title = row->io ? NULL : row_title(view, row), *more = NULL;
	char *words = NULL;
	int r;

	if (view->has_lines && !view->by && row->kernel == NULL && row->user == NULL)
		return line_words(view, row);

	if (row->io) {
		_cleanup_(freep) char *layer = name_escape(row->io->layer);
		_cleanup_(freep) char *op = name_escape(row->io->op);

		more = io_target(row->io);
		r = asprintf(&words, "%s %s, %s", layer, op, more);
	} else if (row->state && !row->key && strcmp(row->state, "-") != 0) {
		more = state_words(row);
		r = asprintf(&words, "%s: %s", title, more);
	} else {
		return TAKE(title);
	}
	return must(r < 0 ? NULL : words);
}

/* Returns the share of a row in the time, or in the calls, of all rows of its slice. */
static const char *row_share(const struct wire_snapshot_reply *reply, const struct wire_row *row)
{
	if (reply_has_calls(reply))
		return share_text(row->count, reply->totals.calls);
	if (row->io)
		return share_text(row->total_ns, part_ns(reply, row->io->layer));
	return share_text(row->total_ns, reply->shown.total_ns + reply->rest.total_ns);
}

static void put_row(const struct view *view, const struct wire_snapshot_reply *reply,
		    const struct wire_row *row, int indent)
{
	_cleanup_(freep) char *words = row_words(view, row), *fitted = NULL;
	size_t room = view->page.width > (size_t)indent + SHARE_WIDTH + 12
			      ? view->page.width - (size_t)indent - SHARE_WIDTH - 2
			      : 10;
	char share[32];

	fitted = view->page.cuts_names ? text_fit(words, room) : must(strdup(words));
	snprintf(share, sizeof share, "%s%s", row_about(row), row_share(reply, row));
	fprintf(view->page.out, "%*s  %s\n", SHARE_WIDTH, share, fitted);
}

static int time_width(enum time_style style)
{
	return style == TIME_DAY ? DAY_WIDTH : TIME_WIDTH;
}

static void render_gaps(const struct view *view, const struct wire_snapshot_reply *reply,
			enum time_style style)
{
	const struct wire_gaps *gaps = &reply->coverage.gaps;
	char start[TERM_TIME_MAX];

	for (size_t i = 0; i < gaps->n; i++) {
		_cleanup_(freep) char *reason = name_escape(gaps->v[i].reason);

		time_format(gaps->v[i].start, style, start);
		page_wrap(&view->page, STYLE_WARN, start, (size_t)time_width(style) + 2,
			  "gap of %s: %s", ns_text(gaps->v[i].end - gaps->v[i].start), reason);
	}
}

static void render_slice(const struct view *view, const struct wire_snapshot_reply *reply,
			 enum time_style style)
{
	const struct column *columns = columns_of(reply);
	char start[TERM_TIME_MAX], figure[40];
	int indent = time_width(style);

	render_gaps(view, reply, style);
	if (reply->coverage.windows == 0)
		return;
	time_format(reply->coverage.used.start, style, start);
	fputs(start, view->page.out);
	for (size_t i = 0; i < COLUMNS && columns[i].kind != OF_NOTHING; i++) {
		figure_of(view, &columns[i], reply, figure);
		fprintf(view->page.out, " %*s", COLUMN_WIDTH, figure);
		indent += COLUMN_WIDTH + 1;
	}
	for (size_t i = 0; i < reply->rows.n; i++) {
		/* That of stackd itself comes on top of the rows that were asked for. */
		if (reply->rows.v[i].own == 1 && i > 0)
			continue;
		fprintf(view->page.out, "%*s ", i > 0 ? indent : 0, "");
		put_row(view, reply, &reply->rows.v[i], indent + 1);
	}
	if (reply->rows.n == 0)
		fputc('\n', view->page.out);
}

static void render_head(const struct view *view, const struct wire_snapshot_reply *reply,
			enum time_style style)
{
	const struct column *columns = columns_of(reply);

	fprintf(view->page.out, "%-*s", time_width(style), "from");
	for (size_t i = 0; i < COLUMNS && columns[i].kind != OF_NOTHING; i++)
		fprintf(view->page.out, " %*s", COLUMN_WIDTH, columns[i].head);
	fprintf(view->page.out, " %*s  most of it\n", SHARE_WIDTH, "");
}

/* Adds a loss to a list of n that has room for it, one entry for each reason. Returns its length.
 */
static size_t lost_add(struct wire_lost *list, size_t n, const struct wire_lost *lost)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].reason, lost->reason) == 0) {
			list[i].count += lost->count;
			return n;
		}
	list[n] = *lost;
	return n + 1;
}

/* Returns how many kinds of things were not recorded, to keep within the budget. */
static size_t shed_n(const struct wire_snapshot_reply *reply)
{
	return reply->cost ? reply->cost->shed.n : 0;
}

/* NOTES_MAX: how many different notes of slices are shown; figures in them differ. */
enum { NOTES_MAX = 4 };

/* Adds the notes that the list does not have yet, as far as there is room. Returns its length. */
static size_t notes_add(const char **list, size_t n, const struct wire_strs *notes)
{
	for (size_t i = 0; i < notes->n && n < NOTES_MAX; i++) {
		size_t k = 0;

		while (k < n && strcmp(list[k], notes->v[i]) != 0)
			k++;
		if (k == n)
			list[n++] = notes->v[i];
	}
	return n;
}

/*
 * Prints which range the slices cover, how much of what was asked for, and what was lost in any of
 * them. The gaps are lines among the slices.
 */
static void render_whole(const struct view *view, const struct wire_snapshot_reply *const *slices,
			 size_t n)
{
	struct wire_snapshot_reply whole = *slices[0];
	const struct head head = { .answers = { { "", &whole } }, .is_of_slices = true };
	struct wire_coverage *c = &whole.coverage;
	struct wire_lost *lost = NULL;
	const char *notes[NOTES_MAX];
	size_t n_lost = 0, n_notes = 0;

	c->asked_ns = slices[n - 1]->coverage.asked.end - c->asked.start;
	c->used.end = slices[n - 1]->coverage.used.end;
	c->covered_ns = c->used_ns = 0;
	c->gaps = (struct wire_gaps){};
	for (size_t i = 0; i < n; i++) {
		const struct wire_losts *some = &slices[i]->lost;

		/* That of the slice that lacks most: what the others lack, it lacks, too. */
		if (slices[i]->cost && slices[i]->cost->shed.n > shed_n(&whole))
			whole.cost = slices[i]->cost;
		c->covered_ns += slices[i]->coverage.covered_ns;
		c->used_ns += coverage_length(&slices[i]->coverage);
		lost = must(realloc(lost, (n_lost + some->n + 1) * sizeof(*lost)));
		for (size_t k = 0; k < some->n; k++)
			n_lost = lost_add(lost, n_lost, &some->v[k]);
		n_notes = notes_add(notes, n_notes, &slices[i]->notes);
		/* The head says what the estimates are, if any slice has some. */
		if (!reply_has_estimates(&whole))
			whole.rows = slices[i]->rows;
	}
	whole.lost = (struct wire_losts){ lost, n_lost };
	whole.notes = (struct wire_strs){ notes, n_notes };
	head_print(view, &head);
	free(lost);
}

void render_slices(const struct view *view, const struct wire_snapshot_reply *const *slices,
		   size_t n)
{
	enum time_style style = TIME_DAY;
	bool hides_idle = false;

	if (n == 0)
		return;
	if (time_same_day(slices[0]->coverage.asked.start, slices[n - 1]->coverage.asked.end))
		style = TIME_CLOCK;
	for (size_t i = 0; i < n; i++)
		hides_idle |= columns_of(slices[i]) == of_waits && slices[i]->idle.rows > 0;
	render_whole(view, slices, n);
	if (!reply_has_calls(slices[0]))
		head_line(&view->page, STYLE_PLAIN, "figures",
			  "how many threads at a time, on average%s",
			  hides_idle ? "; idle waits are left out" : "");
	render_head(view, slices[0], style);
	for (size_t i = 0; i < n; i++)
		render_slice(view, slices[i], style);
}
