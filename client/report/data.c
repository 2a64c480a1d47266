/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/report/data.h"

#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/render/comments.h"
#include "client/render/coverage.h"
#include "client/render/lines.h"
#include "client/report/internal.h"
#include "common/array.h"
#include "common/base.h"
#include "common/note_words.h"

#define REST_NAME "[not listed]"

void report_data_init(struct report_data *data, const struct view *view, int64_t asked_start)
{
	*data = (struct report_data){ .view = *view, .asked_start = asked_start };
	data->known = intern_new();
	data->strings = intern_new();
	data->frames = intern_new();
	data->nodes = intern_new();
	data->processes = intern_new();
	data->keys = intern_new();
	data->latency_keys = intern_new();
	data->gaps = intern_new();
	data->notes = intern_new();
	data->loss_keys = intern_new();
	intern_add(data->strings, "", 0, NULL);
}

void report_data_fini(struct report_data *data)
{
	struct intern *sets[] = { data->known,	   data->strings,  data->frames,       data->nodes,
				  data->processes, data->keys,	   data->latency_keys, data->gaps,
				  data->notes,	   data->loss_keys };

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		intern_free(sets[i]);
	for (size_t i = 0; i < data->n_open; i++) {
		free(data->open[i].holders);
		free(data->open[i].chain);
	}
	for (enum report_probe i = 0; i < REPORT_PROBES; i++)
		free(data->missing[i]);
	free(data->places);
	free(data->columns);
	free(data->rows);
	free(data->latencies);
	free(data->losses);
	free(data->waits);
	free(data->open);
	path_fini(&data->path);
}

/* Adds a string that is escaped already. Of one that is too long, adds the beginning. */
static uint32_t add_string(struct report_data *data, const char *text)
{
	size_t n = strlen(text);

	if (n > REPORT_NAME_MAX) {
		char cut[REPORT_NAME_MAX + 4];

		for (n = REPORT_NAME_MAX; n > 0 && (text[n] & 0xc0) == 0x80; n--)
			;
		memcpy(cut, text, n);
		strcpy(cut + n, "...");
		data->n_cut_names++;
		return (uint32_t)intern_add(data->strings, cut, n + 3, NULL);
	}
	return (uint32_t)intern_add(data->strings, text, n, NULL);
}

uint32_t report_string(struct report_data *data, const char *text)
{
	_cleanup_(freep) char *safe = text ? name_escape(text) : NULL;

	return safe ? add_string(data, safe) : 0;
}

static uint32_t add_node(struct report_data *data, uint32_t parent, enum report_frame_kind kind,
			 uint32_t name, uint32_t module)
{
	const struct report_frame frame = { kind, name, module };
	const struct report_node node = { parent, (uint32_t)intern_add(data->frames, &frame,
								       sizeof frame, NULL) };

	return (uint32_t)intern_add(data->nodes, &node, sizeof node, NULL);
}

static struct report_place make_place(struct report_data *data, const struct wire_row *row)
{
	_cleanup_(freep) char *function = row_function(&data->view, row);
	uint32_t node = REPORT_NONE;

	path_fill(&data->path, &data->view, row, PATH_COMM | PATH_POOL | PATH_NO_SCHEDULER);
	for (size_t i = 0; i < data->path.n; i++) {
		const struct path_frame *frame = &data->path.v[i];
		enum report_frame_kind kind = i == 0		 ? REPORT_PROCESS
					      : frame->is_kernel ? REPORT_KERNEL
								 : REPORT_USER;

		node = add_node(data, node, kind, add_string(data, frame->name),
				report_string(data, frame->module));
	}
	return (struct report_place){
		node, add_string(data, function ? function : data->path.v[data->path.n - 1].name)
	};
}

/* Returns the number that is the id of a stack; 0 if there is no stack. */
static uint64_t stack_number(const struct wire_stack *stack)
{
	return stack ? strtoull(stack->id, NULL, 16) : 0;
}

/* Returns a hash of the names of a stack: a later window may have found other names for it. */
static uint64_t names_hash(const struct wire_stack *stack)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a, 64 bits */

	for (size_t i = 0; i < stack->frames.n; i++) {
		const struct wire_frame *frame = &stack->frames.v[i];
		const char *texts[] = { frame->name, frame->module, frame->kind };

		for (size_t k = 0; k < ARRAY_SIZE(texts); k++) {
			for (const char *at = texts[k]; at && *at; at++)
				hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
			hash = (hash ^ 0xff) * UINT64_C(0x100000001b3);
		}
	}
	return hash;
}

/*
 * Returns the number of what decides which frames a row has and what they are called: most rows
 * have the stacks of a row in an earlier window.
 */
static size_t add_known(struct report_data *data, const struct wire_row *row, bool *is_new_out)
{
	const struct {
		uint64_t kernel, user, kernel_names, user_names;
		uint32_t comm, process, function, state;
		int64_t folded, processes, own;
	} key = {
		.kernel = stack_number(row->kernel),
		.user = stack_number(row->user),
		.kernel_names = names_hash(row->kernel),
		.user_names = names_hash(row->user),
		.comm = report_string(data, row->comm),
		.process = report_string(data, row->process.comm),
		.function = report_string(data, row->function),
		.state = row->state ? 1 : 0,
		.folded = row->folded,
		.processes = row->processes,
		.own = row->own,
	};

	return intern_add(data->known, &key, sizeof key, is_new_out);
}

uint32_t report_row_node(struct report_data *data, const struct wire_row *row,
			 uint32_t *function_out)
{
	struct report_place place;
	bool is_new;
	size_t i;

	/* The id 0 stands for no stack, for one reason or another. */
	if (!stack_number(row->kernel) || !stack_number(row->user) || row->waker || row->key) {
		place = make_place(data, row);
		*function_out = place.function;
		return place.node;
	}
	i = add_known(data, row, &is_new);
	if (is_new) {
		if (array_reserve(data->places, data->places_capacity, i + 1) < 0)
			must(NULL);
		data->places[i] = make_place(data, row);
	}
	*function_out = data->places[i].function;
	return data->places[i].node;
}

static uint32_t row_process(struct report_data *data, const struct wire_row *row)
{
	const struct report_process process = {
		.pid = row->process.pid,
		.start = row->process.start,
		.comm = report_string(data, row->process.comm),
		.cgroup = report_string(data, row->process.cgroup),
		.exe = report_string(data, row->process.exe),
		.is_kernel = row->process.kernel,
	};

	return (uint32_t)intern_add(data->processes, &process, sizeof process, NULL);
}

/* Returns the column of a range of time; makes it, in its place, unless it is there. */
static size_t find_column(struct report_data *data, const struct wire_range *range)
{
	int64_t middle = range->start + (range->end - range->start) / 2;

	for (size_t i = 0; i < data->n_columns; i++)
		if (middle >= data->columns[i].start && middle < data->columns[i].end)
			return i;
	if (array_reserve(data->columns, data->columns_capacity, data->n_columns + 1) < 0)
		must(NULL);
	data->columns[data->n_columns] = (struct report_column){
		.start = range->start,
		.end = range->end,
	};
	return data->n_columns++;
}

static void add_gaps(struct report_data *data, enum report_probe probe,
		     const struct wire_gaps *gaps)
{
	for (size_t i = 0; i < gaps->n && intern_count(data->gaps) < REPORT_TEXTS_MAX; i++) {
		const struct report_gap key = { gaps->v[i].start, gaps->v[i].end,
						report_string(data, gaps->v[i].reason), probe };

		intern_add(data->gaps, &key, sizeof key, NULL);
	}
}

static void add_losses(struct report_data *data, enum report_probe probe,
		       const struct wire_losts *lost)
{
	for (size_t i = 0; i < lost->n; i++) {
		const struct report_text key = { report_string(data, lost->v[i].reason), probe };
		bool is_new;
		size_t number;

		if (lost->v[i].count <= 0)
			continue;
		number = intern_add(data->loss_keys, &key, sizeof key, &is_new);
		if (array_reserve(data->losses, data->losses_capacity, number + 1) < 0)
			must(NULL);
		if (is_new)
			data->losses[number] = 0;
		data->losses[number] += lost->v[i].count;
	}
}

/*
 * Adds the notes of an answer. Of those about sampling, which differ by its bound only, it keeps
 * that of the greatest bound.
 */
static void add_notes(struct report_data *data, enum report_probe probe,
		      const struct wire_snapshot_reply *reply)
{
	const bool is_greatest = reply->sample_below_ns > data->sample_below_ns[probe];

	if (is_greatest)
		data->sample_below_ns[probe] = reply->sample_below_ns;
	for (size_t i = 0; i < reply->notes.n; i++) {
		const struct report_text key = { report_string(data, reply->notes.v[i]), probe };

		if (!strncmp(reply->notes.v[i], NOTE_SAMPLED, strlen(NOTE_SAMPLED))) {
			if (is_greatest)
				data->sampled[probe] = key.text;
		} else if (intern_count(data->notes) < REPORT_TEXTS_MAX) {
			intern_add(data->notes, &key, sizeof key, NULL);
		}
	}
}

/* Returns an optional number as 0 where it is absent. */
static int64_t number(int64_t value)
{
	return value > 0 ? value : 0;
}

static void add_pressure(struct report_column *column, const struct wire_pressure *pressure)
{
	const struct wire_stall *stalls[] = { pressure->cpu, pressure->io, pressure->memory };

	if (pressure->length_ns <= 0)
		return;
	column->stall_length = pressure->length_ns;
	for (size_t i = 0; i < ARRAY_SIZE(stalls); i++) {
		column->stalls[i][0] = stalls[i] ? stalls[i]->some_ns : 0;
		column->stalls[i][1] = stalls[i] ? stalls[i]->full_ns : 0;
	}
}

static void add_cost(struct report_data *data, const struct wire_snapshot_reply *reply)
{
	if (!reply->cost)
		return;
	data->cost_ns += cost_held_ns(reply->cost);
	data->cost_length_ns += reply->cost->length_ns;
}

void report_data_begin_answer(struct report_data *data, enum report_probe probe,
			      const struct wire_snapshot_reply *reply)
{
	const struct wire_totals *totals = &reply->totals;
	struct report_column *column;

	add_gaps(data, probe, &reply->coverage.gaps);
	add_losses(data, probe, &reply->lost);
	add_notes(data, probe, reply);
	data->column = find_column(data, &reply->coverage.used);
	column = &data->columns[data->column];
	column->covered[probe] += coverage_length(&reply->coverage);
	column->lost += lost_count(&reply->lost);
	if (reply->pressure && column->stall_length == 0)
		add_pressure(column, reply->pressure);
	if (probe == REPORT_OFFCPU) {
		column->on_cpu += totals->on_cpu_ns;
		column->runnable += number(totals->runnable_ns);
		column->blocked += number(totals->blocked_ns);
		column->waits += number(totals->waits);
		column->open += number(totals->open_waits);
		data->cpus = number(totals->cpus);
		add_cost(data, reply);
	}
	column->samples += number(totals->samples);
	if (reply->min_wait_ns > data->min_wait_ns)
		data->min_wait_ns = reply->min_wait_ns;
	if (probe == REPORT_ONCPU)
		data->period_ns = number(reply->period_ns);
	data->sent[0] = data->sent[1] = 0;
}

/* Returns the reason of a row, or what stands for it in one of stackd's own threads. */
static const char *reason_of(const struct wire_row *row)
{
	return row->own == 1 ? REPORT_OWN : row->reason;
}

/* Adds a row to the distribution of its column and its reason, or its layer and operation. */
static void add_latency(struct report_data *data, const struct wire_row *row)
{
	const struct wire_io *io = row->io;
	struct report_latency *latency;
	const uint32_t key[] = {
		(uint32_t)data->column,
		io ? report_string(data, io->layer) : REPORT_NONE,
		report_string(data, io		? io->op
				    : row->idle ? "idle"
						: reason_of(row)),
	};
	int64_t first = io ? 0 : 9; /* buckets[0] of waits counts those up to 2^10 ns */
	bool is_new;
	size_t i = intern_add(data->latency_keys, key, sizeof key, &is_new);

	if (array_reserve(data->latencies, data->latencies_capacity, i + 1) < 0)
		must(NULL);
	latency = &data->latencies[i];
	if (is_new) {
		*latency = (struct report_latency){ .column = key[0],
						    .layer = key[1],
						    .name = key[2] };
		data->n_latencies++;
	}
	latency->count += row->count;
	latency->total += row->total_ns;
	latency->bytes += io ? io->bytes : 0;
	if (row->max_ns > latency->max)
		latency->max = row->max_ns;
	for (size_t b = 0; b < row->buckets.n && (int64_t)b + first < REPORT_BUCKETS_MAX; b++)
		latency->buckets[(int64_t)b + first] += row->buckets.v[b];
}

static int compare_waits(const void *a, const void *b)
{
	const struct report_wait *x = a, *y = b;

	if (x->is_older != y->is_older)
		return x->is_older ? 1 : -1;
	if (x->length != y->length)
		return x->length < y->length ? 1 : -1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/*
 * Sorts the waits, the longest first, and keeps REPORT_WAITS_MAX of them. Each wait is kept once:
 * one that spans several windows is the longest wait of a row in each. Waits that began before the
 * range come last: they were there all the time.
 */
static void trim_waits(struct report_data *data)
{
	size_t n = 0;

	if (data->n_waits > 0)
		qsort(data->waits, data->n_waits, sizeof *data->waits, compare_waits);
	for (size_t i = 0; i < data->n_waits && n < REPORT_WAITS_MAX; i++) {
		const struct report_wait *wait = &data->waits[i];
		bool is_known = false;

		for (size_t j = 0; j < n && !is_known; j++)
			is_known = data->waits[j].tid == wait->tid &&
				   llabs((data->waits[j].end - data->waits[j].length) -
					 (wait->end - wait->length)) < NS_PER_MS;
		if (!is_known)
			data->waits[n++] = *wait;
	}
	data->n_waits = n;
}

/*
 * Adds the longest wait of a row, unless its end is absent because a filter of lengths left no wait
 * whose length is known.
 */
static void add_wait(struct report_data *data, const struct wire_row *row, uint32_t key)
{
	bool is_open = row->max_end == WIRE_ABSENT;
	_cleanup_(freep) char *by = is_open ? NULL : row_held_up_by(row);

	if (is_open && (row->open <= 0 || data->is_of_lengths))
		return;
	if (row->idle || row->max_ns <= 0 || row->max_tid == WIRE_ABSENT)
		return;
	if (data->n_waits == 16 * (size_t)REPORT_WAITS_MAX)
		trim_waits(data);
	if (array_reserve(data->waits, data->waits_capacity, data->n_waits + 1) < 0)
		must(NULL);
	data->waits[data->n_waits++] = (struct report_wait){
		.key = key,
		.comm = report_string(data, row->max_comm ? row->max_comm : row->comm),
		.held_up_by = report_string(data, by),
		.tid = row->max_tid,
		.length = row->max_ns,
		.end = is_open ? data->columns[data->column].end : row->max_end,
		.is_open = is_open,
		.is_older =
			(is_open ? data->columns[data->column].end : row->max_end) - row->max_ns <
			data->asked_start,
	};
}

static void push_row(struct report_data *data, const struct report_row *row)
{
	if (array_reserve(data->rows, data->rows_capacity, data->n_rows + 1) < 0)
		must(NULL);
	data->rows[data->n_rows++] = *row;
}

static void add_row(struct report_data *data, enum report_probe probe, const struct wire_row *row)
{
	uint32_t function, node = report_row_node(data, row, &function);
	const struct report_key key = {
		.probe = probe,
		.node = node,
		.function = function,
		.process = row_process(data, row),
		.state = report_string(data, row->state),
		.reason = report_string(data, reason_of(row)),
		.is_idle = row->idle,
		.is_estimated = row->estimated == 1,
	};
	struct report_row out = {
		.column = (uint32_t)data->column,
		.key = (uint32_t)intern_add(data->keys, &key, sizeof key, NULL),
		.blocked = probe == REPORT_ONCPU ? row->total_ns : number(row->blocked_ns),
		.runnable = number(row->runnable_ns),
		.count = row->count,
		.max = number(row->max_ns),
	};

	data->sent[0] += out.blocked;
	data->sent[1] += out.runnable;
	push_row(data, &out);
	if (probe == REPORT_OFFCPU) {
		add_latency(data, row);
		add_wait(data, row, out.key);
	}
}

void report_data_add_rows(struct report_data *data, enum report_probe probe,
			  const struct wire_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		if (probe == REPORT_IOLAT)
			add_latency(data, &rows->v[i]);
		else
			add_row(data, probe, &rows->v[i]);
}

/* Stores the sums of all rows of an answer, blocked and runnable, or on a CPU and 0. */
static void sums_of_parts(const struct wire_snapshot_reply *reply, enum report_probe probe,
			  int64_t sums[static 2])
{
	sums[0] = sums[1] = 0;
	for (size_t i = 0; i < reply->parts.n; i++) {
		const struct wire_part *part = &reply->parts.v[i];

		if (probe == REPORT_ONCPU || strcmp(part->name, "blocked") == 0)
			sums[0] += part->total_ns;
		else if (strcmp(part->name, "runnable") == 0 ||
			 strcmp(part->name, "throttled") == 0)
			sums[1] += part->total_ns;
	}
}

void report_data_end_answer(struct report_data *data, enum report_probe probe,
			    const struct wire_snapshot_reply *reply)
{
	struct report_column *column = &data->columns[data->column];
	int64_t sums[2];
	struct report_key key = { .probe = probe, .process = REPORT_NONE };
	struct report_row row = { .column = (uint32_t)data->column };

	data->n_unsent[probe] += reply->rest.rows;
	if (probe == REPORT_IOLAT || reply->rest.rows == 0)
		return;
	sums_of_parts(reply, probe, sums);
	row.blocked = number(sums[0] - data->sent[0]);
	row.runnable = number(sums[1] - data->sent[1]);
	column->unsent[probe][0] += row.blocked;
	column->unsent[probe][1] += row.runnable;
	key.function = add_string(data, REST_NAME);
	key.node = add_node(data, REPORT_NONE, REPORT_PSEUDO, key.function, 0);
	row.key = (uint32_t)intern_add(data->keys, &key, sizeof key, NULL);
	push_row(data, &row);
}

static int compare_columns(const void *a, const void *b)
{
	const struct report_column *x = *(const struct report_column *const *)a;
	const struct report_column *y = *(const struct report_column *const *)b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void report_data_finish(struct report_data *data)
{
	size_t n = data->n_columns;
	const struct report_column **order = must(calloc(n + 1, sizeof(struct report_column *)));
	struct report_column *sorted = must(calloc(n + 1, sizeof *sorted));
	uint32_t *places = must(calloc(n + 1, sizeof *places));

	for (size_t i = 0; i < n; i++)
		order[i] = &data->columns[i];
	qsort(order, n, sizeof(struct report_column *), compare_columns);
	for (size_t i = 0; i < n; i++) {
		sorted[i] = *order[i];
		places[order[i] - data->columns] = (uint32_t)i;
	}
	for (size_t i = 0; i < data->n_rows; i++)
		data->rows[i].column = places[data->rows[i].column];
	for (size_t i = 0; i < data->n_latencies; i++)
		data->latencies[i].column = places[data->latencies[i].column];
	free(order);
	free(places);
	free(data->columns);
	data->columns = sorted;
	data->columns_capacity = n + 1;
	for (enum report_probe i = 0; i < REPORT_PROBES; i++) {
		const struct report_text note = { data->sampled[i], i };

		if (note.text)
			intern_add(data->notes, &note, sizeof note, NULL);
	}
	trim_waits(data);
}
