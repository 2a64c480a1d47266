/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encodes windows and decodes them again; decodes bytes that are no window. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zstd.h>

#include "common/base.h"
#include "daemon/store/window_blob.h"

enum {
	NO_PID = 0x3f000000 /* above any pid_max */,
	NUMBER_FIRST = 1000,
	IMAGES = 5,
	TAG_OWNERS = 13 /* as in window_blob.c */
};

static struct process_table *processes;
static struct process *process;
static struct stack stacks[3];

static int stack_number(void *userdata, struct stack *stack, int64_t *out)
{
	*out = NUMBER_FIRST - 7 * (stack - stacks);
	return 0;
}

static int process_number(void *userdata, struct process *p, int64_t *out)
{
	*out = 3;
	return p == process ? 0 : -ENOENT;
}

/* Every number has a stack and a process, as in the store. */
static struct stack *stack_of(void *userdata, int64_t number)
{
	int64_t i = (NUMBER_FIRST - number) / 7;

	return stack_ref(&stacks[i >= 0 && i < 3 ? i : 2]);
}

static struct process *process_of(void *userdata, int64_t number)
{
	return process_ref(process);
}

static const struct store_names names = {
	.stack_number = stack_number,
	.process_number = process_number,
	.stack = stack_of,
	.process = process_of,
};

static int set_up(void **state)
{
	struct process_id id = { .pid = NO_PID, .start_boot_ns = 5 };

	if (process_table_new(1 << 20, &processes))
		return -1;
	process = process_table_see(processes, &id, false, "program");
	return process ? 0 : -1;
}

static int tear_down(void **state)
{
	process_unref(process);
	process_table_free(processes);
	return 0;
}

static void row_add(struct window *window, uint32_t image, uint64_t max_ns)
{
	uint32_t buckets[WAIT_BUCKETS] = { [3] = image + 1, [WAIT_BUCKETS - 1] = 7 };
	struct window_row *row = window_add_row(window);

	assert_int_equal(window_row_set_buckets(window, row, buckets), 0);
	row->image = image;
	row->kernel = stack_ref(&stacks[0]);
	row->user = image ? stack_ref(&stacks[1]) : NULL;
	row->count = 3;
	row->blocked_ns = UINT64_MAX;
	row->max_ns = max_ns;
	row->max_end_ns = INT64_MAX - image;
	row->culprits.ran_before = (struct culprit){ UINT64_MAX, image, UINT32_MAX, "hog" };
	row->culprits.held_up_by = (struct culprit){ 5, UINT32_MAX, image, "holder" };
	row->state = UINT32_MAX;
}

static struct window *window_make(void)
{
	static const struct spawn_sums spawned = { 1, 2, 3, 4, UINT64_MAX, 6 };
	struct held_wait held = { .pid = 5, .tid = 6, .since_ns = 7, .last_ns = 8, .looked_ns = 9 };
	struct window *window = window_new();
	struct window_image *image;
	struct window_sample *sample;
	struct window_span *span;
	struct window_open *open;
	uint32_t i;

	window->run = 4;
	window->seq = 77;
	window->session = 2;
	window->kind = PROBE_ONCPU;
	window->sampled = 5;
	window->start_ns = 1000 * NS_PER_S;
	window->end_ns = 1005 * NS_PER_S;
	window->real_offset_ns = INT64_C(1700000000) * NS_PER_S;
	window->boot_offset_ns = -3;
	window->lost[WINDOW_LOST_MEMORY] = 12;
	window->lost[0] = 1;
	window->cost = (struct window_cost){ .ns = 5 * NS_PER_S,
					     .cpu_ns = UINT64_MAX,
					     .bpf_ns = 7,
					     .answers_ns = 6,
					     .sessions_ns = 5 };
	window->pressure.state = PRESSURE_READ;
	window->pressure.ns = 5 * NS_PER_S;
	window->pressure.stalled.some_ns[PRESSURE_IO] = 77;
	assert_int_equal(window_pressure_add_unit(&window->pressure, strdup("/a.service"),
						  &window->pressure.stalled),
			 0);
	window->spawns.ns = 5 * NS_PER_S;
	window_spawns_count(&window->spawns, "make", "cc1plus", &spawned);
	window_spawns_limit(&window->spawns, WINDOW_SPAWNS_MAX);
	assert_int_equal(window_held_put(&window->held, &held), 0);
	window->switch_ins = 1 << 20;
	for (i = 0; i < IMAGES; i++) {
		image = window_add_image(window);
		*image = (struct window_image){
			.uid = i,
			.tid = NO_PID + (int32_t)i,
			.start_boot_ns = UINT64_MAX - i,
			.exec_gen = i,
			.comm = "0123456789abcde",
			.sums = { .on_ns = i, .throttled_ns = 3, .short_runnable_ns = 9 }
		};
		image->process = process_ref(process);
		row_add(window, i, i);
	}
	span = window_add_span(window);
	*span = (struct window_span){ .start_ns = INT64_MIN,
				      .wake_ns = -1,
				      .end_ns = 1,
				      .throttled_ns = 2,
				      .image = 2,
				      .culprits = { { 2, 3, 4, "fifteen letters" },
						    { 5, 6, 7, "another" } } };
	span->user = stack_ref(&stacks[2]);
	sample = window_add_sample(window);
	*sample = (struct window_sample){ .count = 3, .on_ns = 1 << 30, .image = 1 };
	sample->kernel = stack_ref(&stacks[1]);
	open = window_add_open(window);
	*open = (struct window_open){
		.start_ns = 7, .wake_ns = INT64_MAX, .throttled_ns = 5, .image = 4, .state = 2
	};
	window_seal(window);
	return window;
}

static void assert_same(const struct window *a, const struct window *b)
{
	size_t i;

	assert_int_equal(a->run, b->run);
	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->start_ns, b->start_ns);
	assert_int_equal(a->end_ns, b->end_ns);
	assert_int_equal(a->real_offset_ns, b->real_offset_ns);
	assert_int_equal(a->boot_offset_ns, b->boot_offset_ns);
	assert_int_equal(a->merged_from, b->merged_from);
	assert_int_equal(a->switch_ins, b->switch_ins);
	assert_memory_equal(a->lost, b->lost, sizeof(a->lost));
	assert_int_equal(a->n_images, b->n_images);
	assert_memory_equal(a->images, b->images, a->n_images * sizeof(*a->images));
	assert_int_equal(a->n_rows, b->n_rows);
	for (i = 0; i < a->n_rows; i++)
		assert_memory_equal(&a->rows[i], &b->rows[i], sizeof(a->rows[i]));
	assert_int_equal(a->n_buckets, b->n_buckets);
	assert_memory_equal(a->buckets, b->buckets, a->n_buckets * sizeof(*a->buckets));
	assert_int_equal(a->n_spans, b->n_spans);
	assert_memory_equal(a->spans, b->spans, a->n_spans * sizeof(*a->spans));
	assert_int_equal(a->n_opens, b->n_opens);
	assert_memory_equal(a->opens, b->opens, a->n_opens * sizeof(*a->opens));
	assert_int_equal(a->n_samples, b->n_samples);
	assert_memory_equal(a->samples, b->samples, a->n_samples * sizeof(*a->samples));
	assert_int_equal(a->session, b->session);
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->sampled, b->sampled);
	assert_int_equal(a->bytes, b->bytes);
	assert_memory_equal(&a->cost, &b->cost, sizeof(a->cost));
	assert_int_equal(a->pressure.state, b->pressure.state);
	assert_int_equal(a->pressure.ns, b->pressure.ns);
	assert_memory_equal(&a->pressure.stalled, &b->pressure.stalled, sizeof(struct pressure));
	assert_int_equal(a->pressure.n_units, b->pressure.n_units);
	for (i = 0; i < a->pressure.n_units; i++)
		assert_string_equal(a->pressure.units[i].path, b->pressure.units[i].path);
	assert_int_equal(a->spawns.ns, b->spawns.ns);
	assert_int_equal(a->spawns.n, b->spawns.n);
	assert_memory_equal(a->spawns.v, b->spawns.v, a->spawns.n * sizeof(*a->spawns.v));
	assert_int_equal(a->held.n, b->held.n);
	assert_memory_equal(a->held.v, b->held.v, a->held.n * sizeof(*a->held.v));
}

static void test_round_trip(void **state)
{
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct window *window = window_make(), *back = NULL;
	unsigned int refs = stacks[0].refs;

	assert_int_equal(store_blob_encode(window, window->run, &names, &bytes), 0);
	assert_int_equal(store_blob_decode(bytes.data, bytes.n, &names, &back), 0);
	assert_same(window, back);
	window_unref(back);
	assert_int_equal(stacks[0].refs, refs);
	window_unref(window);
}

/* Returns the number of sections of the encoded window. */
static size_t sections_count(const struct window *window)
{
	_cleanup_(bytes_fini) struct bytes packed = {}, raw = {};
	struct bytes_reader in;
	size_t n = 0;

	assert_int_equal(store_blob_encode(window, window->run, &names, &packed), 0);
	raw.n = ZSTD_getFrameContentSize(packed.data, packed.n);
	raw.data = malloc(raw.n);
	assert_int_equal(ZSTD_decompress(raw.data, raw.n, packed.data, packed.n), raw.n);
	in = (struct bytes_reader){ .at = raw.data, .end = raw.data + raw.n };
	for (; bytes_left(&in); n++) {
		bytes_get_u64(&in);
		bytes_get(&in, bytes_get_u64(&in));
	}
	assert_false(in.is_failed);
	return n;
}

/* The section about folded rows is written only where there are such rows. */
static void test_folded(void **state)
{
	static const int32_t pids[] = { 1, 4194303, 7, 8 };
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct window *window = window_make(), *back = NULL;
	size_t sections = sections_count(window);
	struct window_member *member;
	size_t i;

	window->images[3].folded = 7;
	window->images[3].started = 6;
	window->rows[2].processes = 7;
	window->opens[0].whole_ns = UINT64_MAX;
	window->opens[0].count = 3;
	window->samples[0].started = UINT32_MAX;
	for (i = 0; i < ARRAY_SIZE(pids); i++) {
		member = window_add_member(window);
		*member = (struct window_member){ .image = 2 + (uint32_t)i / 2, .pid = pids[i] };
	}
	window->folded = (struct window_folded){ 1, 2, 3, UINT64_MAX, 5 };
	window_seal(window);
	assert_int_equal(sections_count(window), sections + 1);

	assert_int_equal(store_blob_encode(window, window->run, &names, &bytes), 0);
	assert_int_equal(store_blob_decode(bytes.data, bytes.n, &names, &back), 0);
	assert_same(window, back);
	assert_memory_equal(&window->folded, &back->folded, sizeof(back->folded));
	assert_int_equal(back->n_members, ARRAY_SIZE(pids));
	assert_memory_equal(window->members, back->members, sizeof(struct window_member) * 4);
	window_unref(back);
	window_unref(window);
}

/* What was sampled takes room only where something was. */
static void test_sampled(void **state)
{
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct window *window = window_make(), *back = NULL;
	size_t sections = sections_count(window);

	window->sample_below_ns = 180 * NS_PER_US;
	window->images[3].estimate = (struct window_estimate){ 1, UINT64_MAX, 3 };
	window->rows[2].state = STATE_SAMPLED | 1;
	assert_int_equal(sections_count(window), sections + 1);
	assert_int_equal(store_blob_encode(window, window->run, &names, &bytes), 0);
	assert_int_equal(store_blob_decode(bytes.data, bytes.n, &names, &back), 0);
	assert_same(window, back);
	assert_int_equal(back->sample_below_ns, 180 * NS_PER_US);
	window_unref(back);
	window_unref(window);
}

/* What the budget allowed and what was shed, where it is known. */
static void test_budget(void **state)
{
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct window *window = window_make(), *back = NULL;
	size_t sections;

	window->cost = (struct window_cost){ .ns = 5 * NS_PER_S, .cpu_ns = 1, .bpf_ns = 2 };
	sections = sections_count(window);
	window->cost.known_ns = 4 * NS_PER_S;
	window->cost.limited_ns = 3 * NS_PER_S;
	window->cost.budget_ns = 2 * NS_PER_S;
	window->cost.beyond_ns = NS_PER_S;
	window->cost.braked = UINT64_MAX;
	window->cost.brake_below_ns = 25 * NS_PER_MS;
	window->cost.shed_ns[0] = 1;
	window->cost.shed_ns[WINDOW_SHED_N - 1] = 5 * NS_PER_S;
	assert_int_equal(sections_count(window), sections + 1);
	assert_int_equal(store_blob_encode(window, window->run, &names, &bytes), 0);
	assert_int_equal(store_blob_decode(bytes.data, bytes.n, &names, &back), 0);
	assert_memory_equal(&window->cost, &back->cost, sizeof(back->cost));
	window_unref(back);
	window_unref(window);
}

/* Windows of probes that do not count processes have no section about them. */
static void test_no_spawns(void **state)
{
	struct window *window = window_make();
	size_t sections = sections_count(window);

	window->spawns.ns = 0;
	assert_int_equal(sections_count(window), sections - 1);
	window_unref(window);
}

/* Windows without long waits have no section about them. */
static void test_no_held(void **state)
{
	struct window *window = window_make();
	size_t sections = sections_count(window);

	window_held_fini(&window->held);
	assert_int_equal(sections_count(window), sections - 1);
	window_unref(window);
}

/* Decompresses a window's bytes, and compresses bytes again. */
static void unpack(const struct bytes *packed, struct bytes *raw)
{
	raw->capacity = raw->n = ZSTD_getFrameContentSize(packed->data, packed->n);
	raw->data = malloc(raw->capacity);
	assert_int_equal(ZSTD_decompress(raw->data, raw->n, packed->data, packed->n), raw->n);
}

static void pack(const struct bytes *raw, size_t n, struct bytes *packed)
{
	bytes_fini(packed);
	packed->capacity = ZSTD_compressBound(n);
	packed->data = malloc(packed->capacity);
	packed->n = ZSTD_compress(packed->data, packed->capacity, raw->data, n, 1);
}

static bool wants_none(const void *userdata, const struct window *window)
{
	assert_int_equal(window->n_images, IMAGES);
	assert_int_equal(window->owners[window->images[0].owner].id.pid, NO_PID);
	return false;
}

/* A query gets owners in place of processes, and no rows of a window that it does not want. */
static void test_owners(void **state)
{
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct window *window = window_make(), *back = NULL;
	struct store_names query = { .stack = stack_of, .is_query = true };
	const struct window_owner *owner;
	size_t i;

	assert_int_equal(store_blob_encode(window, window->run, &names, &bytes), 0);
	assert_int_equal(store_blob_decode(bytes.data, bytes.n, &query, &back), 0);
	assert_int_equal(back->n_owners, 1);
	owner = &back->owners[0];
	assert_int_equal(owner->id.pid, NO_PID);
	assert_int_equal(owner->id.start_boot_ns, 5);
	assert_int_equal(owner->number, 3);
	assert_string_equal(owner->comm, "program");
	assert_null(owner->cgroup);
	assert_false(owner->is_kernel || owner->is_folded);
	assert_int_equal(back->n_images, IMAGES);
	for (i = 0; i < IMAGES; i++) {
		assert_null(back->images[i].process);
		assert_int_equal(back->images[i].owner, 0);
		assert_int_equal(back->images[i].uid, window->images[i].uid);
	}
	assert_int_equal(back->n_rows, window->n_rows);
	for (i = 0; i < back->n_rows; i++)
		assert_memory_equal(&back->rows[i], &window->rows[i], sizeof(back->rows[i]));
	window_unref(back);

	query.wants = wants_none;
	assert_int_equal(store_blob_decode(bytes.data, bytes.n, &query, &back), 0);
	assert_int_equal(back->n_images, IMAGES);
	assert_int_equal(back->n_rows + back->n_spans + back->n_opens + back->n_samples, 0);
	assert_int_equal(back->end_ns, window->end_ns);
	window_unref(back);
	window_unref(window);
}

/* Owners of several kinds: each bit has its own meaning. */
static void test_kinds_of_owners(void **state)
{
	static const struct {
		bool is_kernel;
		bool is_folded;
	} kinds[] = { { false, false }, { true, false }, { false, true }, { true, true } };
	struct store_names query = { .stack = stack_of, .is_query = true };
	struct process_table *stored;
	size_t i;

	assert_int_equal(process_table_new_stored(&stored), 0);
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct process_info info = { .id = { .pid = NO_PID, .start_boot_ns = 5 },
						   .comm = "program",
						   .is_kernel = kinds[i].is_kernel,
						   .is_folded = kinds[i].is_folded };
		_cleanup_(bytes_fini) struct bytes bytes = {};
		struct window *window = window_new(), *back = NULL;
		struct process *known = process;

		process = window_add_image(window)->process =
			process_table_add_stored(stored, &info);
		window->end_ns = NS_PER_S;
		window_seal(window);
		assert_int_equal(store_blob_encode(window, window->run, &names, &bytes), 0);
		process = known;
		assert_int_equal(store_blob_decode(bytes.data, bytes.n, &query, &back), 0);
		assert_int_equal(back->n_owners, 1);
		assert_int_equal(back->owners[0].is_kernel, kinds[i].is_kernel);
		assert_int_equal(back->owners[0].is_folded, kinds[i].is_folded);
		window_unref(back);
		window_unref(window);
	}
	process_table_free(stored);
}

static void test_an_empty_window(void **state)
{
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct window *window = window_new(), *back = NULL;

	window->end_ns = 1;
	window_seal(window);
	assert_int_equal(store_blob_encode(window, window->run, &names, &bytes), 0);
	assert_int_equal(store_blob_decode(bytes.data, bytes.n, &names, &back), 0);
	assert_same(window, back);
	window_unref(back);
	window_unref(window);
}

static int decode(const struct bytes *packed)
{
	struct window *window = NULL;
	int r = store_blob_decode(packed->data, packed->n, &names, &window);

	assert_true(r == 0 || r == -EBADMSG || r == -ENOMEM);
	assert_true(!r == !!window);
	window_unref(window);
	return r;
}

static void test_an_unknown_section_is_damage(void **state)
{
	_cleanup_(bytes_fini) struct bytes packed = {}, raw = {};
	struct window *window = window_make();

	assert_int_equal(store_blob_encode(window, window->run, &names, &packed), 0);
	window_unref(window);
	unpack(&packed, &raw);
	bytes_put_u64(&raw, 12345);
	bytes_put_u64(&raw, 3);
	bytes_put(&raw, "xyz", 3);
	pack(&raw, raw.n, &packed);
	assert_int_equal(decode(&packed), -EBADMSG);
}

/* A window whose processes are not described is none that a query can read. */
static void test_no_owners(void **state)
{
	_cleanup_(bytes_fini) struct bytes packed = {}, raw = {}, bad = {};
	const struct store_names query = { .stack = stack_of, .is_query = true };
	struct window *window = window_make(), *back = NULL;
	struct bytes_reader in;

	assert_int_equal(store_blob_encode(window, window->run, &names, &packed), 0);
	window_unref(window);
	unpack(&packed, &raw);
	in = (struct bytes_reader){ .at = raw.data, .end = raw.data + raw.n };
	while (bytes_left(&in)) {
		const uint8_t *begin = in.at;
		uint64_t tag = bytes_get_u64(&in);

		bytes_get(&in, bytes_get_u64(&in));
		if (tag != TAG_OWNERS)
			bytes_put(&bad, begin, (size_t)(in.at - begin));
	}
	assert_true(bad.n < raw.n);
	pack(&bad, bad.n, &packed);
	assert_int_equal(store_blob_decode(packed.data, packed.n, &query, &back), -EBADMSG);
	assert_int_equal(decode(&packed), 0);
}

static void test_an_unknown_loss_counts_as_another(void **state)
{
	_cleanup_(bytes_fini) struct bytes packed = {}, raw = {};
	struct window *window = window_make(), *back = NULL;
	const char *name = window_loss_name(0);
	char *found;

	assert_int_equal(window->lost[0], 1);
	assert_int_equal(store_blob_encode(window, window->run, &names, &packed), 0);
	unpack(&packed, &raw);
	found = memmem(raw.data, raw.n, name, strlen(name));
	assert_non_null(found);
	found[0] ^= 1;
	pack(&raw, raw.n, &packed);
	assert_int_equal(store_blob_decode(packed.data, packed.n, &names, &back), 0);
	assert_int_equal(back->lost[0], 0);
	assert_int_equal(back->lost[WINDOW_LOST_OTHER], window->lost[WINDOW_LOST_OTHER] + 1);
	window_unref(back);
	window_unref(window);
}

/* Each bit is changed, before compression and after it; and each length is tried. */
static void test_bad_bytes(void **state)
{
	_cleanup_(bytes_fini) struct bytes packed = {}, raw = {}, bad = {};
	struct window *window = window_make();
	size_t i, bit;

	assert_int_equal(store_blob_encode(window, window->run, &names, &packed), 0);
	window_unref(window);
	unpack(&packed, &raw);
	for (i = 0; i < packed.n * 8; i++) {
		packed.data[i / 8] ^= (uint8_t)(1 << i % 8);
		decode(&packed);
		packed.data[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (i = 0; i < raw.n; i++) {
		for (bit = 0; bit < 8; bit++) {
			raw.data[i] ^= (uint8_t)(1 << bit);
			pack(&raw, raw.n, &bad);
			decode(&bad);
			raw.data[i] ^= (uint8_t)(1 << bit);
		}
	}
	for (i = 0; i < raw.n; i++) {
		pack(&raw, i, &bad);
		decode(&bad);
	}
	for (i = 0; i < packed.n; i++) {
		bad.n = i;
		memcpy(bad.data, packed.data, i < bad.capacity ? i : bad.capacity);
		assert_int_equal(decode(&bad), -EBADMSG);
	}
	assert_int_equal(decode(&packed), 0);
}

static void test_numbers(void **state)
{
	static const int64_t values[] = { 0, -1, 1, 63, -64, 64, INT64_MAX, INT64_MIN };
	_cleanup_(bytes_fini) struct bytes bytes = {};
	struct bytes_reader reader;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(values); i++)
		bytes_put_i64(&bytes, values[i]);
	bytes_put_u64(&bytes, UINT64_MAX);
	bytes_put_string(&bytes, NULL);
	bytes_put_string(&bytes, "");
	reader = (struct bytes_reader){ .at = bytes.data, .end = bytes.data + bytes.n };
	for (i = 0; i < ARRAY_SIZE(values); i++)
		assert_int_equal(bytes_get_i64(&reader), values[i]);
	assert_true(bytes_get_u64(&reader) == UINT64_MAX);
	assert_null(bytes_get_string(&reader));
	free(bytes_get_string(&reader));
	assert_false(reader.is_failed);
	assert_int_equal(bytes_get_u64(&reader), 0);
	assert_true(reader.is_failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_folded),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_budget),
		cmocka_unit_test(test_no_spawns),
		cmocka_unit_test(test_no_held),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_kinds_of_owners),
		cmocka_unit_test(test_no_owners),
		cmocka_unit_test(test_an_empty_window),
		cmocka_unit_test(test_an_unknown_section_is_damage),
		cmocka_unit_test(test_an_unknown_loss_counts_as_another),
		cmocka_unit_test(test_bad_bytes),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
