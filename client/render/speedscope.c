/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "client/base/intern.h"
#include "client/base/json_string.h"
#include "client/base/term.h"
#include "client/render/comments.h"
#include "client/render/coverage.h"
#include "client/render/formats.h"
#include "client/render/measures.h"
#include "client/render/path.h"
#include "common/array.h"
#include "common/base.h"

/*
 * A file of speedscope has one list of frames and, for each measure, a profile: the stacks, as
 * numbers of frames, and the weight of each. The weights and the stacks of all profiles are in
 * memory until the last row has come; equal stacks and equal frames only once.
 */
struct speedscope {
	const struct view *view;
	struct view names; /* lines have fields of their own, and are no part of a name */
	bool is_overview;
	struct measures measures; /* none until the first reply has come */
	char *title;
	char *summary;
	char *samples_summary; /* of an overview: that of its samples; may be NULL */
	struct path path;
	struct intern *frames; /* the text of each frame as JSON */
	struct intern *stacks; /* the numbers of frames, uint32_t each, the outermost first */
	uint32_t *numbers;     /* the stack that is being added */
	size_t numbers_capacity;
	int64_t *weights; /* measures.n for each stack */
	size_t weights_capacity;
};

static void put_member(FILE *out, const char *name, const char *text)
{
	_cleanup_(freep) char *safe = name_escape(text);

	fprintf(out, ",\"%s\":", name);
	json_print_string(out, safe);
}

/* Returns the number of a frame. */
static size_t frame_number(struct speedscope *s, const struct path_frame *frame)
{
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *out = must(open_memstream(&text, &size));

	fputs("{\"name\":", out);
	json_print_string(out, frame->name);
	if (frame->file)
		put_member(out, "file", frame->file);
	else if (frame->module)
		put_member(out, "file", frame->module);
	if (frame->file && frame->line != WIRE_ABSENT)
		fprintf(out, ",\"line\":%" PRId64, frame->line);
	fputc('}', out);
	if (fclose(out) != 0)
		must(NULL);
	return intern_add(s->frames, text, size, NULL);
}

/* Returns the number of the stack of a row, for whose weights there is room. */
static size_t stack_number(struct speedscope *s, const struct wire_row *row)
{
	size_t number, n;
	bool is_new;

	path_fill(&s->path, &s->names, row, PATH_COMM | PATH_WAKER);
	n = s->path.n;
	if (array_reserve(s->numbers, s->numbers_capacity, n) < 0)
		must(NULL);
	for (size_t i = 0; i < n; i++)
		s->numbers[i] = (uint32_t)frame_number(s, &s->path.v[i]);
	number = intern_add(s->stacks, s->numbers, n * sizeof(*s->numbers), &is_new);
	if (is_new) {
		n = s->measures.n;
		if (array_reserve(s->weights, s->weights_capacity, (number + 1) * n) < 0)
			must(NULL);
		memset(s->weights + number * n, 0, n * sizeof(*s->weights));
	}
	return number;
}

static void *stream_new(const struct view *view, enum stream_kind kind)
{
	struct speedscope *s = must(calloc(1, sizeof(*s)));

	s->view = view;
	s->names = *view;
	s->names.lines = false;
	s->is_overview = kind == STREAM_OVERVIEW;
	s->frames = intern_new();
	s->stacks = intern_new();
	return s;
}

static void set_title(struct speedscope *s, const struct wire_snapshot_reply *reply)
{
	_cleanup_(freep) char *probe = name_escape(reply->probe);
	char when[3 * TERM_TIME_MAX];

	range_text(&reply->coverage.used, when, sizeof when);
	s->measures = measures_of(reply, s->is_overview);
	s->summary = comments_summary(reply, true);
	if (asprintf(&s->title, "%s %s", s->is_overview ? "overview" : probe, when) < 0)
		s->title = NULL;
	must(s->title);
}

static void stream_add(void *opaque, const struct wire_snapshot_reply *reply, bool is_first)
{
	struct speedscope *s = opaque;

	if (!s->title)
		set_title(s, reply);
	else if (is_first && !s->samples_summary)
		s->samples_summary = comments_summary(reply, true);
	for (size_t i = 0; i < reply->rows.n; i++) {
		const struct wire_row *row = &reply->rows.v[i];
		size_t first = stack_number(s, row) * s->measures.n;

		for (size_t k = 0; k < s->measures.n; k++)
			s->weights[first + k] +=
				measure_value(&s->measures.v[k], reply->probe, row);
	}
}

static int64_t weight(const struct speedscope *s, size_t stack, size_t measure)
{
	return s->weights[stack * s->measures.n + measure];
}

static void put_stack(const struct speedscope *s, FILE *out, size_t stack)
{
	size_t size;
	const char *key = intern_key(s->stacks, stack, &size);
	uint32_t number;

	for (size_t at = 0; at < size; at += sizeof number) {
		memcpy(&number, key + at, sizeof number);
		fprintf(out, "%c%" PRIu32, at == 0 ? '[' : ',', number);
	}
	fputc(']', out);
}

/* Prints the profile of a measure: stacks without time are left out. */
static void put_profile(const struct speedscope *s, FILE *out, size_t measure)
{
	const struct measure *m = &s->measures.v[measure];
	bool is_time = strcmp(m->unit, "nanoseconds") == 0;
	const char *separator = "";
	bool is_of_samples = m->probe && strcmp(m->probe, "oncpu") == 0;
	_cleanup_(freep) char *name = NULL;
	int64_t sum = 0;

	if (asprintf(&name, "%s (%s)", m->name,
		     is_of_samples && s->samples_summary ? s->samples_summary : s->summary) < 0)
		name = NULL;
	fputs("{\"type\":\"sampled\",\"name\":", out);
	json_print_string(out, must(name));
	fprintf(out, ",\"unit\":\"%s\",\"samples\":[", is_time ? m->unit : "none");
	for (size_t i = 0; i < intern_count(s->stacks); i++)
		if (weight(s, i, measure) > 0) {
			fputs(separator, out);
			put_stack(s, out, i);
			separator = ",\n";
		}
	fputs("],\"weights\":[", out);
	separator = "";
	for (size_t i = 0; i < intern_count(s->stacks); i++)
		if (weight(s, i, measure) > 0) {
			fprintf(out, "%s%" PRId64, separator, weight(s, i, measure));
			sum += weight(s, i, measure);
			separator = ",";
		}
	fprintf(out, "],\"startValue\":0,\"endValue\":%" PRId64 "}", sum);
}

/*
 * Prints the profiles of times. Numbers of waits and samples are no time, and get a profile only
 * where there is nothing else.
 */
static void put_profiles(const struct speedscope *s, FILE *out)
{
	size_t n = 0, active = 0;

	fputs("\"profiles\":[", out);
	for (size_t k = 0; k < s->measures.n; k++) {
		if (s->measures.n > 1 && strcmp(s->measures.v[k].unit, "count") == 0)
			continue;
		if (k == s->measures.main)
			active = n;
		fputs(n++ > 0 ? ",\n" : "\n", out);
		put_profile(s, out, k);
	}
	fprintf(out, "],\n\"activeProfileIndex\":%zu", active);
}

static void put_file(const struct speedscope *s, FILE *out)
{
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"stackd " STACKD_VERSION "\",\n\"name\":",
	      out);
	json_print_string(out, s->title);
	fputs(",\n\"shared\":{\"frames\":[", out);
	for (size_t i = 0; i < intern_count(s->frames); i++)
		fprintf(out, "%s\n%s", i > 0 ? "," : "", intern_key(s->frames, i, NULL));
	fputs("]},\n", out);
	put_profiles(s, out);
	fputs("}\n", out);
}

static void stream_end(void *opaque, bool is_whole)
{
	struct speedscope *s = opaque;

	if (is_whole && s->title)
		put_file(s, s->view->page.out);
	path_fini(&s->path);
	intern_free(s->frames);
	intern_free(s->stacks);
	free(s->numbers);
	free(s->weights);
	free(s->title);
	free(s->summary);
	free(s->samples_summary);
	free(s);
}

const struct format format_speedscope = {
	.name = "speedscope",
	.suffix = "speedscope.json",
	.has_all_rows = true,
	.has_only_stacks = true,
	.has_one_answer = true,
	.stream_new = stream_new,
	.stream_add = stream_add,
	.stream_end = stream_end,
};
