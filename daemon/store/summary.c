/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/summary.h"

#include <errno.h>

#include "daemon/store/internal.h"

int store_summaries_open(struct store *store)
{
	size_t tier, session;

	for (tier = 0; tier < STORE_TIERS_MAX; tier++) {
		for (session = 0; session < STORE_ALWAYS_MAX; session++) {
			store->summaries.done_to[tier][session] = INT64_MIN;
			store->summaries.is_due[tier][session] = true;
		}
	}
	return store_db_run(&store->db,
			    "DELETE FROM summaries WHERE id NOT IN (SELECT id FROM windows) "
			    "OR last_id NOT IN (SELECT id FROM windows)");
}

int store_summaries_sum(struct store *store)
{
	sqlite3_stmt *statement;
	size_t tier;
	int r = store_db_query(&store->db, STATEMENT_SUMMARY_SUMS, &statement, "");

	while (!r && (r = store_db_row(&store->db, statement)) > 0) {
		tier = (size_t)sqlite3_column_int64(statement, 0);
		if (tier < store->n_tiers)
			store->sums[tier].bytes += sqlite3_column_int64(statement, 1);
		r = 0;
	}
	return r;
}

void store_summary_look(struct store *store, size_t tier, uint64_t session)
{
	if (session < STORE_ALWAYS_MAX)
		store->summaries.is_due[tier][session] = true;
}

void store_summary_again(struct store *store, const struct tier_row *row)
{
	int64_t *done_to;

	if (row->session >= STORE_ALWAYS_MAX)
		return;
	done_to = &store->summaries.done_to[row->tier][row->session];
	if (*done_to >= row->id)
		*done_to = row->id - 1;
	store->summaries.is_due[row->tier][row->session] = true;
}

int store_summary_find(struct store *store, uint64_t session, int64_t window, int64_t *id_out,
		       int64_t *last_out, int64_t *size_out)
{
	sqlite3_stmt *statement;
	int r = store_db_first(&store->db, STATEMENT_SUMMARY_OF, &statement, "ii", (int64_t)session,
			       window);

	if (r)
		return r;
	*id_out = sqlite3_column_int64(statement, 0);
	*last_out = sqlite3_column_int64(statement, 1);
	*size_out = sqlite3_column_int64(statement, 2);
	sqlite3_reset(statement);
	return *last_out < window ? -ENOENT : 0;
}
