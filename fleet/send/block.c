/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fleet/send/block.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "common/base.h"
#include "fleet/base/stack_hash.h"
#include "fleet/base/tsv.h"
#include "proto/codec.h"

const char block_columns[] =
	"day, start, end, host, boot, probe, attempt, kind, unit, cgroup, exe, pcomm, comm, "
	"pid, pstart, kernel, exited, own, idle, state, state_bits, reason, function, module, "
	"count, total_ns, blocked_ns, runnable_ns, throttled_ns, estimated, sampled, "
	"sampled_ns, open, open_ns, unseen, max_ns, max_end, max_tid, max_comm, buckets, "
	"folded, of_rows, kstack, ustack, h_seq, h_windows, h_hook, h_rows, h_of_rows, "
	"h_total_ns, h_count, h_covered_ns, h_min_wait_ns, h_sample_below_ns, h_period_ns, "
	"h_processes, h_threads, h_cpus, h_on_cpu_ns, h_samples, h_runnable_ns, "
	"h_throttled_ns, h_blocked_ns, h_waits, h_short_waits, h_short_ns, h_sampled_ns, "
	"h_open_waits, h_unseen, h_unseen_ns, h_idle_threads, h_lost, h_lost_n, h_gaps, "
	"h_gap_start, h_gap_end, h_json";

const char block_unit_columns[] =
	"day, start, end, host, boot, probe, attempt, kind, unit, kernel, idle, state, reason, "
	"count, total_ns, blocked_ns, runnable_ns, throttled_ns, sampled_ns, open_ns, max_ns, "
	"buckets, h_rows, h_total_ns, h_covered_ns, h_threads";

const char block_stack_columns[] = "id, host_id, kinds, frames, modules, offsets, flags, seen";

const char block_host_columns[] = "host, boot, kernel, version, cpus, window_ns, probes, labels_k, "
				  "labels_v, seen";

/* What a header has in the columns of a row, and a row in those of a header: nothing. */
#define NO_ROW \
	"\t\t\t\t\t\t0\t0\t0\t0\t0\t0\t\t0\t\t\t\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t\t[]\t0\t0\t0\t0"
#define NO_HEADER                                                                                    \
	"\t0\t0\t\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t[]\t[]\t" \
	"[]\t[]\t[]\t"
#define NO_UNIT_ROW    "\t\t0\t0\t\t\t0\t0\t0\t0\t0\t0\t0\t0\t[]"
#define NO_UNIT_HEADER "\t0\t0\t0\t0"

#define DAY_NS (INT64_C(24) * 60 * 60 * NS_PER_S)

int64_t block_day(int64_t ns)
{
	return ns / DAY_NS;
}

int64_t block_week(int64_t ns)
{
	/* Day 4 of 1970 was a Monday, counted from 0. */
	return (block_day(ns) + 3) / 7;
}

int64_t block_month(int64_t ns)
{
	const time_t seconds = (time_t)(ns / NS_PER_S);
	struct tm tm;

	return gmtime_r(&seconds, &tm) ? tm.tm_year * 12 + tm.tm_mon : 0;
}

/* Append a tab and one field. An absent or negative number becomes 0. */
static void put(struct text *out, const char *text)
{
	text_put(out, "\t", 1);
	tsv_put(out, text);
}

static void put_number(struct text *out, int64_t value)
{
	text_put(out, "\t", 1);
	tsv_put_uint(out, value > 0 ? (uint64_t)value : 0);
}

static void put_id(struct text *out, uint64_t id)
{
	text_put(out, "\t", 1);
	tsv_put_uint(out, id);
}

/* Appends the id of a stack, 0 if there is none. */
static void put_stack_id(struct text *out, const struct wire_stack *stack)
{
	uint64_t id = stack ? stack_hash(stack) : 0;

	if (stack && !id && !out->error)
		out->error = -ENOMEM;
	put_id(out, id);
}

/* Appends a day as ClickHouse reads it, from a number of days since 1970. */
static void put_day(struct text *out, int64_t day)
{
	const time_t seconds = (time_t)(day * DAY_NS / NS_PER_S);
	char text[16];
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof(text), "%Y-%m-%d", &tm) == 0) {
		out->error = -EINVAL;
		return;
	}
	text_put_str(out, text);
}

/* Appends the columns day to kind, with which all rows begin. */
static void put_key(const struct block_key *key, enum fleet_kind kind, struct text *out)
{
	put_day(out, block_day(key->start_ns));
	put_number(out, key->start_ns);
	put_number(out, key->end_ns);
	put(out, key->host);
	put(out, key->boot);
	put(out, key->probe);
	put_id(out, key->attempt);
	put_number(out, kind);
}

static void put_process(const struct wire_row *row, struct text *out)
{
	const struct wire_process *process = &row->process;

	put(out, row->unit);
	put(out, process->cgroup);
	put(out, process->exe);
	put(out, process->comm);
	put(out, row->comm);
	put_number(out, process->pid);
	put_number(out, process->start);
	put_number(out, process->kernel);
	put_number(out, process->exited);
	put_number(out, row->own == 1);
}

static void put_waits(const struct wire_row *row, struct text *out)
{
	put_number(out, row->idle);
	put(out, row->state);
	put_number(out, row->state_bits);
	put(out, row->reason);
	put(out, row->function);
	put(out, row->module);
	put_number(out, row->count);
	put_number(out, row->total_ns);
	put_number(out, row->blocked_ns);
	put_number(out, row->runnable_ns);
	put_number(out, row->throttled_ns);
	put_number(out, row->estimated == 1);
	put_number(out, row->sampled);
	put_number(out, row->sampled_ns);
	put_number(out, row->open);
	put_number(out, row->open_ns);
	put_number(out, row->unseen);
	put_number(out, row->max_ns);
	put_number(out, row->max_end);
	put_number(out, row->max_tid);
	put(out, row->max_comm);
	text_put(out, "\t", 1);
	tsv_put_ints(out, &row->buckets);
}

static void put_row(const struct block_key *key, const struct fleet_row *row, struct text *out)
{
	const struct wire_row *wire = &row->wire;

	put_key(key, row->kind, out);
	put_process(wire, out);
	put_waits(wire, out);
	put_number(out, wire->folded);
	put_number(out, row->of_rows);
	put_stack_id(out, wire->kernel);
	put_stack_id(out, wire->user);
	text_put_str(out, NO_HEADER "\n");
}

static void put_totals(const struct wire_totals *totals, struct text *out)
{
	put_number(out, totals->processes);
	put_number(out, totals->threads);
	put_number(out, totals->cpus);
	put_number(out, totals->on_cpu_ns);
	put_number(out, totals->samples);
	put_number(out, totals->runnable_ns);
	put_number(out, totals->throttled_ns);
	put_number(out, totals->blocked_ns);
	put_number(out, totals->waits);
	put_number(out, totals->short_waits);
	put_number(out, totals->short_ns);
	put_number(out, totals->sampled_ns);
	put_number(out, totals->open_waits);
	put_number(out, totals->unseen);
	put_number(out, totals->unseen_ns);
}

/* Appends two arrays: the reasons of losses, and their counts. */
static void put_losses(const struct wire_losts *lost, struct text *out)
{
	text_put_str(out, "\t[");
	for (size_t i = 0; i < lost->n; i++) {
		text_put_str(out, i > 0 ? "," : "");
		tsv_put_quoted(out, lost->v[i].reason);
	}
	text_put_str(out, "]\t[");
	for (size_t i = 0; i < lost->n; i++) {
		text_put_str(out, i > 0 ? "," : "");
		tsv_put_uint(out, lost->v[i].count > 0 ? (uint64_t)lost->v[i].count : 0);
	}
	text_put_str(out, "]");
}

/* Appends three arrays: the reasons of gaps, their starts and their ends. */
static void put_gaps(const struct wire_gaps *gaps, struct text *out)
{
	text_put_str(out, "\t[");
	for (size_t i = 0; i < gaps->n; i++) {
		text_put_str(out, i > 0 ? "," : "");
		tsv_put_quoted(out, gaps->v[i].reason);
	}
	text_put_str(out, "]\t[");
	for (size_t i = 0; i < gaps->n; i++) {
		text_put_str(out, i > 0 ? "," : "");
		tsv_put_uint(out, (uint64_t)gaps->v[i].start);
	}
	text_put_str(out, "]\t[");
	for (size_t i = 0; i < gaps->n; i++) {
		text_put_str(out, i > 0 ? "," : "");
		tsv_put_uint(out, (uint64_t)gaps->v[i].end);
	}
	text_put_str(out, "]");
}

/* Appends the answer itself, without its rows, as JSON on one line. */
static void put_json(const struct wire_snapshot_reply *reply, struct text *out)
{
	struct wire_snapshot_reply bare = *reply;
	_cleanup_(text_fini) struct text json = {};

	bare.rows = (struct wire_rows){ 0 };
	text_init(&json, SIZE_MAX);
	snapshot_reply_print(&bare, false, &json);
	text_put(&json, "", 1);
	if (json.error < 0)
		out->error = json.error;
	else
		put(out, json.data);
}

static int64_t sum_of(const struct fleet_rows *rows, bool of_counts)
{
	int64_t sum = 0;

	for (size_t i = 0; i < rows->n; i++)
		sum += of_counts ? rows->v[i].wire.count : rows->v[i].wire.total_ns;
	return sum;
}

static void put_header(const struct block_key *key, const struct wire_snapshot_reply *reply,
		       const struct fleet_rows *rows, struct text *out)
{
	put_key(key, FLEET_HEADER, out);
	text_put_str(out, NO_ROW);
	put_id(out, key->seq);
	put_number(out, reply->coverage.windows);
	put(out, reply->hook);
	put_number(out, (int64_t)rows->n);
	put_number(out, (int64_t)reply->rows.n);
	put_number(out, sum_of(rows, false));
	put_number(out, sum_of(rows, true));
	put_number(out, reply->coverage.covered_ns);
	put_number(out, reply->min_wait_ns);
	put_number(out, reply->sample_below_ns);
	put_number(out, reply->period_ns);
	put_totals(&reply->totals, out);
	put_number(out, reply->idle.threads);
	put_losses(&reply->lost, out);
	put_gaps(&reply->coverage.gaps, out);
	put_json(reply, out);
	text_put(out, "\n", 1);
}

int block_put(const struct block_key *key, const struct wire_snapshot_reply *reply,
	      const struct fleet_rows *rows, struct text *out)
{
	put_header(key, reply, rows, out);
	for (size_t i = 0; i < rows->n; i++)
		put_row(key, &rows->v[i], out);
	return out->error;
}

static void put_unit(const struct block_key *key, const struct wire_row *row, struct text *out)
{
	put_key(key, FLEET_REST, out);
	put(out, row->unit);
	put_number(out, row->process.kernel);
	put_number(out, row->idle);
	put(out, row->state);
	put(out, row->reason);
	put_number(out, row->count);
	put_number(out, row->total_ns);
	put_number(out, row->blocked_ns);
	put_number(out, row->runnable_ns);
	put_number(out, row->throttled_ns);
	put_number(out, row->sampled_ns);
	put_number(out, row->open_ns);
	put_number(out, row->max_ns);
	text_put(out, "\t", 1);
	tsv_put_ints(out, &row->buckets);
	text_put_str(out, NO_UNIT_HEADER "\n");
}

int block_put_units(const struct block_key *key, const struct wire_snapshot_reply *reply,
		    const struct fleet_rows *rows, struct text *out)
{
	put_key(key, FLEET_HEADER, out);
	text_put_str(out, NO_UNIT_ROW);
	put_number(out, (int64_t)rows->n);
	put_number(out, sum_of(rows, false));
	put_number(out, reply->coverage.covered_ns);
	put_number(out, reply->totals.threads);
	text_put(out, "\n", 1);
	for (size_t i = 0; i < rows->n; i++)
		put_unit(key, &rows->v[i].wire, out);
	return out->error;
}

int block_put_gap(const struct block_key *key, const char *reason, struct text *out)
{
	const struct fleet_row gap = {
		.kind = FLEET_GAP,
		.wire = { .process = { .comm = "" }, .comm = "", .reason = reason }
	};

	put_row(key, &gap, out);
	return out->error;
}

/* Appends an array of one text of each frame. */
static void put_frames(const struct wire_frames *frames, size_t offset, struct text *out)
{
	text_put_str(out, "\t[");
	for (size_t i = 0; i < frames->n; i++) {
		text_put_str(out, i > 0 ? "," : "");
		tsv_put_quoted(out, *(const char *const *)((const char *)&frames->v[i] + offset));
	}
	text_put_str(out, "]");
}

int block_put_stack(const struct wire_stack *stack, uint64_t id, int64_t day, struct text *out)
{
	const struct wire_frames *frames = &stack->frames;

	tsv_put_uint(out, id);
	put_id(out, stack_host_id(stack));
	put_frames(frames, offsetof(struct wire_frame, kind), out);
	put_frames(frames, offsetof(struct wire_frame, name), out);
	put_frames(frames, offsetof(struct wire_frame, module), out);
	text_put_str(out, "\t[");
	for (size_t i = 0; i < frames->n; i++) {
		text_put_str(out, i > 0 ? "," : "");
		text_put_int(out, frames->v[i].offset == WIRE_ABSENT ? -1 : frames->v[i].offset);
	}
	text_put_str(out, "]\t");
	tsv_put_strings(out, &stack->flags);
	text_put(out, "\t", 1);
	put_day(out, day);
	text_put(out, "\n", 1);
	return out->error;
}
