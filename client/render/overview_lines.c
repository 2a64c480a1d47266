/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/overview_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/cell.h"
#include "client/render/coverage.h"
#include "client/render/head.h"
#include "client/render/iolat.h"
#include "client/render/lines.h"
#include "client/render/parts.h"
#include "client/render/sparkline.h"
#include "client/render/spawns.h"
#include "client/render/table.h"
#include "common/base.h"
#include "common/note_words.h"

/*
 * With a prompt below it, the overview fits on a terminal of 24 lines. SECTIONS: the parts of the
 * time, and I/O.
 */
enum { SCREEN_LINES = 23, SECTIONS = PARTS + 1 };

static const struct table_column columns[] = {
	{ "", 0, 0, NULL },	     { "", 0, 0, NULL },
	{ "", 0, 0, NULL },	     { "", 0, 3, NULL },
	{ "", 0, 2, NULL },	     { "", 0, 4, NULL },
	{ "", 0, 5, NULL },	     { "", 16, 0, NULL },
	{ "", 18, 0, cell_fit_why }, { "", 16, 1, cell_fit_holder },
};

/* A row, and its time in the part of the time that a section is about. */
struct line {
	const struct wire_row *row;
	int64_t ns;
	int64_t whole; /* of which this time is a share */
	bool is_small; /* less than a hundredth of the time that is not idle */
};

struct section {
	const char *name;
	const struct part *part; /* NULL: the section is about I/O */
	struct line *lines;
	size_t n;     /* number of lines that are printed */
	size_t n_all; /* number of rows that have time in it, also of those that are not here */
	int64_t whole;
	int64_t sampled_ns;
};

/* Prints how many short-lived processes ended, if any. Returns the number of lines. */
static size_t put_spawns(const struct view *view, const struct wire_snapshot_reply *waits)
{
	_cleanup_(freep) char *text = spawns_line(waits->spawns);

	if (!text)
		return 0;
	head_line(&view->page, STYLE_PLAIN, "processes", "%s", text);
	return 1;
}

/*
 * Compares lines for qsort(): urgent ones come first, idle ones behind the others, and small ones
 * last; then the longest time.
 */
static int compare_urgent(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	int r = (y->row->urgent == 1) - (x->row->urgent == 1);

	if (r != 0)
		return r;
	if (x->is_small != y->is_small)
		return x->is_small ? 1 : -1;
	if (x->row->idle != y->row->idle)
		return x->row->idle ? 1 : -1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

static int compare_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

/* Keeps the first `top` lines of a section; 0: all. */
static void section_limit(struct section *section, int64_t top)
{
	if (top > 0 && (uint64_t)top < section->n)
		section->n = (size_t)top;
}

/* Fills the section about a part of the time from an answer, which may be NULL. */
static void section_of_part(struct section *section, const struct part *part,
			    const struct wire_snapshot_reply *reply, int64_t top)
{
	const struct wire_part *sums = part_find(reply, part->name);
	size_t n = reply ? reply->rows.n : 0;
	int64_t busy = 0;

	*section = (struct section){ .name = part->name,
				     .part = part,
				     .sampled_ns = WIRE_ABSENT,
				     .lines = must(calloc(n + 1, sizeof(struct line))) };
	for (size_t i = 0; i < n; i++) {
		const struct wire_row *row = &reply->rows.v[i];
		int64_t ns = part->time(row);

		if (ns <= 0)
			continue;
		section->whole += ns;
		section->n_all++;
		/* stackd's own time has a line of its own. */
		if (row->own != 1)
			section->lines[section->n++] = (struct line){ .row = row, .ns = ns };
	}
	if (sums) {
		section->whole = sums->total_ns;
		section->n_all = (size_t)sums->rows;
		section->sampled_ns = sums->sampled_ns;
	}
	for (size_t i = 0; i < section->n; i++)
		busy += section->lines[i].row->idle ? 0 : section->lines[i].ns;
	for (size_t i = 0; i < section->n; i++) {
		struct line *line = &section->lines[i];

		line->whole = section->whole;
		line->is_small = !line->row->idle && line->ns < busy / 100;
	}
	/* Only a wait that blocks can hold others up. */
	qsort(section->lines, section->n, sizeof(struct line),
	      part == PART_BLOCKED ? compare_urgent : compare_time);
	section_limit(section, top);
}

/* Adds the rows of one layer of I/O, at most `most` of them, in the order of the answer. */
static void section_add_layer(struct section *section, const struct wire_snapshot_reply *io,
			      const struct wire_part *layer, size_t most)
{
	for (size_t i = 0; i < io->rows.n && most > 0; i++) {
		const struct wire_row *row = &io->rows.v[i];

		if (strcmp(row->io->layer, layer->name) != 0)
			continue;
		section->lines[section->n++] =
			(struct line){ .row = row, .ns = row->total_ns, .whole = layer->total_ns };
		most--;
	}
}

/*
 * Fills the section about I/O: the rows of the uppermost layer that is recorded, and those of the
 * disks, each at most half of `top`, or more if the other layer has fewer.
 */
static void section_of_io(struct section *section, const struct wire_snapshot_reply *io,
			  int64_t top)
{
	const struct wire_part *disks = part_find(io, "block"), *upper = NULL;
	size_t n_upper, n_disks, for_disks, most, n = io ? io->rows.n : 0;

	*section = (struct section){ .name = "I/O",
				     .sampled_ns = WIRE_ABSENT,
				     .lines = must(calloc(n + 1, sizeof(struct line))) };
	for (size_t i = 0; io && i < io->parts.n && !upper; i++)
		if (&io->parts.v[i] != disks && !io_is_part_of_request(io->parts.v[i].name))
			upper = &io->parts.v[i];
	most = top > 0 ? (size_t)top : SIZE_MAX;
	n_upper = upper ? (size_t)upper->rows : 0;
	n_disks = disks ? (size_t)disks->rows : 0;
	section->n_all = n_upper + n_disks;
	for_disks = n_upper < most - most / 2 ? most - n_upper : most / 2;
	if (n_disks > for_disks)
		n_disks = for_disks;
	if (n_upper > most - n_disks)
		n_upper = most - n_disks;
	if (upper) {
		section->whole = upper->total_ns;
		section_add_layer(section, io, upper, n_upper);
	}
	if (disks) {
		section->whole = upper ? section->whole : disks->total_ns;
		section_add_layer(section, io, disks, n_disks);
	}
}

static bool section_is_urgent(const struct section *section)
{
	return section->n > 0 && section->part == PART_BLOCKED &&
	       section->lines[0].row->urgent == 1;
}

/* Takes lines from the longest sections, the last one first, until the page has n lines. */
static void sections_shrink(struct section *const *sections, size_t n_sections, size_t others,
			    size_t n)
{
	for (;;) {
		struct section *longest = NULL;
		size_t all = others;

		for (size_t i = 0; i < n_sections; i++) {
			if (sections[i]->n == 0)
				continue;
			all += 1 + sections[i]->n;
			if (!longest || sections[i]->n >= longest->n)
				longest = sections[i];
		}
		if (all <= n || !longest || longest->n == 1)
			return;
		longest->n--;
	}
}

/*
 * Returns who keeps a row from going on, if it is known, or else the program's own function. Of a
 * wait for a CPU, that is who ran there before it; of one that blocks, who holds what it is for, or
 * who ended it.
 */
static char *culprit_words(const struct view *view, const struct section *section,
			   const struct wire_row *row, int64_t end)
{
	const struct wire_holder *holder = row->holders.n > 0 ? row->holders.v : NULL;
	_cleanup_(freep) char *name = NULL, *as_of = NULL, *waker = NULL;

	if (section->part == PART_RUNNABLE && row->ran_before) {
		name = culprit_name(row->ran_before, false);
		return must_printf("longest behind %s", name);
	}
	if (section->part != PART_BLOCKED)
		return row_function(view, row);
	waker = holder ? NULL : row_held_up_by(row);
	if (waker)
		return must_printf("held up by %s", waker);
	if (!holder)
		return row_function(view, row);
	name = name_escape(holder->comm);
	as_of = holders_as_of(row, end);
	return must_printf("%s%sheld by %s(%" PRId64 ")", as_of, row_longest(row), name,
			   holder->tid > 0 ? holder->tid : holder->pid);
}

static void add_head(struct table *table, const struct view *view, const struct section *section,
		     const struct overview *overview)
{
	char **cells = table_add(table, STYLE_BOLD)->cells;
	bool is_of_io = !section->part, is_of_waits = section->part && section->part->is_of_waits;
	const struct wire_snapshot_reply *of = is_of_waits ? overview->waits : overview->samples;
	const char *about = is_of_io ? "" : sum_about(view, overview->waits, section->sampled_ns);

	*cells++ = must(strdup(section->name));
	*cells++ = table_time(is_of_waits ? about : "", section->whole, "");
	*cells++ = must(strdup(is_of_waits && *about ? "error" : ""));
	*cells++ = must(strdup(is_of_waits ? "average" : ""));
	*cells++ = must(strdup(is_of_waits || is_of_io ? "longest" : ""));
	*cells++ = must(strdup(is_of_waits || is_of_io ? "count" : "samples"));
	*cells++ = must(strdup(!is_of_io && of && of->slots_ns.n ? "trend" : ""));
	*cells++ = section->n < section->n_all ? must_printf("process %zu/%s", section->n,
							     count_text((long long)section->n_all))
					       : must(strdup("process"));
	*cells++ = must(strdup(is_of_io			       ? "operation"
			       : !is_of_waits		       ? "function"
			       : section->part == PART_BLOCKED ? "waits for"
							       : "before that"));
	*cells++ = must(strdup(is_of_io			       ? "where"
			       : !is_of_waits		       ? ""
			       : section->part == PART_BLOCKED ? "held by or in"
							       : "behind or in"));
}

/* Returns the time of a row in each slot, as far as the section is about it. */
static char *trend(const struct view *view, const struct section *section,
		   const struct wire_snapshot_reply *reply, const struct wire_row *row)
{
	int64_t ns[SPARKLINE_MAX];
	size_t n = row->slots_ns.n < SPARKLINE_MAX ? row->slots_ns.n : SPARKLINE_MAX;
	bool is_blocked = section->part == PART_BLOCKED;

	if (!reply || n != reply->slots_ns.n)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		int64_t runnable = i < row->slots_runnable_ns.n ? row->slots_runnable_ns.v[i] : 0;

		ns[i] = !section->part->is_of_waits ? row->slots_ns.v[i]
			: is_blocked		    ? row->slots_ns.v[i] - runnable
						    : runnable;
	}
	return sparkline(ns, reply->slots_ns.v, n, view->has_utf8);
}

static void add_line(struct table *table, const struct view *view, const struct section *section,
		     const struct overview *overview, const struct line *line)
{
	const struct wire_row *row = line->row;
	bool is_of_waits = section->part && section->part->is_of_waits;
	const char *about = row_about(row);
	char **cells = table_add(table, row->urgent == 1 ? STYLE_WARN : STYLE_PLAIN)->cells;
	int64_t n = row->count + (row->open > 0 ? row->open : 0);
	bool has_longest;

	*cells++ = must(strdup(share_text(line->ns, line->whole)));
	*cells++ = is_of_waits ? time_estimate(overview->waits, row, line->ns)
			       : table_time(about, line->ns, "");
	*cells++ = is_of_waits ? error_text(overview->waits, row, line->ns) : NULL;
	*cells++ = is_of_waits && n > 0 ? table_time(about, line->ns / n, "") : NULL;
	/* The longest wait is known as a whole only, so not of a part of waits that blocked, too.
	 */
	has_longest = row->max_ns > 0 &&
		      (!is_of_waits || section->part == PART_BLOCKED || !row_was_blocked(row));
	*cells++ = has_longest ? table_time("", row->max_ns,
					    is_of_waits && row->max_end == WIRE_ABSENT ? "+" : "")
			       : NULL;
	*cells++ = must_printf("%s%s", about, count_text(n));
	*cells++ = section->part ? trend(view, section,
					 is_of_waits ? overview->waits : overview->samples, row)
				 : NULL;
	*cells++ = row_who(row);
	if (!section->part) {
		*cells++ = io_operation(row->io);
		*cells++ = io_target(row->io);
		return;
	}
	if (is_of_waits)
		*cells++ = row_why(row);
	*cells++ = culprit_words(view, section, row, overview->waits->coverage.used.end);
}

static void put_sections(const struct view *view, struct section *const *sections, size_t n,
			 const struct overview *overview)
{
	struct table table;

	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		if (sections[i]->n == 0)
			continue;
		add_head(&table, view, sections[i], overview);
		for (size_t k = 0; k < sections[i]->n; k++)
			add_line(&table, view, sections[i], overview, &sections[i]->lines[k]);
	}
	table_print(&table, &view->page, false, false);
	table_fini(&table);
}

const char *overview_no_samples(const struct overview *overview)
{
	if (overview->no_samples || !cost_lacks(overview->waits->cost, "samples"))
		return overview->no_samples;
	return "most were not recorded, to keep [budget] cpu";
}

const char *overview_no_io(const struct overview *overview)
{
	if (overview->no_io)
		return overview->no_io;
	/* Calls that stackd never sees here are not left out to keep the budget. */
	if (above_is_disks(overview->above) || !cost_lacks(overview->waits->cost, "calls"))
		return overview->above;
	return "I/O calls were not recorded, to keep [budget] cpu";
}

/* Prints why a section has no lines. */
static void put_nothing(const struct view *view, const struct section *section,
			const struct overview *overview)
{
	const char *why = !section->part		? overview_no_io(overview)
			  : !section->part->is_of_waits ? overview_no_samples(overview)
							: NULL,
		   *nothing = section->part ? section->part->nothing
			      : why	    ? "not known"
					    : "none";
	_cleanup_(freep) char *reason = name_escape(why ? why : "");
	_cleanup_(freep) char *text = must_printf("%s%s%s", nothing, why ? ": " : "", reason);

	head_line(&view->page, STYLE_PLAIN, section->name, "%s", text);
}

/* True if a section is to be mentioned although it has no lines. */
static bool section_is_named(const struct section *section)
{
	return section->n == 0 && (!section->part || section->part->nothing);
}

/* Returns the time of stackd's own threads in an answer, which may be NULL. */
static int64_t own_ns(const struct wire_snapshot_reply *reply)
{
	int64_t ns = 0;

	for (size_t i = 0; reply && i < reply->rows.n; i++)
		if (reply->rows.v[i].own == 1)
			ns += reply->rows.v[i].total_ns;
	return ns;
}

/* True if something is not among the rows and not in `rest` either. */
static bool has_hidden(const struct overview *overview)
{
	return overview->waits->idle.rows > 0 || own_ns(overview->waits) > 0 ||
	       own_ns(overview->samples) > 0;
}

/* Prints the sums of idle waits and of stackd's own threads, which are not among the rows. */
static void put_hidden(const struct view *view, const struct overview *overview)
{
	const struct wire_rest *idle = &overview->waits->idle;
	int64_t waits = own_ns(overview->waits), runs = own_ns(overview->samples);
	_cleanup_(freep) char *idle_time = table_time("", idle->total_ns, ""),
			      *waited = table_time("", waits, ""), *ran = table_time("", runs, "");
	_cleanup_(freep) char *threads = idle_threads(overview->waits, "idle thread");
	_cleanup_(freep) char *idle_words = NULL, *own_words = NULL, *text = NULL;

	if (idle->rows > 0)
		idle_words = must_printf("%s, %s (--idle)", threads, idle_time);
	if (waits > 0 || runs > 0)
		own_words = must_printf("stackd: %s on CPU, %s waiting", ran, waited);
	text = must_printf("%s%s%s", idle_words ? idle_words : "",
			   idle_words && own_words ? "; " : "", own_words ? own_words : "");
	head_line(&view->page, STYLE_PLAIN, "hidden", "%s", text);
}

size_t render_overview_head(const struct view *view, const struct overview *overview)
{
	const struct head head = { .answers = { { "", overview->waits },
						{ "samples: ", overview->samples },
						{ "I/O: ", overview->io } } };

	return head_print(view, &head) + put_spawns(view, overview->waits);
}

void render_overview_lines(const struct view *view, const struct overview *overview)
{
	struct section sections[SECTIONS], *order[SECTIONS];
	size_t n = 0, others;

	for (size_t i = 0; i < PARTS; i++)
		section_of_part(&sections[i], &parts[i],
				parts[i].is_of_waits ? overview->waits : overview->samples,
				view->top);
	section_of_io(&sections[PARTS], overview->io, view->top);
	/* The part with a row that holds others up comes first. */
	if (section_is_urgent(&sections[PARTS - 1]))
		order[n++] = &sections[PARTS - 1];
	for (size_t i = 0; i < SECTIONS; i++)
		if (n == 0 || &sections[i] != order[0])
			order[n++] = &sections[i];
	others = render_overview_head(view, overview) + has_hidden(overview) + 1;
	for (size_t i = 0; i < n; i++)
		others += section_is_named(order[i]);
	if (!view->top_is_given)
		sections_shrink(order, n, others,
				view->height > 0 && view->height < SCREEN_LINES ? view->height
										: SCREEN_LINES);
	put_sections(view, order, n, overview);
	for (size_t i = 0; i < n; i++)
		if (section_is_named(order[i]))
			put_nothing(view, order[i], overview);
	if (has_hidden(overview))
		put_hidden(view, overview);
	head_line(&view->page, STYLE_PLAIN, "more",
		  overview->waits->fleet
			  ? "stackctl snapshot offcpu (oncpu), --by host, --host, --stacks"
			  : "stackctl stuck, stackctl snapshot offcpu (oncpu, iolat), --stacks");
	for (size_t i = 0; i < SECTIONS; i++)
		free(sections[i].lines);
}
