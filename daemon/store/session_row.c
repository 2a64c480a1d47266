/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/session_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/bytes.h"
#include "daemon/store/intern.h"
#include "daemon/store/reader.h"

enum { COLUMN_ID, COLUMN_RUN, COLUMN_NUMBER, COLUMN_SUM, COLUMN_DATA };

static void data_encode(const struct store_session *session, struct bytes *out)
{
	bytes_put_u64(out, session->run);
	bytes_put_u64(out, session->number);
	bytes_put_i64(out, session->since_ns);
	bytes_put_u64(out, session->uid);
	bytes_put_i64(out, session->min_wait_ns);
	bytes_put_u64(out, session->period_ns);
	bytes_put_string(out, session->name);
	bytes_put_string(out, session->request);
}

static int data_decode(struct bytes_reader *in, struct store_session *session)
{
	*session = (struct store_session){ .ended_ns = INT64_MIN };
	session->run = bytes_get_u64(in);
	session->number = bytes_get_u64(in);
	session->since_ns = bytes_get_i64(in);
	session->uid = (uint32_t)bytes_get_max(in, UINT32_MAX);
	session->min_wait_ns = bytes_get_i64(in);
	session->period_ns = bytes_get_u64(in);
	session->name = bytes_get_string(in);
	session->request = bytes_get_string(in);
	return in->is_failed ? bytes_error(in) : session->request ? 0 : -EBADMSG;
}

int store_session_write(struct store_db *db, const struct store_session *session)
{
	_cleanup_(bytes_fini) struct bytes data = {};
	int64_t id;
	int r = store_db_number(db, STATEMENT_SESSION_NEXT, &id);

	if (r)
		return r;
	data_encode(session, &data);
	if (data.is_failed)
		return -ENOMEM;
	return store_db_change(db, STATEMENT_SESSION_ADD, "iiiibti", id, (int64_t)session->run,
			       (int64_t)session->number, store_sum(id, data.data, data.n),
			       data.data, data.n, session->name, session->since_ns);
}

int store_session_read(sqlite3_stmt *statement, struct store_session *out)
{
	const uint8_t *data = sqlite3_column_blob(statement, COLUMN_DATA);
	size_t size = (size_t)sqlite3_column_bytes(statement, COLUMN_DATA);
	struct bytes_reader in = { .at = data, .end = data + size };
	struct store_session session;
	int r;

	if (!data || sqlite3_column_int64(statement, COLUMN_SUM) !=
			     store_sum(sqlite3_column_int64(statement, COLUMN_ID), data, size))
		return -EBADMSG;
	r = data_decode(&in, &session);
	if (r) {
		store_session_fini(&session);
		return r;
	}
	*out = session;
	return 0;
}

int store_session_copy(const struct store_session *session, struct store_session *out)
{
	struct store_session copy = *session;

	copy.name = session->name ? strdup(session->name) : NULL;
	copy.request = strdup(session->request);
	if ((session->name && !copy.name) || !copy.request) {
		store_session_fini(&copy);
		return -ENOMEM;
	}
	*out = copy;
	return 0;
}

void store_session_fini(struct store_session *session)
{
	free((char *)session->name);
	free((char *)session->request);
	*session = (struct store_session){ .ended_ns = INT64_MIN };
}
