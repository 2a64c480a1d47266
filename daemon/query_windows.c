/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "daemon/answer.h"
#include "daemon/query_history.h"
#include "daemon/recorder.h"
#include "proto/base.h"

static int window_wire(struct answer *answer, const struct store_entry *entry,
		       struct wire_window *out)
{
	*out = (struct wire_window){
		.seq = (int64_t)entry->seq,
		.start = store_entry_start(entry),
		.end = store_entry_end(entry),
		.length_ns = entry->end_ns - entry->start_ns,
		.rows = (int64_t)entry->rows,
		.threads = (int64_t)entry->threads,
		.open = (int64_t)entry->opens,
		.bytes = (int64_t)entry->bytes,
	};
	return answer_losses(answer->arena, entry->lost, &out->lost);
}

/* Without a range, from the first window to the last; a gap before or after is none then. */
static int gaps_make(struct recorder *recorder, struct answer *answer, int64_t since, int64_t until)
{
	const struct history_list *list = &answer->list;
	struct query_coverage coverage;
	struct store_entry first, last;
	int r;

	if (list->n == 0)
		return 0;
	first = history_list_entry(list, 0);
	last = history_list_entry(list, list->n - 1);
	if (since == INT64_MIN)
		since = store_entry_start(&first);
	if (until == INT64_MAX)
		until = store_entry_end(&last);
	if (since >= until)
		return 0;
	r = query_coverage(recorder, answer, since, until, &coverage);
	if (!r)
		answer->windows.gaps = coverage.gaps;
	return r;
}

static int windows_make(struct answer *answer)
{
	const struct history_list *list = &answer->list;
	struct wire_window *windows = arena_array(answer->arena, list->n + 1, sizeof(*windows));
	struct store_entry entry;
	size_t i;
	int r = 0;

	if (!windows)
		return -ENOMEM;
	for (i = 0; i < list->n && !r; i++) {
		entry = history_list_entry(list, i);
		r = window_wire(answer, &entry, &windows[i]);
	}
	answer->windows.windows = (struct wire_windows){ .v = windows, .n = list->n };
	return r;
}

int query_windows(struct recorder *recorder, const struct wire_windows_request *request,
		  struct answer **out, struct wire_error *error)
{
	int64_t since = request->since_ns == WIRE_ABSENT ? INT64_MIN : request->since_ns;
	int64_t until = request->until_ns == WIRE_ABSENT ? INT64_MAX : request->until_ns;
	_cleanup_(answer_freep) struct answer *answer = answer_new();
	int r;

	if (!answer)
		return -ENOMEM;
	if (since >= until)
		return wire_error_set(error, -EINVAL, "io.stackd.InvalidTime", "since_ns",
				      "since_ns: must be before until_ns");
	answer->session = session_ref(sessions_always(recorder->sessions, PROBE_OFFCPU));
	r = query_history_range(recorder, answer, since, until, &answer->list);
	if (!r)
		r = gaps_make(recorder, answer, since, until);
	if (!r)
		r = windows_make(answer);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}
