/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "daemon/answer.h"
#include "daemon/recorder.h"
#include "proto/base.h"

static int window_wire(struct answer *answer, const struct window *window, struct wire_window *out)
{
	*out = (struct wire_window){
		.seq = (int64_t)window->seq,
		.start = window->start_ns + window->real_offset_ns,
		.end = window->end_ns + window->real_offset_ns,
		.length_ns = window->end_ns - window->start_ns,
		.rows = (int64_t)window->n_rows,
		.threads = (int64_t)window->n_images,
		.open = (int64_t)window->n_opens,
		.bytes = (int64_t)window->bytes,
	};
	return answer_losses(answer->arena, window->lost, &out->lost);
}

/* Windows in memory follow each other; a missing number was dropped for want of memory. */
static int windows_make(struct answer *answer)
{
	const struct history_list *list = &answer->list;
	struct wire_window *windows = arena_array(answer->arena, list->n + 1, sizeof(*windows));
	struct wire_gap *gaps = arena_array(answer->arena, list->n + 1, sizeof(*gaps));
	size_t i, n_gaps = 0;
	int r = 0;

	if (!windows || !gaps)
		return -ENOMEM;
	for (i = 0; i < list->n && !r; i++) {
		r = window_wire(answer, list->windows[i], &windows[i]);
		if (i > 0 && windows[i].seq != windows[i - 1].seq + 1)
			gaps[n_gaps++] = (struct wire_gap){ windows[i - 1].end, windows[i].start,
							    "a window could not be kept" };
	}
	answer->windows.windows = (struct wire_windows){ .v = windows, .n = list->n };
	answer->windows.gaps = (struct wire_gaps){ .v = gaps, .n = n_gaps };
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
	r = history_range(recorder->history, since, until, &answer->list);
	if (!r)
		r = windows_make(answer);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}
