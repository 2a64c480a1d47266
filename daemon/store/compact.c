/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "common/base.h"
#include "daemon/store/downsample.h"
#include "daemon/store/internal.h"
#include "daemon/store/window_row.h"

/*
 * The lengths of merged windows. Windows that are older than the setting [store] merge_after are
 * merged into windows of one minute. Windows that are older than 7 times this setting (OLDER) are
 * merged into windows of ten minutes.
 */
#define MINUTE_NS      (60 * NS_PER_S)
#define TEN_MINUTES_NS (600 * NS_PER_S)

enum { OLDER = 7, PARTS_MAX = 64 /* PARTS_MAX: the most windows that are merged into one */ };

/*
 * True if the window `entry` directly follows the window `before` in the same run of stackd. False
 * if the clock was set or the host was suspended in between.
 */
static bool continues(const struct store_entry *entry, const struct store_entry *before)
{
	int64_t step = entry->real_offset_ns - before->real_offset_ns;
	int64_t slept = entry->boot_offset_ns - before->boot_offset_ns;

	return entry->run == before->run && entry->start_ns == before->end_ns &&
	       step <= NS_PER_MS && step >= -NS_PER_MS && slept <= NS_PER_MS && slept >= -NS_PER_MS;
}

/*
 * Returns how many windows, beginning with the first, can be merged into one. They must begin in
 * the same period of length_ns, without a break between them.
 */
static size_t group_size(const struct store_entry *entries, size_t n, int64_t length_ns)
{
	int64_t slot = store_entry_start(&entries[0]) / length_ns;
	size_t size = 1;

	while (size < n && size < PARTS_MAX && continues(&entries[size], &entries[size - 1]) &&
	       store_entry_start(&entries[size]) / length_ns == slot)
		size++;
	return size;
}

/*
 * Deletes the rows of n windows and adds the row of the window merged from them, in the open
 * transaction.
 */
static int parts_replace_in(struct store *store, struct store_reader *reader,
			    const struct store_entry *entries, size_t n,
			    const struct window *window)
{
	const struct store_names names = store_reader_names(reader);
	struct store_entry entry = store_entry_of(window, window->run);
	_cleanup_(bytes_fini) struct bytes blob = {}, lost = {};
	sqlite3_stmt *statement;
	size_t i;
	int r = store_blob_encode(window, window->run, &names, &blob);

	entry.id = entries[0].id;
	for (i = 0; i < n && !r; i++) {
		statement = store_db_statement(&store->db, STATEMENT_WINDOW_DROP, &r);
		if (r)
			return r;
		sqlite3_bind_int64(statement, 1, entries[i].id);
		r = store_db_exec(&store->db, statement);
	}
	if (r)
		return r;
	statement = store_db_statement(&store->db, STATEMENT_WINDOW_ADD, &r);
	if (r)
		return r;
	store_row_bind(statement, &entry, &lost);
	sqlite3_bind_int64(statement, 19, store_sum(entry.id, blob.data, blob.n));
	sqlite3_bind_blob(statement, 20, blob.data, (int)blob.n, SQLITE_STATIC);
	return lost.is_failed ? -ENOMEM : store_db_exec(&store->db, statement);
}

static int parts_replace(struct store *store, struct store_reader *reader,
			 const struct store_entry *entries, size_t n, const struct window *window)
{
	int r = store_db_run(&store->db, "BEGIN IMMEDIATE");

	if (r)
		return r;
	r = parts_replace_in(store, reader, entries, n, window);
	if (!r)
		r = store_db_run(&store->db, "COMMIT");
	if (r && !sqlite3_get_autocommit(store->db.handle))
		store_db_run(&store->db, "ROLLBACK");
	if (r)
		return r;
	pthread_mutex_lock(&store->lock);
	store->stats.compacted += n;
	pthread_mutex_unlock(&store->lock);
	return 0;
}

/*
 * Replaces n windows by one merged window. Changes nothing and returns 0 if one of the windows is
 * damaged, if only a newer stackd can read all of it, or if a merged count does not fit into its
 * type.
 */
static int group_compact(struct store *store, struct store_reader *reader,
			 const struct store_entry *entries, size_t n)
{
	struct window *windows[PARTS_MAX] = {}, *window = NULL;
	bool is_partial = false;
	size_t i;
	int r = 0;

	for (i = 0; i < n && !r && !is_partial; i++)
		r = store_reader_load(reader, &entries[i], &windows[i], &is_partial);
	if (!r && !is_partial)
		r = store_downsample(windows, n, &window);
	if (!r && window)
		r = parts_replace(store, reader, entries, n, window);
	window_unref(window);
	for (i = 0; i < n; i++)
		window_unref(windows[i]);
	return r == -EBADMSG || r == -EOVERFLOW ? 0 : r;
}

/*
 * Merges the next group of a session's windows into one window of the length length_ns, if the
 * whole group ended before the time before_ns. The group begins after the window with the id *from.
 * Sets *from to the id of the group's last window.
 */
static int level_step(struct store *store, struct store_reader *reader, uint64_t session,
		      int64_t *from, int64_t before_ns, int64_t length_ns)
{
	_cleanup_(freep) struct store_entry *entries = NULL;
	size_t n, size;
	int r = store_reader_after(reader, session, *from, PARTS_MAX + 1, &entries, &n);

	/* Wait until the whole group is old enough: otherwise it would be merged in pieces. */
	if (r || n == 0 || store_entry_end(&entries[0]) > before_ns - length_ns)
		return r;
	size = group_size(entries, n, length_ns);
	/*
	 * Wait until the session has a window after the group: until then, the next window may
	 * still belong to the group.
	 */
	if (size == n)
		return 0;
	*from = entries[size - 1].id;
	return size > 1 ? group_compact(store, reader, entries, size) : 0;
}

int store_compact_step(struct store *store, int64_t now_ns)
{
	struct store_reader *reader = NULL;
	int64_t after_ns;
	uint64_t session;
	int r;

	pthread_mutex_lock(&store->lock);
	after_ns = store->compact_after_ns;
	pthread_mutex_unlock(&store->lock);
	if (!after_ns)
		return 0;
	r = store_reader_open(store->path, &reader);
	for (session = 0; session < STORE_COMPACTED_SESSIONS && !r; session++) {
		r = level_step(store, reader, session, &store->compact_from[session][0],
			       now_ns - after_ns, MINUTE_NS);
		if (!r)
			r = level_step(store, reader, session, &store->compact_from[session][1],
				       now_ns - OLDER * after_ns, TEN_MINUTES_NS);
	}
	store_reader_close(reader);
	return r;
}
