/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/proto/refusing_query.h"

#include <errno.h>

#include "daemon/query/query.h"

#define WEAK __attribute__((weak))

int query_refuse(struct wire_error *error)
{
	return wire_error_set(error, -EOPNOTSUPP, ERROR_NOT_SUPPORTED, "sessions",
			      "nothing is recorded here");
}

#define REFUSE(method)                                                                             \
	WEAK int query_##method(struct recorder *recorder, const struct query_peer *peer,          \
				const void *params, struct answer **out, struct wire_error *error) \
	{                                                                                          \
		return query_refuse(error);                                                        \
	}

WIRE_METHODS(REFUSE)

WEAK int query_overview_next(struct recorder *recorder, const struct query_peer *peer,
			     const struct wire_overview_request *request, struct answer **answer)
{
	return 0;
}

WEAK int query_snapshot_next(struct recorder *recorder, const struct query_peer *peer,
			     const struct wire_snapshot_request *request, struct answer **answer)
{
	return 0;
}

WEAK bool answer_has_next(const struct answer *answer)
{
	return false;
}

WEAK int answer_start_refresh(struct answer *answer)
{
	return 0;
}

WEAK int answer_start_calls(struct answer *answer, size_t *n_out)
{
	*n_out = 0;
	return 0;
}

WEAK bool answer_start_has_calls(struct answer *answer)
{
	return false;
}

WEAK void answer_start_end(struct answer *answer)
{
}

WEAK void answer_start_give_up(struct answer *answer)
{
}

WEAK void answer_start_clear_missed(struct answer *answer)
{
}

WEAK bool answer_start_runs(const struct answer *answer)
{
	return false;
}

WEAK int query_follow_new(struct recorder *recorder, const struct query_peer *peer,
			  const struct wire_follow_request *request, struct query_follow **out,
			  struct wire_error *error)
{
	return query_refuse(error);
}

WEAK bool query_follow_is_due(const struct query_follow *follow)
{
	return true;
}

WEAK int query_follow_next(struct query_follow *follow, struct answer **out,
			   struct wire_error *error)
{
	return 0;
}

WEAK struct query_follow *query_follow_free(struct query_follow *follow)
{
	return NULL;
}

WEAK size_t answer_n_rows(const struct answer *answer)
{
	return 0;
}

WEAK int answer_row(struct answer *answer, size_t i, const struct wire_row **out)
{
	return -ENOMEM;
}

WEAK void answer_rows_sent(struct answer *answer, size_t n)
{
}
