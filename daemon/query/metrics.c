/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>

#include "common/base.h"
#include "daemon/base/io_names.h"
#include "daemon/query/answer.h"
#include "daemon/query/answer_pressure.h"
#include "daemon/session/recorder.h"
#include "daemon/session/totals.h"

static int unit_make(struct arena *arena, const struct totals_unit *unit,
		     struct wire_unit_total *out)
{
	struct wire_class_total *classes = arena_array(arena, WAIT_CLASS_N, sizeof(*classes));
	unsigned int i;
	size_t n = 0;

	if (!classes)
		return -ENOMEM;
	for (i = 0; i < WAIT_CLASS_N; i++)
		if (unit->blocked_ns[i])
			classes[n++] = (struct wire_class_total){
				.class = wait_class_word(i),
				.total_ns = (int64_t)unit->blocked_ns[i],
			};
	*out = (struct wire_unit_total){
		.unit = unit->path,
		.blocked = { .v = classes, .n = n },
		.runnable_ns = (int64_t)unit->runnable_ns,
		.throttled_ns = (int64_t)unit->throttled_ns,
	};
	return 0;
}

/* Makes the list of all units; the last one stands for those without counters of their own. */
static int units_make(struct arena *arena, const struct totals_data *data,
		      struct wire_unit_totals *out)
{
	struct wire_unit_total *units = arena_array(arena, data->n_units + 1, sizeof(*units));
	size_t i;
	int r;

	if (!units)
		return -ENOMEM;
	for (i = 0; i < data->n_units; i++) {
		r = unit_make(arena, &data->units[i], &units[i]);
		if (r)
			return r;
	}
	r = unit_make(arena, &data->others, &units[i]);
	if (r)
		return r;
	*out = (struct wire_unit_totals){ .v = units, .n = data->n_units + 1 };
	return 0;
}

static int ios_make(struct arena *arena, const struct totals_data *data, struct wire_io_totals *out)
{
	struct wire_io_total *ios = arena_array(arena, IO_LAYERS * IO_OPS, sizeof(*ios));
	uint32_t layer, op;
	size_t n = 0;
	int r = ios ? 0 : -ENOMEM;

	for (layer = 0; layer < IO_LAYERS; layer++) {
		for (op = 0; op < IO_OPS && !r; op++) {
			const struct totals_io *io = &data->ios[layer][op];

			if (!io->count && !io->async)
				continue;
			ios[n] = (struct wire_io_total){
				.layer = io_layer_name(layer),
				.op = io_op_name(op),
				.count = (int64_t)io->count,
				.total_ns = (int64_t)io->total_ns,
				.bytes = (int64_t)io->bytes,
				.errors = (int64_t)io->errors,
				.async = (int64_t)io->async,
			};
			r = answer_buckets(arena, io->buckets, IO_BUCKETS_N, &ios[n++].buckets);
		}
	}
	if (!r)
		*out = (struct wire_io_totals){ .v = ios, .n = n };
	return r;
}

static int probes_make(struct recorder *recorder, struct arena *arena,
		       const struct totals_data *data, struct wire_probe_totals *out)
{
	struct wire_probe_total *probes = arena_array(arena, PROBE_KIND_N, sizeof(*probes));
	int r = probes ? 0 : -ENOMEM;
	unsigned int kind;
	size_t n = 0;

	for (kind = 0; kind < PROBE_KIND_N && !r; kind++) {
		struct session *session =
			sessions_always(recorder->sessions, (enum probe_kind)kind);
		const struct totals_probe *probe = &data->probes[kind];
		struct drain_stats stats;

		if (!probe->windows && !session_is_on(session))
			continue;
		session_stats(session, &stats);
		probes[n] = (struct wire_probe_total){
			.probe = probe_kind_name((enum probe_kind)kind),
			.windows = (int64_t)probe->windows,
			.covered_ns = (int64_t)probe->covered_ns,
			.gap_ns = (int64_t)probe->gap_ns,
			.last = probe->windows ? probe->last_ns : WIRE_ABSENT,
			.seq = probe->windows ? (int64_t)probe->last_seq : WIRE_ABSENT,
		};
		r = answer_losses(arena, stats.lost, &probes[n++].lost);
	}
	if (!r)
		*out = (struct wire_probe_totals){ .v = probes, .n = n };
	return r;
}

static int pressure_make(struct arena *arena, const struct totals_data *data,
			 const struct wire_pressure **out)
{
	const struct window_pressure pressure = {
		.ns = data->pressure_ns,
		.state = data->pressure_state,
		.stalled = data->stalled,
	};

	return answer_pressure(arena, &pressure, out);
}

int query_metrics(struct recorder *recorder, const struct query_peer *peer, const void *params,
		  struct answer **out, struct wire_error *error)
{
	_cleanup_(answer_freep) struct answer *answer = NULL;
	struct wire_metrics_reply *reply;
	struct totals_data *data;
	int r;

	if (!recorder->totals)
		return wire_error_set(error, -EOPNOTSUPP, ERROR_NOT_SUPPORTED, "Metrics", "%s",
				      recorder_serves_only);
	answer = answer_new();
	data = answer ? arena_alloc(answer->arena, sizeof(*data)) : NULL;
	if (!data)
		return -ENOMEM;
	totals_read(recorder->totals, data);
	reply = &answer->reply.metrics;
	reply->started = recorder->started_real_ns;
	reply->max_units = TOTALS_UNITS;
	reply->given_up = (int64_t)data->given_up;
	reply->not_added = (int64_t)data->not_added;
	reply->preempted_ns = (int64_t)data->preempted_ns;
	r = units_make(answer->arena, data, &reply->units);
	if (r)
		return r;
	r = answer_buckets(answer->arena, data->preempted, WAIT_BUCKETS, &reply->preempted);
	if (r)
		return r;
	r = ios_make(answer->arena, data, &reply->ios);
	if (r)
		return r;
	r = probes_make(recorder, answer->arena, data, &reply->probes);
	if (r)
		return r;
	r = pressure_make(answer->arena, data, &reply->pressure);
	if (r)
		return r;
	*out = TAKE(answer);
	return 0;
}
