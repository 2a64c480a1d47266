/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/intern.h"
#include "client/base/term.h"
#include "client/render/coverage.h"
#include "client/render/iolat.h"
#include "client/render/measures.h"
#include "common/array.h"
#include "common/base.h"

void diff_init(struct diff *diff, const struct view *view)
{
	*diff = (struct diff){
		.view = view,
		.bytes_max = DIFF_BYTES_MAX,
		.frames = intern_new(),
		.stacks = intern_new(),
	};
}

void diff_fini(struct diff *diff)
{
	path_fini(&diff->path);
	intern_free(diff->frames);
	intern_free(diff->stacks);
	free(diff->numbers);
	free(diff->rows);
}

bool diff_has_calls(const struct diff *diff)
{
	return reply_has_calls(&diff->sides[DIFF_NEW]);
}

static int64_t value_of(const struct diff *diff, const struct wire_row *row)
{
	if (diff_has_calls(diff))
		return row->count;
	/* Rows by line have each request once, the others each of its layers. */
	return row->io && !diff->has_lines ? measure_io_time(row) : row->total_ns;
}

/* True if the time of a row is a part of that of others: lines have each request once. */
static bool is_part_of_another(const struct diff *diff, const struct wire_row *row)
{
	return diff->has_lines && row->io && !diff->view->layer &&
	       io_is_part_of_request(row->io->layer);
}

/* True if a row is of an operation of all processes; the one that it names is any of them. */
static bool is_of_all(const struct diff *diff, const struct wire_row *row)
{
	const char *by = diff->view->by;

	return row->io && (by ? strcmp(by, "operation") == 0 : !diff->has_lines);
}

/* Returns the time of a row that its threads slept. */
static int64_t sleep_of(const struct wire_row *row)
{
	static const char sleep[] = "sleep";
	int64_t sum = 0;

	if (row->reason)
		return strcmp(row->reason, sleep) == 0 ? row->total_ns : 0;
	for (size_t i = 0; i < row->reasons.n; i++)
		if (strcmp(row->reasons.v[i].reason, sleep) == 0)
			sum += row->reasons.v[i].total_ns;
	return sum;
}

/*
 * Puts the path of a row into diff->numbers. Returns the number of its frames; 0 if it has a name
 * that is new, and new ones may not be added.
 */
static size_t set_numbers(struct diff *diff, const struct wire_row *row, bool may_add)
{
	size_t n, number;

	path_fill(&diff->path, diff->view, row,
		  PATH_WAKER | PATH_POOL | PATH_NO_REASONS | PATH_NO_SCHEDULER |
			  (is_of_all(diff, row) ? 0 : PATH_COMM) |
			  (diff->has_lines ? PATH_LINE : 0) | (diff->has_ids ? PATH_IDS : 0));
	n = diff->path.n;
	if (array_reserve(diff->numbers, diff->numbers_capacity, n) < 0)
		must(NULL);
	for (size_t i = 0; i < n; i++) {
		const char *name = diff->path.v[i].name;

		if (may_add)
			number = intern_add(diff->frames, name, strlen(name), NULL);
		else if (!intern_find(diff->frames, name, strlen(name), &number))
			return 0;
		diff->numbers[i] = (uint32_t)number;
	}
	return n;
}

/* True if all that is stored takes as many bytes as it may. */
static bool is_full(const struct diff *diff)
{
	return intern_bytes(diff->frames) + intern_bytes(diff->stacks) +
		       diff->n * sizeof(*diff->rows) >=
	       diff->bytes_max;
}

/* Returns the row of the path in diff->numbers, made if need be. */
static struct diff_row *row_of_numbers(struct diff *diff, size_t n)
{
	size_t number;
	bool is_new;

	number = intern_add(diff->stacks, diff->numbers, n * sizeof(*diff->numbers), &is_new);
	if (is_new) {
		if (array_reserve(diff->rows, diff->capacity, diff->n + 1) < 0)
			must(NULL);
		diff->rows[diff->n++] = (struct diff_row){ .stack = number };
	}
	return &diff->rows[number];
}

static struct diff_row *row_of_others(struct diff *diff)
{
	static const char name[] = "[others]";

	diff->n_others++;
	if (array_reserve(diff->numbers, diff->numbers_capacity, 1) < 0)
		must(NULL);
	diff->numbers[0] = (uint32_t)intern_add(diff->frames, name, strlen(name), NULL);
	return row_of_numbers(diff, 1);
}

/* Returns the row that has the stack of a row of an answer. */
static struct diff_row *row_find(struct diff *diff, const struct wire_row *row)
{
	bool may_add = !is_full(diff);
	size_t n = set_numbers(diff, row, may_add), number;

	if (may_add)
		return row_of_numbers(diff, n);
	if (n == 0 ||
	    !intern_find(diff->stacks, diff->numbers, n * sizeof(*diff->numbers), &number))
		return row_of_others(diff);
	return &diff->rows[number];
}

/* SHED_SAMPLES: one sample stands for as many at most, see governor_sample_every(). */
enum { SHED_SAMPLES = 8 };

/*
 * Returns the variance of `value`, which is all of the time of a row or a part of it: of sampled
 * waits see estimate.c; each of n samples stands for a part of the time, and may or may not have
 * been taken. Where most were left out, `count` is how many those that are left stand for.
 */
static double variance_of(const struct wire_snapshot_reply *reply, const struct wire_row *row,
			  int64_t value)
{
	const double ns = (double)row->total_ns, part = ns > 0 ? (double)value / ns : 0;

	if (reply_is_sampled(reply))
		return row->count > 0 ? part * ns * ns / (double)row->count *
						(row->estimated == 1 ? SHED_SAMPLES : 1)
				      : 0;
	if (row->estimated != 1 || row->sampled_ns <= 0 || reply->sample_below_ns <= 0)
		return 0;
	return part * (double)row->sampled_ns * (double)reply->sample_below_ns;
}

static void add_row(struct diff *diff, enum diff_side side, const struct wire_snapshot_reply *reply,
		    const struct wire_row *from)
{
	bool is_idle = diff->hides_idle && from->idle;
	int64_t value = value_of(diff, from), sleep = is_idle ? sleep_of(from) : 0;
	struct diff_row *row;

	if (is_part_of_another(diff, from))
		return;
	if (is_idle) {
		diff->idle[side] += value - sleep;
		value = sleep;
	}
	if (is_idle && sleep == 0)
		return;
	row = row_find(diff, from);
	row->value[side] += value;
	row->sleep[side] += sleep;
	row->count[side] += from->count;
	row->bytes[side] += from->io ? io_moved(from->io) : 0;
	row->has_function |= from->function || (from->user && from->user->frames.n > 1);
	row->is_own = from->own == 1;
	row->is_estimated |= from->estimated == 1;
	row->variance[side] += variance_of(reply, from, value);
	diff->total[side] += value;
}

void diff_add(struct diff *diff, enum diff_side side, const struct wire_snapshot_reply *reply,
	      bool is_first)
{
	if (is_first) {
		diff->sides[side] = *reply;
		/* Rows of calls have stacks in any case. */
		diff->has_lines &= !reply_has_calls(reply);
		diff->sides[side].rows = (struct wire_rows){ 0 };
		diff->covered[side] = coverage_length(&reply->coverage);
		diff->idle[side] = reply->idle.total_ns;
		/* Until the other answer comes, this one says what the values are. */
		if (!diff->sides[!side].probe)
			diff->sides[!side] = diff->sides[side];
	}
	for (size_t i = 0; i < reply->rows.n; i++)
		add_row(diff, side, reply, &reply->rows.v[i]);
}

/* Returns value * covered[DIFF_NEW] / covered[DIFF_BASE], rounded down. */
static int64_t scale(const struct diff *diff, int64_t value)
{
	__int128 product = (__int128)value * diff->covered[DIFF_NEW];

	return (int64_t)(product / diff->covered[DIFF_BASE]);
}

static int64_t magnitude(int64_t change)
{
	return change < 0 ? -change : change;
}

static int compare_rows(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	int64_t p = magnitude(x->change), q = magnitude(y->change);
	bool is_certain = p > x->error;

	if (x->is_own != y->is_own)
		return x->is_own ? 1 : -1;
	if (is_certain != (q > y->error))
		return is_certain ? -1 : 1;
	if (is_certain) {
		p -= x->error;
		q -= y->error;
	}
	if (p != q)
		return p < q ? 1 : -1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Leaves out the sleeps of a row that is in one range only. Returns false if nothing is left. */
static bool drop_sleeps(struct diff *diff, struct diff_row *row)
{
	bool had_sleep = row->sleep[DIFF_BASE] > 0 || row->sleep[DIFF_NEW] > 0;

	if (!had_sleep || row->has_function ||
	    (row->value[DIFF_BASE] > 0 && row->value[DIFF_NEW] > 0))
		return true;
	for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
		row->value[side] -= row->sleep[side];
		diff->total[side] -= row->sleep[side];
		diff->idle[side] += row->sleep[side];
	}
	return row->value[DIFF_BASE] > 0 || row->value[DIFF_NEW] > 0;
}

/* Returns the error of a row's change. */
static int64_t error_of(const struct diff *diff, const struct diff_row *row)
{
	const double by = (double)diff->covered[DIFF_NEW] / (double)diff->covered[DIFF_BASE];

	return (int64_t)(2 * sqrt(row->variance[DIFF_BASE] * by * by + row->variance[DIFF_NEW]));
}

void diff_finish(struct diff *diff)
{
	int64_t sum = 0, before = 0, after;
	size_t n = 0;

	for (size_t i = 0; i < diff->n; i++)
		if (drop_sleeps(diff, &diff->rows[i]))
			diff->rows[n++] = diff->rows[i];
	diff->n = n;
	for (size_t i = 0; i < diff->n; i++) {
		struct diff_row *row = &diff->rows[i];

		sum += row->value[DIFF_BASE];
		after = scale(diff, sum);
		row->scaled = after - before;
		row->change = row->value[DIFF_NEW] - row->scaled;
		row->error = error_of(diff, row);
		before = after;
	}
	diff->scaled_total = before;
	if (diff->n > 0)
		qsort(diff->rows, diff->n, sizeof(*diff->rows), compare_rows);
}

size_t diff_top(const struct diff *diff, struct diff_row *rest)
{
	int64_t asked = diff->view->top;
	size_t top = asked > 0 && (size_t)asked < diff->n ? (size_t)asked : diff->n;

	*rest = (struct diff_row){ 0 };
	for (size_t i = top; i < diff->n; i++) {
		const struct diff_row *row = &diff->rows[i];

		for (enum diff_side side = 0; side < DIFF_SIDES; side++) {
			rest->value[side] += row->value[side];
			rest->count[side] += row->count[side];
			rest->bytes[side] += row->bytes[side];
			rest->variance[side] += row->variance[side];
		}
		rest->scaled += row->scaled;
		rest->change += row->change;
		rest->is_estimated |= row->is_estimated;
	}
	rest->error = diff->n > top ? error_of(diff, rest) : 0;
	return top;
}

const struct diff_row *diff_row_at(const struct diff *diff, size_t top, size_t i)
{
	return &diff->rows[diff->view->reverse ? top - 1 - i : i];
}

int64_t diff_overlap(const struct diff *diff)
{
	const struct wire_range *a = &diff->sides[DIFF_BASE].coverage.used;
	const struct wire_range *b = &diff->sides[DIFF_NEW].coverage.used;
	int64_t start = a->start > b->start ? a->start : b->start;
	int64_t end = a->end < b->end ? a->end : b->end;

	return end > start ? end - start : 0;
}

size_t diff_frames(const struct diff *diff, const struct diff_row *row)
{
	size_t size;

	intern_key(diff->stacks, row->stack, &size);
	return size / sizeof(uint32_t);
}

const char *diff_frame(const struct diff *diff, const struct diff_row *row, size_t frame)
{
	uint32_t number;

	memcpy(&number, intern_key(diff->stacks, row->stack, NULL) + frame * sizeof number,
	       sizeof number);
	return intern_key(diff->frames, number, NULL);
}

char *diff_path(const struct diff *diff, const struct diff_row *row, size_t first)
{
	char *text = NULL;
	size_t n;
	FILE *out = must(open_memstream(&text, &n));

	for (size_t i = first; i < diff_frames(diff, row); i++) {
		if (i > first)
			fputc(';', out);
		for (const char *s = diff_frame(diff, row, i); *s; s++)
			fputc(*s == ';' ? ':' : *s, out);
	}
	if (fclose(out) != 0)
		must(NULL);
	return must(text);
}
