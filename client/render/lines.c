/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/render/lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/cell.h"
#include "client/render/coverage.h"
#include "client/render/head.h"
#include "client/render/iolat.h"
#include "client/render/sparkline.h"
#include "client/render/table.h"
#include "common/base.h"
#include "common/own_function.h"
#include "common/wait_class.h"

/* The least widths of the columns of text, with which a line fits into 80 columns. */
enum { WHO_LEAST = 16, WHY_LEAST = 20, HOLDER_LEAST = 18, FUNCTION_LEAST = 12 };

/* Returns the name of whom the row is about, without the host. The caller frees it. */
static char *who_on_host(const struct wire_row *row)
{
	_cleanup_(freep) char *comm = NULL, *process = NULL;
	const char *gone = row->process.exited		? " gone"
			   : row->process.replaced == 1 ? " before exec"
							: "",
		   *name;
	int64_t processes;

	if (row->own == 1)
		return must(strdup("stackd itself"));
	if (row->key)
		return name_escape(row->key);
	comm = name_escape(row->comm);
	process = name_escape(row->process.comm);
	name = process[0] ? process : comm;
	processes = row->processes > 1 ? row->processes : row->folded;
	/* Few characters, so that the number is there where the name is shortened. */
	if (processes > 0 && (processes > 1 || row->process.pid == 0))
		return must_printf("%s(x%s)%s%s", name, count_text(processes),
				   strcmp(comm, name) != 0 ? "/" : "",
				   strcmp(comm, name) != 0 ? comm : "");
	if (row->tid != WIRE_ABSENT && row->tid != row->process.pid)
		return must_printf("%s(%" PRId64 "%s)/%s(%" PRId64 ")", name, row->process.pid,
				   gone, comm, row->tid);
	/* Threads of the kernel whose names differ in digits only, or all that had no row. */
	if (row->process.pid == 0)
		return TAKE(comm);
	if (strcmp(comm, name) != 0)
		return must_printf("%s(%" PRId64 "%s)/%s", name, row->process.pid, gone, comm);
	return must_printf("%s(%" PRId64 "%s)", name, row->process.pid, gone);
}

char *row_who(const struct wire_row *row)
{
	_cleanup_(freep) char *host = NULL, *who = who_on_host(row);

	/* A row by host has it as its key. */
	if (!row->host || (row->key && strcmp(row->host, row->key) == 0))
		return TAKE(who);
	host = name_escape(row->host);
	return must_printf("%s: %s", host, who);
}

const char *row_longest(const struct wire_row *row)
{
	int64_t open = row->open > 0 ? row->open : 0;

	return row->processes > 1 || row->count + open > 1 ? "longest " : "";
}

char *row_why(const struct wire_row *row)
{
	_cleanup_(freep) char *object = name_escape(row->object ? row->object : "");
	_cleanup_(freep) char *state = NULL;
	bool has_letter = row->state && row->state[0] && !row->state[1];
	const char *idle = row->idle ? ", idle" : "",
		   *dead = row->deadlock == 1 ? "deadlock: " : "";

	if (!row->state)
		return NULL;
	if (row->own == 1)
		return must_printf("for its own work%s", idle);
	if (reason_text(row->reason))
		return must_printf("%s%s%s%s%s%s%s%s", dead, has_letter ? row->state : "",
				   has_letter ? " " : "", row->reason, object[0] ? " " : "",
				   object[0] ? row_longest(row) : "", object, idle);
	state = row->reasons.n > 0 ? reasons_words(row, false) : name_escape(state_word(row));
	return must_printf("%s%s", state, idle);
}

/* Returns the index of the innermost frame of the program itself, or the best there is. */
static size_t own_frame(const struct wire_stack *user)
{
	enum function_origin best_origin = FUNCTION_OF_LIBC, origin;
	size_t best = 0;

	for (size_t i = 0; i < user->frames.n && best_origin != FUNCTION_OF_PROGRAM; i++) {
		const struct wire_frame *frame = &user->frames.v[i];

		if (strcmp(frame->kind, "pseudo") == 0)
			continue;
		origin = function_origin(frame->name, frame->module);
		if (origin > best_origin) {
			best = i;
			best_origin = origin;
		}
	}
	return best;
}

char *row_function(const struct view *view, const struct wire_row *row)
{
	const struct wire_stack *user = row->user, *kernel = row->kernel;
	struct view plain = { .is_short = view->is_short || view->page.cuts_names };
	_cleanup_(freep) char *label = NULL;

	/* Rows by function have it as their key. That of stackd itself is of no use to anybody. */
	if (row->own == 1 || (row->key && view->by && strcmp(view->by, "function") == 0))
		return NULL;
	if (row->function)
		return function_words(row->function, plain.is_short);
	if (user && user->frames.n > 0 &&
	    strcmp(user->frames.v[own_frame(user)].kind, "pseudo") != 0) {
		label = frame_label(&plain, &user->frames.v[own_frame(user)], false);
		return name_escape(label);
	}
	if (kernel && kernel->frames.n > 0 && strcmp(kernel->frames.v[0].kind, "pseudo") != 0) {
		plain.annotations = true;
		label = frame_label(&plain, &kernel->frames.v[scheduler_frames(kernel)], true);
		return name_escape(label);
	}
	return NULL;
}

/* Returns the function that a sample found on a CPU. */
static char *row_leaf(const struct view *view, const struct wire_row *row)
{
	const struct wire_stack *stack =
		row->kernel && row->kernel->frames.n > 0 ? row->kernel : row->user;
	struct view plain = { .is_short = view->is_short || view->page.cuts_names,
			      .annotations = stack && stack == row->kernel };
	_cleanup_(freep) char *label = NULL;

	if (!stack || stack->frames.n == 0)
		return NULL;
	label = frame_label(&plain, &stack->frames.v[0], stack == row->kernel);
	return name_escape(label);
}

static const struct table_column wait_columns[] = {
	{ "share", 0, 0, NULL },
	{ "total", 0, 0, NULL },
	{ "error", 0, 0, NULL },
	{ "average", 0, 3, NULL },
	{ "longest", 0, 2, NULL },
	{ "count", 0, 4, NULL },
	{ "trend", 0, 5, NULL },
	{ "process", WHO_LEAST, 0, NULL },
	{ "waits for", WHY_LEAST, 0, cell_fit_why },
	{ "held up by", HOLDER_LEAST, 0, cell_fit_holder },
	{ "woken by", FUNCTION_LEAST, 0, NULL },
	{ "function", FUNCTION_LEAST, 1, NULL },
};

static const struct table_column sample_columns[] = {
	{ "share", 0, 0, NULL },
	{ "total", 0, 0, NULL },
	{ "samples", 0, 3, NULL },
	{ "trend", 0, 2, NULL },
	{ "process", WHO_LEAST, 0, NULL },
	{ "runs", FUNCTION_LEAST, 0, NULL },
	{ "function", FUNCTION_LEAST, 2, NULL },
};

/* Returns the time of a row in each slot of the range, if rows are by line. */
static char *row_trend(const struct view *view, const struct wire_snapshot_reply *reply,
		       const struct wire_row *row)
{
	size_t n = row->slots_ns.n;

	if (n == 0 || n > SPARKLINE_MAX || n != reply->slots_ns.n)
		return NULL;
	return sparkline(row->slots_ns.v, reply->slots_ns.v, n, view->has_utf8);
}

char *row_held_up_by(const struct wire_row *row)
{
	enum wait_reason reason = wait_reason_find(row->reason);
	const struct wire_culprit *by = row->held_up_by;
	_cleanup_(freep) char *name = NULL, *time = NULL;

	if (!by || reason == WAIT_REASON_N || row->idle || by->ns < row->max_ns / 2)
		return NULL;
	if (reason != REASON_CHILD && reason != REASON_REQUEST &&
	    wait_class_of(reason) != WAIT_CLASS_LOCK && wait_class_of(reason) != WAIT_CLASS_IPC)
		return NULL;
	name = culprit_name(by, false);
	time = table_time("", by->ns, "");
	return must_printf("%s for %s", name, time);
}

/* Returns who ended the waits of a row: a thread, or a context such as "timer". */
static char *row_waker(const struct wire_row *row)
{
	const struct wire_link *link =
		row->waker && row->waker->path.n > 0 ? row->waker->path.v : NULL;
	_cleanup_(freep) char *comm = NULL;

	if (!link)
		return NULL;
	comm = name_escape(link->comm ? link->comm : link->context);
	return link->comm && link->pid > 0 ? must_printf("%s(%" PRId64 ")", comm, link->pid)
					   : TAKE(comm);
}

static void add_wait(struct table *table, const struct view *view,
		     const struct wire_snapshot_reply *reply, const struct wire_row *row,
		     int64_t whole)
{
	struct table_row *line = table_add(table, STYLE_PLAIN);
	int64_t n = row->count + row->open;
	const char *about = row_about(row);
	char **cells = line->cells;

	*cells++ = must(strdup(share_text(row->total_ns, whole)));
	*cells++ = time_estimate(reply, row, row->total_ns);
	*cells++ = error_text(reply, row, row->total_ns);
	*cells++ = n > 0 ? table_time(about, row->total_ns / n, "") : NULL;
	/* A wait of which it is known that it goes on, or that its length is only a lower bound. */
	*cells++ = row->max_ns > 0
			   ? table_time("", row->max_ns, row->max_end == WIRE_ABSENT ? "+" : "")
			   : NULL;
	/* What is left of the exact sum of short waits has no number of waits. */
	*cells++ = n > 0 ? must_printf("%s%s", about, count_text(n)) : NULL;
	*cells++ = row_trend(view, reply, row);
	*cells++ = row_who(row);
	*cells++ = row_why(row);
	*cells++ = row_held_up_by(row);
	*cells++ = row_waker(row);
	*cells++ = row_function(view, row);
}

static void add_sample(struct table *table, const struct view *view,
		       const struct wire_snapshot_reply *reply, const struct wire_row *row,
		       int64_t whole)
{
	struct table_row *line = table_add(table, STYLE_PLAIN);
	char **cells = line->cells;

	*cells++ = must(strdup(share_text(row->total_ns, whole)));
	*cells++ = table_time(row_about(row), row->total_ns, "");
	*cells++ = must_printf("%s%s", row_about(row), count_text(row->count));
	*cells++ = row_trend(view, reply, row);
	*cells++ = row_who(row);
	*cells++ = row_leaf(view, row);
	*cells++ = row_function(view, row);
}

static const struct table_column io_columns[] = {
	{ "total", 0, 0, NULL },
	{ "count", 0, 4, NULL },
	{ "MB/s", 0, 0, NULL },
	{ "p50~", 0, 6, NULL },
	{ "p99~", 0, 3, NULL },
	{ "longest", 0, 5, NULL },
	{ "process", WHO_LEAST, 0, NULL },
	{ "operation", 9, 0, NULL },
	{ "where", 6, 2, NULL },
};

static void add_operation(struct table *table, const struct wire_snapshot_reply *reply,
			  const struct wire_row *row)
{
	char **cells = table_add(table, STYLE_PLAIN)->cells;
	const char *about = row_about(row);
	const struct wire_io *io = row->io;

	*cells++ = table_time(about, row->total_ns, "");
	*cells++ = must_printf("%s%s", about, count_text(row->count));
	*cells++ = table_rate(io_moved(io), coverage_length(&reply->coverage));
	*cells++ = io->p50_ns != WIRE_ABSENT ? table_time("", io->p50_ns, "") : NULL;
	*cells++ = io->p99_ns != WIRE_ABSENT ? table_time("", io->p99_ns, "") : NULL;
	*cells++ = row->max_ns > 0 ? table_time("", row->max_ns, "") : NULL;
	*cells++ = row_who(row);
	*cells++ = io_operation(io);
	*cells++ = io_target(io);
}

/* Prints how many rows there are, and what to ask for more. */
static void put_rows(const struct view *view, const struct wire_snapshot_reply *reply,
		     size_t n_shown, int64_t shown_ns)
{
	int64_t all = reply->shown.rows + reply->rest.rows,
		whole = reply->shown.total_ns + reply->rest.total_ns;
	_cleanup_(freep) char *time = table_time(whole_about(view, reply), whole, ""),
			      *share = NULL;
	bool has_more = (int64_t)n_shown < all, is_io = reply_is_iolat(reply);

	if (!is_io)
		share = must_printf(", %s of %s%s", share_text(shown_ns, whole), time,
				    reply->idle.rows > 0 && !reply_is_sampled(reply) ? " not idle"
										     : "");
	head_line(&view->page, STYLE_PLAIN, "rows", "%s of %s%s%s; %s",
		  count_text((long long)n_shown), count_text(all), share ? share : "",
		  has_more ? "; all: -n 0" : "",
		  is_io			    ? "by layer: --breakdown; stacks: --by stack"
		  : reply_has_wakers(reply) ? "stacks: --stacks, --chain"
		  : reply_is_sampled(reply) && !view->by ? "--by function; stacks: --stacks"
							 : "stacks: --stacks");
}

/* Prints the sum of the idle rows that were left out, if there are any. */
static void put_idle(const struct view *view, const struct wire_snapshot_reply *reply)
{
	_cleanup_(freep) char *time = table_time("", reply->idle.total_ns, "");
	_cleanup_(freep) char *threads = idle_threads(reply, "idle thread");

	if (reply->idle.rows == 0)
		return;
	if (reply_is_sampled(reply))
		head_line(&view->page, STYLE_PLAIN, "hidden", "idle CPUs, %s (--idle)", time);
	else
		head_line(&view->page, STYLE_PLAIN, "hidden", "%s, %s (--idle)", threads, time);
}

/* Says which operations have not ended, if there are any. */
static void put_open(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_row *oldest = NULL;
	_cleanup_(freep) char *who = NULL, *op = NULL;
	int64_t n = 0;

	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];

		if (!row->io || row->io->open <= 0)
			continue;
		n += row->io->open;
		if (!oldest || row->io->oldest_ns > oldest->io->oldest_ns)
			oldest = row;
	}
	if (!oldest)
		return;
	who = row_who(oldest);
	op = io_operation(oldest->io);
	head_line(&view->page, STYLE_WARN, "open", "%s not ended; the oldest for %s: %s of %s",
		  count_text(n), ns_text(oldest->io->oldest_ns), op, who);
}

/*
 * Returns how many rows to print: as many as the screen has lines for, without the head of the
 * columns and the `foot` lines below the rows. Sets *has_own_out to whether the last row of all,
 * of which there is at least one, is that of stackd's own threads and is to be printed in any case.
 */
static size_t rows_to_print(const struct view *view, const struct wire_rows *rows, size_t foot,
			    bool *has_own_out)
{
	size_t room = view->height > foot + 2 ? view->height - foot - 1 : 1;

	*has_own_out = room > 1 && rows->v[rows->n - 1].own == 1;
	return view->height == 0 || rows->n <= room ? rows->n : room;
}

/* Adds a line for a row to the table, in the columns of the answer's kind. */
static void add_row(struct table *table, const struct view *view,
		    const struct wire_snapshot_reply *reply, const struct wire_row *row)
{
	int64_t whole = reply->shown.total_ns + reply->rest.total_ns;

	if (reply_is_iolat(reply))
		add_operation(table, reply, row);
	else if (reply_is_sampled(reply))
		add_sample(table, view, reply, row, whole);
	else
		add_wait(table, view, reply, row, whole);
}

/*
 * Makes an empty table for the rows of an answer. `columns` has room for it, and lives as long: the
 * column that names a row is called after what rows are by.
 */
static void table_init_of(struct table *table, const struct view *view,
			  const struct wire_snapshot_reply *reply,
			  struct table_column columns[static TABLE_COLUMNS_MAX])
{
	const struct table_column *from = wait_columns;
	size_t n = ARRAY_SIZE(wait_columns);

	if (reply_is_iolat(reply)) {
		from = io_columns;
		n = ARRAY_SIZE(io_columns);
	} else if (reply_is_sampled(reply)) {
		from = sample_columns;
		n = ARRAY_SIZE(sample_columns);
	}
	for (size_t i = 0; i < n; i++) {
		columns[i] = from[i];
		if (view->by && columns[i].least == WHO_LEAST && strcmp(view->by, "line") != 0 &&
		    strcmp(view->by, "stack") != 0)
			columns[i].head = view->by;
	}
	table_init(table, columns, n);
}

/* Returns why an answer has no rows. */
static const char *no_rows_words(const struct wire_snapshot_reply *reply)
{
	return reply_is_iolat(reply)	 ? "no operations"
	       : reply_is_sampled(reply) ? "no samples"
	       : reply_has_wakers(reply) ? "no waits that ended; stackctl stuck shows who waits"
	       : reply->idle.rows > 0	 ? "no waits but idle ones"
					 : "no waits";
}

void render_lines(const struct view *view, const struct wire_snapshot_reply *reply)
{
	const struct wire_rows *rows = &reply->rows;
	size_t foot = 1 + (reply->idle.rows > 0), n, last;
	struct table_column columns[TABLE_COLUMNS_MAX];
	int64_t shown_ns = 0;
	struct table table;
	bool has_own;

	if (rows->n == 0) {
		page_wrap(&view->page, STYLE_PLAIN, "", 0, "%s", no_rows_words(reply));
		put_idle(view, reply);
		return;
	}
	for (size_t i = 0; i < rows->n; i++)
		if (rows->v[i].io && rows->v[i].io->open > 0) {
			foot++;
			break;
		}
	n = rows_to_print(view, rows, foot, &has_own);
	table_init_of(&table, view, reply, columns);
	for (size_t i = 0; i < n; i++) {
		/*
		 * The last one that is printed is the last one of all if that is stackd's own. In
		 * reverse order, the largest rows are the last ones.
		 */
		last = view->reverse ? rows->n - n + i : i + 1 == n && has_own ? rows->n - 1 : i;
		add_row(&table, view, reply, &rows->v[last]);
		shown_ns += rows->v[last].total_ns;
	}
	table_print(&table, &view->page, true, false);
	table_fini(&table);
	put_open(view, reply);
	put_idle(view, reply);
	put_rows(view, reply, n, shown_ns);
}

char *holders_as_of(const struct wire_row *row, int64_t end)
{
	char moment[TERM_TIME_MAX];

	if (row->holders_at <= 0 || row->holders_at >= end)
		return must(strdup(""));
	time_format(row->holders_at, time_same_day(row->holders_at, end) ? TIME_CLOCK : TIME_DAY,
		    moment);
	return must_printf("as of %s ", moment);
}

static const struct table_column stuck_columns[] = {
	{ "for", 0, 0, NULL },
	{ "threads", 0, 1, NULL },
	{ "process", WHO_LEAST, 0, NULL },
	{ "waits for", WHY_LEAST, 0, cell_fit_why },
	{ "held by", HOLDER_LEAST, 0, cell_fit_holder },
	{ "function", FUNCTION_LEAST, 2, NULL },
};

/* Returns words for holders that a row lacks: whether another look-up may find them. */
static const char *holders_lack_words(const struct wire_row *row)
{
	/* Nobody has the other end open yet: that is what the thread waits for. */
	if (wait_reason_find(row->reason) == REASON_FIFO_OPEN)
		return "nobody";
	return row->holders_missed == 1 ? "not looked up" : "cannot be known";
}

char *row_holders(const struct wire_row *row, int64_t end)
{
	const struct wire_holder *first = row->holders.n > 0 ? row->holders.v : NULL, *root = NULL;
	_cleanup_(freep) char *name = NULL, *root_name = NULL, *as_of = NULL;
	int64_t more;

	if (!first)
		return row->holders_unknown ? must(strdup(holders_lack_words(row))) : NULL;
	if (row->chain.n > 1 && row->deadlock != 1)
		root = &row->chain.v[row->chain.n - 1];
	/* One that waits for a lock is held up by another one, who is not known. */
	if (root && wait_reason_is_lock(wait_reason_find(root->reason)))
		root = NULL;
	more = (int64_t)row->holders.n - 1 + (row->holders_more > 0 ? row->holders_more : 0);
	as_of = holders_as_of(row, end);
	name = name_escape(first->comm);
	root_name = root ? name_escape(root->comm) : NULL;
	if (root)
		return must_printf("%s%s(%" PRId64 "), root %s(%" PRId64 ")", as_of, name,
				   first->tid > 0 ? first->tid : first->pid, root_name,
				   root->tid > 0 ? root->tid : root->pid);
	if (more > 0)
		return must_printf("%s%s(%" PRId64 ") and %s more", as_of, name,
				   first->tid > 0 ? first->tid : first->pid, count_text(more));
	return must_printf("%s%s(%" PRId64 ")", as_of, name,
			   first->tid > 0 ? first->tid : first->pid);
}

char *entry_who(const struct stuck_entry *entry)
{
	struct wire_row row = *entry->rows[0];

	if (entry->n > 1 && !row.key) {
		row.tid = WIRE_ABSENT;
		row.comm = row.process.comm[0] ? row.process.comm : row.comm;
	}
	return row_who(&row);
}

void render_stuck_lines(const struct view *view, const struct stuck_entries *entries, size_t n,
			int64_t end)
{
	struct table table;

	if (n == 0)
		return;
	table_init(&table, stuck_columns, ARRAY_SIZE(stuck_columns));
	for (size_t i = 0; i < n; i++) {
		const struct stuck_entry *entry = &entries->v[i];
		const struct wire_row *row = entry->rows[0];
		char **cells =
			table_add(&table, entry->urgency == URGENT_NOW ? STYLE_WARN : STYLE_PLAIN)
				->cells;

		*cells++ = table_time("", row->max_ns, entry->urgency == URGENT_DOUBT ? "?" : "");
		*cells++ = must(strdup(count_text((long long)entry->waits)));
		*cells++ = entry_who(entry);
		*cells++ = row_why(row);
		*cells++ = row_holders(row, end);
		*cells++ = row_function(view, row);
	}
	table_print(&table, &view->page, true, view->reverse);
	table_fini(&table);
}

void render_stuck_groups(const struct view *view, const struct wire_rows *rows)
{
	const struct table_column columns[] = {
		{ "longest", 0, 0, NULL },
		{ "threads", 0, 0, NULL },
		{ view->by, WHO_LEAST, 0, NULL },
		{ "waits for", WHY_LEAST, 2, cell_fit_why },
		{ "longest in", WHO_LEAST, 1, NULL },
	};
	struct table table;

	if (rows->n == 0)
		return;
	table_init(&table, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < rows->n; i++) {
		const struct wire_row *row = &rows->v[i];
		_cleanup_(freep) char *comm = row->max_comm ? name_escape(row->max_comm) : NULL;
		const char *words = row->key ? reason_text(row->key) : NULL;
		char **cells = table_add(&table, STYLE_PLAIN)->cells;

		*cells++ = table_time("", row->max_ns, "");
		*cells++ = must(strdup(count_text(row->open)));
		*cells++ = row_who(row);
		*cells++ = words && strcmp(view->by, "reason") == 0 ? must(strdup(words))
								    : row_why(row);
		*cells++ = comm && row->max_tid > 0
				   ? must_printf("%s(%" PRId64 ")", comm, row->max_tid)
				   : TAKE(comm);
	}
	page_break(&view->page);
	table_print(&table, &view->page, true, false);
	table_fini(&table);
}
