/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/stuck_roots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/head.h"
#include "client/render/lines.h"
#include "client/render/table.h"
#include "common/base.h"
#include "common/wait_reason.h"

/*
 * A shorter wait for a lock, in ns, is usual. STEPS: as many holders are followed. LOW_SCREEN: a
 * screen of fewer lines has room for one root.
 */
#define LONG_NS NS_PER_S

enum { STEPS = 64, LOW_SCREEN = 16 };

/* A thread that others wait for, and the wait in which it is itself. */
struct root {
	int64_t pid;
	int64_t tid; /* WIRE_ABSENT: one of the threads of the process, not known which */
	const char *comm;
	const char *reason; /* of its wait; NULL: it is in none that is known */
	const char *object; /* NULL: not known */
	int64_t for_ns;
	int64_t threads; /* how many wait behind it */
	int64_t oldest_ns;
	const struct wire_row *row; /* the first of them */
};

static bool is_long_lock(const struct wire_row *row)
{
	return !row->idle && row->own != 1 && row->deadlock != 1 && row->max_ns >= LONG_NS &&
	       (wait_reason_is_lock(wait_reason_find(row->reason)) ||
		wait_reason_find(row->reason) == REASON_FUSE);
}

/*
 * Returns the one thread or process that holds what a row waits for, or the one of several holders
 * that the chain goes on with; NULL if it is not known.
 */
static const struct wire_holder *only_holder(const struct wire_row *row)
{
	if (row->holders.n == 1 && row->holders_more <= 0)
		return &row->holders.v[0];
	return row->holders.n > 1 && row->chain.n > 0 ? &row->chain.v[0] : NULL;
}

static bool is_same(const struct wire_holder *x, const struct wire_holder *y)
{
	return x->pid == y->pid && x->tid == y->tid;
}

static const struct wire_row *row_of(const struct wire_rows *rows, const struct wire_holder *thread)
{
	for (size_t i = 0; i < rows->n; i++)
		if (thread->tid != WIRE_ABSENT && rows->v[i].tid == thread->tid &&
		    rows->v[i].process.pid == thread->pid)
			return &rows->v[i];
	return NULL;
}

/* Returns the last step of a row's chain if the thread is one of its steps, else NULL. */
static const struct wire_holder *chain_end(const struct wire_row *row,
					   const struct wire_holder *thread)
{
	for (size_t i = 0; i < row->chain.n; i++)
		if (is_same(&row->chain.v[i], thread))
			return &row->chain.v[row->chain.n - 1];
	return NULL;
}

/*
 * Returns the wait of a holder that was found for the row `of`; NULL if none is known. A wait that
 * began after the holder was looked up does not count: it may have let go before.
 */
static const struct wire_row *wait_of(const struct wire_snapshot_reply *reply,
				      const struct wire_row *of, const struct wire_holder *holder)
{
	const struct wire_row *row = row_of(&reply->rows, holder);

	if (row && of->holders_at > 0 && reply->coverage.used.end - row->max_ns > of->holders_at)
		return NULL;
	return row;
}

/*
 * Sets *out to the thread at the end of the holders of a row. The chain of the row has those that
 * wait, idle or not, up to some length; the rows of holders go on. Returns false if the first
 * holder is not known, or the holders are a ring.
 */
static bool root_find(const struct wire_snapshot_reply *reply, const struct wire_row *row,
		      struct root *out)
{
	const struct wire_holder *holder = only_holder(row), *step = NULL;
	const struct wire_row *at = row;
	size_t i;

	if (!holder)
		return false;
	for (i = 0; i < STEPS && holder; i++) {
		step = chain_end(at, holder);
		*out = (struct root){ .pid = holder->pid,
				      .tid = holder->tid,
				      .comm = holder->comm };
		if (step)
			*out = (struct root){ .pid = step->pid,
					      .tid = step->tid,
					      .comm = step->comm,
					      .reason = step->reason,
					      .object = step->object,
					      .for_ns = step->for_ns };
		at = wait_of(reply, at, step ? step : holder);
		if (at && at->deadlock == 1)
			return false;
		if (at && !out->reason) {
			out->reason = at->reason;
			out->object = at->object;
			out->for_ns = at->max_ns;
		}
		holder = at ? only_holder(at) : NULL;
	}
	return i < STEPS;
}

static int compare_roots(const void *a, const void *b)
{
	const struct root *x = a, *y = b;

	if (x->threads != y->threads)
		return x->threads < y->threads ? 1 : -1;
	return (x->oldest_ns < y->oldest_ns) - (x->oldest_ns > y->oldest_ns);
}

/* Adds the waits of a row to those behind its root. */
static void root_add(struct root *roots, size_t *n, const struct root *root,
		     const struct wire_row *row)
{
	size_t i;

	for (i = 0; i < *n; i++)
		if (roots[i].pid == root->pid && roots[i].tid == root->tid)
			break;
	if (i == *n) {
		roots[i] = *root;
		roots[i].row = row;
		(*n)++;
	}
	roots[i].threads += row->open > 1 ? row->open : 1;
	if (row->max_ns > roots[i].oldest_ns)
		roots[i].oldest_ns = row->max_ns;
}

/*
 * True if nobody is known to hold up the thread itself: another one does if it waits for a lock,
 * and may if it is not known which thread of its process it is.
 */
static bool is_end(const struct root *root)
{
	return root->tid > 0 && !wait_reason_is_lock(wait_reason_find(root->reason));
}

/*
 * Prints a line such as "root   psql(88) holds up 4 threads; waits 7min itself (unix
 * /run/pg.sock)".
 */
static void root_print(const struct view *view, const struct root *root, bool is_least, int64_t end)
{
	_cleanup_(freep) char *comm = name_escape(root->comm), *age = NULL, *object = NULL;
	_cleanup_(freep) char *itself = NULL, *as_of = holders_as_of(root->row, end);

	age = table_time("", root->for_ns, "");
	object = name_escape(root->object ? root->object : "");
	itself = root->reason ? must_printf("; waits %s itself (%s%s%s)", age, root->reason,
					    object[0] ? " " : "", object)
			      : must(strdup(""));
	head_line(&view->page, STYLE_BOLD, is_end(root) ? "root" : "holder",
		  "%s%s(%" PRId64 ") holds up %s%s thread%s%s", as_of, comm,
		  root->tid > 0 ? root->tid : root->pid, is_least ? "at least " : "",
		  count_text(root->threads), root->threads == 1 ? "" : "s", itself);
}

size_t render_stuck_roots(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_rows *rows = &reply->rows;
	const size_t most = view->height > 0 && view->height < LOW_SCREEN ? 1 : STUCK_ROOTS;
	struct root *roots = must(calloc(rows->n + 1, sizeof(*roots))), root;
	bool is_least = false;
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct wire_row *row = &rows->v[i];

		if (!is_long_lock(row))
			continue;
		if (root_find(reply, row, &root))
			root_add(roots, &n, &root, row);
		else if (row->holders.n == 0 && row->holders_missed == 1)
			/* Only some waits are looked up. */
			is_least = true;
	}
	qsort(roots, n, sizeof(*roots), compare_roots);
	n = n < most ? n : most;
	for (size_t i = 0; i < n; i++)
		root_print(view, &roots[i], is_least, reply->coverage.used.end);
	free(roots);
	return n;
}
