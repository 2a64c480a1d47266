/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/answer_iolat.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/io_shared.h"
#include "daemon/base/io_names.h"
#include "daemon/query/answer_stacks.h"
#include "daemon/query/snapshot_internal.h"

/*
 * Compares groups by total time, longest first. The age of an operation that has not ended is added
 * to the total, so that hung operations are near the top.
 */
static int by_total(const void *x, const void *y)
{
	const struct aggregate_io_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING((*a)->io.total_ns + (*a)->io.oldest_ns,
				   (*b)->io.total_ns + (*b)->io.oldest_ns);

	return r ? r : memcmp(&(*a)->key, &(*b)->key, sizeof((*a)->key));
}

static int by_max(const void *x, const void *y)
{
	const struct aggregate_io_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING((*a)->io.max_ns, (*b)->io.max_ns);

	return r ? r : by_total(x, y);
}

static int by_count(const void *x, const void *y)
{
	const struct aggregate_io_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING((*a)->io.count, (*b)->io.count);

	return r ? r : by_total(x, y);
}

/* Compares groups by window, oldest first, and groups of the same window by total time. */
static int by_window(const void *x, const void *y)
{
	const struct aggregate_io_group *const *a = x, *const *b = y;
	int64_t before = (*a)->key.window, after = (*b)->key.window;

	return before < after ? -1 : before > after ? 1 : by_total(x, y);
}

int64_t io_percentile(const uint64_t *buckets, unsigned int percent, uint64_t max_ns)
{
	uint64_t sum = 0, below = 0;
	double wanted, low, value;
	unsigned int i;

	for (i = 0; i < IO_BUCKETS_N; i++)
		sum += buckets[i];
	if (!sum)
		return -1;
	wanted = (double)sum * percent / 100;
	for (i = 0; i < IO_BUCKETS_N - 1; i++) {
		if (buckets[i] && (double)(below + buckets[i]) >= wanted)
			break;
		below += buckets[i];
	}
	low = i ? (double)(UINT64_C(1) << i) : 0;
	value = buckets[i] ? low + (i ? low : 2) * (wanted - (double)below) / (double)buckets[i]
			   : low;
	return value < (double)max_ns ? (int64_t)value : (int64_t)max_ns;
}

static const char *op_text(struct arena *arena, const struct window_io *io)
{
	const char *name = io->call ? io_call_name(io->call) : io_op_name(io->op);

	if (name)
		return name;
	return arena_printf(arena, io->call ? "call-%" PRIu32 : "op-%" PRIu32,
			    io->call ? io->call - 1 : io->op);
}

static const char *filesystem_text(struct arena *arena, uint32_t magic)
{
	const char *name = io_magic_name(magic);

	if (!magic || name)
		return name;
	return arena_printf(arena, "0x%" PRIx32, magic);
}

static int io_wire(struct arena *arena, const struct aggregate_io_group *group,
		   const struct wire_io **out)
{
	struct wire_io *wire = arena_alloc(arena, sizeof(*wire));
	const struct window_io *io = &group->io;
	uint64_t known = io->device_ns + io->queue_ns + io->throttled_ns;
	uint64_t off = io->runnable_ns + io->asleep_ns;
	bool is_thread = io->layer < IO_LAYER_BLOCK;

	if (!wire)
		return -ENOMEM;
	*wire = (struct wire_io){
		.layer = io_layer_name(io->layer),
		.op = group->is_others ? "(others)" : op_text(arena, io),
		.filesystem = filesystem_text(arena, io->magic),
		.device =
			io->device[0] ? arena_strndup(arena, io->device, WINDOW_DEVICE_LEN) : NULL,
		.own_ns = (int64_t)io->own_ns,
		.cpu_ns = is_thread && io->total_ns > off ? (int64_t)(io->total_ns - off) : 0,
		.runnable_ns = (int64_t)io->runnable_ns,
		.device_ns = (int64_t)io->device_ns,
		.queue_ns = (int64_t)io->queue_ns,
		.throttled_ns = (int64_t)io->throttled_ns,
		.other_ns = io->asleep_ns > known ? (int64_t)(io->asleep_ns - known) : 0,
		.async = (int64_t)io->async,
		.errors = (int64_t)io->errors,
		.bytes = (int64_t)io->bytes,
		.merges = (int64_t)io->merges,
		.requeues = (int64_t)io->requeues,
		.open = io->open ? (int64_t)io->open : WIRE_ABSENT,
		.oldest_ns = io->open ? (int64_t)io->oldest_ns : WIRE_ABSENT,
		.oldest_tid = io->open ? io->oldest_tid : WIRE_ABSENT,
		.p50_ns = io_percentile(group->buckets, 50, io->max_ns),
		.p90_ns = io_percentile(group->buckets, 90, io->max_ns),
		.p99_ns = io_percentile(group->buckets, 99, io->max_ns),
	};
	if (wire->p50_ns < 0)
		wire->p50_ns = wire->p90_ns = wire->p99_ns = WIRE_ABSENT;
	*out = wire;
	return wire->op && wire->layer ? 0 : -ENOMEM;
}

int answer_iolat_row(struct answer *answer, const struct aggregate_io_group *group,
		     struct answer_stacks *stacks, struct wire_row *row)
{
	struct process *process = answer_process(answer, &group->process);
	const struct window_io *io = &group->io;
	struct arena *arena = stacks->arena;
	int r;

	if (!process && group->process.number)
		return -ENOMEM;
	answer_row_init(arena, process, group->process.at_ns, row);
	if (group->is_others)
		row->process.comm = "(others)";
	/* always 0 in rows of I/O: row->io has a throttled_ns of its own */
	row->throttled_ns = 0;
	if (group->key.window)
		row->window = group->key.window;
	row->comm = row->process.comm;
	row->count = (int64_t)io->count;
	row->total_ns = (int64_t)io->total_ns;
	if (group->sampled_ns) {
		row->estimated = 1;
		row->sampled = (int64_t)group->sampled;
		row->sampled_ns = (int64_t)group->sampled_ns;
	}
	if (io->processes && group->key.process_start)
		row->folded = window_processes(io->processes, io->started);
	row->max_ns = (int64_t)io->max_ns;
	if (io->max_ns) {
		row->max_end = group->max_end_real_ns;
		row->max_tid = io->max_tid;
	}
	r = answer_buckets(arena, group->buckets, IO_BUCKETS_N, &row->buckets);
	if (r)
		return r;
	r = io_wire(arena, group, &row->io);
	if (r)
		return r;
	r = answer_stack(stacks, io->kernel, &row->kernel);
	if (r)
		return r;
	return answer_stack(stacks, io->user, &row->user);
}

/* Returns how many bytes were read or written: to discard a block moves none. */
static uint64_t moved_bytes(const struct aggregate_io_group *group)
{
	return group->io.op == IO_OP_DISCARD ? 0 : group->io.bytes;
}

static int by_bytes(const void *x, const void *y)
{
	const struct aggregate_io_group *const *a = x, *const *b = y;
	int r = COMPARE_DESCENDING(moved_bytes(*a), moved_bytes(*b));

	return r ? r : by_total(x, y);
}

/*
 * Moves the groups that are sums of others (is_others) to the end. Returns the number of the other
 * groups.
 */
static size_t others_last(struct aggregate_io_group **groups, size_t n)
{
	struct aggregate_io_group *group;
	size_t n_own = 0, i;

	for (i = 0; i < n; i++) {
		group = groups[i];
		if (group->is_others)
			continue;
		groups[i] = groups[n_own];
		groups[n_own++] = group;
	}
	return n_own;
}

static int by_layer(const void *x, const void *y)
{
	const struct aggregate_io_group *const *a = x, *const *b = y;
	int r = ((*a)->io.layer > (*b)->io.layer) - ((*a)->io.layer < (*b)->io.layer);

	return r ? r : by_total(x, y);
}

static int by_first(const void *x, const void *y)
{
	const struct aggregate_io_group *const *a = x, *const *b = y;
	int r = (int)(*b)->is_first - (int)(*a)->is_first;

	return r ? r : by_layer(x, y);
}

/* Adds a group to the sums of its layer. Returns its number among the groups of the layer, from 0.
 */
static size_t part_add(struct wire_part *part, const struct aggregate_io_group *group)
{
	part->total_ns += (int64_t)group->io.total_ns;
	part->sampled_ns += (int64_t)group->sampled_ns;
	return (size_t)part->rows++;
}

/*
 * Sets reply.snapshot.parts to the sums of each layer. If `top` is not 0, sorts the first n groups
 * so that those with the most time in each layer, at most `top` of them, are in front. Returns
 * their number, or -ENOMEM.
 */
static ssize_t parts_make(struct answer *answer, struct aggregate_io_group **groups, size_t n_own,
			  size_t n, size_t top)
{
	struct wire_part sums[IO_LAYERS] = {},
			 *parts = arena_array(answer->arena, IO_LAYERS, sizeof(*parts));
	size_t i, n_parts = 0, first = 0;

	if (!parts)
		return -ENOMEM;
	if (top)
		qsort(groups, n_own, sizeof(*groups), by_layer);
	for (i = 0; i < n; i++)
		if (groups[i]->io.layer < IO_LAYERS &&
		    part_add(&sums[groups[i]->io.layer], groups[i]) < top && i < n_own)
			groups[i]->is_first = true;
	for (i = 0; i < IO_LAYERS; i++) {
		sums[i].name = io_layer_name((enum io_layer)i);
		if (!sums[i].sampled_ns)
			sums[i].sampled_ns = WIRE_ABSENT;
		if (sums[i].rows)
			parts[n_parts++] = sums[i];
	}
	answer->reply.snapshot.parts = (struct wire_parts){ .v = parts, .n = n_parts };
	if (top)
		qsort(groups, n_own, sizeof(*groups), by_first);
	while (first < n_own && groups[first]->is_first)
		first++;
	return (ssize_t)first;
}

/*
 * Moves the groups of the parts of a request, which the group of the layer block has as a whole, to
 * the end. Returns the number of the others.
 */
static size_t requests_once(struct aggregate_io_group **groups, size_t n)
{
	struct aggregate_io_group *group;
	size_t kept = 0, i;

	for (i = 0; i < n; i++) {
		group = groups[i];
		if (group->io.layer > IO_LAYER_BLOCK)
			continue;
		groups[i] = groups[kept];
		groups[kept++] = group;
	}
	return kept;
}

int answer_iolat_rows(struct answer *answer, const struct snapshot_question *question)
{
	static int (*const compare[])(const void *a, const void *b) = {
		[SNAPSHOT_BY_TOTAL] = by_total, [SNAPSHOT_BY_MAX] = by_max,
		[SNAPSHOT_BY_COUNT] = by_count, [SNAPSHOT_BY_WINDOW] = by_window,
		[SNAPSHOT_BY_BYTES] = by_bytes,
	};
	struct wire_snapshot_reply *reply = &answer->reply.snapshot;
	struct aggregate_io_group **groups, *group;
	size_t n, n_own, top, i;
	ssize_t first = 0;
	int r = aggregate_io_groups(answer->aggregate, &groups, &n);

	if (r)
		return r;
	answer->source.io_groups = groups;
	if (question->has_requests_once) {
		n = requests_once(groups, n);
		reply->totals.ios = 0;
		for (i = 0; i < n; i++)
			reply->totals.ios += (int64_t)groups[i]->io.count;
	}
	n_own = others_last(groups, n);
	qsort(groups, n_own, sizeof(*groups), compare[question->order]);
	/* The sums of merged groups are shown if all rows are, as by snapshot_rows(). */
	top = question->top == SIZE_MAX ? n : question->top < n_own ? question->top : n_own;
	if (question->has_parts)
		first = parts_make(answer, groups, n_own, n,
				   question->by_parts && question->top != SIZE_MAX ? question->top
										   : 0);
	if (first < 0)
		return -ENOMEM;
	if (question->by_parts && question->top != SIZE_MAX)
		top = (size_t)first;
	snapshot_rests_init(reply);
	for (i = 0; i < n; i++)
		snapshot_rest_add(i < top ? &reply->shown : &reply->rest,
				  (int64_t)groups[i]->io.total_ns, (int64_t)groups[i]->sampled_ns);
	for (i = 0; question->is_reversed && i < top / 2; i++) {
		group = groups[i];
		groups[i] = groups[top - 1 - i];
		groups[top - 1 - i] = group;
	}
	answer->source.n = top;
	return 0;
}
