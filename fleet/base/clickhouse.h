/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_FLEET_BASE_CLICKHOUSE_H
#define STACKD_FLEET_BASE_CLICKHOUSE_H

/*
 * A client of one ClickHouse server, over its HTTP interface. Each call has a time limit of its
 * own, so that a server that hangs cannot hang the caller. A connection is kept between calls. Used
 * by one thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/text.h"

/* Where a server is and how to log in. The strings are borrowed; those may be NULL that say so. */
struct clickhouse_address {
	const char *url; /* http://HOST:PORT or https://HOST:PORT */
	const char *database;
	const char *user;      /* NULL: the server's default user */
	const char *password;  /* NULL: none */
	const char *ca_file;   /* NULL: the certificates that the system trusts */
	const char *cert_file; /* certificate of the client; NULL: none */
	const char *key_file;  /* its key; NULL: in cert_file */
	int64_t connect_timeout_ns;
	int64_t timeout_ns; /* for a whole call */
};

/* Codes of errors of ClickHouse that callers ask about. */
enum {
	CLICKHOUSE_UNKNOWN_TABLE = 60,
	CLICKHOUSE_UNKNOWN_DATABASE = 81,
};

/* Why a call failed. */
struct clickhouse_error {
	int code;	/* the server's own code of the error; 0: it gave none */
	char text[512]; /* one line, without control characters */
};

struct clickhouse;

/*
 * Makes a client; asks nothing of the server yet. Returns 0; -EINVAL if the address cannot be used,
 * with *error; or -ENOMEM.
 */
int clickhouse_new(const struct clickhouse_address *address, struct clickhouse **out,
		   struct clickhouse_error *error);
struct clickhouse *clickhouse_free(struct clickhouse *clickhouse);
void clickhouse_freep(struct clickhouse **clickhouse);

/*
 * Sets a setting of ClickHouse, such as max_memory_usage, for all later calls. Both texts consist
 * of letters, digits and underscores. Returns 0, -EINVAL or -ENOMEM.
 */
int clickhouse_set(struct clickhouse *clickhouse, const char *name, const char *value);

/* Sets the time limit of each later call. */
void clickhouse_set_timeout(struct clickhouse *clickhouse, int64_t ns);

/*
 * Handles one row of an answer. The fields are as tsv_split() leaves them and live until it
 * returns. Returns 0, or a negative errno, which ends the call.
 */
typedef int (*clickhouse_row_fn)(void *user, char **fields, size_t n);

/* An answer has at most this many fields in a row. */
enum { CLICKHOUSE_MAX_FIELDS = 96 };

/*
 * The calls return 0, or with *error filled:
 *	-ECONNREFUSED	there is no connection: the server is not there, or its certificate is wrong
 *	-ETIMEDOUT	the time limit is over
 *	-EACCES		the server does not let this user in, or do this
 *	-EREMOTEIO	the server refused or failed; error->code says why
 *	-EPROTO		the answer is not one of ClickHouse
 *	-ENOMEM, or what the handler of rows returned
 * After -ETIMEDOUT, or if the connection broke during the call (-ECONNRESET), an insert may have
 * taken place.
 */

/* Runs a SELECT, without FORMAT, and hands each row to `row`. */
int clickhouse_query(struct clickhouse *clickhouse, const char *sql, clickhouse_row_fn row,
		     void *user, struct clickhouse_error *error);

/* Runs a statement that has no answer, such as CREATE TABLE. */
int clickhouse_run(struct clickhouse *clickhouse, const char *sql, struct clickhouse_error *error);

/*
 * Inserts rows. `into` is the table with its list of columns: "stackd.rows (day, start)". The rows
 * are TabSeparated and are compressed on the way. All of them are inserted, or none, if they are
 * less than 1,000,000 and of one partition.
 */
int clickhouse_insert(struct clickhouse *clickhouse, const char *into, const struct text *rows,
		      struct clickhouse_error *error);

/*
 * Stores the server's version as 18016 for 18.16. It is asked for once a client. Returns as the
 * calls above do.
 */
int clickhouse_version(struct clickhouse *clickhouse, int *version_out,
		       struct clickhouse_error *error);

/*
 * Returns which of n servers keeps the rows of a host. The number is the same for all programs and
 * all times, while n is.
 */
size_t clickhouse_shard_of(const char *host, size_t n);

#endif
