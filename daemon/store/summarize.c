/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/summary.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/store/downsample.h"
#include "daemon/store/internal.h"
#include "daemon/store/window_row.h"

/*
 * WINDOWS: a summary is this many times as long as a window of its tier. More would be faster to
 * read, but a summary has no more rows than a window. LEAST_WINDOWS: there is no summary of fewer
 * windows.
 * SIZE_PART: a summary is kept only if its windows take at least this many times its bytes.
 * Otherwise, reading it is hardly faster than reading the windows, and it is not worth the space;
 * that is so if windows have few rows in common and are not folded.
 */
enum { WINDOWS = 24, LEAST_WINDOWS = 4, SIZE_PART = 3 };

/* Windows of one tier and one session, from which one summary is made. */
struct summary {
	struct store_entry windows[STORE_PARTS_MAX + 1]; /* the last one may be of the next one */
	size_t n;
	size_t tier;
};

/*
 * Finds the next windows of the tier and the session that no later window will join. Returns 0,
 * -ENOENT (none) or another errno.
 */
static int windows_find(struct store *store, size_t tier, uint64_t session, struct summary *out)
{
	int64_t done_to = store->summaries.done_to[tier][session];
	size_t n;
	int r;

	r = store_tier_entries(store, tier, session, done_to == INT64_MIN ? done_to : done_to + 1,
			       ARRAY_SIZE(out->windows), out->windows, &n);
	if (r || !n)
		return r ? r : -ENOENT;
	out->n = store_group_size(out->windows, n, WINDOWS * store->tiers[tier].length_ns);
	out->tier = tier;
	return out->n < n ? 0 : -ENOENT;
}

/* Sets *out to the bytes of the encoded windows. Returns 0 or a negative errno. */
static int windows_bytes(struct store *store, const struct summary *summary, int64_t *out)
{
	const struct store_entry *first = &summary->windows[0];
	sqlite3_stmt *statement;
	int r = store_db_first(&store->db, STATEMENT_SUMMARY_WINDOWS, &statement, "iii",
			       (int64_t)first->session, first->id,
			       summary->windows[summary->n - 1].id);

	if (r)
		return r == -ENOENT ? -EUCLEAN : r;
	*out = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return 0;
}

/* Adds the row of an encoded summary, in the open transaction. */
static int row_add(struct store *store, const struct summary *summary, const struct window *window,
		   const struct bytes *blob)
{
	struct store_entry entry = store_entry_of(window, window->run);
	int r;

	entry.id = summary->windows[0].id;
	entry.last_id = summary->windows[summary->n - 1].id;
	entry.summarized = (uint32_t)summary->n;
	entry.lacks_ns = window->lacks_ns;
	r = store_row_add(&store->db, &entry, blob);
	if (!r)
		store->sums[summary->tier].bytes += (int64_t)blob->n;
	return r;
}

/* Writes the summary in the open transaction. Returns -E2BIG if it is too large. */
static int summary_write_in(struct store *store, struct store_reader *reader,
			    const struct summary *summary, const struct window *window)
{
	_cleanup_(bytes_fini) struct bytes blob = {};
	int64_t bytes = 0;
	int r = store_merged_encode(store, reader, window, summary->tier, &blob);

	if (r)
		return r;
	r = windows_bytes(store, summary, &bytes);
	if (r)
		return r;
	if ((int64_t)blob.n > bytes / SIZE_PART)
		return -E2BIG;
	return row_add(store, summary, window, &blob);
}

static int summary_write(struct store *store, struct store_reader *reader,
			 const struct summary *summary, const struct window *window)
{
	int r = store_db_run(&store->db, "BEGIN IMMEDIATE");

	if (r)
		return r;
	return store_step_end(store, summary_write_in(store, reader, summary, window));
}

/*
 * Merges the loaded windows into one, and folds it to the rows that the tier allows. Stacks of
 * preempted waits stay. Leaves out the pids of folded processes, which take much time to merge: a
 * query that asks for a process reads the windows.
 */
static int window_make(const struct store *store, const struct summary *summary,
		       struct window *const *windows, struct window **out)
{
	struct window_fold_limits limits =
		store_fold_limits(&store->fold, store->sums[summary->tier].level);
	struct window *merged;
	size_t i;
	int r;

	for (i = 0; i < summary->n; i++)
		windows[i]->n_members = 0;
	r = store_downsample(windows, summary->n, &merged);
	if (r)
		return r;
	limits.preempted_percent = 0;
	r = window_fold(merged, &limits, out);
	window_unref(merged);
	if (!r)
		(*out)->n_members = 0;
	return r;
}

/*
 * Makes the summary. Makes none if a window is damaged, if a summed count does not fit into its
 * type, or if the summary is too large. Returns 0 or a negative errno.
 */
static int summary_make(struct store *store, const struct summary *summary)
{
	struct window *windows[STORE_PARTS_MAX] = {}, *window = NULL;
	struct store_reader *reader = NULL;
	size_t i;
	int r = store_reader_borrow(&store->db, &reader);

	for (i = 0; i < summary->n && !r; i++)
		r = store_reader_load(reader, &summary->windows[i], &windows[i]);
	if (!r)
		r = window_make(store, summary, windows, &window);
	if (!r)
		r = summary_write(store, reader, summary, window);
	window_unref(window);
	for (i = 0; i < summary->n; i++)
		window_unref(windows[i]);
	store_reader_close(reader);
	return store_is_unmergeable(r) ? 0 : r;
}

/*
 * Examines the windows that windows_find() has found: makes their summary unless it is there. If
 * there is a summary of only some of them, which an earlier run made with other tiers, replaces it.
 */
static int windows_examine(struct store *store, uint64_t session, const struct summary *summary)
{
	struct tier_row row = { .tier = summary->tier, .session = session };
	int64_t last_id = summary->windows[summary->n - 1].id, id, last, size;
	size_t i;
	int r;

	if (summary->n < LEAST_WINDOWS)
		return 0;
	r = store_summary_find(store, session, last_id, &id, &last, &size);
	if (!r && id == summary->windows[0].id && last == last_id)
		return 0;
	r = store_db_run(&store->db, "BEGIN IMMEDIATE");
	for (i = 0; i < summary->n && !r; i++) {
		row.id = summary->windows[i].id;
		r = store_tier_drop_summary(store, &row);
	}
	if (!r || !sqlite3_get_autocommit(store->db.handle))
		r = store_step_end(store, r);
	return r ? r : summary_make(store, summary);
}

int store_summary_step(struct store *store)
{
	_cleanup_(freep) struct summary *summary = NULL;
	size_t tier, session;
	int r;

	for (tier = 0; tier < store->n_tiers; tier++) {
		for (session = 0; session < STORE_ALWAYS_MAX; session++) {
			if (!store->summaries.is_due[tier][session])
				continue;
			if (!summary)
				summary = calloc(1, sizeof(*summary));
			if (!summary)
				return -ENOMEM;
			r = windows_find(store, tier, session, summary);
			if (r == -ENOENT)
				store->summaries.is_due[tier][session] = false;
			if (r && r != -ENOENT)
				return r;
			if (r)
				continue;
			r = windows_examine(store, session, summary);
			if (r)
				return r;
			store->summaries.done_to[tier][session] =
				summary->windows[summary->n - 1].id;
			return 1;
		}
	}
	return 0;
}
