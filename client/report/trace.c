/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/report/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "build_config.h"
#include "client/base/intern.h"
#include "client/base/term.h"
#include "client/render/page.h"
#include "client/render/protobuf.h"
#include "client/render/render.h"
#include "common/array.h"
#include "common/base.h"
#include "common/text.h"

/*
 * The tags of the protos of github.com/google/perfetto. A trace is a list of packets. Those of one
 * sequence share interned data: its ids begin with 1.
 */
enum {
	TRACE_PACKET = 1,
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_TRACK_DESCRIPTOR = 60,
	CLOCKS_CLOCK = 1,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,
	INTERNED_FUNCTION_NAMES = 5,
	INTERNED_FRAMES = 6,
	INTERNED_CALLSTACKS = 7,
	STRING_IID = 1,
	STRING_STR = 2,
	FRAME_IID = 1,
	FRAME_FUNCTION_NAME_ID = 2,
	FRAME_KIND = 7,
	CALLSTACK_IID = 1,
	CALLSTACK_FRAME_IDS = 2,
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PARENT_UUID = 5,
	TRACK_COUNTER = 8,
	COUNTER_UNIT = 3,
	EVENT_DEBUG_ANNOTATIONS = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK_UUID = 11,
	EVENT_CATEGORIES = 22,
	EVENT_NAME = 23,
	EVENT_DOUBLE_COUNTER_VALUE = 44,
	EVENT_CALLSTACK_IID = 56,
	ANNOTATION_INT_VALUE = 4,
	ANNOTATION_STRING_VALUE = 6,
	ANNOTATION_NAME = 10,
};

enum { CLOCK_REALTIME_ID = 1, CLOCK_BOOTTIME_ID = 6 };
enum { STATE_CLEARED = 1, NEEDS_STATE = 2 };
enum { KIND_NATIVE = 1, KIND_KERNEL = 2 };
enum { UNIT_COUNT = 2 };
enum event_type { SLICE_BEGIN = 1, SLICE_END = 2, INSTANT = 3, COUNTER = 4 };

/* The ids of tracks count on from this one, as those of other traces must not be the same. */
#define FIRST_TRACK INT64_C(0x737461636b640000)

/* Slices of one group are in one row, as long as they do not overlap. */
struct lane {
	size_t group;
	int64_t track;
	int64_t end;
};

/* A slice that is to be written. */
struct slice {
	int64_t start, end;
	size_t number; /* of the wait or gap */
};

struct trace {
	const struct report_data *data;
	FILE *out;
	int64_t start; /* of the trace, ns since 1970 */
	int64_t last_track;
	bool has_begun; /* a packet was written */
	struct text packet, event, part, item;
	struct intern *names, *frames, *stacks; /* numbers of the report's strings, frames, nodes */
	struct intern *groups;
	struct lane *lanes;
	size_t n_lanes, lanes_capacity;
};

static void put_string(struct text *message, uint32_t tag, const char *text)
{
	protobuf_put_bytes(message, tag, text, strlen(text));
}

/* Appends a message as a member of another one, and empties it. */
static void put_message(struct text *message, uint32_t tag, struct text *member)
{
	protobuf_put_bytes(message, tag, member->data, member->len);
	if (message->error < 0 || member->error < 0)
		must(NULL);
	text_reset(member);
}

/* Writes the packet, and begins a new one. */
static void end_packet(struct trace *t)
{
	struct text whole;

	protobuf_put_int(&t->packet, PACKET_SEQUENCE_ID, 1);
	protobuf_put_int(&t->packet, PACKET_SEQUENCE_FLAGS,
			 t->has_begun ? NEEDS_STATE : STATE_CLEARED);
	t->has_begun = true;
	text_init(&whole, SIZE_MAX);
	put_message(&whole, TRACE_PACKET, &t->packet);
	fwrite(whole.data, 1, whole.len, t->out);
	text_fini(&whole);
}

/*
 * Says that the clock of the trace, which is that since boot, has the value of the real-time clock,
 * in which all times are.
 */
static void put_clocks(struct trace *t)
{
	static const int64_t ids[] = { CLOCK_REALTIME_ID, CLOCK_BOOTTIME_ID };

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		protobuf_put_int(&t->item, CLOCK_ID, ids[i]);
		protobuf_put_int(&t->item, CLOCK_TIMESTAMP, t->start);
		put_message(&t->part, CLOCKS_CLOCK, &t->item);
	}
	protobuf_put_int(&t->packet, PACKET_TIMESTAMP, t->start);
	put_message(&t->packet, PACKET_CLOCK_SNAPSHOT, &t->part);
	end_packet(t);
}

/* Makes a track below another one (0: none). Returns its id. */
static int64_t put_track(struct trace *t, int64_t parent, const char *name, bool is_counter)
{
	int64_t track = t->last_track++;

	protobuf_put_int(&t->part, TRACK_UUID, track);
	protobuf_put_int(&t->part, TRACK_PARENT_UUID, parent);
	put_string(&t->part, TRACK_NAME, name);
	if (is_counter) {
		protobuf_put_int(&t->item, COUNTER_UNIT, UNIT_COUNT);
		put_message(&t->part, TRACK_COUNTER, &t->item);
	}
	put_message(&t->packet, PACKET_TRACK_DESCRIPTOR, &t->part);
	end_packet(t);
	return track;
}

/* Adds an annotation to the event that is being made; with a text or, if that is NULL, a number. */
static void annotate(struct trace *t, const char *name, const char *text, int64_t number)
{
	if (text ? text[0] == '\0' : number <= 0)
		return;
	put_string(&t->part, ANNOTATION_NAME, name);
	if (text)
		put_string(&t->part, ANNOTATION_STRING_VALUE, text);
	else
		protobuf_put_int(&t->part, ANNOTATION_INT_VALUE, number);
	put_message(&t->event, EVENT_DEBUG_ANNOTATIONS, &t->part);
}

/* Writes the event, to which annotations have been added. */
static void put_event(struct trace *t, enum event_type type, int64_t track, int64_t time,
		      const char *name)
{
	protobuf_put_int(&t->event, EVENT_TYPE, type);
	protobuf_put_int(&t->event, EVENT_TRACK_UUID, track);
	if (name) {
		put_string(&t->event, EVENT_NAME, name);
		put_string(&t->event, EVENT_CATEGORIES, "stackd");
	}
	protobuf_put_int(&t->packet, PACKET_TIMESTAMP, time > 0 ? time : 0);
	put_message(&t->packet, PACKET_TRACK_EVENT, &t->event);
	end_packet(t);
}

static void put_value(struct trace *t, int64_t track, int64_t time, double value)
{
	protobuf_put_double(&t->event, EVENT_DOUBLE_COUNTER_VALUE, value);
	put_event(t, COUNTER, track, time, NULL);
}

static const char *string_of(const struct trace *t, uint32_t number)
{
	return number == REPORT_NONE ? "" : intern_key(t->data->strings, number, NULL);
}

static const struct report_node *node_of(const struct trace *t, uint32_t number)
{
	return (const struct report_node *)(const void *)intern_key(t->data->nodes, number, NULL);
}

static const struct report_frame *frame_of(const struct trace *t, uint32_t number)
{
	return (const struct report_frame *)(const void *)intern_key(t->data->frames, number, NULL);
}

static const struct report_key *key_of(const struct trace *t, uint32_t number)
{
	return (const struct report_key *)(const void *)intern_key(t->data->keys, number, NULL);
}

/* Adds the name of a function to the interned data, unless they have it. Returns its id. */
static int64_t intern_name(struct trace *t, uint32_t string)
{
	bool is_new;
	int64_t id = 1 + (int64_t)intern_add(t->names, &string, sizeof string, &is_new);

	if (is_new) {
		protobuf_put_int(&t->item, STRING_IID, id);
		put_string(&t->item, STRING_STR, string_of(t, string));
		put_message(&t->part, INTERNED_FUNCTION_NAMES, &t->item);
	}
	return id;
}

/* Does the same for a frame. */
static int64_t intern_frame(struct trace *t, uint32_t number)
{
	const struct report_frame *frame = frame_of(t, number);
	int64_t name = intern_name(t, frame->name), id;
	bool is_new;

	id = 1 + (int64_t)intern_add(t->frames, &number, sizeof number, &is_new);
	if (is_new) {
		protobuf_put_int(&t->item, FRAME_IID, id);
		protobuf_put_int(&t->item, FRAME_FUNCTION_NAME_ID, name);
		protobuf_put_int(&t->item, FRAME_KIND,
				 frame->kind == REPORT_KERNEL ? KIND_KERNEL
				 : frame->kind == REPORT_USER ? KIND_NATIVE
							      : 0);
		put_message(&t->part, INTERNED_FRAMES, &t->item);
	}
	return id;
}

/*
 * Does the same for a stack, without the name of the thread, which is its outermost frame. Returns
 * 0 for a stack without other frames.
 */
static int64_t intern_stack(struct trace *t, uint32_t innermost)
{
	uint32_t *nodes = NULL;
	size_t n = 0, capacity = 0, number;
	bool is_new;

	for (uint32_t at = innermost; at != REPORT_NONE; at = node_of(t, at)->parent) {
		if (frame_of(t, node_of(t, at)->frame)->kind == REPORT_PROCESS)
			continue;
		if (array_reserve(nodes, capacity, n + 1) < 0)
			must(NULL);
		nodes[n++] = at;
	}
	if (n == 0)
		return 0;
	number = intern_add(t->stacks, &innermost, sizeof innermost, &is_new);
	if (is_new) {
		for (size_t i = n; i > 0; i--)
			intern_frame(t, node_of(t, nodes[i - 1])->frame);
		protobuf_put_int(&t->item, CALLSTACK_IID, (int64_t)number + 1);
		for (size_t i = n; i > 0; i--) {
			const uint32_t frame = node_of(t, nodes[i - 1])->frame;
			size_t id = 0;

			intern_find(t->frames, &frame, sizeof frame, &id);
			protobuf_put_int(&t->item, CALLSTACK_FRAME_IDS, (int64_t)id + 1);
		}
		put_message(&t->part, INTERNED_CALLSTACKS, &t->item);
	}
	free(nodes);
	return (int64_t)number + 1;
}

/* Adds a stack to the event, and what is new of it to the packet. */
static void put_stack(struct trace *t, uint32_t node)
{
	int64_t id = intern_stack(t, node);

	protobuf_put_int(&t->event, EVENT_CALLSTACK_IID, id);
	if (t->part.len > 0)
		put_message(&t->packet, PACKET_INTERNED_DATA, &t->part);
}

/* Says what the trace is, what it has and what it has not, as an event at its beginning. */
static void put_head(struct trace *t, const struct report_head *head)
{
	static const char *const probes[REPORT_PROBES] = { "offcpu", "oncpu", "iolat" };
	static const char *const none[REPORT_PROBES] = { "no offcpu", "no oncpu", "no iolat" };
	const struct report_data *data = t->data;
	_cleanup_(freep) char *host = name_escape(head->host), *filter = name_escape(head->filter);
	int64_t track = put_track(t, 0, "stackd: about this trace", false);

	annotate(t, "version", STACKD_VERSION, 0);
	annotate(t, "host", host, 0);
	annotate(t, "filter", filter, 0);
	annotate(t, "counters",
		 "averages of windows; where a window is missing, the last value stays, "
		 "and there is a slice that says why",
		 0);
	annotate(t, "slices", "a choice: the longest waits, and those that are open at the end", 0);
	annotate(t, "shortest wait with a stack, ns", NULL, data->min_wait_ns);
	annotate(t, "waits sampled below, ns", NULL, data->sample_below_ns[REPORT_OFFCPU]);
	annotate(t, "names that were cut", NULL, data->n_cut_names);
	for (size_t i = 0; i < REPORT_PROBES; i++)
		if (data->missing[i])
			annotate(t, none[i], data->missing[i], 0);
	for (size_t i = 0; i < intern_count(data->loss_keys); i++) {
		const struct report_text *loss =
			(const struct report_text *)(const void *)intern_key(data->loss_keys, i,
									     NULL);
		_cleanup_(freep) char *name = NULL;

		if (asprintf(&name, "lost of %s: %s", probes[loss->probe],
			     string_of(t, loss->text)) < 0)
			name = NULL;
		annotate(t, must(name), NULL, data->losses[i]);
	}
	for (size_t i = 0; i < intern_count(data->notes); i++) {
		const struct report_text *note =
			(const struct report_text *)(const void *)intern_key(data->notes, i, NULL);

		_cleanup_(freep) char *name = NULL;

		if (asprintf(&name, "note %zu, of %s", i + 1, probes[note->probe]) < 0)
			name = NULL;
		annotate(t, must(name), string_of(t, note->text), 0);
	}
	put_event(t, INSTANT, track, t->start, "about this trace");
}

/* The counters of a window. A function returns the value, or -1 if it is not known. */
struct counter {
	const char *name;
	double (*value)(const struct report_column *column);
};

static double per_length(int64_t value, int64_t length, double factor)
{
	return length > 0 ? (double)value / (double)length * factor : -1;
}

static double on_cpu(const struct report_column *c)
{
	return per_length(c->on_cpu, c->covered[REPORT_OFFCPU], 1);
}

static double runnable(const struct report_column *c)
{
	return per_length(c->runnable, c->covered[REPORT_OFFCPU], 1);
}

static double blocked(const struct report_column *c)
{
	return per_length(c->blocked, c->covered[REPORT_OFFCPU], 1);
}

static double waits(const struct report_column *c)
{
	return per_length(c->waits, c->covered[REPORT_OFFCPU], (double)NS_PER_S);
}

#define STALL(name_, resource, kind)                                                \
	static double name_(const struct report_column *c)                          \
	{                                                                           \
		return per_length(c->stalls[resource][kind], c->stall_length, 100); \
	}

STALL(cpu_some, 0, 0)
STALL(io_some, 1, 0)
STALL(io_full, 1, 1)
STALL(memory_some, 2, 0)
STALL(memory_full, 2, 1)

static const struct counter counters[] = {
	{ "threads on CPU", on_cpu },	       { "threads runnable", runnable },
	{ "threads blocked", blocked },	       { "waits per second", waits },
	{ "PSI CPU some, %", cpu_some },       { "PSI I/O some, %", io_some },
	{ "PSI I/O full, %", io_full },	       { "PSI memory some, %", memory_some },
	{ "PSI memory full, %", memory_full },
};

static void put_counter(struct trace *t, int64_t parent, const struct counter *counter)
{
	int64_t track = 0;

	for (size_t i = 0; i < t->data->n_columns; i++) {
		const struct report_column *column = &t->data->columns[i];
		double value = counter->value(column);

		if (value < 0)
			continue;
		if (track == 0)
			track = put_track(t, parent, counter->name, true);
		put_value(t, track, column->start, value);
	}
}

/* Writes how many operations of a layer of I/O there were in each window. */
static void put_layer(struct trace *t, int64_t parent, uint32_t layer)
{
	const struct report_data *data = t->data;
	int64_t *counts = must(calloc(data->n_columns + 1, sizeof(*counts)));
	_cleanup_(freep) char *name = NULL;
	int64_t track;

	for (size_t i = 0; i < data->n_latencies; i++)
		if (data->latencies[i].layer == layer)
			counts[data->latencies[i].column] += data->latencies[i].count;
	if (asprintf(&name, "I/O per second, %s", string_of(t, layer)) < 0)
		name = NULL;
	track = put_track(t, parent, must(name), true);
	for (size_t i = 0; i < data->n_columns; i++) {
		int64_t length = data->columns[i].covered[REPORT_IOLAT];

		if (length > 0)
			put_value(t, track, data->columns[i].start,
				  per_length(counts[i], length, (double)NS_PER_S));
	}
	free(counts);
}

static void put_counters(struct trace *t)
{
	int64_t parent = put_track(t, 0, "stackd: averages of windows", false);
	struct intern *layers = intern_new();

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++)
		put_counter(t, parent, &counters[i]);
	for (size_t i = 0; i < t->data->n_latencies; i++) {
		uint32_t layer = t->data->latencies[i].layer;
		bool is_new;

		if (layer == REPORT_NONE)
			continue;
		intern_add(layers, &layer, sizeof layer, &is_new);
		if (is_new)
			put_layer(t, parent, layer);
	}
	intern_free(layers);
}

static int compare_slices(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/*
 * Returns the track for a slice: one of its group, in which the slice overlaps no other one. The
 * slices of a group come by their starts.
 */
static int64_t track_of(struct trace *t, int64_t parent, const char *group,
			const struct slice *slice)
{
	size_t number = intern_add(t->groups, group, strlen(group), NULL);
	struct lane *lane = NULL;

	for (size_t i = 0; i < t->n_lanes && !lane; i++)
		if (t->lanes[i].group == number && t->lanes[i].end <= slice->start)
			lane = &t->lanes[i];
	if (!lane) {
		if (array_reserve(t->lanes, t->lanes_capacity, t->n_lanes + 1) < 0)
			must(NULL);
		lane = &t->lanes[t->n_lanes++];
		*lane = (struct lane){ number, put_track(t, parent, group, false), 0 };
	}
	lane->end = slice->end;
	return lane->track;
}

/* Writes a slice whose beginning has the annotations, and the stack of the node, that were added.
 */
static void put_slice(struct trace *t, int64_t track, const struct slice *slice, const char *name)
{
	put_event(t, SLICE_BEGIN, track, slice->start, name);
	put_event(t, SLICE_END, track, slice->end, NULL);
}

static void put_gaps(struct trace *t)
{
	static const char *const groups[REPORT_PROBES] = { "no data: offcpu", "no data: oncpu",
							   "no data: iolat" };
	size_t n = intern_count(t->data->gaps);
	struct slice *slices = must(calloc(n + 1, sizeof(*slices)));
	int64_t parent = 0;

	for (size_t i = 0; i < n; i++) {
		const struct report_gap *gap =
			(const struct report_gap *)(const void *)intern_key(t->data->gaps, i, NULL);

		slices[i] = (struct slice){ gap->start, gap->end, i };
	}
	qsort(slices, n, sizeof(*slices), compare_slices);
	for (size_t i = 0; i < n; i++) {
		const struct report_gap *gap = (const struct report_gap *)(const void *)intern_key(
			t->data->gaps, slices[i].number, NULL);

		if (parent == 0)
			parent = put_track(t, 0, "stackd: no data", false);
		put_slice(t, track_of(t, parent, groups[gap->probe], &slices[i]), &slices[i],
			  string_of(t, gap->reason));
	}
	free(slices);
}

/* Returns the title of a thread. The caller frees it. */
static char *thread_title(const char *comm, int64_t pid, int64_t tid)
{
	char *text = NULL;
	int r;

	if (tid > 0 && pid > 0)
		r = asprintf(&text, "%s (pid %" PRId64 ", thread %" PRId64 ")", comm, pid, tid);
	else if (pid > 0)
		r = asprintf(&text, "%s (pid %" PRId64 ")", comm, pid);
	else
		r = asprintf(&text, "%s", comm);
	return must(r < 0 ? NULL : text);
}

/* Returns what a wait is called: its reason in words, or the word, or its state. */
static const char *wait_name(const struct trace *t, uint32_t reason, uint32_t state)
{
	const char *word = string_of(t, reason), *text = reason_text(word);

	if (text)
		return text;
	return word[0] ? word : string_of(t, state)[0] ? string_of(t, state) : "wait";
}

static void put_wait(struct trace *t, int64_t parent, const struct slice *slice)
{
	const struct report_wait *wait = &t->data->waits[slice->number];
	const struct report_key *key = key_of(t, wait->key);
	const struct report_process *process =
		key->process == REPORT_NONE
			? NULL
			: (const struct report_process *)(const void *)intern_key(
				  t->data->processes, key->process, NULL);
	_cleanup_(freep) char *title =
		thread_title(string_of(t, wait->comm), process ? process->pid : 0, wait->tid);
	int64_t track = track_of(t, parent, title, slice);

	annotate(t, "state", string_of(t, key->state), 0);
	annotate(t, "reason", string_of(t, key->reason), 0);
	if (process)
		annotate(t, "cgroup", string_of(t, process->cgroup), 0);
	annotate(t, "held up by", string_of(t, wait->held_up_by), 0);
	if (wait->is_open)
		annotate(t, "not over", "at the end of its window", 0);
	if (wait->is_older)
		annotate(t, "began", "before the range that was asked for", 0);
	put_stack(t, key->node);
	put_slice(t, track, slice, wait_name(t, key->reason, key->state));
}

static void put_waits(struct trace *t)
{
	size_t n = t->data->n_waits;
	struct slice *slices = must(calloc(n + 1, sizeof(*slices)));
	_cleanup_(freep) char *title = NULL;
	int64_t parent;

	for (size_t i = 0; i < n; i++) {
		const struct report_wait *wait = &t->data->waits[i];

		slices[i] = (struct slice){ wait->end - wait->length, wait->end, i };
	}
	qsort(slices, n, sizeof(*slices), compare_slices);
	if (asprintf(&title, "stackd: the %zu longest waits, a choice", n) < 0)
		title = NULL;
	parent = n > 0 ? put_track(t, 0, must(title), false) : 0;
	for (size_t i = 0; i < n; i++)
		put_wait(t, parent, &slices[i]);
	free(slices);
}

/* Adds an annotation for each string of a list. */
static void annotate_all(struct trace *t, const char *name, const uint32_t *strings, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		_cleanup_(freep) char *numbered = NULL;

		if (i > 0 && asprintf(&numbered, "%s %zu", name, i + 1) < 0)
			must(NULL);
		annotate(t, numbered ? numbered : name, string_of(t, strings[i]), 0);
	}
}

/* Writes the waits that are open at the end: slices that do not end. */
static void put_open(struct trace *t)
{
	const struct report_data *data = t->data;
	int64_t at = data->open_at > 0 ? data->open_at : data->columns[data->n_columns - 1].end;
	int64_t parent =
		data->n_open > 0 ? put_track(t, 0, "stackd: waiting at the end", false) : 0;

	for (size_t i = 0; i < data->n_open; i++) {
		const struct report_open *open = &data->open[i];
		const struct slice slice = { at - open->length, INT64_MAX, i };
		_cleanup_(freep) char *title =
			thread_title(string_of(t, open->comm), open->pid, open->tid);
		int64_t track = track_of(t, parent, title, &slice);

		annotate(t, "state", string_of(t, open->state), 0);
		annotate(t, "reason", string_of(t, open->reason), 0);
		annotate(t, "object", string_of(t, open->object), 0);
		annotate_all(t, "holder", open->holders, open->n_holders);
		annotate(t, "more holders", NULL, open->holders_more);
		annotate(t, "holder looked up so many ns before", NULL,
			 open->holders_at ? at - open->holders_at : 0);
		annotate(t, "holder not known", string_of(t, open->holders_unknown), 0);
		annotate_all(t, "behind", open->chain, open->n_chain);
		annotate(t, "deadlock", open->is_deadlock ? "yes" : "", 0);
		annotate(t, "in doubt", open->is_in_doubt ? "it may be over" : "", 0);
		put_stack(t, open->node);
		put_event(t, SLICE_BEGIN, track, slice.start,
			  wait_name(t, open->reason, open->state));
	}
}

void report_trace_write(const struct report_data *data, const struct report_head *head, FILE *out)
{
	struct trace t = {
		.data = data,
		.out = out,
		.start = data->n_columns > 0 ? data->columns[0].start : head->asked_start,
		.last_track = FIRST_TRACK,
		.names = intern_new(),
		.frames = intern_new(),
		.stacks = intern_new(),
		.groups = intern_new(),
	};
	struct text *const messages[] = { &t.packet, &t.event, &t.part, &t.item };

	for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
		text_init(messages[i], SIZE_MAX);
	put_clocks(&t);
	put_head(&t, head);
	put_counters(&t);
	put_gaps(&t);
	put_waits(&t);
	/* An open wait of a thread is not in the row of its longest ones. */
	t.n_lanes = 0;
	if (data->n_columns > 0)
		put_open(&t);
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++)
		text_fini(messages[i]);
	intern_free(t.names);
	intern_free(t.frames);
	intern_free(t.stacks);
	intern_free(t.groups);
	free(t.lanes);
}
