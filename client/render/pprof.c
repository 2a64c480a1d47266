/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/gzip.h"
#include "client/base/intern.h"
#include "client/base/term.h"
#include "client/render/comments.h"
#include "client/render/coverage.h"
#include "client/render/formats.h"
#include "client/render/measures.h"
#include "client/render/path.h"
#include "client/render/protobuf.h"
#include "common/array.h"
#include "common/base.h"

/*
 * The tags of profile.proto of github.com/google/pprof. Strings are numbers of members of the table
 * of strings, whose member 0 is the empty string. Ids begin with 1.
 */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,
	SAMPLE_LOCATION_ID = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	LABEL_NUM = 3,
	MAPPING_ID = 1,
	MAPPING_MEMORY_LIMIT = 3,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_FILENAME = 4,
};

/* Keys in the sets below. They consist of numbers alone, so that they have no padding. */
struct function_key {
	int64_t name, file;
};

struct location_key {
	int64_t function, line, mapping, address;
};

struct mapping_key {
	int64_t module, build_id; /* numbers of strings; 0: not known */
};

/*
 * The members of a protocol buffer may be in any order: a sample is written as soon as its row has
 * come, and what the samples refer to at the end. Only that is in memory.
 */
struct pprof {
	const struct view *view;
	struct view names; /* lines have fields of their own, and are no part of a name */
	bool is_overview;
	struct measures measures; /* none until the first reply has come */
	FILE *out;		  /* compresses */
	struct path path;
	struct intern *strings;
	struct intern *functions;
	struct intern *locations;
	struct intern *mappings;
	int64_t *limits; /* by number of the mapping: the end of the highest position in the file */
	size_t limits_capacity;
	int64_t *ids; /* the locations of the sample that is being written */
	size_t ids_capacity;
	int64_t *comments; /* numbers of strings */
	size_t n_comments, comments_capacity;
	struct text sample, part; /* messages that are being made */
};

/* Returns the number of a string that is escaped already, or has nothing to be escaped. */
static int64_t string_number(struct pprof *p, const char *text)
{
	return (int64_t)intern_add(p->strings, text, strlen(text), NULL);
}

/* Returns the number of a name, which is escaped here; 0 for NULL. */
static int64_t name_number(struct pprof *p, const char *name)
{
	_cleanup_(freep) char *safe = name ? name_escape(name) : NULL;

	return safe ? string_number(p, safe) : 0;
}

/* Writes a message as a member of the profile, and empties the message. */
static void put_member(struct pprof *p, uint32_t tag, struct text *message)
{
	_cleanup_(text_fini) struct text member = {};

	text_init(&member, SIZE_MAX);
	protobuf_put_bytes(&member, tag, message->data, message->len);
	if (message->error < 0 || member.error < 0)
		must(NULL);
	fwrite(member.data, 1, member.len, p->out);
	text_reset(message);
}

/*
 * Returns the id of the mapping that the frame is in, and sets *address_out to the frame's address
 * in it: a file counts as mapped whole at address 0, so that this is the position in the file; 0 if
 * it is not known.
 */
static int64_t mapping_id(struct pprof *p, const struct path_frame *frame, int64_t *address_out)
{
	const struct mapping_key key = { name_number(p, frame->module),
					 name_number(p, frame->build_id) };
	bool is_new;
	size_t i;

	*address_out = frame->build_id && frame->file_offset > 0 && frame->file_offset < INT64_MAX
			       ? frame->file_offset
			       : 0;
	if (key.module == 0 && key.build_id == 0)
		return 0;
	i = intern_add(p->mappings, &key, sizeof key, &is_new);
	if (is_new) {
		if (array_reserve(p->limits, p->limits_capacity, i + 1) < 0)
			must(NULL);
		p->limits[i] = 0;
	}
	if (*address_out >= p->limits[i])
		p->limits[i] = *address_out > 0 ? *address_out + 1 : 0;
	return 1 + (int64_t)i;
}

static int64_t location_id(struct pprof *p, const struct path_frame *frame)
{
	const struct function_key function = { string_number(p, frame->name),
					       name_number(p, frame->file) };
	struct location_key location = { .line = frame->line == WIRE_ABSENT ? 0 : frame->line };

	location.function = 1 + (int64_t)intern_add(p->functions, &function, sizeof function, NULL);
	location.mapping = mapping_id(p, frame, &location.address);
	return 1 + (int64_t)intern_add(p->locations, &location, sizeof location, NULL);
}

static void put_label(struct pprof *p, const char *key, const char *name, int64_t number)
{
	if (!name && number <= 0)
		return;
	protobuf_put_int(&p->part, LABEL_KEY, string_number(p, key));
	protobuf_put_int(&p->part, LABEL_STR, name_number(p, name));
	protobuf_put_int(&p->part, LABEL_NUM, name ? 0 : number);
	protobuf_put_bytes(&p->sample, SAMPLE_LABEL, p->part.data, p->part.len);
	text_reset(&p->part);
}

/* Adds the label of the systemd unit: the last part of the cgroup's path that is a service or
 * scope. */
static void put_unit(struct pprof *p, const char *cgroup)
{
	static const char *const suffixes[] = { ".service", ".scope" };
	const char *end = cgroup + strlen(cgroup);

	while (end > cgroup) {
		const char *start = memrchr(cgroup, '/', (size_t)(end - cgroup));
		_cleanup_(freep) char *part = NULL;

		start = start ? start + 1 : cgroup;
		part = must(strndup(start, (size_t)(end - start)));
		for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
			size_t n = strlen(part), suffix = strlen(suffixes[i]);

			if (n > suffix && strcmp(part + n - suffix, suffixes[i]) == 0) {
				put_label(p, "unit", part, 0);
				return;
			}
		}
		end = start > cgroup ? start - 1 : cgroup;
	}
}

static void put_labels(struct pprof *p, const struct wire_row *row)
{
	const struct wire_link *waker =
		row->waker && row->waker->path.n > 0 ? &row->waker->path.v[0] : NULL;

	put_label(p, "comm", row->comm, 0);
	put_label(p, "key", row->key, 0);
	put_label(p, "process", row->process.comm, 0);
	put_label(p, "pid", NULL, row->process.pid);
	put_label(p, "tid", NULL, row->tid);
	put_label(p, "state", row->state, 0);
	put_label(p, "reason", row->reason, 0);
	put_label(p, "cgroup", row->process.cgroup, 0);
	if (row->process.cgroup)
		put_unit(p, row->process.cgroup);
	if (waker)
		put_label(p, "waker", waker->comm ? waker->comm : waker->context, 0);
	if (row->idle)
		put_label(p, "idle", "yes", 0);
	if (row->estimated == 1)
		put_label(p, "estimated", "yes", 0);
	put_label(p, "folded", NULL, row->folded);
}

static void put_sample(struct pprof *p, const char *probe, const struct wire_row *row)
{
	int64_t values[MEASURES_MAX];
	size_t n;

	path_fill(&p->path, &p->names, row, 0);
	n = p->path.n;
	if (array_reserve(p->ids, p->ids_capacity, n) < 0)
		must(NULL);
	for (size_t i = 0; i < n; i++)
		p->ids[i] = location_id(p, &p->path.v[n - 1 - i]);
	for (size_t i = 0; i < p->measures.n; i++)
		values[i] = measure_value(&p->measures.v[i], probe, row);
	protobuf_put_ints(&p->sample, SAMPLE_LOCATION_ID, p->ids, n);
	protobuf_put_ints(&p->sample, SAMPLE_VALUE, values, p->measures.n);
	put_labels(p, row);
	put_member(p, PROFILE_SAMPLE, &p->sample);
}

static void put_value_type(struct pprof *p, uint32_t tag, const char *type, const char *unit)
{
	protobuf_put_int(&p->part, VALUE_TYPE_TYPE, string_number(p, type));
	protobuf_put_int(&p->part, VALUE_TYPE_UNIT, string_number(p, unit));
	put_member(p, tag, &p->part);
}

/* Writes a member of the profile that is an integer. */
static void put_number(struct pprof *p, uint32_t tag, int64_t value)
{
	protobuf_put_int(&p->part, tag, value);
	if (p->part.error < 0)
		must(NULL);
	fwrite(p->part.data, 1, p->part.len, p->out);
	text_reset(&p->part);
}

static void add_comment(void *context, const char *line)
{
	struct pprof *p = context;

	if (array_reserve(p->comments, p->comments_capacity, p->n_comments + 1) < 0)
		must(NULL);
	p->comments[p->n_comments++] = string_number(p, line);
}

/* Writes what is known from the first reply of the first answer. */
static void put_head(struct pprof *p, const struct wire_snapshot_reply *reply)
{
	p->measures = measures_of(reply, p->is_overview);
	for (size_t i = 0; i < p->measures.n; i++)
		put_value_type(p, PROFILE_SAMPLE_TYPE, p->measures.v[i].name,
			       p->measures.v[i].unit);
	put_number(p, PROFILE_DEFAULT_SAMPLE_TYPE,
		   string_number(p, p->measures.v[p->measures.main].name));
	put_number(p, PROFILE_TIME_NANOS, reply->coverage.used.start);
	put_number(p, PROFILE_DURATION_NANOS, coverage_length(&reply->coverage));
	/* Waits have no period: servers take a profile of waits with one for samples. */
	if (!p->is_overview && reply_is_sampled(reply) && reply->period_ns > 0) {
		put_value_type(p, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		put_number(p, PROFILE_PERIOD, reply->period_ns);
	}
}

static void *stream_new(const struct view *view, enum stream_kind kind)
{
	struct pprof *p = must(calloc(1, sizeof(*p)));

	p->view = view;
	p->names = *view;
	p->names.lines = false;
	p->is_overview = kind == STREAM_OVERVIEW;
	p->out = gzip_open(view->page.out);
	p->strings = intern_new();
	p->functions = intern_new();
	p->locations = intern_new();
	p->mappings = intern_new();
	text_init(&p->sample, SIZE_MAX);
	text_init(&p->part, SIZE_MAX);
	string_number(p, "");
	return p;
}

static void stream_add(void *opaque, const struct wire_snapshot_reply *reply, bool is_first)
{
	struct pprof *p = opaque;

	if (p->measures.n == 0)
		put_head(p, reply);
	if (is_first)
		comments_of(reply, add_comment, p);
	for (size_t i = 0; i < reply->rows.n; i++)
		put_sample(p, reply->probe, &reply->rows.v[i]);
}

/*
 * Mappings say that their functions have names, or pprof would look for names in the files of the
 * host that it runs on.
 */
static void put_mappings(struct pprof *p)
{
	for (size_t i = 0; i < intern_count(p->mappings); i++) {
		struct mapping_key key;

		memcpy(&key, intern_key(p->mappings, i, NULL), sizeof key);
		protobuf_put_int(&p->part, MAPPING_ID, 1 + (int64_t)i);
		protobuf_put_int(&p->part, MAPPING_MEMORY_LIMIT, p->limits[i]);
		protobuf_put_int(&p->part, MAPPING_FILENAME, key.module);
		protobuf_put_int(&p->part, MAPPING_BUILD_ID, key.build_id);
		protobuf_put_int(&p->part, MAPPING_HAS_FUNCTIONS, 1);
		protobuf_put_int(&p->part, MAPPING_HAS_FILENAMES, p->view->lines);
		protobuf_put_int(&p->part, MAPPING_HAS_LINE_NUMBERS, p->view->lines);
		put_member(p, PROFILE_MAPPING, &p->part);
	}
}

static void put_locations(struct pprof *p)
{
	_cleanup_(text_fini) struct text line = {};

	text_init(&line, SIZE_MAX);
	for (size_t i = 0; i < intern_count(p->locations); i++) {
		struct location_key key;

		memcpy(&key, intern_key(p->locations, i, NULL), sizeof key);
		protobuf_put_int(&line, LINE_FUNCTION_ID, key.function);
		protobuf_put_int(&line, LINE_LINE, key.line);
		protobuf_put_int(&p->part, LOCATION_ID, 1 + (int64_t)i);
		protobuf_put_int(&p->part, LOCATION_MAPPING_ID, key.mapping);
		protobuf_put_int(&p->part, LOCATION_ADDRESS, key.address);
		protobuf_put_bytes(&p->part, LOCATION_LINE, line.data, line.len);
		text_reset(&line);
		put_member(p, PROFILE_LOCATION, &p->part);
	}
}

static void put_functions(struct pprof *p)
{
	for (size_t i = 0; i < intern_count(p->functions); i++) {
		struct function_key key;

		memcpy(&key, intern_key(p->functions, i, NULL), sizeof key);
		protobuf_put_int(&p->part, FUNCTION_ID, 1 + (int64_t)i);
		protobuf_put_int(&p->part, FUNCTION_NAME, key.name);
		protobuf_put_int(&p->part, FUNCTION_FILENAME, key.file);
		put_member(p, PROFILE_FUNCTION, &p->part);
	}
}

static void put_tail(struct pprof *p)
{
	put_mappings(p);
	put_locations(p);
	put_functions(p);
	for (size_t i = 0; i < p->n_comments; i++)
		put_number(p, PROFILE_COMMENT, p->comments[i]);
	for (size_t i = 0; i < intern_count(p->strings); i++) {
		size_t size;
		const char *text = intern_key(p->strings, i, &size);

		text_put(&p->part, text, size);
		put_member(p, PROFILE_STRING_TABLE, &p->part);
	}
}

static void stream_end(void *opaque, bool is_whole)
{
	struct pprof *p = opaque;

	if (is_whole)
		put_tail(p);
	fclose(p->out);
	path_fini(&p->path);
	intern_free(p->strings);
	intern_free(p->functions);
	intern_free(p->locations);
	intern_free(p->mappings);
	free(p->limits);
	free(p->ids);
	free(p->comments);
	text_fini(&p->sample);
	text_fini(&p->part);
	free(p);
}

const struct format format_pprof = {
	.name = "pprof",
	.suffix = "pb.gz",
	.has_all_rows = true,
	.has_only_stacks = true,
	.has_one_answer = true,
	.is_binary = true,
	.has_build_ids = true,
	.stream_new = stream_new,
	.stream_add = stream_add,
	.stream_end = stream_end,
};
