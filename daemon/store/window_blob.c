/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/window_blob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zstd.h>

#include "common/base.h"
#include "daemon/base/io_names.h"
#include "daemon/store/columns.h"
#include "daemon/store/held_section.h"
#include "daemon/store/owners.h"
#include "daemon/store/pressure_section.h"
#include "daemon/store/spawns_section.h"

/* The tags of the other sections are in `parts` below and in columns.c. */
enum {
	TAG_HEAD = 1,
	TAG_STACKS = 2,	   /* row numbers of the window's stacks in the database */
	TAG_PROCESSES = 3, /* row numbers of the window's processes in the database */
	TAG_OWNERS = 13,   /* facts about the window's processes that queries need, see owners.h */
};

enum { ZSTD_LEVEL = 3, BLOCK_HEAD = 8 };

static void section_put(struct bytes *out, uint64_t tag, const struct bytes *payload)
{
	bytes_put_u64(out, tag);
	bytes_put_u64(out, payload->n);
	bytes_put(out, payload->data, payload->n);
	out->is_failed |= payload->is_failed;
}

/*
 * Encodes the members of struct window that are not arrays. Writes the name of each loss, not its
 * number (enum window_loss), which can change from one version of stackd to the next.
 */
static void head_encode(const struct window *window, uint64_t run, struct bytes *out)
{
	uint64_t n = 0;
	unsigned int i;

	bytes_put_u64(out, run);
	bytes_put_u64(out, window->seq);
	bytes_put_u64(out, window->session);
	bytes_put_string(out, probe_kind_name(window->kind));
	bytes_put_i64(out, window->start_ns);
	bytes_put_i64(out, window->end_ns);
	bytes_put_i64(out, window->real_offset_ns);
	bytes_put_i64(out, window->boot_offset_ns);
	bytes_put_u64(out, window->merged_from);
	bytes_put_u64(out, window->lost_ns);
	bytes_put_u64(out, window->switch_ins);
	bytes_put_u64(out, window->sampled);
	for (i = 0; i < WINDOW_LOST_N; i++)
		n += window->lost[i] != 0;
	bytes_put_u64(out, n);
	for (i = 0; i < WINDOW_LOST_N; i++) {
		if (!window->lost[i])
			continue;
		bytes_put_string(out, window_loss_name(i));
		bytes_put_u64(out, window->lost[i]);
	}
}

static void folded_encode(const struct window *window, struct bytes *out)
{
	bytes_put_u64(out, window->folded.rows);
	bytes_put_u64(out, window->folded.processes);
	bytes_put_u64(out, window->folded.started);
	bytes_put_u64(out, window->folded.ns);
	bytes_put_u64(out, window->folded.unlisted);
}

static int folded_decode(struct bytes_reader *in, struct window *window)
{
	window->folded.rows = bytes_get_u64(in);
	window->folded.processes = bytes_get_u64(in);
	window->folded.started = bytes_get_u64(in);
	window->folded.ns = bytes_get_u64(in);
	window->folded.unlisted = bytes_get_u64(in);
	return in->is_failed ? -EBADMSG : 0;
}

static void sampling_encode(const struct window *window, struct bytes *out)
{
	bytes_put_i64(out, window->sample_below_ns);
}

static int sampling_decode(struct bytes_reader *in, struct window *window)
{
	window->sample_below_ns = bytes_get_i64(in);
	return in->is_failed || window->sample_below_ns < 0 ? -EBADMSG : 0;
}

static void cost_encode(const struct window *window, struct bytes *out)
{
	bytes_put_u64(out, window->cost.ns);
	bytes_put_u64(out, window->cost.cpu_ns);
	bytes_put_u64(out, window->cost.bpf_ns);
	bytes_put_u64(out, window->cost.answers_ns);
	bytes_put_u64(out, window->cost.sessions_ns);
}

static int cost_decode(struct bytes_reader *in, struct window *window)
{
	window->cost.ns = bytes_get_u64(in);
	window->cost.cpu_ns = bytes_get_u64(in);
	window->cost.bpf_ns = bytes_get_u64(in);
	window->cost.answers_ns = bytes_get_u64(in);
	window->cost.sessions_ns = bytes_get_u64(in);
	return in->is_failed ? -EBADMSG : 0;
}

static void budget_encode(const struct window *window, struct bytes *out)
{
	const struct window_cost *cost = &window->cost;
	unsigned int i;

	bytes_put_u64(out, cost->known_ns);
	bytes_put_u64(out, cost->limited_ns);
	bytes_put_u64(out, cost->budget_ns);
	bytes_put_u64(out, cost->beyond_ns);
	bytes_put_u64(out, cost->braked);
	bytes_put_i64(out, cost->brake_below_ns);
	for (i = 0; i < WINDOW_SHED_N; i++)
		bytes_put_u64(out, cost->shed_ns[i]);
}

static int budget_decode(struct bytes_reader *in, struct window *window)
{
	struct window_cost *cost = &window->cost;
	unsigned int i;

	cost->known_ns = bytes_get_u64(in);
	cost->limited_ns = bytes_get_u64(in);
	cost->budget_ns = bytes_get_u64(in);
	cost->beyond_ns = bytes_get_u64(in);
	cost->braked = bytes_get_u64(in);
	cost->brake_below_ns = bytes_get_i64(in);
	for (i = 0; i < WINDOW_SHED_N; i++)
		cost->shed_ns[i] = bytes_get_u64(in);
	return in->is_failed || cost->brake_below_ns < 0 ? -EBADMSG : 0;
}

#define NEEDED(member) offsetof(struct window, member), sizeof(((struct window *)0)->member)

/* The sections about a window as a whole, each of which is left out if the window has no use for
 * it. */
static const struct part {
	uint64_t tag;
	size_t needed; /* offset in struct window of a number: 0 if the section is left out */
	size_t size;   /* its size in bytes */
	void (*encode)(const struct window *window, struct bytes *out);
	int (*decode)(struct bytes_reader *in, struct window *window);
} parts[] = {
	/* rows of the window stand for several processes */
	{ 12, NEEDED(folded.rows), folded_encode, folded_decode },
	{ 14, NEEDED(sample_below_ns), sampling_encode, sampling_decode },
	/* left out if the pressure was not to be read */
	{ 30, NEEDED(pressure.state), store_pressure_encode, store_pressure_decode },
	/* left out if the cost was not measured */
	{ 31, NEEDED(cost.ns), cost_encode, cost_decode },
	/* the rest of struct window_cost */
	{ 32, NEEDED(cost.known_ns), budget_encode, budget_decode },
	{ 33, NEEDED(spawns.ns), store_spawns_encode, store_spawns_decode },
	{ 34, NEEDED(held.n), store_held_encode, store_held_decode },
};

static bool part_is_needed(const struct part *part, const struct window *window)
{
	uint64_t number = 0;

	memcpy(&number, (const char *)window + part->needed, part->size);
	return number != 0;
}

static const struct part *part_find(uint64_t tag)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].tag == tag)
			return &parts[i];
	return NULL;
}

static int numbers_encode(const struct store_table *table, const struct store_names *names,
			  bool is_stacks, struct bytes *out)
{
	int64_t number = 0, last = 0;
	size_t i;
	int r;

	bytes_put_u64(out, table->n);
	for (i = 0; i < table->n; i++) {
		if (is_stacks)
			r = names->stack_number(names->userdata, table->items[i], &number);
		else
			r = names->process_number(names->userdata, table->items[i], &number);
		if (r)
			return r;
		bytes_put_i64(out, number - last);
		last = number;
	}
	return 0;
}

static void arrays_encode(struct store_column_context *context, struct bytes *out)
{
	struct store_cuts *cuts = &context->cuts;
	const struct store_section *section;
	struct bytes payload = {};
	size_t i;

	for (section = store_sections; section->size; section++) {
		payload.n = 0;
		i = cuts->n;
		store_columns_encode(context, section, &payload);
		section_put(out, section->tag, &payload);
		for (; i < cuts->n; i++)
			cuts->at[i] += out->n - payload.n;
	}
	bytes_fini(&payload);
}

/*
 * Encodes all sections. The arrays are encoded first, into a buffer, because this also collects the
 * stacks and processes to which they point. In *out, the numbers that these stacks and processes
 * have in the database come before the arrays, because the decoder needs them first.
 */
static int sections_encode(struct store_column_context *context, uint64_t run,
			   const struct store_names *names, struct bytes *out)
{
	_cleanup_(bytes_fini) struct bytes arrays = {}, payload = {};
	size_t i;
	int r;

	arrays_encode(context, &arrays);
	head_encode(context->window, run, &payload);
	section_put(out, TAG_HEAD, &payload);
	payload.n = 0;
	r = numbers_encode(&context->stacks, names, true, &payload);
	if (r)
		return r;
	section_put(out, TAG_STACKS, &payload);
	payload.n = 0;
	r = numbers_encode(&context->processes, names, false, &payload);
	if (r)
		return r;
	section_put(out, TAG_PROCESSES, &payload);
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!part_is_needed(&parts[i], context->window))
			continue;
		payload.n = 0;
		parts[i].encode(context->window, &payload);
		section_put(out, parts[i].tag, &payload);
	}
	payload.n = 0;
	store_owners_encode(&context->processes, context->window, &payload);
	section_put(out, TAG_OWNERS, &payload);
	for (i = 0; i < context->cuts.n; i++)
		context->cuts.at[i] += out->n;
	bytes_put(out, arrays.data, arrays.n);
	return out->is_failed || arrays.is_failed ? -ENOMEM : context->error;
}

/* Compresses *in up to offset `end`, and ends the compressed block there. */
static int pack_to(ZSTD_CCtx *zstd, ZSTD_inBuffer *in, size_t end, ZSTD_EndDirective how,
		   ZSTD_outBuffer *out)
{
	size_t left;

	in->size = end;
	left = ZSTD_compressStream2(zstd, out, in, how);
	return ZSTD_isError(left) || left ? -ENOMEM : 0;
}

static int pack_run(ZSTD_CCtx *zstd, const struct bytes *raw, const struct store_cuts *cuts,
		    ZSTD_outBuffer *out)
{
	ZSTD_inBuffer in = { .src = raw->data };
	size_t i;
	int r = 0;

	if (ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(zstd, raw->n)))
		return -ENOMEM;
	for (i = 0; i < cuts->n && !r; i++)
		r = pack_to(zstd, &in, cuts->at[i], ZSTD_e_flush, out);
	return r ? r : pack_to(zstd, &in, raw->n, ZSTD_e_end, out);
}

/*
 * Compresses the columns in separate blocks, so that the entropy codes of a block fit its numbers.
 */
static int pack(const struct bytes *raw, const struct store_cuts *cuts, struct bytes *out)
{
	size_t bound = ZSTD_compressBound(raw->n) + (cuts->n + 1) * BLOCK_HEAD;
	_cleanup_(freep) void *packed = malloc(bound);
	ZSTD_outBuffer buffer = { .dst = packed, .size = bound };
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	int r = packed && zstd ? pack_run(zstd, raw, cuts, &buffer) : -ENOMEM;

	ZSTD_freeCCtx(zstd);
	if (r)
		return r;
	bytes_put(out, packed, buffer.pos);
	return out->is_failed ? -ENOMEM : 0;
}

int store_blob_encode(const struct window *window, uint64_t run, const struct store_names *names,
		      struct bytes *out)
{
	struct store_column_context context = { .window = (struct window *)window };
	_cleanup_(bytes_fini) struct bytes raw = {};
	int r = sections_encode(&context, run, names, &raw);

	store_table_fini(&context.stacks);
	store_table_fini(&context.processes);
	if (r)
		return r;
	if (raw.n > STORE_BLOB_MAX)
		return -E2BIG;
	return pack(&raw, &context.cuts, out);
}

static void lost_decode(struct bytes_reader *in, struct window *window)
{
	_cleanup_(freep) char *name = bytes_get_string(in);
	uint64_t count = bytes_get_u64(in);
	unsigned int i;

	for (i = 0; name && i < WINDOW_LOST_N; i++) {
		if (strcmp(name, window_loss_name(i)) == 0) {
			window->lost[i] += count;
			return;
		}
	}
	/* Count a loss whose name this version does not know as WINDOW_LOST_OTHER. */
	window->lost[WINDOW_LOST_OTHER] += count;
}

/* Reads the name of a probe and sets window->kind. An unknown name is a failure. */
static void kind_decode(struct bytes_reader *in, struct window *window)
{
	_cleanup_(freep) char *name = bytes_get_string(in);
	unsigned int kind;

	for (kind = 0; name && kind < PROBE_KIND_N; kind++) {
		if (strcmp(name, probe_kind_name(kind)) == 0) {
			window->kind = kind;
			return;
		}
	}
	in->is_failed = true;
}

static int head_decode(struct bytes_reader *in, struct window *window)
{
	uint64_t n;

	window->run = bytes_get_u64(in);
	window->seq = bytes_get_u64(in);
	window->session = bytes_get_u64(in);
	kind_decode(in, window);
	window->start_ns = bytes_get_i64(in);
	window->end_ns = bytes_get_i64(in);
	window->real_offset_ns = bytes_get_i64(in);
	window->boot_offset_ns = bytes_get_i64(in);
	window->merged_from = (uint32_t)bytes_get_max(in, UINT32_MAX);
	window->lost_ns = bytes_get_u64(in);
	window->switch_ins = bytes_get_u64(in);
	window->sampled = bytes_get_u64(in);
	for (n = bytes_get_max(in, bytes_left(in)); n && !in->is_failed; n--)
		lost_decode(in, window);
	if (in->is_failed)
		return bytes_error(in);
	return window->end_ns < window->start_ns ? -EBADMSG : 0;
}

static int numbers_decode(struct bytes_reader *in, const struct store_names *names, bool is_stacks,
			  struct store_table *table)
{
	uint64_t n = bytes_get_max(in, bytes_left(in)), last = 0;

	if (in->is_failed || table->items)
		return -EBADMSG;
	table->items = calloc((size_t)n + 1, sizeof(void *));
	if (!table->items)
		return -ENOMEM;
	for (; table->n < n; table->n++) {
		last += (uint64_t)bytes_get_i64(in);
		if (in->is_failed)
			return -EBADMSG;
		table->items[table->n] =
			is_stacks ? (void *)names->stack(names->userdata, (int64_t)last)
				  : (void *)names->process(names->userdata, (int64_t)last);
		if (!table->items[table->n])
			return -ENOMEM;
	}
	return 0;
}

static const struct store_section *section_find(uint64_t tag)
{
	const struct store_section *section;

	for (section = store_sections; section->size; section++)
		if (section->tag == tag)
			return section;
	return NULL;
}

/*
 * Reads the row numbers of the window's processes. For a query, makes window->owners; otherwise
 * loads the processes.
 */
static int processes_decode(struct store_column_context *context, const struct store_names *names,
			    struct bytes_reader *in)
{
	context->has_owners = names->is_query;
	return names->is_query ? store_owners_number(in, context->window)
			       : numbers_decode(in, names, false, &context->processes);
}

/* True if `section`, which may be NULL, is the one with window->members. */
static bool is_members(const struct store_section *section)
{
	return section && section->array == offsetof(struct window, members);
}

/*
 * Decodes window->members, which wants() needs: this section comes after others in `rest`, the
 * sections that are not decoded yet.
 */
static int members_decode(struct store_column_context *context, struct bytes_reader rest)
{
	while (bytes_left(&rest)) {
		uint64_t tag = bytes_get_u64(&rest);
		size_t length = (size_t)bytes_get_max(&rest, bytes_left(&rest));
		const uint8_t *payload = bytes_get(&rest, length);
		struct bytes_reader reader = { .at = payload,
					       .end = payload ? payload + length : NULL };
		const struct store_section *section = section_find(tag);

		if (!payload)
			return -EBADMSG;
		if (!is_members(section))
			continue;
		context->has_members = true;
		return store_columns_decode(context, section, &reader);
	}
	return 0;
}

/*
 * Called after a section with arrays was decoded. If window->images are decoded and the window is
 * loaded for a query, completes window->owners. Returns 1 if the query does not need the rest of
 * the window, 0 if it does, or a negative errno.
 */
static int images_decoded(struct store_column_context *context, const struct store_names *names,
			  struct bytes_reader rest)
{
	struct window *window = context->window;
	int r;

	if (!context->has_owners || context->is_settled || !window->images)
		return 0;
	if (!window->owner_texts)
		return -EBADMSG;
	context->is_settled = true;
	store_owners_settle(window);
	if (names->wants) {
		r = names->skips_members ? 0 : members_decode(context, rest);
		if (r || !names->wants(names->wants_userdata, window))
			return r ? r : 1;
	}
	return context->numbers.at
		       ? numbers_decode(&context->numbers, names, true, &context->stacks)
		       : 0;
}

/*
 * Loads the stacks of the window. For a query, only notes where `in` has the numbers of the stacks
 * in the database, because the query may not use the window.
 */
static int stacks_decode(struct store_column_context *context, const struct store_names *names,
			 struct bytes_reader *in)
{
	if (!names->is_query)
		return numbers_decode(in, names, true, &context->stacks);
	context->numbers = *in;
	return 0;
}

static int section_decode(struct store_column_context *context, const struct store_names *names,
			  struct bytes_reader *in)
{
	int r;
	uint64_t tag = bytes_get_u64(in);
	size_t length = (size_t)bytes_get_max(in, bytes_left(in));
	const uint8_t *payload = bytes_get(in, length);
	struct bytes_reader reader = { .at = payload, .end = payload ? payload + length : NULL };
	const struct store_section *section = section_find(tag);
	const struct part *part = part_find(tag);

	if (!payload)
		return -EBADMSG;
	if (tag == TAG_HEAD)
		return head_decode(&reader, context->window);
	if (tag == TAG_STACKS)
		return stacks_decode(context, names, &reader);
	if (tag == TAG_PROCESSES)
		return processes_decode(context, names, &reader);
	if (tag == TAG_OWNERS)
		return names->is_query ? store_owners_decode(&reader, context->window) : 0;
	if (part)
		return part->decode(&reader, context->window);
	if (!section)
		return -EBADMSG;
	if (is_members(section) && (names->skips_members || context->has_members))
		return 0;
	r = store_columns_decode(context, section, &reader);
	if (r)
		return r;
	if (section == store_sections)
		store_images_complete(context->window);
	return images_decoded(context, names, *in);
}

/* Checks the layer, operation and buckets of all I/O rows, and sets bucket_first of each row. */
static int ios_check(struct window *window)
{
	size_t i, first = 0;

	for (i = 0; i < window->n_ios; i++) {
		if (!io_layer_name(window->ios[i].layer) || window->ios[i].op > UINT8_MAX)
			return -EBADMSG;
		window->ios[i].bucket_first = (uint32_t)first;
		first += (size_t)__builtin_popcountll(window->ios[i].bucket_mask);
	}
	return first == window->n_io_buckets ? 0 : -EBADMSG;
}

/*
 * Checks what cannot be checked column by column, such as an end before the start. Sets
 * bucket_first of the rows.
 */
static int window_check(struct window *window)
{
	size_t i, first = 0;

	for (i = 0; i < window->n_rows; i++) {
		if ((uint64_t)window->rows[i].bucket_mask >> WAIT_BUCKETS)
			return -EBADMSG;
		window->rows[i].bucket_first = (uint32_t)first;
		first += (size_t)__builtin_popcount(window->rows[i].bucket_mask);
	}
	for (i = 0; i < window->n_spans; i++)
		if (window->spans[i].end_ns < window->spans[i].start_ns)
			return -EBADMSG;
	if (first != window->n_buckets || window->end_ns <= window->start_ns)
		return -EBADMSG;
	return ios_check(window);
}

static void table_release(struct store_table *table, bool is_stacks, bool is_lent)
{
	size_t i;

	for (i = 0; i < table->n && !is_lent; i++) {
		if (is_stacks)
			stack_unref(table->items[i]);
		else
			process_unref(table->items[i]);
	}
	store_table_fini(table);
}

static int sections_decode(const struct bytes *raw, const struct store_names *names,
			   struct window *window)
{
	struct store_column_context context = { .window = window };
	bool is_lent = names->is_lending;
	struct bytes_reader in = { .at = raw->data, .end = raw->data + raw->n };
	int r = 0;

	while (!r && bytes_left(&in))
		r = section_decode(&context, names, &in);
	if (!r)
		r = window_check(window);
	else if (r > 0)
		r = 0;
	if (names->is_query) {
		window->lent = (struct stack **)TAKE(context.stacks.items);
		window->n_lent = context.stacks.n;
	}
	table_release(&context.stacks, true, is_lent || names->is_query);
	table_release(&context.processes, false, is_lent);
	return r;
}

static int unpack(const void *data, size_t size, struct bytes *out)
{
	unsigned long long n = ZSTD_getFrameContentSize(data, size);

	if (n == ZSTD_CONTENTSIZE_UNKNOWN || n == ZSTD_CONTENTSIZE_ERROR || n > STORE_BLOB_MAX)
		return -EBADMSG;
	out->data = malloc((size_t)n + 1);
	if (!out->data)
		return -ENOMEM;
	out->n = (size_t)n;
	return ZSTD_decompress(out->data, out->n, data, size) == out->n ? 0 : -EBADMSG;
}

int store_blob_decode(const void *data, size_t size, const struct store_names *names,
		      struct window **out)
{
	_cleanup_(bytes_fini) struct bytes raw = {};
	struct window *window;
	int r = unpack(data, size, &raw);

	if (r)
		return r;
	window = window_new();
	if (!window)
		return -ENOMEM;
	window->is_borrowing = names->is_lending || names->is_query;
	r = sections_decode(&raw, names, window);
	if (r) {
		window_unref(window);
		return r;
	}
	window_seal(window);
	*out = window;
	return 0;
}

/*
 * If only the first sections of a window are needed, it is decompressed in steps of this many
 * bytes.
 */
enum { HEAD_STEP = 16 << 10 };

static int numbers_visit(struct bytes_reader *in, int (*on_number)(void *userdata, int64_t number),
			 void *userdata)
{
	uint64_t n = bytes_get_max(in, bytes_left(in)), last = 0;
	int r = 0;

	for (; n && !r; n--) {
		last += (uint64_t)bytes_get_i64(in);
		if (in->is_failed)
			return -EBADMSG;
		r = on_number(userdata, (int64_t)last);
	}
	return in->is_failed ? -EBADMSG : r;
}

/*
 * Finds the sections TAG_STACKS and TAG_PROCESSES in the first n bytes of a window. Returns 0, or
 * -EAGAIN if a section may be in the bytes that follow.
 */
static int sections_find(const uint8_t *data, size_t n, struct bytes_reader *stacks,
			 struct bytes_reader *processes)
{
	struct bytes_reader in = { .at = data, .end = data + n };

	*stacks = *processes = (struct bytes_reader){};
	while (bytes_left(&in)) {
		uint64_t tag = bytes_get_u64(&in);
		size_t length = (size_t)bytes_get_u64(&in);
		const uint8_t *payload;

		if (in.is_failed || length > bytes_left(&in))
			return -EAGAIN;
		payload = bytes_get(&in, length);
		if (tag == TAG_STACKS)
			*stacks = (struct bytes_reader){ .at = payload, .end = payload + length };
		if (tag == TAG_PROCESSES)
			*processes =
				(struct bytes_reader){ .at = payload, .end = payload + length };
		if (stacks->at && processes->at)
			return 0;
	}
	return -EAGAIN;
}

/*
 * Decompresses the beginning of the window, up to the later one of the sections TAG_STACKS and
 * TAG_PROCESSES. Sets *stacks and *processes to these sections.
 */
static int head_unpack(const void *data, size_t size, struct bytes *out,
		       struct bytes_reader *stacks, struct bytes_reader *processes)
{
	unsigned long long total = ZSTD_getFrameContentSize(data, size);
	ZSTD_inBuffer in = { .src = data, .size = size };
	ZSTD_outBuffer buffer = {};
	ZSTD_DCtx *zstd;
	size_t left = 1;
	int r = -EAGAIN;

	if (total == ZSTD_CONTENTSIZE_UNKNOWN || total == ZSTD_CONTENTSIZE_ERROR ||
	    total > STORE_BLOB_MAX)
		return -EBADMSG;
	out->data = malloc((size_t)total + 1);
	zstd = ZSTD_createDCtx();
	buffer.dst = out->data;
	while (r == -EAGAIN && buffer.pos < total && left && out->data && zstd) {
		buffer.size =
			buffer.pos + HEAD_STEP < total ? buffer.pos + HEAD_STEP : (size_t)total;
		left = ZSTD_decompressStream(zstd, &buffer, &in);
		if (ZSTD_isError(left) || (buffer.pos < buffer.size && in.pos == in.size))
			break;
		r = sections_find(out->data, buffer.pos, stacks, processes);
	}
	ZSTD_freeDCtx(zstd);
	if (!out->data || !zstd)
		return -ENOMEM;
	return r == -EAGAIN ? -EBADMSG : r;
}

int store_blob_numbers(const void *data, size_t size,
		       int (*on_stack)(void *userdata, int64_t number),
		       int (*on_process)(void *userdata, int64_t number), void *userdata)
{
	_cleanup_(bytes_fini) struct bytes raw = {};
	struct bytes_reader stacks, processes;
	int r = head_unpack(data, size, &raw, &stacks, &processes);

	if (r)
		return r;
	r = numbers_visit(&stacks, on_stack, userdata);
	if (r)
		return r;
	return numbers_visit(&processes, on_process, userdata);
}
