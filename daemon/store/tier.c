/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/tier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/internal.h"

/* The value of the column length_ns for windows of sessions that clients started. */
#define LENGTH_OF_CLIENTS (-1)

size_t store_tier_of(const struct store_tier *tiers, size_t n, int64_t length_ns)
{
	size_t tier = n - 1;

	if (length_ns == LENGTH_OF_CLIENTS)
		return tier;
	while (tier && length_ns < tiers[tier].length_ns)
		tier--;
	return tier;
}

/* Writes an SQL expression to `text` that computes the same as store_tier_of(). */
static void tier_expression(const struct store *store, char *text, size_t size)
{
	size_t i, used;

	used = (size_t)snprintf(text, size, "CASE WHEN length_ns < 0 THEN %zu", store->n_tiers - 1);
	for (i = store->n_tiers - 1; i > 0; i--)
		used += (size_t)snprintf(text + used, size - used,
					 " WHEN length_ns >= %" PRId64 " THEN %zu",
					 store->tiers[i].length_ns, i);
	snprintf(text + used, size - used, " ELSE 0 END");
}

static int rows_repair(struct store *store)
{
	char tier[512], text[1400];
	int r;

	/*
	 * Earlier versions of stackd did not store length_ns, the length that a tier's windows
	 * have. A window as it was recorded gets 0. A window that was merged from others (parts >
	 * 1) gets the time from its start to its end, which is that length unless windows were
	 * missing.
	 */
	r = store_db_run(
		&store->db,
		"INSERT INTO window_tiers (id, tier, length_ns, session, start_real_ns,"
		" end_real_ns, size, row_limit) SELECT id, 0, CASE WHEN session >= 100 THEN"
		" -1 WHEN parts = 1 THEN 0 ELSE end_ns - start_ns END, session,"
		" start_real_ns, end_real_ns, length(blob), 0 FROM windows"
		" WHERE id NOT IN (SELECT id FROM window_tiers);"
		"DELETE FROM window_tiers WHERE id NOT IN (SELECT id FROM windows)");
	if (r)
		return r;
	tier_expression(store, tier, sizeof(tier));
	snprintf(text, sizeof(text), "UPDATE window_tiers SET tier = %s WHERE tier != %s", tier,
		 tier);
	return store_db_run(&store->db, text);
}

static void early_name(size_t tier, char *name, size_t size)
{
	snprintf(name, size, "early%zu", tier);
}

int64_t store_tier_early(struct store_db *db, size_t tier)
{
	int64_t end = INT64_MIN;
	sqlite3_stmt *statement;
	char name[16];
	int r;

	early_name(tier, name, sizeof(name));
	statement = store_db_statement(db, STATEMENT_META_GET, &r);
	if (r)
		return end;
	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	if (store_db_step(db, statement) > 0)
		end = sqlite3_column_int64(statement, 0);
	sqlite3_reset(statement);
	return end;
}

int store_tiers_sum(struct store *store)
{
	sqlite3_stmt *statement;
	size_t tier;
	int r;

	for (tier = 0; tier < store->n_tiers; tier++) {
		store->sums[tier].windows = 0;
		store->sums[tier].bytes = 0;
		store->sums[tier].early_ns = store_tier_early(&store->db, tier);
	}
	statement = store_db_statement(&store->db, STATEMENT_TIER_SUMS, &r);
	if (r)
		return r;
	while ((r = store_db_step(&store->db, statement)) > 0) {
		tier = (size_t)sqlite3_column_int64(statement, 0);
		if (tier >= store->n_tiers)
			continue;
		store->sums[tier].windows = (uint64_t)sqlite3_column_int64(statement, 1);
		store->sums[tier].bytes = sqlite3_column_int64(statement, 2);
	}
	return r;
}

/* Runs the statement and reads its first row. Returns 0, -ENOENT (no row) or another errno. */
static int row_read(struct store *store, sqlite3_stmt *statement, struct tier_row *out)
{
	int r = store_db_step(&store->db, statement);

	if (r <= 0)
		return r ? r : -ENOENT;
	*out = (struct tier_row){
		.id = sqlite3_column_int64(statement, 0),
		.tier = (size_t)sqlite3_column_int64(statement, 1),
		.session = (uint64_t)sqlite3_column_int64(statement, 2),
		.start_ns = sqlite3_column_int64(statement, 3),
		.end_ns = sqlite3_column_int64(statement, 4),
		.size = sqlite3_column_int64(statement, 5),
		.row_limit = (uint32_t)sqlite3_column_int64(statement, 6),
	};
	sqlite3_reset(statement);
	return out->tier < store->n_tiers ? 0 : -EUCLEAN;
}

static int row_get(struct store *store, enum store_statement which, int64_t key,
		   struct tier_row *out)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, which, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, key);
	return row_read(store, statement, out);
}

/*
 * Threads are halved twice as often as rows: a thread takes several times the bytes of a row, and
 * the name of its process as many again. The sums by comm and stack do not depend on the threads.
 */
struct window_fold_limits store_fold_limits(const struct window_fold_limits *fold,
					    unsigned int level)
{
	struct window_fold_limits limits = *fold;

	if (!fold->max_rows)
		return limits;
	limits.max_rows = fold->max_rows >> level ? fold->max_rows >> level : 1;
	limits.max_folded = fold->max_folded >> level;
	if (level)
		limits.max_images = fold->max_rows >> 2 * level ? fold->max_rows >> 2 * level : 1;
	return limits;
}

uint32_t store_tier_rows(const struct store *store, size_t tier)
{
	uint64_t rows = store_fold_limits(&store->fold, store->sums[tier].level).max_rows;

	return rows > UINT32_MAX ? UINT32_MAX : (uint32_t)rows;
}

/*
 * Finds the level of each tier (see struct tier_sums) from the row limit of its newest window: an
 * earlier run of stackd may have raised the level.
 */
static void levels_get(struct store *store)
{
	struct tier_row row;
	size_t i;

	for (i = 0; i < store->n_tiers; i++) {
		store->sums[i].level = 0;
		store->sums[i].folded_to = 0;
		if (row_get(store, STATEMENT_TIER_NEWEST, (int64_t)i, &row) || !row.row_limit)
			continue;
		while (store->sums[i].level < STORE_LEVEL_MAX &&
		       row.row_limit < store_tier_rows(store, i))
			store->sums[i].level++;
	}
}

int store_tiers_open(struct store *store)
{
	int r = store_db_run(&store->db, "BEGIN IMMEDIATE");

	if (r)
		return r;
	r = rows_repair(store);
	if (!r)
		r = store_db_run(&store->db, "COMMIT");
	if (r && !sqlite3_get_autocommit(store->db.handle))
		store_db_run(&store->db, "ROLLBACK");
	if (!r)
		r = store_tiers_sum(store);
	if (!r)
		levels_get(store);
	return r;
}

int store_tier_add(struct store *store, const struct store_entry *entry, int64_t length_ns,
		   size_t size, uint32_t row_limit)
{
	sqlite3_stmt *statement;
	size_t tier;
	int r;

	if (entry->session >= SESSION_FIRST_ID)
		length_ns = LENGTH_OF_CLIENTS;
	tier = store_tier_of(store->tiers, store->n_tiers, length_ns);
	statement = store_db_statement(&store->db, STATEMENT_TIER_ADD, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, entry->id);
	sqlite3_bind_int64(statement, 2, (int64_t)tier);
	sqlite3_bind_int64(statement, 3, length_ns);
	sqlite3_bind_int64(statement, 4, (int64_t)entry->session);
	sqlite3_bind_int64(statement, 5, store_entry_start(entry));
	sqlite3_bind_int64(statement, 6, store_entry_end(entry));
	sqlite3_bind_int64(statement, 7, (int64_t)size);
	sqlite3_bind_int64(statement, 8, row_limit);
	r = store_db_exec(&store->db, statement);
	if (r)
		return r;
	store->sums[tier].windows++;
	store->sums[tier].bytes += (int64_t)size;
	return 0;
}

int store_tier_get(struct store *store, int64_t id, struct tier_row *out)
{
	return row_get(store, STATEMENT_TIER_GET, id, out);
}

int store_tier_oldest(struct store *store, size_t tier, struct tier_row *out)
{
	return row_get(store, STATEMENT_TIER_OLDEST, (int64_t)tier, out);
}

static int id_run(struct store *store, enum store_statement which, int64_t id)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, which, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, id);
	return store_db_exec(&store->db, statement);
}

int store_tier_drop(struct store *store, int64_t id)
{
	struct tier_row row = {};
	int r = store_tier_get(store, id, &row);
	bool has_row = r == 0;

	if (r && r != -ENOENT)
		return r;
	r = id_run(store, STATEMENT_WINDOW_DROP, id);
	if (r || !has_row)
		return r;
	store->sums[row.tier].windows--;
	store->sums[row.tier].bytes -= row.size;
	store->removed_bytes += row.size;
	return id_run(store, STATEMENT_TIER_DROP, id);
}

int store_tier_move(struct store *store, const struct tier_row *row)
{
	size_t next = row->tier + 1;
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, STATEMENT_TIER_MOVE, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, row->id);
	sqlite3_bind_int64(statement, 2, (int64_t)next);
	sqlite3_bind_int64(statement, 3, store->tiers[next].length_ns);
	r = store_db_exec(&store->db, statement);
	if (r)
		return r;
	store->sums[row->tier].windows--;
	store->sums[row->tier].bytes -= row->size;
	store->sums[next].windows++;
	store->sums[next].bytes += row->size;
	return 0;
}

int store_tier_note_early(struct store *store, size_t tier, int64_t end_ns)
{
	char name[16];
	int r;

	early_name(tier, name, sizeof(name));
	r = store_meta_set(store, name, end_ns, NULL);
	if (!r)
		store->sums[tier].early_ns = end_ns;
	return r;
}

int store_tier_widest(struct store *store, size_t tier, struct tier_row *out)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, STATEMENT_TIER_WIDEST, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, (int64_t)tier);
	sqlite3_bind_int64(statement, 2, store->sums[tier].folded_to);
	sqlite3_bind_int64(statement, 3, store_tier_rows(store, tier));
	return row_read(store, statement, out);
}

int store_tier_resize(struct store *store, const struct tier_row *row, int64_t size,
		      uint32_t row_limit)
{
	sqlite3_stmt *statement;
	int r;

	statement = store_db_statement(&store->db, STATEMENT_TIER_RESIZE, &r);
	if (r)
		return r;
	sqlite3_bind_int64(statement, 1, row->id);
	sqlite3_bind_int64(statement, 2, size);
	sqlite3_bind_int64(statement, 3, row_limit);
	r = store_db_exec(&store->db, statement);
	if (r)
		return r;
	store->sums[row->tier].bytes += size - row->size;
	store->removed_bytes += row->size - size;
	return 0;
}

void store_tiers_relax(struct store *store)
{
	size_t i;

	for (i = 0; i < store->n_tiers; i++) {
		const struct store_tier_stats *stats = &store->stats.tiers[i];

		/*
		 * Windows with twice as many rows and four times as many threads take less than
		 * three times the space. The tier uses less than a third of its share, so its
		 * windows may have as many again.
		 */
		if (store->sums[i].level && stats->bytes < stats->max_bytes / 3)
			store->sums[i].level--;
	}
}

size_t store_tier_over(const struct store *store, unsigned int skipped)
{
	size_t found = store->n_tiers, i;
	double most = -1, over;

	for (i = 0; i < store->n_tiers; i++) {
		if (!store->sums[i].windows || skipped & 1U << i)
			continue;
		over = (double)store->sums[i].bytes /
		       (store->tiers[i].share ? store->tiers[i].share : 1e-6);
		if (over > most) {
			most = over;
			found = i;
		}
	}
	return found;
}

/*
 * Sets *out to the stats of tier i. All tables together take `used` bytes, of which the encoded
 * windows of all tiers take `blobs` bytes.
 */
static void tier_count(struct store *store, size_t i, int64_t used, int64_t blobs,
		       struct store_tier_stats *out)
{
	const struct tier_sums *sums = &store->sums[i];
	struct tier_row oldest, newest;

	*out = (struct store_tier_stats){
		.tier = store->tiers[i],
		.max_rows = store_tier_rows(store, i),
		.windows = sums->windows,
		.max_bytes = store_room(store) * store->tiers[i].share / 100,
		.oldest_ns = INT64_MIN,
		.newest_ns = INT64_MIN,
		.early_ns = sums->early_ns,
	};
	if (blobs)
		out->bytes = (uint64_t)((double)used * (double)sums->bytes / (double)blobs);
	if (store_tier_oldest(store, i, &oldest) ||
	    row_get(store, STATEMENT_TIER_NEWEST, (int64_t)i, &newest))
		return;
	out->oldest_ns = oldest.start_ns;
	out->newest_ns = newest.end_ns;
}

void store_tiers_count(struct store *store)
{
	struct store_tier_stats tiers[STORE_TIERS_MAX];
	int64_t used = 0, blobs = 0;
	size_t i;

	store_db_used_bytes(&store->db, &used);
	for (i = 0; i < store->n_tiers; i++)
		blobs += store->sums[i].bytes;
	for (i = 0; i < store->n_tiers; i++)
		tier_count(store, i, used, blobs, &tiers[i]);
	pthread_mutex_lock(&store->lock);
	memcpy(store->stats.tiers, tiers, store->n_tiers * sizeof(tiers[0]));
	store->stats.n_tiers = store->n_tiers;
	pthread_mutex_unlock(&store->lock);
}
