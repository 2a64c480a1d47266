/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_BASE_SCHEMA_H
#define STACKD_FLEET_BASE_SCHEMA_H

/* The tables of a fleet, and their versions. Any thread. */

#include <stdbool.h>
#include <stdio.h>

#include "fleet/base/clickhouse.h"

/* The version of the tables that this program writes and reads. */
enum { SCHEMA_VERSION = 2 };

/* The texts of fleet/sql/schema-floor.sql and fleet/sql/schema-modern.sql. */
extern const char sql_schema_floor[];
extern const char sql_schema_modern[];

/* Prints the statements that make the tables of all versions. Returns 0 or -ENOMEM. */
int schema_print(bool is_modern, const char *database, FILE *out);

/*
 * Stores the version of the tables on a server; 0 if there are none. Returns 0 or what
 * clickhouse_query() returns.
 */
int schema_version(struct clickhouse *clickhouse, const char *database, int *version_out,
		   struct clickhouse_error *error);

/*
 * Brings the tables on a server to SCHEMA_VERSION, and says in *from_out which version they had.
 * Makes no change if they are newer, and returns -ENOTSUP. Returns 0, -ENOMEM or what
 * clickhouse_run() returns; the versions before the one that failed are there then, and another
 * call goes on from there.
 */
int schema_apply(struct clickhouse *clickhouse, bool is_modern, const char *database, int *from_out,
		 struct clickhouse_error *error);

/* Returns 0 if a server has the tables of SCHEMA_VERSION; else -ENOTSUP, or as schema_version(). */
int schema_check(struct clickhouse *clickhouse, const char *database,
		 struct clickhouse_error *error);

#endif
