/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints what the bytes of a database are: for each tier, those of its encoded windows and
 * summaries, those of their other columns and of their indexes ("besides"), and those of the rows
 * of stacks, frames and processes to which they refer. A row to which several tiers refer counts
 * for each of them in equal parts, as the store counts it. "unused" are rows to which no window
 * refers any more, and which will be deleted. The bytes of a row are those of its columns and of
 * its entry in the index, as sqlite's table dbstat has them on average, empty space included; so
 * are those of a window besides its encoded form.
 *
 * Arguments: a database that no stackd writes to; "--bytes" to print only the bytes of each tier.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/base.h"
#include "daemon/store/bytes.h"
#include "daemon/store/intern.h"
#include "daemon/store/store.h"
#include "daemon/store/window_blob.h"

/* The last tier is for rows that no tier uses. */
enum { TIERS = STORE_TIERS_MAX, UNUSED = TIERS, COLUMNS };
enum { STACKS, FRAMES, PROCESSES, TABLES };

static const char *const names[TABLES] = { "stacks", "frames", "processes" };

/* A table of rows to which windows refer. */
struct table {
	uint8_t *tiers; /* by row number: bit i: tier i uses the row */
	int64_t last;	/* the highest row number */
	double extra;	/* bytes of a row besides its data, on average */
	double bytes[COLUMNS];
	double rows[COLUMNS];
};

static struct table tables[TABLES];
static sqlite3 *db;
static unsigned int now_tier;

__attribute__((format(printf, 1, 2))) static sqlite3_stmt *prepare(const char *format, ...)
{
	sqlite3_stmt *statement;
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (sqlite3_prepare_v2(db, text, -1, &statement, NULL) == SQLITE_OK)
		return statement;
	fprintf(stderr, "%s: %s\n", text, sqlite3_errmsg(db));
	exit(1);
}

/* Returns the number in the only row of a query, and ends the query. */
static double number(sqlite3_stmt *statement)
{
	double value =
		sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_double(statement, 0) : 0;

	sqlite3_finalize(statement);
	return value;
}

static int use(struct table *table, int64_t row)
{
	if (row > 0 && row <= table->last)
		table->tiers[row] |= (uint8_t)(1U << now_tier);
	return 0;
}

static int on_stack(void *userdata, int64_t row)
{
	return use(&tables[STACKS], row);
}

static int on_process(void *userdata, int64_t row)
{
	return use(&tables[PROCESSES], row);
}

static void table_open(unsigned int which)
{
	struct table *table = &tables[which];
	const char *name = names[which];
	double pages = number(prepare("SELECT sum(pgsize) FROM dbstat WHERE name IN ('%s', "
				      "'sqlite_autoindex_%s_1')",
				      name, name));
	double rows = number(prepare("SELECT count(*) FROM %s", name));
	double data = number(prepare("SELECT sum(length(data)) FROM %s", name));

	table->last = (int64_t)number(prepare("SELECT max(id) FROM %s", name));
	table->extra = rows > 0 ? (pages - data) / rows : 0;
	table->tiers = calloc((size_t)table->last + 1, 1);
	if (!table->tiers)
		exit(1);
}

/* Returns the bytes of a window, or a summary, besides its encoded form, on average. */
static double window_extra(void)
{
	double pages = number(prepare("SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'window%%' "
				      "OR name LIKE 'summaries%%'"));
	double blobs = number(prepare("SELECT total(length(blob)) FROM windows")) +
		       number(prepare("SELECT total(length(blob)) FROM summaries"));
	double rows = number(prepare("SELECT (SELECT count(*) FROM windows) + "
				     "(SELECT count(*) FROM summaries)"));

	return rows > 0 ? (pages - blobs) / rows : 0;
}

/* Marks the rows of the windows, and of their summaries, that a tier has. Returns their bytes. */
static double windows_mark(const char *from, uint64_t *n_out)
{
	sqlite3_stmt *statement = prepare("SELECT blob FROM %s", from);
	double bytes = 0;

	for (*n_out = 0; sqlite3_step(statement) == SQLITE_ROW; ++*n_out) {
		const void *blob = sqlite3_column_blob(statement, 0);
		size_t size = (size_t)sqlite3_column_bytes(statement, 0);

		bytes += (double)size;
		if (store_blob_numbers(blob, size, on_stack, on_process, NULL))
			fprintf(stderr, "a window cannot be read\n");
	}
	sqlite3_finalize(statement);
	return bytes;
}

static void frames_use(const void *data, size_t size)
{
	struct bytes_reader in = { .at = data, .end = (const uint8_t *)data + size };
	size_t n = store_stack_frames(&in);
	int64_t frame = 0;

	while (n-- && !in.is_failed) {
		frame += bytes_get_i64(&in);
		use(&tables[FRAMES], frame);
	}
}

/* Marks the frames of the stacks of now_tier. */
static void frames_mark(void)
{
	sqlite3_stmt *statement = prepare("SELECT id, data FROM %s", names[STACKS]);

	while (sqlite3_step(statement) == SQLITE_ROW) {
		int64_t row = sqlite3_column_int64(statement, 0);

		if (row > 0 && row <= tables[STACKS].last &&
		    tables[STACKS].tiers[row] & 1U << now_tier)
			frames_use(sqlite3_column_blob(statement, 1),
				   (size_t)sqlite3_column_bytes(statement, 1));
	}
	sqlite3_finalize(statement);
}

static void table_count(unsigned int which)
{
	struct table *table = &tables[which];
	sqlite3_stmt *statement = prepare("SELECT id, length(data) FROM %s", names[which]);

	while (sqlite3_step(statement) == SQLITE_ROW) {
		int64_t row = sqlite3_column_int64(statement, 0);
		unsigned int tiers = row > 0 && row <= table->last ? table->tiers[row] : 0, tier;
		double part = tiers ? 1.0 / __builtin_popcount(tiers) : 1;

		if (!tiers)
			tiers = 1U << UNUSED;
		for (tier = 0; tier < COLUMNS; tier++) {
			if (!(tiers & 1U << tier))
				continue;
			table->bytes[tier] +=
				part * ((double)sqlite3_column_int64(statement, 1) + table->extra);
			table->rows[tier] += part;
		}
	}
	sqlite3_finalize(statement);
}

static void tier_print(unsigned int tier, uint64_t windows, double blobs, double summaries,
		       double besides, bool is_short)
{
	double sum = blobs + summaries + besides;
	unsigned int i;

	for (i = 0; i < TABLES && is_short; i++)
		sum += tables[i].bytes[tier];
	if (is_short) {
		printf("%u %.0f\n", tier, sum);
		return;
	}
	if (tier == UNUSED)
		printf("unused:");
	else
		printf("tier %u: %7" PRIu64 " windows %8.2f MiB, summaries %6.2f MiB, "
		       "besides %6.2f MiB,",
		       tier, windows, blobs / (1 << 20), summaries / (1 << 20),
		       besides / (1 << 20));
	for (i = 0; i < TABLES; i++) {
		printf(" %7.0f %s %7.2f MiB,", tables[i].rows[tier], names[i],
		       tables[i].bytes[tier] / (1 << 20));
		sum += tables[i].bytes[tier];
	}
	printf(" in all %8.2f MiB", sum / (1 << 20));
	if (windows)
		printf(", %.0f bytes a window", sum / (double)windows);
	printf("\n");
}

int main(int argc, char **argv)
{
	double blobs[TIERS], summaries[TIERS], besides[TIERS], extra;
	uint64_t windows[TIERS], n;
	char from[128];
	bool is_short = argc == 3 && strcmp(argv[2], "--bytes") == 0;
	unsigned int i;

	if (argc != 2 + is_short ||
	    sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
		fprintf(stderr, "store_bytes DB [--bytes]\n");
		return 1;
	}
	for (i = 0; i < TABLES; i++)
		table_open(i);
	extra = window_extra();
	for (now_tier = 0; now_tier < TIERS; now_tier++) {
		snprintf(from, sizeof(from), "windows JOIN window_tiers USING (id) WHERE tier = %u",
			 now_tier);
		blobs[now_tier] = windows_mark(from, &windows[now_tier]);
		snprintf(from, sizeof(from),
			 "summaries JOIN window_tiers USING (id) WHERE tier = %u", now_tier);
		summaries[now_tier] = windows_mark(from, &n);
		besides[now_tier] = extra * (double)(windows[now_tier] + n);
		frames_mark();
	}
	for (i = 0; i < TABLES; i++)
		table_count(i);
	for (i = 0; i < TIERS; i++)
		if (windows[i])
			tier_print(i, windows[i], blobs[i], summaries[i], besides[i], is_short);
	tier_print(UNUSED, 0, 0, 0, 0, is_short);
	sqlite3_close(db);
	return 0;
}
