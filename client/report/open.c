/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdlib.h>

#include "client/base/term.h"
#include "client/render/render.h"
#include "client/report/data.h"
#include "client/report/internal.h"
#include "common/array.h"
#include "common/base.h"

/* Returns the number of a string that says who holds, and what it waits for itself. */
static uint32_t holder_string(struct report_data *data, const struct wire_holder *holder)
{
	const char *what = reason_text(holder->reason);
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	fprintf(out, "%s (pid %" PRId64, holder->comm, holder->pid);
	if (holder->tid != WIRE_ABSENT && holder->tid != holder->pid)
		fprintf(out, ", thread %" PRId64, holder->tid);
	fputc(')', out);
	if (what)
		fprintf(out, " waits for %s", what);
	if (what && holder->object)
		fprintf(out, " %s", holder->object);
	if (fclose(out) != 0)
		must(NULL);
	return report_string(data, text);
}

static uint32_t *holder_strings(struct report_data *data, const struct wire_holders *holders)
{
	uint32_t *strings = must(calloc(holders->n + 1, sizeof *strings));

	for (size_t i = 0; i < holders->n; i++)
		strings[i] = holder_string(data, &holders->v[i]);
	return strings;
}

static void add_open(struct report_data *data, const struct wire_row *row)
{
	uint32_t function, node = report_row_node(data, row, &function);

	if (array_reserve(data->open, data->open_capacity, data->n_open + 1) < 0)
		must(NULL);
	data->open[data->n_open++] = (struct report_open){
		.node = node,
		.function = function,
		.comm = report_string(data, row->comm),
		.state = report_string(data, row->state),
		.reason = report_string(data, row->reason),
		.object = report_string(data, row->object),
		.holders_unknown = report_string(data, row->holders_unknown),
		.pid = row->process.pid,
		.tid = row->tid != WIRE_ABSENT ? row->tid : row->process.pid,
		.length = row->max_ns > 0 ? row->max_ns : row->total_ns,
		.holders_more = row->holders_more > 0 ? row->holders_more : 0,
		.holders_at = row->holders_at > 0 && row->holders_at < data->open_at
				      ? row->holders_at
				      : 0,
		.is_deadlock = row->deadlock == 1,
		.is_in_doubt = row_is_in_doubt(row),
		.holders = holder_strings(data, &row->holders),
		.n_holders = row->holders.n,
		.chain = holder_strings(data, &row->chain),
		.n_chain = row->chain.n,
	};
}

void report_data_add_open(struct report_data *data, const struct wire_snapshot_reply *reply,
			  const struct wire_rows *rows)
{
	data->open_at = reply->coverage.used.end;
	data->open_more = reply->rest.rows;
	for (size_t i = 0; i < rows->n; i++)
		add_open(data, &rows->v[i]);
}
