/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/base/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/text.h"
#include "fleet/base/tsv.h"

#define DATABASE_MARK "@DATABASE@"
#define VERSION_MARK  "-- version "

/* Returns the statements with the name of the database in them, malloc'ed; NULL: out of memory. */
static char *with_database(bool is_modern, const char *database)
{
	const char *from = is_modern ? sql_schema_modern : sql_schema_floor, *mark;
	struct text text;

	text_init(&text, SIZE_MAX);
	while ((mark = strstr(from, DATABASE_MARK))) {
		text_put(&text, from, (size_t)(mark - from));
		text_put_str(&text, database);
		from = mark + strlen(DATABASE_MARK);
	}
	text_put(&text, from, strlen(from) + 1);
	if (text.error < 0)
		text_fini(&text);
	return text.data;
}

int schema_print(bool is_modern, const char *database, FILE *out)
{
	_cleanup_(freep) char *text = with_database(is_modern, database);

	if (!text)
		return -ENOMEM;
	fputs(text, out);
	fprintf(out, "INSERT INTO %s.schema (version, applied) VALUES (%d, now());\n", database,
		SCHEMA_VERSION);
	return 0;
}

static int on_version(void *user, char **fields, size_t n)
{
	uint64_t version;

	if (n != 1 || tsv_uint(fields[0], &version) < 0 || version > INT32_MAX)
		return -EPROTO;
	*(int *)user = (int)version;
	return 0;
}

int schema_version(struct clickhouse *clickhouse, const char *database, int *version_out,
		   struct clickhouse_error *error)
{
	_cleanup_(freep) char *sql = NULL;
	int version = 0, r;

	if (asprintf(&sql, "SELECT max(version) FROM %s.schema", database) < 0)
		return -ENOMEM;
	r = clickhouse_query(clickhouse, sql, on_version, &version, error);
	if (r == -EREMOTEIO &&
	    (error->code == CLICKHOUSE_UNKNOWN_TABLE || error->code == CLICKHOUSE_UNKNOWN_DATABASE))
		r = 0;
	if (r < 0)
		return r;
	*version_out = version;
	return 0;
}

/* Runs the statements between two places of a text, each of which ends with ";" and a newline. */
static int run_between(struct clickhouse *clickhouse, const char *from, const char *to,
		       struct clickhouse_error *error)
{
	int r;

	for (;;) {
		const char *end = strstr(from, ";\n");
		_cleanup_(freep) char *statement = NULL;

		if (!end || end >= to)
			return 0;
		statement = strndup(from, (size_t)(end - from));
		if (!statement)
			return -ENOMEM;
		r = clickhouse_run(clickhouse, statement, error);
		if (r < 0)
			return r;
		from = end + 2;
	}
}

/* Runs the statements of one version, and writes down that they were run. */
static int run_version(struct clickhouse *clickhouse, const char *text, int version,
		       const char *database, struct clickhouse_error *error)
{
	_cleanup_(freep) char *note = NULL;
	char mark[32];
	const char *from, *to;
	int r;

	snprintf(mark, sizeof(mark), "\n" VERSION_MARK "%d\n", version);
	from = strstr(text, mark);
	if (!from)
		return -EINVAL;
	from += strlen(mark);
	to = strstr(from, "\n" VERSION_MARK);
	r = run_between(clickhouse, from, to ? to : from + strlen(from), error);
	if (r < 0)
		return r;
	if (asprintf(&note, "INSERT INTO %s.schema (version, applied) VALUES (%d, now())", database,
		     version) < 0)
		return -ENOMEM;
	return clickhouse_run(clickhouse, note, error);
}

int schema_apply(struct clickhouse *clickhouse, bool is_modern, const char *database, int *from_out,
		 struct clickhouse_error *error)
{
	_cleanup_(freep) char *text = with_database(is_modern, database);
	int version = 0, r;

	*error = (struct clickhouse_error){ 0 };
	if (!text)
		return -ENOMEM;
	/* The types of the floor were an experiment in 18.16; later versions ignore this. */
	r = is_modern ? 0
		      : clickhouse_set(clickhouse, "allow_experimental_low_cardinality_type", "1");
	if (r < 0)
		return r;
	r = schema_version(clickhouse, database, &version, error);
	if (r < 0)
		return r;
	*from_out = version;
	if (version > SCHEMA_VERSION) {
		snprintf(error->text, sizeof(error->text),
			 "the tables have version %d, and this program knows %d: update it",
			 version, SCHEMA_VERSION);
		return -ENOTSUP;
	}
	while (version < SCHEMA_VERSION) {
		r = run_version(clickhouse, text, ++version, database, error);
		if (r < 0)
			return r;
	}
	return 0;
}

int schema_check(struct clickhouse *clickhouse, const char *database,
		 struct clickhouse_error *error)
{
	int version, r = schema_version(clickhouse, database, &version, error);

	if (r < 0 || version == SCHEMA_VERSION)
		return r;
	if (version == 0)
		snprintf(
			error->text, sizeof(error->text),
			"the server has no tables in the database %s; make them with: stackd-fleet "
			"schema --apply",
			database);
	else
		snprintf(error->text, sizeof(error->text),
			 "the tables have version %d, and this program needs %d; %s", version,
			 SCHEMA_VERSION,
			 version < SCHEMA_VERSION ? "run: stackd-fleet schema --apply"
						  : "update this program");
	return -ENOTSUP;
}
