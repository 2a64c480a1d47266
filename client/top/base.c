/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/top/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "common/base.h"

struct top_base {
	struct top_state asked;
	int64_t length;
	size_t n;
	struct {
		char *key;
		int64_t value;
	} v[];
};

static void put(FILE *out, const char *text)
{
	fprintf(out, "%s\n", text ? text : "");
}

/* Writes the process that a row is of; of a row of several, what they share. */
static void put_process(FILE *out, const struct wire_row *row)
{
	put(out, row->comm);
	fprintf(out, "%" PRId64 "\n%" PRId64 "\n", row->process.pid, row->tid);
	if (row->process.pid != 0)
		return;
	put(out, row->process.exe);
	put(out, row->process.cgroup);
}

/* Writes what tells rows of I/O apart: the operation, its place and, if rows are so, the process.
 */
static void put_io(FILE *out, const struct top_row *row)
{
	const struct wire_io *io = row->row->io;

	put(out, io->layer);
	put(out, io->op);
	put(out, io->filesystem);
	put(out, io->device);
	if (!row->is_of_all)
		put_process(out, row->row);
}

/*
 * Writes what tells rows by line apart. The function is that of most waits of the row, and another
 * one later, unless names are selected: then each function has a row of its own. A process may
 * become one of several.
 */
static void put_line(FILE *out, const struct top_row *row)
{
	put(out, row->row->comm);
	put(out, row->row->process.kernel ? "" : row->row->process.comm);
	put(out, row->row->reason);
	if (row->asked->filter[0])
		put(out, row->row->function);
}

/*
 * Writes what tells stacks apart. Samples in the same functions share a row, which has the
 * addresses and the id of any of them.
 */
static void put_stack(FILE *out, const struct wire_stack *stack, bool is_sample)
{
	if (!stack)
		return;
	if (!is_sample) {
		put(out, stack->id);
		return;
	}
	for (size_t i = 0; i < stack->frames.n; i++) {
		const struct wire_frame *frame = &stack->frames.v[i];

		put(out, frame->kind);
		put(out, frame->module);
		if (frame->name)
			put(out, frame->name);
		else
			fprintf(out, "%" PRId64 "\n", frame->offset);
	}
}

/* Writes what tells rows apart where each is of a stack, a thread or a process. */
static void put_stacks(FILE *out, const struct top_row *row)
{
	const struct wire_row *from = row->row;

	put_process(out, from);
	/* A row with waits for several reasons has now this state and now that one. */
	if (from->reason)
		fprintf(out, "%s\n%s\n", from->state ? from->state : "", from->reason);
	put_stack(out, from->kernel, row->is_sample);
	fputc('\n', out);
	put_stack(out, from->user, row->is_sample);
}

/* Returns a text that is the same for the rows of two answers that stand for the same. */
static char *row_key(const struct top_row *row)
{
	const struct wire_row *from = row->row;
	bool is_short = from->state && strcmp(from->state, "-") == 0;
	char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	put(out, row->class);
	put(out, from->host);
	fprintf(out, "%d %d %d\n", from->idle, from->own == 1, is_short);
	if (from->key)
		put(out, from->key);
	else if (from->io)
		put_io(out, row);
	else if (row->class || row->is_ready)
		put_line(out, row);
	else
		put_stacks(out, row);
	if (fclose(out) != 0)
		must(NULL);
	return must(text);
}

struct top_base *top_base_new(const struct top_rows *rows, const struct top_answer *answer,
			      int64_t length)
{
	struct top_base *base;

	if (rows->n == 0 || length <= 0)
		return NULL;
	base = must(calloc(1, sizeof(*base) + rows->n * sizeof(base->v[0])));
	base->asked = answer->question.state;
	base->length = length;
	for (size_t i = 0; i < rows->n; i++) {
		base->v[i].key = row_key(&rows->v[i]);
		base->v[i].value = rows->v[i].value;
	}
	base->n = rows->n;
	return base;
}

struct top_base *top_base_free(struct top_base *base)
{
	for (size_t i = 0; base && i < base->n; i++)
		free(base->v[i].key);
	free(base);
	return NULL;
}

bool top_base_fits(const struct top_base *base, const struct top_state *state)
{
	return top_asks_same(&base->asked, state);
}

int64_t top_base_change(const struct top_base *base, const struct top_row *row, int64_t length)
{
	_cleanup_(freep) char *key = row_key(row);
	int64_t before = 0;

	for (size_t i = 0; i < base->n; i++)
		if (strcmp(base->v[i].key, key) == 0)
			before += base->v[i].value;
	return row->value - (int64_t)((__int128)before * length / base->length);
}
