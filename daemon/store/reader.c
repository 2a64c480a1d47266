/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/store/db.h"
#include "daemon/store/intern.h"
#include "daemon/store/intern_read.h"
#include "daemon/store/session_row.h"
#include "daemon/store/store.h"
#include "daemon/store/tier.h"
#include "daemon/store/window_row.h"

/*
 * No window is longer than this. The setting [window] length is at most 10 min. The length of
 * windows in [store] tiers is at most 30 min, and a merged window takes less than twice that.
 */
#define LONGEST_NS (3600 * NS_PER_S)

struct store_reader {
	struct store_db *db; /* own_db, or the connection of the writer */
	struct store_db own_db;
	struct store_intern_reader *interned;
	bool is_query; /* store_reader_set_query() was called */
	struct store_query query;
	uint64_t damaged;
};

/* Opens the database of a new reader. */
static int reader_connect(struct store_reader *reader, const char *path)
{
	int r = store_db_open(reader->db, path, false);

	if (r)
		return r;
	r = store_intern_reader_new(reader->db, &reader->damaged, &reader->interned);
	if (r)
		return r;
	/*
	 * Read all in one transaction, so that all reads see the database as it is at this moment.
	 */
	return store_db_run(reader->db, "BEGIN");
}

int store_reader_open(const char *path, struct store_reader **out)
{
	struct store_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	reader->db = &reader->own_db;
	r = reader_connect(reader, path);
	if (r) {
		store_reader_close(reader);
		return r;
	}
	*out = reader;
	return 0;
}

int store_reader_borrow(struct store_db *db, struct store_reader **out)
{
	struct store_reader *reader = calloc(1, sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	reader->db = db;
	r = store_intern_reader_new(reader->db, &reader->damaged, &reader->interned);
	if (r) {
		store_reader_close(reader);
		return r;
	}
	store_intern_reader_skip_frames(reader->interned);
	*out = reader;
	return 0;
}

struct store_reader *store_reader_close(struct store_reader *reader)
{
	if (!reader)
		return NULL;
	store_intern_reader_free(reader->interned);
	if (reader->db == &reader->own_db)
		store_db_close(reader->db);
	free(reader);
	return NULL;
}

void store_reader_rest(struct store_reader *reader)
{
	if (reader && !sqlite3_get_autocommit(reader->db->handle))
		store_db_run(reader->db, "COMMIT");
}

/*
 * Reads at most `max` entries from the statement's rows. Leaves out damaged rows and counts them.
 */
static int entries_read(struct store_reader *reader, sqlite3_stmt *statement, size_t max,
			bool are_summaries, struct store_entry **out, size_t *n_out)
{
	struct store_entry *entries = NULL;
	size_t n = 0, capacity = 0;
	int r;

	while ((r = store_db_row(reader->db, statement)) > 0 && n < max) {
		r = array_reserve(entries, capacity, n + 1);
		if (r)
			break;
		r = are_summaries ? store_summary_row_read(statement, &entries[n])
				  : store_row_read(statement, &entries[n]);
		n += r == 0;
		reader->damaged += r == -EBADMSG;
	}
	if (r != 0)
		sqlite3_reset(statement);
	/* SQLite cannot read past a damaged page: return the rows before it, which are good. */
	if (r == -EUCLEAN) {
		reader->damaged++;
		r = 0;
	}
	if (r < 0) {
		free(entries);
		return r;
	}
	*out = entries;
	*n_out = n;
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct store_entry *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

int store_reader_list(struct store_reader *reader, const struct store_select *select,
		      int64_t since_ns, int64_t until_ns, size_t max, struct store_entry **out,
		      size_t *n_out)
{
	int64_t from = since_ns > INT64_MIN + LONGEST_NS ? since_ns - LONGEST_NS : INT64_MIN;
	sqlite3_stmt *statement;
	int r;

	if (select->session)
		r = store_db_query(reader->db, STATEMENT_WINDOW_LIST_SESSION, &statement, "iiiiii",
				   from, until_ns, since_ns, (int64_t)max, (int64_t)select->session,
				   (int64_t)select->run);
	else
		r = store_db_query(reader->db, STATEMENT_WINDOW_LIST, &statement, "iiiiti", from,
				   until_ns, since_ns, (int64_t)max, select->probe,
				   (int64_t)SESSION_FIRST_ID);
	if (r)
		return r;
	r = entries_read(reader, statement, max, false, out, n_out);
	if (!r && *n_out)
		qsort(*out, *n_out, sizeof(**out), by_id);
	return r;
}

int store_reader_summaries(struct store_reader *reader, const char *probe, int64_t since_ns,
			   int64_t until_ns, struct store_entry **out, size_t *n_out)
{
	sqlite3_stmt *statement;
	int r;

	*out = NULL;
	*n_out = 0;
	r = store_db_query(reader->db, STATEMENT_SUMMARY_LIST, &statement, "iit", since_ns,
			   until_ns, probe);
	if (r)
		return r;
	return entries_read(reader, statement, STORE_LIST_MAX, true, out, n_out);
}

int64_t store_reader_first(struct store_reader *reader, const char *probe, int64_t fallback_ns)
{
	int64_t first = fallback_ns;
	sqlite3_stmt *statement;

	if (!store_db_first(reader->db, STATEMENT_WINDOW_FIRST, &statement, "ti", probe,
			    (int64_t)SESSION_FIRST_ID)) {
		first = sqlite3_column_int64(statement, 0);
		sqlite3_reset(statement);
	}
	return first;
}

/*
 * True if `window`, which was decoded from the blob of a row, matches `entry`, which was read from
 * the other columns of the row.
 */
static bool window_is(const struct window *window, const struct store_entry *entry)
{
	return window->run == entry->run && window->seq == entry->seq &&
	       window->merged_from == entry->merged_from && window->kind == entry->kind &&
	       window->start_ns == entry->start_ns && window->end_ns == entry->end_ns &&
	       window->real_offset_ns == entry->real_offset_ns;
}

/* Samples are merged and folded by the functions of their stacks, waits by what their rows have. */
static struct store_names names_get(struct store_reader *reader, enum probe_kind kind)
{
	struct store_names names;

	if (!reader->is_query)
		return store_intern_reader_names(reader->interned, kind == PROBE_ONCPU);
	names = store_intern_reader_query_names(reader->interned, &reader->query);
	names.skips_members = reader->query.skips_members;
	names.wants = reader->query.wants;
	names.wants_userdata = reader->query.userdata;
	return names;
}

static int blob_decode(struct store_reader *reader, const struct store_entry *entry,
		       sqlite3_stmt *statement, struct window **out)
{
	struct store_names names = names_get(reader, entry->kind);
	const void *blob = sqlite3_column_blob(statement, 0);
	size_t size = (size_t)sqlite3_column_bytes(statement, 0);
	struct window *window;
	int r;

	if (!blob || sqlite3_column_int64(statement, 1) != store_sum(entry->id, blob, size))
		return -EBADMSG;
	r = store_blob_decode(blob, size, &names, &window);
	if (r)
		return r;
	if (!window_is(window, entry)) {
		window_unref(window);
		return -EBADMSG;
	}
	*out = window;
	return 0;
}

int store_reader_load(struct store_reader *reader, const struct store_entry *entry,
		      struct window **out)
{
	sqlite3_stmt *statement;
	int r = store_db_first(reader->db,
			       entry->summarized ? STATEMENT_SUMMARY_BLOB : STATEMENT_WINDOW_BLOB,
			       &statement, "i", entry->id);

	if (!r) {
		r = blob_decode(reader, entry, statement, out);
		sqlite3_reset(statement);
	} else if (r == -ENOENT || r == -EUCLEAN) {
		r = -EBADMSG;
	}
	if (r == -EBADMSG)
		reader->damaged++;
	return r;
}

void store_reader_set_query(struct store_reader *reader, const struct store_query *query)
{
	reader->is_query = true;
	reader->query = *query;
}

int store_reader_fill(struct store_reader *reader, struct stack *stack)
{
	if (!reader || !stack->is_partial)
		return 0;
	return store_intern_reader_fill(reader->interned, stack);
}

struct process *store_reader_process(struct store_reader *reader, int64_t number)
{
	return store_intern_reader_process(reader->interned, number);
}

/* Reads a session from the current row, and finds when the session's newest window ended. */
static int session_take(struct store_reader *reader, sqlite3_stmt *statement,
			struct store_session *out)
{
	int r = store_session_read(statement, out);
	int64_t ended = INT64_MIN;
	sqlite3_stmt *end;

	if (r) {
		reader->damaged += r == -EBADMSG;
		return r;
	}
	r = store_db_first(reader->db, STATEMENT_SESSION_END, &end, "ii", (int64_t)out->number,
			   (int64_t)out->run);
	if (!r) {
		if (sqlite3_column_type(end, 0) == SQLITE_INTEGER)
			ended = sqlite3_column_int64(end, 0);
		sqlite3_reset(end);
	}
	out->ended_ns = ended;
	return 0;
}

int store_reader_session(struct store_reader *reader, uint64_t number, const char *name,
			 struct store_session *out)
{
	sqlite3_stmt *statement;
	int r;

	if (number)
		r = store_db_first(reader->db, STATEMENT_SESSION_FIND, &statement, "i",
				   (int64_t)number);
	else
		r = store_db_first(reader->db, STATEMENT_SESSION_FIND, &statement, "-t", name);
	if (r)
		return r;
	r = session_take(reader, statement, out);
	sqlite3_reset(statement);
	return r == -EBADMSG ? -ENOENT : r;
}

int store_reader_sessions(struct store_reader *reader,
			  bool (*is_known)(void *userdata, const struct store_session *session),
			  void *userdata, struct store_session *out, size_t max)
{
	sqlite3_stmt *statement;
	size_t n = 0;
	int r = store_db_query(reader->db, STATEMENT_SESSION_LIST, &statement, "");

	if (r)
		return r;
	while (n < max && (r = store_db_row(reader->db, statement)) > 0) {
		r = session_take(reader, statement, &out[n]);
		if (r == -ENOMEM)
			break;
		if (r == 0 && out[n].ended_ns != INT64_MIN && !is_known(userdata, &out[n]))
			n++;
		else if (r == 0)
			store_session_fini(&out[n]);
	}
	sqlite3_reset(statement);
	return (int)n;
}

bool store_reader_gap(struct store_reader *reader, int64_t *start_ns, int64_t *end_ns, char *reason,
		      size_t size)
{
	sqlite3_stmt *statement;
	const unsigned char *text;

	if (store_db_first(reader->db, STATEMENT_GAP_FIND, &statement, "ii", *start_ns, *end_ns))
		return false;
	text = sqlite3_column_text(statement, 0);
	snprintf(reason, size, "%s", text ? (const char *)text : "not known");
	if (sqlite3_column_int64(statement, 1) > *start_ns)
		*start_ns = sqlite3_column_int64(statement, 1);
	if (sqlite3_column_int64(statement, 2) < *end_ns)
		*end_ns = sqlite3_column_int64(statement, 2);
	sqlite3_reset(statement);
	return true;
}

int store_reader_run(struct store_reader *reader, uint64_t run, struct store_run *out)
{
	sqlite3_stmt *statement;
	const unsigned char *text;
	int r = store_db_first(reader->db, STATEMENT_RUN_GET, &statement, "i", (int64_t)run);

	if (r)
		return r;
	text = sqlite3_column_text(statement, 0);
	*out = (struct store_run){
		.is_clean = sqlite3_column_int(statement, 1) != 0,
	};
	snprintf(out->boot_id, sizeof(out->boot_id), "%s", text ? (const char *)text : "");
	sqlite3_reset(statement);
	return 0;
}

int64_t store_reader_evicted(struct store_reader *reader, char *reason, size_t size)
{
	sqlite3_stmt *statement;
	const unsigned char *text;
	int64_t until;

	if (store_db_first(reader->db, STATEMENT_META_GET, &statement, "t", "evicted"))
		return 0;
	until = sqlite3_column_int64(statement, 0);
	text = sqlite3_column_text(statement, 1);
	snprintf(reason, size, "%s", text ? (const char *)text : "dropped");
	sqlite3_reset(statement);
	return until;
}

void store_reader_count(struct store_reader *reader, struct store_stats *out)
{
	int64_t windows = 0, id;
	struct stat st;

	store_db_number(reader->db, STATEMENT_WINDOW_COUNT, &windows);
	if (stat(sqlite3_db_filename(reader->db->handle, "main"), &st) == 0)
		out->bytes = (uint64_t)st.st_size;
	out->windows = (uint64_t)windows;
	out->oldest_ns = out->newest_ns = INT64_MIN;
	store_row_end(reader->db, STATEMENT_WINDOW_OLDEST, &id, &out->oldest_ns);
	store_row_end(reader->db, STATEMENT_WINDOW_NEWEST, &id, &out->newest_ns);
}

/* Adds the windows of one length, of which the statement has a row, to the stats of their tier. */
static void tier_add(sqlite3_stmt *statement, struct store_tier_stats *tier)
{
	int64_t start = sqlite3_column_int64(statement, 3);
	int64_t end = sqlite3_column_int64(statement, 4);

	tier->windows += (uint64_t)sqlite3_column_int64(statement, 1);
	tier->bytes += (uint64_t)sqlite3_column_int64(statement, 2);
	if (tier->oldest_ns == INT64_MIN || start < tier->oldest_ns)
		tier->oldest_ns = start;
	if (end > tier->newest_ns)
		tier->newest_ns = end;
}

int store_reader_tiers(struct store_reader *reader, const struct store_tier *tiers, size_t n,
		       struct store_tier_stats *out)
{
	uint64_t blobs = 0;
	sqlite3_stmt *statement;
	int64_t used = 0;
	size_t i;
	int r;

	for (i = 0; i < n; i++)
		out[i] = (struct store_tier_stats){
			.tier = tiers[i],
			.oldest_ns = INT64_MIN,
			.newest_ns = INT64_MIN,
			.early_ns = store_tier_early(reader->db, i),
		};
	r = store_db_query(reader->db, STATEMENT_TIER_LENGTHS, &statement, "");
	if (r)
		return r;
	while ((r = store_db_row(reader->db, statement)) > 0)
		tier_add(statement,
			 &out[store_tier_of(tiers, n, sqlite3_column_int64(statement, 0))]);
	if (!r)
		r = store_db_used_bytes(reader->db, &used);
	for (i = 0; i < n; i++)
		blobs += out[i].bytes;
	/* All rows count for the tiers in proportion to their windows. */
	for (i = 0; i < n && blobs; i++)
		out[i].bytes = (uint64_t)((double)used * (double)out[i].bytes / (double)blobs);
	return r;
}

struct store_names store_reader_names(struct store_reader *reader)
{
	return store_intern_reader_names(reader->interned, false);
}

uint64_t store_reader_damaged(const struct store_reader *reader)
{
	return reader->damaged;
}
