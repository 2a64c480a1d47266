/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "client/base/json_string.h"
#include "client/base/term.h"
#include "client/render/comments.h"
#include "client/render/diff.h"
#include "common/base.h"

/*
 * Returns a value in the unit of folded stacks, us or calls. A remainder is carried to the next
 * line, so that the sum of a column is exact to 1 us.
 */
static int64_t folded_value(const struct diff *diff, int64_t value, int64_t *rest)
{
	int64_t us;

	if (diff_has_calls(diff))
		return value;
	value += *rest;
	us = value / NS_PER_US;
	*rest = value % NS_PER_US;
	return us;
}

void diff_print_folded(const struct diff *diff)
{
	int64_t rest[DIFF_SIDES] = { 0 };

	for (size_t i = 0; i < diff->n; i++) {
		const struct diff_row *row = &diff->rows[i];
		_cleanup_(freep) char *path = diff_path(diff, row, 0);
		int64_t before = folded_value(diff, row->scaled, &rest[DIFF_BASE]);
		int64_t after = folded_value(diff, row->value[DIFF_NEW], &rest[DIFF_NEW]);
		size_t n = strlen(path);

		/* Readers split a line at its last spaces. */
		while (n > 0 && path[n - 1] == ' ')
			path[--n] = '_';
		if (before > 0 || after > 0)
			fprintf(diff->view->page.out, "%s %" PRId64 " %" PRId64 "\n", path, before,
				after);
	}
}

struct list {
	FILE *out;
	size_t n;
};

static void put_member(void *context, const char *line)
{
	struct list *list = context;

	if (list->n++ > 0)
		fputc(',', list->out);
	json_print_string(list->out, line);
}

static void put_side(const struct diff *diff, enum diff_side side)
{
	const struct wire_snapshot_reply *reply = &diff->sides[side];
	const struct wire_coverage *coverage = &reply->coverage;
	FILE *out = diff->view->page.out;
	struct list list = { out, 0 };

	fprintf(out,
		"\"%s\":{\"start_ns\":%" PRId64 ",\"end_ns\":%" PRId64 ",\"covered_ns\":%" PRId64
		",\"asked_ns\":%" PRId64 ",\"asked_covered_ns\":%" PRId64 ",\"windows\":%" PRId64
		",\"complete\":%s,\"idle_ns\":%" PRId64 ",\"total\":%" PRId64 ",\"missing\":[",
		side == DIFF_BASE ? "base" : "new", coverage->used.start, coverage->used.end,
		diff->covered[side], coverage->asked_ns, coverage->covered_ns, coverage->windows,
		coverage->complete ? "true" : "false", reply->idle.total_ns, diff->total[side]);
	comments_of_missing(reply, put_member, &list);
	fputs("]},\n", out);
}

/* Prints the names of the frames of a row as a list, the outermost first. */
static void put_frames(const struct diff *diff, const struct diff_row *row)
{
	FILE *out = diff->view->page.out;
	struct list list = { out, 0 };

	fputs("{\"stack\":[", out);
	for (size_t i = 0; i < diff_frames(diff, row); i++)
		put_member(&list, diff_frame(diff, row, i));
	fputs("]", out);
}

static void put_values(FILE *out, const struct diff_row *row)
{
	fprintf(out,
		",\"change\":%" PRId64 ",\"base\":%" PRId64 ",\"scaled_base\":%" PRId64
		",\"new\":%" PRId64 ",\"base_count\":%" PRId64 ",\"new_count\":%" PRId64
		",\"base_bytes\":%" PRId64 ",\"new_bytes\":%" PRId64 ",\"error\":%" PRId64
		",\"estimated\":%s}",
		row->change, row->value[DIFF_BASE], row->scaled, row->value[DIFF_NEW],
		row->count[DIFF_BASE], row->count[DIFF_NEW], row->bytes[DIFF_BASE],
		row->bytes[DIFF_NEW], row->error, row->is_estimated ? "true" : "false");
}

void diff_print_json(const struct diff *diff)
{
	FILE *out = diff->view->page.out;
	struct diff_row rest;
	size_t top = diff_top(diff, &rest);
	_cleanup_(freep) char *probe = name_escape(diff->sides[DIFF_NEW].probe);

	fputs("{\"version\":\"" STACKD_VERSION "\",\"probe\":", out);
	json_print_string(out, probe);
	fprintf(out, ",\"unit\":\"%s\",\n", diff_has_calls(diff) ? "count" : "nanoseconds");
	put_side(diff, DIFF_BASE);
	put_side(diff, DIFF_NEW);
	fprintf(out,
		"\"scaled_total\":%" PRId64 ",\"change\":%" PRId64 ",\"overlap_ns\":%" PRId64
		",\"others\":%zu,\n\"rows\":[",
		diff->scaled_total, diff->total[DIFF_NEW] - diff->scaled_total, diff_overlap(diff),
		diff->n_others);
	for (size_t i = 0; i < top; i++) {
		fputs(i > 0 ? ",\n" : "\n", out);
		put_frames(diff, diff_row_at(diff, top, i));
		put_values(out, diff_row_at(diff, top, i));
	}
	fprintf(out, "],\n\"rest\":{\"rows\":%zu", diff->n - top);
	put_values(out, &rest);
	fputs("}\n", out);
}
