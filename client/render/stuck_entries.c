/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/stuck_entries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "common/base.h"
#include "common/wait_reason.h"

/*
 * An uninterruptible wait is urgent if it has lasted this long, in ns. A shorter one may just mean
 * a slow disk.
 */
#define URGENT_NS (5 * NS_PER_S)

/* A wait for a lock is urgent, but less so, if it has lasted this long, in ns. */
#define HELD_NS NS_PER_S

/*
 * A row, and its key: a text made of its process, state and stacks. Rows with equal keys become one
 * entry.
 */
struct candidate {
	const struct wire_row *row;
	char *key;
};

static void put_stack(FILE *out, const struct view *view, const struct wire_stack *stack,
		      bool is_kernel)
{
	for (size_t i = is_kernel ? scheduler_frames(stack) : 0; i < stack->frames.n; i++) {
		const struct wire_frame *frame = &stack->frames.v[i];
		_cleanup_(freep) char *label = frame_label(view, frame, is_kernel);

		fprintf(out, "%s\n%s\n", label, frame->module ? frame->module : "");
		if (view->verbose)
			fprintf(out, "%s\n", frame->address ? frame->address : "");
	}
	for (size_t i = 0; i < stack->flags.n; i++)
		fprintf(out, "!%s\n", stack->flags.v[i]);
}

/*
 * Waits at the same stack are one entry only if they are for the same object, and all or none of
 * them are part of a deadlock.
 */
static void put_holders(FILE *out, const struct wire_row *row)
{
	fprintf(out, "%s\n%s\n%d\n", row->object ? row->object : "",
		row->holders_unknown ? row->holders_unknown : "", row->deadlock == 1);
	for (size_t i = 0; i < row->holders.n; i++)
		fprintf(out, "%" PRId64 " %" PRId64 "\n", row->holders.v[i].pid,
			row->holders.v[i].tid);
}

static char *key_text(const struct view *view, const struct wire_row *row)
{
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	/* Rows of several processes all have the pid 0. */
	if (row->folded > 0)
		fprintf(out, "%s %s\n", row->comm, row->process.comm);
	fprintf(out, "%" PRId64 " %" PRId64 " %s %d %d %d\n", row->process.pid, row->process.start,
		row->state, row_is_uninterruptible(row), row_is_in_doubt(row), row->idle);
	put_holders(out, row);
	if (row->kernel)
		put_stack(out, view, row->kernel, true);
	fputs("-\n", out);
	if (row->user)
		put_stack(out, view, row->user, false);
	if (fclose(out) != 0)
		free(TAKE(text));
	return must(text);
}

static int compare_int(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int compare_age(const struct wire_row *x, const struct wire_row *y)
{
	int by_age = compare_int(y->max_ns, x->max_ns);

	return by_age != 0 ? by_age : compare_int(x->tid, y->tid);
}

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	int by_key = strcmp(x->key, y->key);

	return by_key != 0 ? by_key : compare_age(x->row, y->row);
}

/*
 * Compares entries for qsort(): the most urgent comes first, then the one with the oldest wait.
 * Long uninterruptible waits are most urgent: kill -9 does not end them, and they hold up threads
 * that need the same lock or disk. Deadlocks are certain, and no time ends them. Other locks should
 * be held for a short time. A long sleep is usually intended.
 */
static int compare_entries(const void *a, const void *b)
{
	const struct stuck_entry *x = a, *y = b;
	int by_urgency = (int)y->urgency - (int)x->urgency;

	return by_urgency != 0 ? by_urgency : compare_age(x->rows[0], y->rows[0]);
}

/* True if the row waits for a lock of a program or of a file: another one holds it. */
static bool row_is_for_lock(const struct wire_row *row)
{
	return wait_reason_is_lock(wait_reason_find(row->reason));
}

static enum urgency row_urgency(const struct wire_row *row)
{
	if (row->own == 1)
		return URGENT_OWN;
	if (row_is_in_doubt(row))
		return URGENT_DOUBT;
	if (row->idle)
		return URGENT_IDLE;
	if (row_is_uninterruptible(row) && row->max_ns >= URGENT_NS)
		return URGENT_NOW;
	if (row->deadlock == 1)
		return URGENT_DEADLOCK;
	return row_is_for_lock(row) && row->max_ns >= HELD_NS ? URGENT_HELD : URGENT_OLD;
}

/* Returns the number of waits for which the row stands: of several threads, if it has no tid. */
static size_t row_waits(const struct wire_row *row)
{
	return row->open > 1 ? (size_t)row->open : 1;
}

/*
 * Makes entries from the candidates, which are sorted by key and then by age. An entry stands for
 * all waits with the same key. Its oldest wait decides how urgent the entry is.
 */
static void entries_make(struct stuck_entries *entries, const struct candidate *candidates,
			 size_t n)
{
	for (size_t i = 0; i < n; i++) {
		entries->rows[i] = candidates[i].row;
		if (i > 0 && strcmp(candidates[i - 1].key, candidates[i].key) == 0)
			entries->v[entries->n - 1].n++;
		else
			entries->v[entries->n++] =
				(struct stuck_entry){ .rows = &entries->rows[i],
						      .n = 1,
						      .urgency = row_urgency(candidates[i].row) };
		entries->v[entries->n - 1].waits += row_waits(candidates[i].row);
	}
}

void stuck_entries_init(struct stuck_entries *entries, const struct view *view,
			const struct wire_rows *rows)
{
	struct candidate *candidates = must(calloc(rows->n + 1, sizeof *candidates));

	*entries = (struct stuck_entries){
		.v = must(calloc(rows->n + 1, sizeof *entries->v)),
		.rows = must(calloc(rows->n + 1, sizeof *entries->rows)),
	};
	for (size_t i = 0; i < rows->n; i++)
		candidates[i] = (struct candidate){ &rows->v[i], key_text(view, &rows->v[i]) };
	qsort(candidates, rows->n, sizeof *candidates, compare_candidates);
	entries_make(entries, candidates, rows->n);
	qsort(entries->v, entries->n, sizeof *entries->v, compare_entries);
	for (size_t i = 0; i < rows->n; i++) {
		entries->waits += row_waits(&rows->v[i]);
		if (row_urgency(&rows->v[i]) == URGENT_NOW)
			entries->urgent += row_waits(&rows->v[i]);
		free(candidates[i].key);
	}
	free(candidates);
}

void stuck_entries_fini(struct stuck_entries *entries)
{
	free(entries->v);
	free(entries->rows);
	*entries = (struct stuck_entries){ 0 };
}
