/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/window_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/intern.h"

enum {
	NUMBERS = 13, /* columns 0 to 12 have one number each */
	COLUMN_LOST = 13,
	COLUMN_PROBE = 14,
	COLUMN_SUM = 15,
	COLUMN_LAST_ID = 16, /* columns of summaries: last_id, windows, lacks_ns, facts_sum */
	BIND_SUMMARY = 21,   /* the first value of STATEMENT_SUMMARY_ADD that windows do not have */
};

static void numbers_of(const struct store_entry *entry, int64_t *numbers)
{
	const int64_t values[NUMBERS] = {
		entry->id,
		(int64_t)entry->run,
		(int64_t)entry->seq,
		(int64_t)entry->merged_from,
		entry->start_ns,
		entry->end_ns,
		entry->real_offset_ns,
		entry->boot_offset_ns,
		(int64_t)entry->rows,
		(int64_t)entry->threads,
		(int64_t)entry->opens,
		(int64_t)entry->bytes,
		(int64_t)entry->session,
	};

	memcpy(numbers, values, sizeof(values));
}

static int64_t numbers_sum(const int64_t *numbers, const char *probe, const void *lost, size_t size)
{
	int64_t sum = store_sum(numbers[0], numbers, NUMBERS * sizeof(*numbers));

	sum = store_sum(sum, probe, strlen(probe));
	return store_sum(sum, lost, size);
}

/*
 * The names under which the members of struct window_folded are stored. They are stored in the
 * column of losses, beside the counts of losses.
 */
static const struct {
	const char *name;
	size_t offset;
} folded_names[] = {
	{ "folded: rows", offsetof(struct window_folded, rows) },
	{ "folded: processes", offsetof(struct window_folded, processes) },
	{ "folded: started", offsetof(struct window_folded, started) },
	{ "folded: ns", offsetof(struct window_folded, ns) },
	{ "folded: unlisted", offsetof(struct window_folded, unlisted) },
};

/* Returns a pointer to the member of entry->folded whose name is folded_names[i]. */
static uint64_t *folded_number(const struct store_entry *entry, size_t i)
{
	return (uint64_t *)((uintptr_t)&entry->folded + folded_names[i].offset);
}

/*
 * Encodes the name of each loss, not its number (enum window_loss), which can change from one
 * version of stackd to the next.
 */
static void lost_encode(const struct store_entry *entry, struct bytes *out)
{
	unsigned int i;

	for (i = 0; i < WINDOW_LOST_N; i++) {
		if (!entry->lost[i])
			continue;
		bytes_put_string(out, window_loss_name(i));
		bytes_put_u64(out, entry->lost[i]);
	}
	for (i = 0; i < ARRAY_SIZE(folded_names) && entry->folded.rows; i++) {
		bytes_put_string(out, folded_names[i].name);
		bytes_put_u64(out, *folded_number(entry, i));
	}
}

/*
 * Sets to `count` the member of entry->folded whose name is `name`. Returns false if there is none:
 * `name` is then the name of a loss.
 */
static bool folded_decode(struct store_entry *entry, const char *name, uint64_t count)
{
	size_t i;

	for (i = 0; name && i < ARRAY_SIZE(folded_names); i++) {
		if (strcmp(name, folded_names[i].name) == 0) {
			*folded_number(entry, i) = count;
			return true;
		}
	}
	return false;
}

static void lost_decode(struct store_entry *entry, const void *data, size_t size)
{
	struct bytes_reader in = { .at = data, .end = data ? (const uint8_t *)data + size : NULL };
	unsigned int i;

	while (data && bytes_left(&in) && !in.is_failed) {
		_cleanup_(freep) char *name = bytes_get_string(&in);
		uint64_t count = bytes_get_u64(&in);

		if (folded_decode(entry, name, count))
			continue;
		for (i = 0; i < WINDOW_LOST_N; i++)
			if (name && strcmp(name, window_loss_name(i)) == 0)
				break;
		entry->lost[i < WINDOW_LOST_N ? i : WINDOW_LOST_OTHER] += count;
	}
}

void store_row_bind(sqlite3_stmt *statement, const struct store_entry *entry, struct bytes *lost)
{
	const char *probe = probe_kind_name(entry->kind);
	int64_t numbers[NUMBERS];
	int i;

	numbers_of(entry, numbers);
	lost_encode(entry, lost);
	for (i = 0; i < NUMBERS; i++)
		sqlite3_bind_int64(statement, i + 1, numbers[i]);
	sqlite3_bind_blob(statement, COLUMN_LOST + 1, lost->data, (int)lost->n, SQLITE_STATIC);
	sqlite3_bind_text(statement, COLUMN_PROBE + 1, probe, -1, SQLITE_STATIC);
	sqlite3_bind_int64(statement, COLUMN_SUM + 1,
			   numbers_sum(numbers, probe, lost->data, lost->n));
	sqlite3_bind_int64(statement, COLUMN_SUM + 2, store_entry_start(entry));
	sqlite3_bind_int64(statement, COLUMN_SUM + 3, store_entry_end(entry));
}

/* Returns a checksum of those facts about a summary that its other checksums do not cover. */
static int64_t facts_sum(const struct store_entry *entry)
{
	const int64_t facts[] = { entry->last_id, entry->summarized, (int64_t)entry->lacks_ns };

	return store_sum(entry->id, facts, sizeof(facts));
}

/* Binds the values of STATEMENT_SUMMARY_ADD that a window does not have. */
static void summary_bind(sqlite3_stmt *statement, const struct store_entry *entry, size_t size)
{
	sqlite3_bind_int64(statement, BIND_SUMMARY, entry->last_id);
	sqlite3_bind_int64(statement, BIND_SUMMARY + 1, entry->summarized);
	sqlite3_bind_int64(statement, BIND_SUMMARY + 2, (int64_t)size);
	sqlite3_bind_int64(statement, BIND_SUMMARY + 3, (int64_t)entry->lacks_ns);
	sqlite3_bind_int64(statement, BIND_SUMMARY + 4, facts_sum(entry));
}

int store_row_add(struct store_db *db, const struct store_entry *entry, const struct bytes *blob)
{
	enum store_statement which =
		entry->summarized ? STATEMENT_SUMMARY_ADD : STATEMENT_WINDOW_ADD;
	_cleanup_(bytes_fini) struct bytes lost = {};
	sqlite3_stmt *statement;
	int r = store_db_query(db, which, &statement, "");

	if (r)
		return r;
	store_row_bind(statement, entry, &lost);
	sqlite3_bind_int64(statement, 19, store_sum(entry->id, blob->data, blob->n));
	sqlite3_bind_blob(statement, 20, blob->data, (int)blob->n, SQLITE_STATIC);
	if (entry->summarized)
		summary_bind(statement, entry, blob->n);
	return lost.is_failed ? -ENOMEM : store_db_exec(db, statement);
}

int store_row_read(sqlite3_stmt *statement, struct store_entry *out)
{
	const void *lost = sqlite3_column_blob(statement, COLUMN_LOST);
	size_t size = (size_t)sqlite3_column_bytes(statement, COLUMN_LOST);
	const char *probe = (const char *)sqlite3_column_text(statement, COLUMN_PROBE);
	int64_t numbers[NUMBERS];
	struct store_entry entry;
	unsigned int kind = 0;
	int i;

	for (i = 0; i < NUMBERS; i++)
		numbers[i] = sqlite3_column_int64(statement, i);
	if (!probe ||
	    sqlite3_column_int64(statement, COLUMN_SUM) != numbers_sum(numbers, probe, lost, size))
		return -EBADMSG;
	while (kind < PROBE_KIND_N && strcmp(probe, probe_kind_name(kind)) != 0)
		kind++;
	if (kind == PROBE_KIND_N)
		return -ENOTSUP;
	entry = (struct store_entry){
		.id = numbers[0],
		.run = (uint64_t)numbers[1],
		.seq = (uint64_t)numbers[2],
		.merged_from = (uint64_t)numbers[3],
		.start_ns = numbers[4],
		.end_ns = numbers[5],
		.real_offset_ns = numbers[6],
		.boot_offset_ns = numbers[7],
		.rows = (uint64_t)numbers[8],
		.threads = (uint64_t)numbers[9],
		.opens = (uint64_t)numbers[10],
		.bytes = (uint64_t)numbers[11],
		.session = (uint64_t)numbers[12],
		.kind = kind,
	};
	lost_decode(&entry, lost, size);
	*out = entry;
	return 0;
}

int store_row_end(struct store_db *db, enum store_statement which, int64_t *id_out,
		  int64_t *end_out)
{
	sqlite3_stmt *statement;
	int r = store_db_first(db, which, &statement, "");

	if (r)
		return r;
	*id_out = sqlite3_column_int64(statement, 0);
	*end_out = sqlite3_column_int64(statement, 1);
	sqlite3_reset(statement);
	return 0;
}

int store_summary_row_read(sqlite3_stmt *statement, struct store_entry *out)
{
	struct store_entry entry;
	int r = store_row_read(statement, &entry);

	if (r)
		return r;
	entry.last_id = sqlite3_column_int64(statement, COLUMN_LAST_ID);
	entry.summarized = (uint32_t)sqlite3_column_int64(statement, COLUMN_LAST_ID + 1);
	entry.lacks_ns = (uint64_t)sqlite3_column_int64(statement, COLUMN_LAST_ID + 2);
	if (!entry.summarized ||
	    sqlite3_column_int64(statement, COLUMN_LAST_ID + 3) != facts_sum(&entry))
		return -EBADMSG;
	*out = entry;
	return 0;
}
