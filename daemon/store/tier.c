/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/tier.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/store/internal.h"
#include "daemon/store/summary.h"
#include "daemon/store/window_row.h"

/* The value of the column length_ns for windows of sessions that clients started. */
#define LENGTH_OF_CLIENTS (-1)

/*
 * The greatest weight of a tier that is believed when it is read from the database, which may be
 * damaged. WEIGHT_ONE is the number in the database that stands for a weight of 1.
 */
enum { WEIGHT_MOST = 1000, WEIGHT_ONE = 1000 };

/*
 * IMAGES_LEAST: the number of threads, and of sums of processes, below which those of a window are
 * not halved more often than its rows. WHOLE_PART: if the rows of a window are halved, one in
 * WHOLE_PART of those that stay as they are stays so; the others are added to those that stand for
 * several processes.
 */
enum { IMAGES_LEAST = 16, WHOLE_PART = 4 };

/* The bytes of max_size that are reserved for the database's log and for half-empty pages. */
#define RESERVE (6U << 20)

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

/* Puts each window into the tier for its length, as the setting [store] tiers has it now. */
static int tiers_assign(struct store *store)
{
	char tier[512], text[1400];

	tier_expression(store, tier, sizeof(tier));
	snprintf(text, sizeof(text), "UPDATE window_tiers SET tier = %s WHERE tier != %s", tier,
		 tier);
	return store_db_run(&store->db, text);
}

/* Reads the number of a tier that the table `meta` has as `prefix` and the tier's index. */
static int64_t meta_get(struct store_db *db, const char *prefix, size_t tier, int64_t fallback)
{
	sqlite3_stmt *statement;
	int64_t value = fallback;
	char name[32];

	snprintf(name, sizeof(name), "%s%zu", prefix, tier);
	if (!store_db_first(db, STATEMENT_META_GET, &statement, "t", name)) {
		value = sqlite3_column_int64(statement, 0);
		sqlite3_reset(statement);
	}
	return value;
}

static int meta_set(struct store *store, const char *prefix, size_t tier, int64_t value)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%zu", prefix, tier);
	return store_db_change(&store->db, STATEMENT_META_SET, "tit", name, value, NULL);
}

int64_t store_tier_early(struct store_db *db, size_t tier)
{
	return meta_get(db, "early", tier, INT64_MIN);
}

/* Reads the weight of a tier that an earlier collection found; 0: none, or it cannot be right. */
static double weight_get(struct store *store, size_t tier)
{
	int64_t weight = meta_get(&store->db, "weight", tier, 0);

	if (weight < WEIGHT_ONE || weight > (int64_t)WEIGHT_MOST * WEIGHT_ONE)
		return 0;
	return (double)weight / WEIGHT_ONE;
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
		store->sums[tier].weight = weight_get(store, tier);
	}
	r = store_db_query(&store->db, STATEMENT_TIER_SUMS, &statement, "");
	if (r)
		return r;
	while ((r = store_db_row(&store->db, statement)) > 0) {
		tier = (size_t)sqlite3_column_int64(statement, 0);
		if (tier >= store->n_tiers)
			continue;
		store->sums[tier].windows = (uint64_t)sqlite3_column_int64(statement, 1);
		store->sums[tier].bytes = sqlite3_column_int64(statement, 2);
	}
	return r ? r : store_summaries_sum(store);
}

/* Reads the statement's row. Returns 0 or -EUCLEAN. */
static int row_read(struct store *store, sqlite3_stmt *statement, struct tier_row *out)
{
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
	int r = store_db_first(&store->db, which, &statement, "i", key);

	return r ? r : row_read(store, statement, out);
}

/*
 * Returns how many threads stay as they are in a window whose max_rows rows were halved `level`
 * times. Threads are halved twice as often as rows: a thread takes several times the bytes of a
 * row, and the name of its process as many again. The sums by comm and stack do not depend on the
 * threads. A few are left in any case, as long as there are as many rows.
 */
static size_t fold_images(size_t max_rows, unsigned int level)
{
	size_t rows = max_rows >> level, images = max_rows >> 2 * level;

	if (images < IMAGES_LEAST)
		images = rows < IMAGES_LEAST ? rows : IMAGES_LEAST;
	return images ? images : 1;
}

uint32_t store_fold_rows(const struct window_fold_limits *fold, unsigned int level)
{
	size_t rows = fold->max_rows >> level;

	if (fold->max_rows && !rows)
		rows = 1;
	return rows > UINT32_MAX ? UINT32_MAX : (uint32_t)rows;
}

/*
 * If few rows are left, a row of one process is worth less than one with the sum of all processes
 * that have the same comm and stacks: without the latter, that sum is missing in the first lines of
 * an answer.
 */
struct window_fold_limits store_fold_limits(const struct window_fold_limits *fold,
					    unsigned int level)
{
	struct window_fold_limits limits = *fold;
	size_t rows = store_fold_rows(fold, level), whole = rows / WHOLE_PART;

	if (!level || !rows)
		return limits;
	limits.max_rows = whole ? whole : 1;
	limits.max_folded = (fold->max_folded >> level) + rows - limits.max_rows;
	limits.max_images = fold_images(fold->max_rows, level);
	/* A process that keeps its sum takes as many bytes as a thread. */
	limits.max_sums = fold->max_sums >> 2 * level;
	if (limits.max_sums < IMAGES_LEAST)
		limits.max_sums = fold->max_sums < IMAGES_LEAST ? fold->max_sums : IMAGES_LEAST;
	/* A thread without a row that stays is not worth its entry. */
	if (limits.max_images > limits.max_rows)
		limits.max_images = limits.max_rows;
	return limits;
}

uint32_t store_tier_rows(const struct store *store, size_t tier)
{
	return store_fold_rows(&store->fold, store->sums[tier].level);
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

/* Assigns the windows to tiers and opens the summaries, and commits the open transaction. */
static int tiers_commit(struct store *store)
{
	int r = tiers_assign(store);

	if (r)
		return r;
	r = store_summaries_open(store);
	if (r)
		return r;
	return store_db_run(&store->db, "COMMIT");
}

int store_tiers_open(struct store *store)
{
	int r = store_db_run(&store->db, "BEGIN IMMEDIATE");

	if (r)
		return r;
	r = tiers_commit(store);
	if (r) {
		if (!sqlite3_get_autocommit(store->db.handle))
			store_db_run(&store->db, "ROLLBACK");
		return r;
	}
	r = store_tiers_sum(store);
	if (r)
		return r;
	levels_get(store);
	return 0;
}

int store_tier_add(struct store *store, const struct store_entry *entry, int64_t length_ns,
		   size_t size, uint32_t row_limit)
{
	size_t tier;
	int r;

	if (entry->session >= SESSION_FIRST_ID)
		length_ns = LENGTH_OF_CLIENTS;
	tier = store_tier_of(store->tiers, store->n_tiers, length_ns);
	r = store_db_change(&store->db, STATEMENT_TIER_ADD, "iiiiiiii", entry->id, (int64_t)tier,
			    length_ns, (int64_t)entry->session, store_entry_start(entry),
			    store_entry_end(entry), (int64_t)size, (int64_t)row_limit);
	if (r)
		return r;
	store->sums[tier].windows++;
	store->sums[tier].bytes += (int64_t)size;
	store_summary_look(store, tier, entry->session);
	return 0;
}

int store_tier_entries(struct store *store, size_t tier, uint64_t session, int64_t first_id,
		       size_t max, struct store_entry *out, size_t *n_out)
{
	sqlite3_stmt *statement;
	size_t n = 0;
	int r = store_db_query(&store->db, STATEMENT_TIER_GROUP, &statement, "iiii", (int64_t)tier,
			       (int64_t)session, first_id, (int64_t)max);

	if (r)
		return r;
	while (n < max && (r = store_db_row(&store->db, statement)) > 0)
		n += store_row_read(statement, &out[n]) == 0;
	sqlite3_reset(statement);
	*n_out = n;
	return r < 0 ? r : 0;
}

int store_tier_get(struct store *store, int64_t id, struct tier_row *out)
{
	return row_get(store, STATEMENT_TIER_GET, id, out);
}

int store_tier_oldest(struct store *store, size_t tier, struct tier_row *out)
{
	return row_get(store, STATEMENT_TIER_OLDEST, (int64_t)tier, out);
}

int store_tier_drop_summary(struct store *store, const struct tier_row *row)
{
	int64_t id, last, size;
	int r;

	if (row->session >= STORE_ALWAYS_MAX)
		return 0;
	r = store_summary_find(store, row->session, row->id, &id, &last, &size);
	if (r)
		return r == -ENOENT ? 0 : r;
	r = store_db_change(&store->db, STATEMENT_SUMMARY_DROP, "i", id);
	if (r)
		return r;
	store_tier_resized(store, row->tier, -size);
	return 0;
}

int store_tier_drop(struct store *store, int64_t id)
{
	struct tier_row row = {};
	int r = store_tier_get(store, id, &row);
	bool has_row = r == 0;

	if (r && r != -ENOENT)
		return r;
	r = store_db_change(&store->db, STATEMENT_WINDOW_DROP, "i", id);
	if (r || !has_row)
		return r;
	r = store_tier_drop_summary(store, &row);
	if (r)
		return r;
	store->sums[row.tier].windows--;
	store_tier_resized(store, row.tier, -row.size);
	return store_db_change(&store->db, STATEMENT_TIER_DROP, "i", id);
}

int store_evict_window(struct store *store, int64_t id, int64_t end_ns, const char *reason,
		       uint64_t *counter)
{
	int r = store_tier_drop(store, id);

	if (r)
		return r;
	r = store_db_change(&store->db, STATEMENT_META_SET, "tit", "evicted", end_ns, reason);
	if (r)
		return r;
	pthread_mutex_lock(&store->lock);
	(*counter)++;
	pthread_mutex_unlock(&store->lock);
	return 0;
}

int store_tier_move(struct store *store, const struct tier_row *row)
{
	size_t next = row->tier + 1;
	int r = store_tier_drop_summary(store, row);

	if (r)
		return r;
	r = store_db_change(&store->db, STATEMENT_TIER_MOVE, "iii", row->id, (int64_t)next,
			    store->tiers[next].length_ns);
	if (r)
		return r;
	store->sums[row->tier].windows--;
	store->sums[row->tier].bytes -= row->size;
	store->sums[next].windows++;
	store->sums[next].bytes += row->size;
	store_summary_look(store, next, row->session);
	return 0;
}

int store_tier_note_early(struct store *store, size_t tier, int64_t end_ns)
{
	int r = meta_set(store, "early", tier, end_ns);

	if (!r)
		store->sums[tier].early_ns = end_ns;
	return r;
}

int store_tier_widest(struct store *store, size_t tier, struct tier_row *out)
{
	sqlite3_stmt *statement;
	int r = store_db_first(&store->db, STATEMENT_TIER_WIDEST, &statement, "iii", (int64_t)tier,
			       store->sums[tier].folded_to, (int64_t)store_tier_rows(store, tier));

	if (r)
		return r;
	return row_read(store, statement, out);
}

int store_tier_resize(struct store *store, const struct tier_row *row, int64_t size,
		      uint32_t row_limit)
{
	int r = store_db_change(&store->db, STATEMENT_TIER_RESIZE, "iii", row->id, size,
				(int64_t)row_limit);

	if (r)
		return r;
	store_tier_resized(store, row->tier, size - row->size);
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

/*
 * Returns the weight of a tier. A tier without a weight is taken to be like the tier from which its
 * windows come.
 */
static double weight_of(const struct store *store, size_t tier)
{
	while (tier && !store->sums[tier].weight)
		tier--;
	return store->sums[tier].weight ? store->sums[tier].weight : 1;
}

void store_tier_resized(struct store *store, size_t tier, int64_t bytes)
{
	store->sums[tier].bytes += bytes;
	if (bytes < 0)
		store->removed_bytes += (int64_t)(weight_of(store, tier) * (double)-bytes);
}

int64_t store_tier_bytes(const struct store *store, size_t tier)
{
	return (int64_t)(weight_of(store, tier) * (double)store->sums[tier].bytes);
}

int64_t store_tiers_bytes(const struct store *store)
{
	int64_t bytes = 0;
	size_t i;

	for (i = 0; i < store->n_tiers; i++)
		bytes += store_tier_bytes(store, i);
	return bytes;
}

bool store_tiers_unweighed(const struct store *store)
{
	bool has_windows = false;
	size_t i;

	for (i = 0; i < store->n_tiers; i++) {
		if (store->sums[i].weight)
			return false;
		has_windows |= store->sums[i].bytes > 0;
	}
	return has_windows;
}

int store_tiers_weigh(struct store *store, const double *shared, const double *encoded)
{
	size_t i;
	int r = 0;

	for (i = 0; i < store->n_tiers && !r; i++) {
		struct tier_sums *sums = &store->sums[i];

		if (encoded[i] < 1)
			continue;
		sums->weight = 1 + shared[i] / encoded[i];
		if (sums->weight > WEIGHT_MOST)
			sums->weight = WEIGHT_MOST;
		r = meta_set(store, "weight", i, (int64_t)(sums->weight * WEIGHT_ONE));
	}
	return r;
}

size_t store_tier_over(const struct store *store, unsigned int skipped)
{
	size_t found = store->n_tiers, i;
	double most = -1, over;

	for (i = 0; i < store->n_tiers; i++) {
		if (!store->sums[i].windows || skipped & 1U << i)
			continue;
		over = (double)store_tier_bytes(store, i) /
		       (store->tiers[i].share ? store->tiers[i].share : 1e-6);
		if (over > most) {
			most = over;
			found = i;
		}
	}
	return found;
}

uint64_t store_room(const struct store *store)
{
	return store->max_size - RESERVE;
}

/*
 * Sets *out to the stats of tier i. All tables together take `used` bytes; they are divided among
 * the tiers in proportion to the estimates, of which `all` is the sum.
 */
static void tier_count(struct store *store, size_t i, int64_t used, int64_t all,
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
	if (all)
		out->bytes =
			(uint64_t)((double)used * (double)store_tier_bytes(store, i) / (double)all);
	if (store_tier_oldest(store, i, &oldest) ||
	    row_get(store, STATEMENT_TIER_NEWEST, (int64_t)i, &newest))
		return;
	out->oldest_ns = oldest.start_ns;
	out->newest_ns = newest.end_ns;
}

void store_tiers_count(struct store *store)
{
	struct store_tier_stats tiers[STORE_TIERS_MAX];
	int64_t used = 0, all = store_tiers_bytes(store);
	size_t i;

	store_db_used_bytes(&store->db, &used);
	for (i = 0; i < store->n_tiers; i++)
		tier_count(store, i, used, all, &tiers[i]);
	pthread_mutex_lock(&store->lock);
	memcpy(store->stats.tiers, tiers, store->n_tiers * sizeof(tiers[0]));
	store->stats.n_tiers = store->n_tiers;
	pthread_mutex_unlock(&store->lock);
}
