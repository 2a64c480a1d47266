/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdatomic.h>

#include "common/base.h"
#include "daemon/query/snapshot_internal.h"

static atomic_int_fast64_t refused;

int64_t ranges_refused(void)
{
	return atomic_load(&refused);
}

/* Returns the request for range number i alone. */
static struct wire_snapshot_request range_request(const struct wire_snapshot_request *request,
						  size_t i)
{
	struct wire_snapshot_request one = *request;

	one.since_ns = request->ranges.v[i].since_ns;
	one.until_ns = request->ranges.v[i].until_ns;
	one.ranges = (struct wire_spans){};
	return one;
}

/* Returns what is wrong with a range; NULL if nothing is. */
static const char *range_fault(const struct wire_span *range, int64_t now)
{
	if (range->since_ns < 0 || (range->until_ns != WIRE_ABSENT && range->until_ns < 0))
		return "has a negative time: nanoseconds since 1970 are wanted";
	if (range->since_ns > now)
		return "begins in the future";
	if (range->until_ns != WIRE_ABSENT && range->since_ns >= range->until_ns)
		return "ends before it begins, or when it begins";
	return NULL;
}

/* Checks all ranges, so that none of them can be refused after others were answered. */
static int ranges_check(const struct wire_snapshot_request *request, struct wire_error *error)
{
	int64_t now = clock_ns(CLOCK_REALTIME);
	const char *fault;
	size_t i;

	if (request->ranges.n > RANGES_MAX) {
		atomic_fetch_add(&refused, 1);
		return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "ranges",
				      "%zu ranges; one call may have at most %d", request->ranges.n,
				      RANGES_MAX);
	}
	if (request->window_ns != WIRE_ABSENT || request->since_ns != WIRE_ABSENT ||
	    request->until_ns != WIRE_ABSENT || request->each_ns != WIRE_ABSENT)
		return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "ranges",
				      "either a list of ranges, or one range by window_ns, "
				      "since_ns, until_ns and each_ns");
	for (i = 0; i < request->ranges.n; i++) {
		fault = range_fault(&request->ranges.v[i], now);
		if (fault)
			return wire_error_set(error, -EINVAL, ERROR_INVALID_TIME, "ranges",
					      "range number %zu %s", i + 1, fault);
	}
	return 0;
}

/* Makes the answer for range number i. */
static int range_answer(struct recorder *recorder, const struct query_peer *peer,
			const struct wire_snapshot_request *request, size_t i, struct answer **out,
			struct wire_error *error)
{
	const struct wire_snapshot_request one = range_request(request, i);
	int r = snapshot_answer(recorder, peer, &one, SNAPSHOT_OF_RANGES, out, error);

	if (r)
		return r;
	(*out)->range = i;
	(*out)->has_next = i + 1 < request->ranges.n;
	return 0;
}

/* Makes the answer for the first range of a request with `ranges`. */
static int ranges_answer(struct recorder *recorder, const struct query_peer *peer,
			 const struct wire_snapshot_request *request, struct answer **out,
			 struct wire_error *error)
{
	int r = ranges_check(request, error);

	return r ? r : range_answer(recorder, peer, request, 0, out, error);
}

/* Replaces the answer for a range by that for the next range. */
static int ranges_next(struct recorder *recorder, const struct query_peer *peer,
		       const struct wire_snapshot_request *request, struct answer **answer)
{
	struct wire_error error = { .limit = WIRE_ABSENT };
	size_t next = (*answer)->range + 1;
	int r;

	/* Gives up the memory of this answer before the next one is made. */
	*answer = answer_free(*answer);
	r = range_answer(recorder, peer, request, next, answer, &error);
	wire_error_clear(&error);
	return r ? r : 1;
}

int query_snapshot(struct recorder *recorder, const struct query_peer *peer, const void *params,
		   struct answer **out, struct wire_error *error)
{
	const struct wire_snapshot_request *request = params;

	if (request->ranges.n)
		return ranges_answer(recorder, peer, request, out, error);
	return snapshot_answer(recorder, peer, request, SNAPSHOT_ALONE, out, error);
}

int query_snapshot_next(struct recorder *recorder, const struct query_peer *peer,
			const struct wire_snapshot_request *request, struct answer **answer)
{
	if (!(*answer)->has_next)
		return 0;
	if (request->ranges.n)
		return ranges_next(recorder, peer, request, answer);
	return snapshot_next(recorder, peer, request, answer);
}
