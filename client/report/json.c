/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/report/json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "build_config.h"
#include "client/base/json_string.h"
#include "client/base/term.h"
#include "client/render/render.h"
#include "common/base.h"

/*
 * The numbers by which the page knows strings, frames and so on: only those that a kept row uses
 * are printed, in the order of their old numbers.
 */
struct places {
	uint32_t *v; /* first 0 or 1: is used; then the new number */
	size_t n;
};

struct writer {
	struct report_data *data;
	FILE *out;
	int64_t base; /* times in the page are ns since this one, which is whole ms */
	struct places strings, frames, nodes, processes, keys;
};

static struct places places_new(size_t n)
{
	return (struct places){ must(calloc(n + 1, sizeof(uint32_t))), n };
}

static void places_number(struct places *places)
{
	uint32_t next = 0;

	for (size_t i = 0; i < places->n; i++)
		places->v[i] = places->v[i] ? next++ : REPORT_NONE;
}

static void use(struct places *places, uint32_t number)
{
	if (number < places->n)
		places->v[number] = 1;
}

static int64_t place(const struct places *places, uint32_t number)
{
	return number < places->n ? (int64_t)places->v[number] : -1;
}

static const struct report_key *key_of(const struct report_data *data, uint32_t number)
{
	return (const struct report_key *)(const void *)intern_key(data->keys, number, NULL);
}

static const struct report_node *node_of(const struct report_data *data, uint32_t number)
{
	return (const struct report_node *)(const void *)intern_key(data->nodes, number, NULL);
}

/* Marks a node and its callers. */
static void use_nodes(struct writer *w, uint32_t number)
{
	while (number != REPORT_NONE && !w->nodes.v[number]) {
		const struct report_node *node = node_of(w->data, number);
		const struct report_frame *frame =
			(const struct report_frame *)(const void *)intern_key(w->data->frames,
									      node->frame, NULL);

		w->nodes.v[number] = 1;
		w->frames.v[node->frame] = 1;
		use(&w->strings, frame->name);
		use(&w->strings, frame->module);
		number = node->parent;
	}
}

static void use_key(struct writer *w, uint32_t number)
{
	const struct report_key *key = key_of(w->data, number);
	const struct report_process *process;

	if (w->keys.v[number])
		return;
	w->keys.v[number] = 1;
	use_nodes(w, key->node);
	use(&w->strings, key->function);
	use(&w->strings, key->state);
	use(&w->strings, key->reason);
	if (key->process == REPORT_NONE)
		return;
	use(&w->processes, key->process);
	process = (const struct report_process *)(const void *)intern_key(w->data->processes,
									  key->process, NULL);
	use(&w->strings, process->comm);
	use(&w->strings, process->cgroup);
	use(&w->strings, process->exe);
}

static void use_all(struct writer *w, const bool *is_kept)
{
	struct report_data *data = w->data;

	w->strings.v[0] = 1;
	for (size_t i = 0; i < data->n_rows; i++)
		if (is_kept[i])
			use_key(w, data->rows[i].key);
	for (size_t i = 0; i < data->n_waits; i++) {
		use_key(w, data->waits[i].key);
		use(&w->strings, data->waits[i].comm);
		use(&w->strings, data->waits[i].held_up_by);
	}
	for (size_t i = 0; i < data->n_latencies; i++) {
		use(&w->strings, data->latencies[i].layer);
		use(&w->strings, data->latencies[i].name);
	}
	for (size_t i = 0; i < data->n_open; i++) {
		const struct report_open *open = &data->open[i];
		const uint32_t used[] = { open->comm,	open->state,	       open->reason,
					  open->object, open->holders_unknown, open->function };

		use_nodes(w, open->node);
		for (size_t j = 0; j < ARRAY_SIZE(used); j++)
			use(&w->strings, used[j]);
		for (size_t j = 0; j < open->n_holders; j++)
			use(&w->strings, open->holders[j]);
		for (size_t j = 0; j < open->n_chain; j++)
			use(&w->strings, open->chain[j]);
	}
}

static void put_string(struct writer *w, const char *name, const char *text)
{
	_cleanup_(freep) char *safe = name_escape(text ? text : "");

	fprintf(w->out, "\"%s\":", name);
	json_print_string(w->out, safe);
	fputs(",\n", w->out);
}

static void put_numbers(struct writer *w, const int64_t *v, size_t n, bool is_first)
{
	for (size_t i = 0; i < n; i++)
		fprintf(w->out, "%s%" PRId64, is_first && i == 0 ? "" : ",", v[i]);
}

/* Prints an array of numbers, n for each member of a set that is used. */
#define PUT_SET(w, name, set, places_, type, item, ...)                                  \
	do {                                                                             \
		bool first_ = true;                                                      \
		fprintf((w)->out, "\"" name "\":[");                                     \
		for (size_t i_ = 0; i_ < (places_)->n; i_++) {                           \
			const type *item =                                               \
				(const type *)(const void *)intern_key((set), i_, NULL); \
			if ((places_)->v[i_] == REPORT_NONE)                             \
				continue;                                                \
			const int64_t v_[] = { __VA_ARGS__ };                            \
			put_numbers((w), v_, ARRAY_SIZE(v_), first_);                    \
			first_ = false;                                                  \
		}                                                                        \
		fputs("],\n", (w)->out);                                                 \
	} while (0)

static void put_sets(struct writer *w)
{
	struct report_data *data = w->data;
	bool is_first = true;

	fputs("\"strings\":[", w->out);
	for (size_t i = 0; i < w->strings.n; i++) {
		if (w->strings.v[i] == REPORT_NONE)
			continue;
		fputs(is_first ? "" : ",\n", w->out);
		json_print_string(w->out, intern_key(data->strings, i, NULL));
		is_first = false;
	}
	fputs("],\n", w->out);
	PUT_SET(w, "frames", data->frames, &w->frames, struct report_frame, frame, frame->kind,
		place(&w->strings, frame->name), place(&w->strings, frame->module));
	PUT_SET(w, "nodes", data->nodes, &w->nodes, struct report_node, node,
		place(&w->nodes, node->parent), place(&w->frames, node->frame));
	PUT_SET(w, "processes", data->processes, &w->processes, struct report_process, process,
		process->pid, place(&w->strings, process->comm),
		place(&w->strings, process->cgroup), place(&w->strings, process->exe),
		process->is_kernel);
	PUT_SET(w, "keys", data->keys, &w->keys, struct report_key, key, key->probe,
		place(&w->nodes, key->node), place(&w->processes, key->process),
		place(&w->strings, key->state), place(&w->strings, key->reason), key->is_idle,
		key->is_estimated, place(&w->strings, key->function));
}

static void put_columns(struct writer *w)
{
	fputs("\"columns\":[", w->out);
	for (size_t i = 0; i < w->data->n_columns; i++) {
		const struct report_column *c = &w->data->columns[i];
		const int64_t v[] = {
			c->start - w->base, c->end - w->base, c->covered[0],   c->covered[1],
			c->covered[2],	    c->on_cpu,	      c->runnable,     c->blocked,
			c->waits,	    c->open,	      c->samples,      c->lost,
			c->stall_length,    c->stalls[0][0],  c->stalls[0][1], c->stalls[1][0],
			c->stalls[1][1],    c->stalls[2][0],  c->stalls[2][1],
		};

		put_numbers(w, v, ARRAY_SIZE(v), i == 0);
	}
	fputs("],\n", w->out);
}

/* The sums of the rows of one column that are left out, by probe, and whether they are idle. */
struct left {
	struct report_row rows[2][2];
};

/* Prints the rows of the columns, one array for each; they are in the order of the columns. */
static void put_rows(struct writer *w, const bool *is_kept, const uint32_t *order)
{
	struct report_data *data = w->data;
	size_t i = 0;

	fputs("\"rows\":[", w->out);
	for (size_t column = 0; column < data->n_columns; column++) {
		struct left left = {};
		bool is_first = true;

		fputs(column ? ",\n[" : "[", w->out);
		for (; i < data->n_rows && data->rows[order[i]].column == column; i++) {
			const struct report_row *row = &data->rows[order[i]];
			const struct report_key *key = key_of(data, row->key);
			struct report_row *sum = &left.rows[key->probe & 1][key->is_idle];
			const int64_t v[] = { place(&w->keys, row->key), row->blocked,
					      row->runnable, row->count, row->max };

			if (is_kept[order[i]]) {
				put_numbers(w, v, ARRAY_SIZE(v), is_first);
				is_first = false;
				continue;
			}
			sum->blocked += row->blocked;
			sum->runnable += row->runnable;
			sum->count += row->count;
		}
		/* A key below 0 is a row that is left out: -1 - (probe + 2 * is_idle). */
		for (int64_t k = 0; k < 4; k++) {
			const struct report_row *sum = &left.rows[k & 1][k >> 1];
			const int64_t v[] = { -1 - k, sum->blocked, sum->runnable, sum->count, 0 };

			if (sum->count > 0 || sum->blocked > 0 || sum->runnable > 0) {
				put_numbers(w, v, ARRAY_SIZE(v), is_first);
				is_first = false;
			}
		}
		fputc(']', w->out);
	}
	fputs("],\n", w->out);
}

/* Prints the distributions: for each, its buckets from the first one that is not 0. */
static void put_latencies(struct writer *w)
{
	fputs("\"latencies\":[", w->out);
	for (size_t i = 0; i < w->data->n_latencies; i++) {
		const struct report_latency *l = &w->data->latencies[i];
		const int64_t v[] = { l->column,
				      place(&w->strings, l->layer),
				      place(&w->strings, l->name),
				      l->count,
				      l->total,
				      l->bytes,
				      l->max };
		size_t first = 0, end = REPORT_BUCKETS_MAX;

		while (end > 0 && l->buckets[end - 1] == 0)
			end--;
		while (first < end && l->buckets[first] == 0)
			first++;
		fputs(i ? ",\n[" : "[", w->out);
		put_numbers(w, v, ARRAY_SIZE(v), true);
		fprintf(w->out, ",%zu", first);
		put_numbers(w, l->buckets + first, end - first, false);
		fputc(']', w->out);
	}
	fputs("],\n", w->out);
}

static void put_waits(struct writer *w)
{
	fputs("\"waits\":[", w->out);
	for (size_t i = 0; i < w->data->n_waits; i++) {
		const struct report_wait *wait = &w->data->waits[i];
		const int64_t v[] = { place(&w->keys, wait->key),
				      place(&w->strings, wait->comm),
				      wait->tid,
				      wait->end - wait->length - w->base,
				      wait->length,
				      wait->is_open,
				      place(&w->strings, wait->held_up_by) };

		put_numbers(w, v, ARRAY_SIZE(v), i == 0);
	}
	fputs("],\n", w->out);
}

static void put_places(struct writer *w, const uint32_t *strings, size_t n)
{
	fputc('[', w->out);
	for (size_t i = 0; i < n; i++)
		fprintf(w->out, "%s%" PRId64, i ? "," : "", place(&w->strings, strings[i]));
	fputc(']', w->out);
}

static void put_open(struct writer *w)
{
	fprintf(w->out, "\"open_at\":%" PRId64 ",\"open_more\":%" PRId64 ",\n\"open\":[",
		w->data->open_at ? w->data->open_at - w->base : -1, w->data->open_more);
	for (size_t i = 0; i < w->data->n_open; i++) {
		const struct report_open *o = &w->data->open[i];
		const int64_t v[] = { place(&w->nodes, o->node),
				      place(&w->strings, o->comm),
				      o->pid,
				      o->tid,
				      o->length,
				      place(&w->strings, o->state),
				      place(&w->strings, o->reason),
				      place(&w->strings, o->object),
				      place(&w->strings, o->holders_unknown),
				      o->holders_more,
				      o->is_deadlock,
				      o->is_in_doubt,
				      place(&w->strings, o->function) };

		fputs(i ? ",\n[" : "[", w->out);
		put_numbers(w, v, ARRAY_SIZE(v), true);
		fputc(',', w->out);
		put_places(w, o->holders, o->n_holders);
		fputc(',', w->out);
		put_places(w, o->chain, o->n_chain);
		if (o->holders_at)
			fprintf(w->out, ",%" PRId64, o->holders_at - w->base);
		fputc(']', w->out);
	}
	fputs("],\n", w->out);
}

/* Prints a set of texts with numbers in front of them, which are not in the table of strings. */
static void put_text(struct writer *w, bool is_first, const int64_t *v, size_t n, uint32_t string)
{
	fputs(is_first ? "[" : ",\n[", w->out);
	put_numbers(w, v, n, true);
	fputc(',', w->out);
	json_print_string(w->out, intern_key(w->data->strings, string, NULL));
	fputc(']', w->out);
}

static void put_truth(struct writer *w)
{
	struct report_data *data = w->data;

	fputs("\"gaps\":[", w->out);
	for (size_t i = 0; i < intern_count(data->gaps); i++) {
		const struct report_gap *gap =
			(const struct report_gap *)(const void *)intern_key(data->gaps, i, NULL);
		const int64_t v[] = { gap->probe, gap->start - w->base, gap->end - w->base };

		put_text(w, i == 0, v, ARRAY_SIZE(v), gap->reason);
	}
	fputs("],\n\"lost\":[", w->out);
	for (size_t i = 0; i < intern_count(data->loss_keys); i++) {
		const struct report_text *loss =
			(const struct report_text *)(const void *)intern_key(data->loss_keys, i,
									     NULL);
		const int64_t v[] = { loss->probe, data->losses[i] };

		put_text(w, i == 0, v, ARRAY_SIZE(v), loss->text);
	}
	fputs("],\n\"notes\":[", w->out);
	for (size_t i = 0; i < intern_count(data->notes); i++) {
		const struct report_text *note =
			(const struct report_text *)(const void *)intern_key(data->notes, i, NULL);
		const int64_t v[] = { note->probe };

		put_text(w, i == 0, v, ARRAY_SIZE(v), note->text);
	}
	fputs("],\n\"missing\":[", w->out);
	for (enum report_probe i = 0; i < REPORT_PROBES; i++) {
		fputs(i ? "," : "", w->out);
		json_print_string(w->out, data->missing[i] ? data->missing[i] : "");
	}
	fputs("],\n", w->out);
}

/* Prints the words for reasons that occur. */
static void put_reasons(struct writer *w)
{
	bool is_first = true;

	fputs("\"reasons\":{", w->out);
	for (size_t i = 0; i < w->strings.n; i++) {
		const char *word = intern_key(w->data->strings, i, NULL);
		const char *text = w->strings.v[i] != REPORT_NONE ? reason_text(word) : NULL;

		if (!text)
			continue;
		fputs(is_first ? "" : ",", w->out);
		json_print_string(w->out, word);
		fputc(':', w->out);
		json_print_string(w->out, text);
		is_first = false;
	}
	fputs("},\n", w->out);
}

static void put_head(struct writer *w, const struct report_head *head, const struct report_cut *cut)
{
	const struct report_data *data = w->data;

	fputs("{\"version\":1,\n", w->out);
	put_string(w, "stackd", STACKD_VERSION);
	put_string(w, "host", head->host);
	put_string(w, "filter", head->filter);
	fprintf(w->out,
		"\"base_ms\":%" PRId64 ",\"made\":%" PRId64 ",\"asked\":[%" PRId64 ",%" PRId64
		"],\n\"cpus\":%" PRId64 ",\"min_wait\":%" PRId64 ",\"sample_below\":%" PRId64
		",\"period\":%" PRId64 ",\"cost\":[%" PRId64 ",%" PRId64 "],\n",
		w->base / NS_PER_MS, head->made - w->base, head->asked_start - w->base,
		head->asked_end - w->base, data->cpus, data->min_wait_ns,
		data->sample_below_ns[REPORT_OFFCPU], data->period_ns, data->cost_ns,
		data->cost_length_ns);
	fprintf(w->out,
		"\"cut\":[%zu,%" PRId64 ",%" PRId64 "],\"unsent\":[%" PRId64 ",%" PRId64
		"],\"cut_names\":%" PRId64 ",\n",
		cut->rows, cut->total, cut->part, data->n_unsent[0], data->n_unsent[1],
		data->n_cut_names);
}

static const struct report_row *rows_to_order;

static int compare_rows(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	uint32_t p = rows_to_order[x].column, q = rows_to_order[y].column;

	return p != q ? (p < q ? -1 : 1) : x < y ? -1 : x > y;
}

void report_json_print(struct report_data *data, const struct report_head *head,
		       const struct report_cut *cut, const bool *is_kept, FILE *out)
{
	int64_t start = data->n_columns ? data->columns[0].start : head->asked_start;
	uint32_t *order = must(calloc(data->n_rows + 1, sizeof *order));
	struct writer w = {
		.data = data,
		.out = out,
		.base = start / NS_PER_MS * NS_PER_MS,
		.strings = places_new(intern_count(data->strings)),
		.frames = places_new(intern_count(data->frames)),
		.nodes = places_new(intern_count(data->nodes)),
		.processes = places_new(intern_count(data->processes)),
		.keys = places_new(intern_count(data->keys)),
	};
	struct places *places[] = { &w.strings, &w.frames, &w.nodes, &w.processes, &w.keys };

	for (size_t i = 0; i < data->n_rows; i++)
		order[i] = (uint32_t)i;
	rows_to_order = data->rows;
	qsort(order, data->n_rows, sizeof *order, compare_rows);
	use_all(&w, is_kept);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		places_number(places[i]);
	put_head(&w, head, cut);
	put_truth(&w);
	put_sets(&w);
	put_reasons(&w);
	put_columns(&w);
	put_latencies(&w);
	put_waits(&w);
	put_open(&w);
	put_rows(&w, is_kept, order);
	fputs("\"end\":1}\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		free(places[i]->v);
	free(order);
}
