/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Folds windows that have too many rows: no time, count or loss may get lost or be counted twice.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "daemon/base/hash.h"
#include "daemon/window/fold.h"

#define US NS_PER_US

enum {
	PIDS_FIRST = 0x3f000000, /* above any pid_max */
	PIDS = 400,
	COMMS = 7,
	UNITS = 3,
	STACKS = 24,
	TALLIES = 4096,
};

static const uint32_t states[] = {
	1, 2, 0x102, STATE_PREEMPTED, 0x402, 1 | STATE_SEEDED, 1 | STATE_SAMPLED
};
static struct process_table *processes;
static struct process *process[PIDS + 1]; /* the last one is the kernel's idle process */
static struct stack stacks[STACKS];
static uint64_t seed;
static size_t n_states, n_stacks; /* how many of the states and stacks the waits have */

/* Returns a number below n; the numbers are the same in each run of the test. */
static uint64_t random_below(uint64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % n;
}

static struct process *process_make(uint32_t i)
{
	char exe[32], cgroup[32];
	struct process_info info = {
		.id = { .pid = PIDS_FIRST + (int32_t)i, .start_boot_ns = 1 + i },
		.is_kernel = i % 50 == 49,
		.exe = exe,
		.cgroup = cgroup,
	};

	/* Half of the processes start within the windows of this test. */
	if (i % 2)
		info.id.start_boot_ns += 1000 * NS_PER_S;
	snprintf(info.comm, sizeof(info.comm), "comm%u", i % COMMS);
	snprintf(exe, sizeof(exe), "/bin/exe%u", i % COMMS);
	snprintf(cgroup, sizeof(cgroup), "/unit%u.service", i % UNITS);
	if (i == PIDS)
		info = (struct process_info){ .comm = "idle", .is_kernel = true };
	return process_table_add_stored(processes, &info);
}

static int set_up(void **state)
{
	uint32_t i;

	seed = 1;
	n_states = ARRAY_SIZE(states);
	n_stacks = STACKS;
	if (process_table_new_stored(&processes))
		return -1;
	for (i = 0; i <= PIDS; i++)
		process[i] = process_make(i);
	for (i = 0; i < STACKS; i++) {
		stacks[i] = (struct stack){ .id = 100 + i, .raw_id = 1000 + i, .refs = 1 };
		/* Stacks of different processes are equal if their places are. */
		stacks[i].place_id = 100 + i / 2;
		stacks[i].functions_id = 100 + i / 4;
		stacks[i].is_idle = i % 12 < 2;
	}
	return 0;
}

static int tear_down(void **state)
{
	size_t i;

	for (i = 0; i < STACKS; i++)
		assert_int_equal(stacks[i].refs, 1);
	for (i = 0; i <= PIDS; i++)
		process_unref(process[i]);
	process_table_free(processes);
	return 0;
}

static struct stack *stack_any(void)
{
	return stack_ref(random_below(9) ? &stacks[random_below(n_stacks)] : NULL);
}

static void images_make(struct window *window)
{
	struct window_image *image;
	uint32_t i;

	for (i = 0; i <= PIDS; i++) {
		image = window_add_image(window);
		image->process = process_ref(process[i]);
		image->uid = image->start_boot_ns = 77 + i;
		image->tid = PIDS_FIRST + (int32_t)i;
		snprintf(image->comm, sizeof(image->comm), "comm%u", i % COMMS);
		image->sums = (struct thread_sums){
			.on_ns = random_below(1000),
			.switches = 3,
			.short_count = i,
			.blocked_ns = 100,
			.runnable_ns = 7,
			.throttled_ns = 2,
			.short_blocked_ns = 50,
			.short_runnable_ns = 1,
		};
		image->estimate = (struct window_estimate){ i, random_below(99), 5 };
	}
}

/* True if an earlier row has the same key: in a window, each key has one row. */
static bool has_row(const struct window *window, const struct window_row *row)
{
	const struct window_row *at;

	for (at = window->rows; at != row; at++)
		if (at->image == row->image && at->state == row->state &&
		    at->kernel == row->kernel && at->user == row->user)
			return true;
	return false;
}

static bool has_sample(const struct window *window, const struct window_sample *sample)
{
	const struct window_sample *at;

	for (at = window->samples; at != sample; at++)
		if (at->image == sample->image && at->kernel == sample->kernel &&
		    at->user == sample->user)
			return true;
	return false;
}

static bool has_io(const struct window *window, const struct window_io *io)
{
	const struct window_io *at;

	for (at = window->ios; at != io; at++)
		if (at->image == io->image && at->layer == io->layer && at->dev == io->dev &&
		    at->is_slow == io->is_slow && at->user == io->user)
			return true;
	return false;
}

static void row_make(struct window *window, uint64_t most_ns)
{
	uint32_t buckets[WAIT_BUCKETS] = {};
	struct window_row *row = window_add_row(window);

	row->state = states[random_below(n_states)];
	row->blocked_ns = row->state & STATE_PREEMPTED ? 0 : random_below(most_ns);
	row->runnable_ns = random_below(most_ns);
	row->throttled_ns = row->runnable_ns / 3;
	row->count = 1 + random_below(9);
	row->max_ns = row->blocked_ns;
	row->max_end_ns = window->start_ns + (int64_t)random_below(5 * NS_PER_S);
	row->culprits.ran_before = (struct culprit){ .ns = row->runnable_ns, .tid = 7 };
	row->culprits.held_up_by = (struct culprit){ .ns = row->blocked_ns, .tid = 9 };
	do {
		stack_unref(TAKE(row->kernel));
		stack_unref(TAKE(row->user));
		row->image = (uint32_t)random_below(PIDS + 1);
		row->kernel = stack_any();
		row->user = stack_any();
	} while (has_row(window, row));
	buckets[random_below(WAIT_BUCKETS)] = (uint32_t)row->count;
	assert_int_equal(window_row_set_buckets(window, row, buckets), 0);
}

static void waits_make(struct window *window, size_t n)
{
	int64_t start_ns, length_ns;
	struct window_span *span;
	struct window_open *open;
	size_t i;

	for (i = 0; i < n; i++) {
		start_ns = window->start_ns - (int64_t)random_below(9 * NS_PER_S);
		length_ns = window->start_ns - start_ns + (int64_t)random_below(5 * NS_PER_S);
		span = window_add_span(window);
		*span = (struct window_span){
			.image = (uint32_t)random_below(PIDS),
			.state = states[random_below(n_states)],
			.kernel = stack_any(),
			.user = stack_any(),
			.start_ns = start_ns,
			.wake_ns = start_ns + (int64_t)random_below((uint64_t)length_ns),
			.end_ns = start_ns + length_ns,
			.throttled_ns = random_below(US),
		};
		span->culprits.ran_before =
			(struct culprit){ .ns = US + span->throttled_ns, .tid = 8 };
		span->culprits.held_up_by = (struct culprit){ .ns = span->throttled_ns, .tid = 6 };
		open = window_add_open(window);
		*open = (struct window_open){
			.image = (uint32_t)random_below(PIDS),
			.state = states[random_below(n_states)],
			.kernel = stack_any(),
			.user = stack_any(),
			.start_ns = window->start_ns + (int64_t)(random_below(9 * NS_PER_S)) -
				    5 * NS_PER_S,
			.wake_ns = INT64_MAX,
		};
		if (random_below(5))
			continue;
		open->wake_ns = window->end_ns - (int64_t)random_below(NS_PER_S);
		open->throttled_ns = random_below(US);
	}
}

static void counts_make(struct window *window, size_t n)
{
	struct window_sample *sample;
	uint64_t buckets[IO_BUCKETS_N] = {};
	struct window_io *io;
	size_t i;

	for (i = 0; i < n; i++) {
		sample = window_add_sample(window);
		*sample = (struct window_sample){
			.count = 1 + random_below(5),
			.kernel = stack_any(),
			.user = stack_any(),
		};
		do
			sample->image = (uint32_t)random_below(PIDS + 1);
		while (has_sample(window, sample));
		sample->on_ns = sample->count * 10;
		io = window_add_io(window);
		*io = (struct window_io){
			.op = 1,
			.dev = (uint32_t)random_below(2),
			.count = 1 + random_below(5),
			.total_ns = random_below(US),
			.bytes = random_below(US),
			.is_slow = random_below(2) ? 0 : 1 | (uint32_t)random_below(2) << 1,
			.max_ns = random_below(US),
		};
		if (io->is_slow)
			io->user = stack_any();
		do {
			io->image = (uint32_t)random_below(PIDS + 1);
			io->layer = (uint32_t)random_below(3);
		} while (has_io(window, io));
		buckets[5] = io->count;
		assert_int_equal(window_io_set_buckets(window, io, buckets), 0);
	}
}

static struct window *window_make(size_t rows, size_t others)
{
	struct window *window = window_new();
	size_t i;

	window->kind = PROBE_OFFCPU;
	window->seq = 9;
	window->start_ns = 1000 * NS_PER_S;
	window->end_ns = 1005 * NS_PER_S;
	window->lost[2] = 3;
	window->lost_ns = 4;
	window->switch_ins = 5;
	images_make(window);
	for (i = 0; i < rows; i++)
		row_make(window, i % 40 ? US : 900 * US);
	waits_make(window, others);
	counts_make(window, others);
	window_seal(window);
	return window;
}

/* Returns how many folded entries stand for one process that keeps a sum of its own. */
static size_t own_count(const struct window *window)
{
	struct process_info info;
	size_t n = 0, i;

	for (i = 0; i < window->n_images; i++) {
		process_info(window->images[i].process, &info);
		n += window->images[i].folded && !info.is_folded;
	}
	return n;
}

/* The sums of what has the same key. */
struct tally {
	uint64_t key;
	uint64_t sums[12];
	struct culprits culprits; /* the longest one */
};

struct tallies {
	struct tally v[TALLIES];
	size_t n;
};

static struct tally *tally(struct tallies *tallies, uint64_t key, const uint64_t *sums, size_t n)
{
	size_t i, k;

	for (i = 0; i < tallies->n && tallies->v[i].key != key; i++)
		;
	assert_true(i < TALLIES);
	tallies->v[i].key = key;
	tallies->n += i == tallies->n;
	for (k = 0; k < n; k++)
		tallies->v[i].sums[k] += sums[k];
	return &tallies->v[i];
}

/* Returns a key of the unit; if it is asked for, of the comm, too. */
static uint64_t image_key(const struct window *window, uint32_t index, bool with_comm)
{
	const struct window_image *image = &window->images[index];
	uint64_t key = HASH64_SEED;
	struct process_info info;

	process_info(image->process, &info);
	if (info.cgroup)
		key = hash64_string(key, info.cgroup);
	key = hash64(key, &info.is_kernel, sizeof(bool));
	return with_comm ? hash64_string(key, image->comm) : key;
}

enum { UNIT_AND_STATE, COMM_AND_STACK };

static uint64_t wait_key(const struct window *window, uint32_t image, uint32_t state,
			 const struct stack *kernel, const struct stack *user, int by)
{
	uint64_t words[] = { image_key(window, image, by == COMM_AND_STACK),
			     state & ~(STATE_SEEDED | STATE_IDLE), stack_place(kernel),
			     stack_place(user) };

	return hash64(HASH64_SEED, words, by == COMM_AND_STACK ? sizeof(words) : 16);
}

static uint64_t part(const struct window *window, int64_t from_ns, int64_t to_ns)
{
	return window_overlap_ns(from_ns, to_ns, window->start_ns, window->end_ns);
}

static uint64_t throttled(const struct window *window, int64_t wake_ns, uint64_t throttled_ns)
{
	return throttled_ns ? part(window, wake_ns, wake_ns + (int64_t)throttled_ns) : 0;
}

/*
 * Adds up count, blocked, runnable and throttled time, and the histogram, as an answer does. Keeps
 * who ran before the longest wait for a CPU.
 */
static void waits_tally(const struct window *window, int by, struct tallies *out)
{
	struct tally *sum;
	size_t i, k;

	for (i = 0; i < window->n_rows; i++) {
		const struct window_row *row = &window->rows[i];
		uint64_t buckets[WAIT_BUCKETS] = {}, in_buckets = 0;

		window_row_add_buckets(window, row, buckets);
		for (k = 0; k < WAIT_BUCKETS; k++)
			in_buckets += buckets[k] * (k + 1);
		sum = tally(out,
			    wait_key(window, row->image, row->state, row->kernel, row->user, by),
			    (uint64_t[]){ row->count, row->blocked_ns, row->runnable_ns,
					  row->throttled_ns, in_buckets },
			    5);
		culprits_add(&sum->culprits, &row->culprits);
	}
	for (i = 0; i < window->n_spans; i++) {
		const struct window_span *span = &window->spans[i];

		sum = tally(
			out,
			wait_key(window, span->image, span->state, span->kernel, span->user, by),
			(uint64_t[]){ 1, part(window, span->start_ns, span->wake_ns),
				      part(window, span->wake_ns, span->end_ns),
				      throttled(window, span->wake_ns, span->throttled_ns),
				      1 + wait_bucket((uint64_t)(span->end_ns - span->start_ns)) },
			5);
		culprits_add(&sum->culprits, &span->culprits);
	}
	for (i = 0; i < window->n_opens; i++) {
		const struct window_open *open = &window->opens[i];
		uint64_t number = open->count ? open->count : 1;
		uint64_t whole_ns =
			open->count ? open->whole_ns : (uint64_t)(window->end_ns - open->start_ns);
		uint64_t key =
			wait_key(window, open->image, open->state, open->kernel, open->user, by);

		tally(out, key, (uint64_t[]){ 0, 0, 0, 0, 0, number, whole_ns }, 7);
		if (open->count)
			continue;
		tally(out, key,
		      (uint64_t[]){ 0, part(window, open->start_ns, open->wake_ns),
				    part(window, open->wake_ns, window->end_ns),
				    throttled(window, open->wake_ns, open->throttled_ns) },
		      4);
	}
}

static void counts_tally(const struct window *window, struct tallies *out)
{
	size_t i;

	for (i = 0; i < window->n_samples; i++)
		tally(out, image_key(window, window->samples[i].image, false),
		      (uint64_t[]){ window->samples[i].count, window->samples[i].on_ns }, 2);
	for (i = 0; i < window->n_ios; i++) {
		const struct window_io *io = &window->ios[i];
		uint64_t words[] = { image_key(window, io->image, false), io->layer, io->dev,
				     io->is_slow, io->op };
		uint64_t buckets[IO_BUCKETS_N] = {};

		window_io_add_buckets(window, io, buckets);
		tally(out, hash64(HASH64_SEED, words, sizeof(words)),
		      (uint64_t[]){ io->count, io->total_ns, io->bytes, buckets[5] }, 4);
	}
	for (i = 0; i < window->n_images; i++) {
		const struct thread_sums *s = &window->images[i].sums;

		tally(out, image_key(window, (uint32_t)i, false) + 1,
		      (uint64_t[]){ s->on_ns, s->blocked_ns, s->runnable_ns, s->throttled_ns,
				    s->switches, s->short_count, s->short_blocked_ns,
				    s->short_runnable_ns },
		      8);
		tally(out, image_key(window, (uint32_t)i, false) + 2,
		      (uint64_t[]){ window->images[i].estimate.count,
				    window->images[i].estimate.blocked_ns,
				    window->images[i].estimate.runnable_ns },
		      3);
	}
}

static int tally_by_key(const void *x, const void *y)
{
	const struct tally *a = x, *b = y;

	return a->key < b->key ? -1 : a->key > b->key;
}

static int tally_by_time(const void *x, const void *y)
{
	const struct tally *a = x, *b = y;
	uint64_t p = a->sums[1] + a->sums[2], q = b->sums[1] + b->sums[2];

	return p != q ? (p > q ? -1 : 1) : tally_by_key(x, y);
}

static void tallies_make(const struct window *window, struct tallies *tallies)
{
	memset(tallies, 0, sizeof(*tallies));
	waits_tally(window, UNIT_AND_STATE, tallies);
	counts_tally(window, tallies);
	qsort(tallies->v, tallies->n, sizeof(tallies->v[0]), tally_by_key);
}

/* All sums by unit and state are the same, and so is what belongs to no row. */
static void assert_conserved(const struct window *a, const struct window *b)
{
	static struct tallies before, after;

	tallies_make(a, &before);
	tallies_make(b, &after);
	assert_int_equal(before.n, after.n);
	assert_memory_equal(before.v, after.v, before.n * sizeof(before.v[0]));
	assert_memory_equal(a->lost, b->lost, sizeof(a->lost));
	assert_int_equal(a->lost_ns, b->lost_ns);
	assert_int_equal(a->switch_ins, b->switch_ins);
	assert_int_equal(a->seq, b->seq);
	assert_int_equal(a->start_ns, b->start_ns);
	assert_int_equal(a->end_ns, b->end_ns);
}

#define ASSERT_SAME_ARRAY(a, b, member)                     \
	assert_int_equal((a)->n_##member, (b)->n_##member); \
	if ((a)->n_##member)                                \
	assert_memory_equal((a)->member, (b)->member, (a)->n_##member * sizeof(*(a)->member))

static void assert_same_window(const struct window *a, const struct window *b)
{
	ASSERT_SAME_ARRAY(a, b, images);
	ASSERT_SAME_ARRAY(a, b, rows);
	ASSERT_SAME_ARRAY(a, b, buckets);
	ASSERT_SAME_ARRAY(a, b, spans);
	ASSERT_SAME_ARRAY(a, b, opens);
	ASSERT_SAME_ARRAY(a, b, samples);
	ASSERT_SAME_ARRAY(a, b, ios);
	ASSERT_SAME_ARRAY(a, b, io_buckets);
	ASSERT_SAME_ARRAY(a, b, members);
	assert_memory_equal(&a->folded, &b->folded, sizeof(a->folded));
}

static struct window *fold_to(struct window *window, const struct window_fold_limits *limits)
{
	struct window *out = NULL;

	assert_int_equal(window_fold(window, limits, &out), 0);
	return out;
}

static struct window *fold_images(struct window *window, size_t max_rows, size_t max_folded,
				  size_t max_images)
{
	return fold_to(window, &(struct window_fold_limits){ .max_rows = max_rows,
							     .max_folded = max_folded,
							     .max_images = max_images });
}

/* Folds the window to `rows` rows, as many summed ones, and `sums` sums of each kind. */
static struct window *fold_sums(struct window *window, size_t rows, size_t sums)
{
	return fold_to(window, &(struct window_fold_limits){
				       .max_rows = rows, .max_folded = rows, .max_sums = sums });
}

static struct window *fold(struct window *window, size_t max_rows, size_t max_folded)
{
	return fold_images(window, max_rows, max_folded, 0);
}

static void test_a_small_window_stays(void **state)
{
	struct window *window = window_make(50, 20), *out = fold(window, 500, 500);

	assert_ptr_equal(window, out);
	window_unref(out);
	out = fold(window, 0, 0);
	assert_ptr_equal(window, out);
	window_unref(out);
	window_unref(window);
}

static void test_sums_are_conserved(void **state)
{
	static const size_t limits[][2] = { { 200, 100 }, { 50, 400 }, { 1, 1 }, { 30, 0 } };
	struct window *window = window_make(3000, 600), *out;
	size_t i, k, images;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		out = fold(window, limits[i][0], limits[i][1]);
		assert_conserved(window, out);
		assert_true(out->n_rows <= limits[i][0] + limits[i][1] + 10 * UNITS * 2 * 2);
		assert_true(out->n_spans <= limits[i][0]);
		assert_true(out->folded.rows > 0);
		for (k = images = 0; k < out->n_images; k++)
			images += !out->images[k].folded;
		/* Those of rows that stay, and the kernel's idle process. */
		assert_true(images <= 5 * limits[i][0] + 1);
		window_unref(out);
	}
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		out = fold_sums(window, limits[i][0], 25);
		assert_conserved(window, out);
		assert_in_range(own_count(out), 1, 3 * 25);
		window_unref(out);
	}
	window_unref(window);
}

/* What stays and what is folded make up the whole; slow operations are in other rows, too. */
static void test_the_folded_time_counts_once(void **state)
{
	const struct window_fold_limits limits = { .max_rows = 20, .max_folded = 50 };
	struct window *window = window_new(), *out = NULL;
	uint64_t whole = 0, stays = 0;
	size_t i;

	window->kind = PROBE_IOLAT;
	images_make(window);
	counts_make(window, 600);
	window_seal(window);
	for (i = 0; i < window->n_samples; i++)
		whole += window->samples[i].on_ns;
	for (i = 0; i < window->n_ios; i++)
		whole += window->ios[i].is_slow ? 0 : window->ios[i].total_ns;
	assert_int_equal(window_fold(window, &limits, &out), 0);
	for (i = 0; i < out->n_samples; i++)
		stays += out->samples[i].processes ? 0 : out->samples[i].on_ns;
	for (i = 0; i < out->n_ios; i++)
		stays += out->ios[i].processes || out->ios[i].is_slow ? 0 : out->ios[i].total_ns;
	assert_true(stays > 0 && out->folded.ns > 0);
	assert_int_equal(stays + out->folded.ns, whole);
	window_unref(out);
	window_unref(window);
}

/* A window that is folded again, and that is folded again to less. */
static void test_folding_twice(void **state)
{
	struct window *window = window_make(3000, 600), *once, *twice;

	once = fold(window, 200, 100);
	twice = fold(once, 200, 100);
	assert_ptr_not_equal(once, twice);
	assert_same_window(once, twice);
	window_unref(twice);
	twice = fold(once, 60, 20);
	assert_true(twice->n_rows < once->n_rows / 2);
	assert_conserved(window, twice);
	assert_true(twice->folded.rows > once->folded.rows);
	assert_true(twice->folded.processes >= once->folded.processes);
	window_unref(twice);
	window_unref(once);
	/* Those whose sums stay are the same a second time. */
	once = fold_sums(window, 100, 25);
	twice = fold_sums(once, 100, 25);
	assert_same_window(once, twice);
	window_unref(twice);
	window_unref(once);
	window_unref(window);
}

/* Exchanges the places of two images, and of rows, spans and so on, at random. */
static void shuffle(struct window *window)
{
	struct window_image image;
	struct window_open open;
	struct window_span span;
	struct window_sample sample;
	size_t i, k;

#define SWAP(member, temporary)                        \
	for (i = window->n_##member - 1; i > 0; i--) { \
		k = random_below(i + 1);               \
		(temporary) = window->member[i];       \
		window->member[i] = window->member[k]; \
		window->member[k] = (temporary);       \
	}
	SWAP(opens, open)
	SWAP(spans, span)
	SWAP(samples, sample)
#undef SWAP
	for (i = window->n_images - 1; i > 0; i--) {
		uint32_t a = (uint32_t)i, b = (uint32_t)random_below(i + 1);

		image = window->images[a];
		window->images[a] = window->images[b];
		window->images[b] = image;
#define MOVE(member)                                                       \
	for (k = 0; k < window->n_##member; k++)                           \
		window->member[k].image = window->member[k].image == a ? b \
					  : window->member[k].image == b   \
						  ? a                      \
						  : window->member[k].image;
		MOVE(rows)
		MOVE(spans)
		MOVE(opens)
		MOVE(samples)
		MOVE(ios)
#undef MOVE
	}
}

static void test_the_order_does_not_matter(void **state)
{
	struct window *window = window_make(2000, 500), *a, *b;

	a = fold_sums(window, 100, 25);
	shuffle(window);
	b = fold_sums(window, 100, 25);
	assert_same_window(a, b);
	window_unref(a);
	window_unref(b);
	window_unref(window);
}

/* Returns the number of threads of the window, without the kernel's idle process. */
static size_t threads_count(const struct window *window)
{
	size_t n = 0, i;

	for (i = 0; i < window->n_images; i++)
		n += window->images[i].tid && !window->images[i].folded &&
		     window->images[i].process != process[PIDS];
	return n;
}

/*
 * Not more threads stay than the limit says. All sums are the same, and a second time nothing
 * changes. The threads with the most time stay, and the order has no influence.
 */
static void test_few_images(void **state)
{
	static const size_t limits[] = { 1, 20, 60 };
	struct window *window = window_make(3000, 600), *out, *again;
	size_t i, k;

	for (i = 0; i < window->n_rows; i++)
		if (window->rows[i].image == 7)
			window->rows[i].blocked_ns = 4 * NS_PER_S;
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		out = fold_images(window, 100, 100, limits[i]);
		assert_conserved(window, out);
		assert_in_range(threads_count(out), 1, limits[i]);
		for (k = 0; k < out->n_images && out->images[k].uid != 77 + 7; k++)
			;
		assert_true(k < out->n_images);
		again = fold_images(out, 100, 100, limits[i]);
		assert_same_window(out, again);
		window_unref(again);
		shuffle(window);
		again = fold_images(window, 100, 100, limits[i]);
		assert_same_window(out, again);
		window_unref(again);
		window_unref(out);
	}
	window_unref(window);
}

/*
 * The top 20 by comm and stack are those of the window before, with the same sums, however few
 * threads stay.
 */
static void assert_top_stays(size_t max_images)
{
	static struct tallies before, after;
	struct window *window, *out;
	size_t i;

	n_states = 2;
	n_stacks = 4;
	for (i = 0; i < STACKS; i++)
		stacks[i].is_idle = false;
	window = window_make(6000, 500);
	out = fold_images(window, 300, 300, max_images);

	memset(&before, 0, sizeof(before));
	memset(&after, 0, sizeof(after));
	waits_tally(window, COMM_AND_STACK, &before);
	waits_tally(out, COMM_AND_STACK, &after);
	qsort(before.v, before.n, sizeof(before.v[0]), tally_by_time);
	qsort(after.v, after.n, sizeof(after.v[0]), tally_by_time);
	/* The rest of a unit is larger than a row, but it has no stack. */
	for (i = 0; i < 20; i++) {
		size_t k;

		for (k = 0; k < after.n && after.v[k].key != before.v[i].key; k++)
			;
		assert_true(k < after.n);
		assert_memory_equal(before.v[i].sums, after.v[k].sums, 5 * sizeof(uint64_t));
	}
	window_unref(out);
	window_unref(window);
}

static void test_the_top_stays(void **state)
{
	assert_top_stays(0);
	assert_top_stays(30);
}

/* Waits that are not idle stay, though idle ones are longer; D comes first among equal ones. */
static void test_ranks(void **state)
{
	struct window *window = window_make(0, 0), *out;
	struct window_open *open;
	uint32_t i;

	for (i = 1; i <= 30; i++) {
		open = window_add_open(window);
		*open = (struct window_open){ .image = i, .state = 1, .wake_ns = INT64_MAX };
		open->start_ns = window->end_ns - (i % 3 ? 900 : 1) * US;
		open->state = i % 3 ? 1 : i % 2 ? 2 : 1;
		open->user = stack_ref(&stacks[i % 3 ? 0 : 5]);
		if (i % 11 == 0)
			open->state = 2;
	}
	out = fold(window, 7, 2);
	for (i = 0; i < 7; i++) {
		assert_int_equal(out->opens[i].count, 0);
		assert_true(out->opens[i].user != &stacks[0] || out->opens[i].state == 2);
	}
	/* Two of 900 us in state D, then three of the five in state D of 1 us. */
	for (i = 0; i < 7; i++)
		assert_int_equal(out->opens[i].state, 2);
	assert_int_equal(out->opens[0].start_ns, window->end_ns - 900 * US);
	assert_int_equal(out->opens[1].start_ns, window->end_ns - 900 * US);
	window_unref(out);
	window_unref(window);
}

/* Adds a row with a thread, a state and a stack of its own: a long one of unit 0, or one of unit 1.
 */
static void flood_row_make(struct window *window, size_t i, bool is_flood)
{
	struct window_row *row = window_add_row(window);

	row->image = (uint32_t)(is_flood ? i % 130 * UNITS : i % 60 * UNITS + 1);
	row->state = (uint32_t)(1 + 4 * (i / 130));
	row->count = 1;
	row->blocked_ns = (is_flood ? 3 * NS_PER_S : 1000) + i;
	row->user = stack_ref(&stacks[2 + i % 8]);
}

/* Returns how many rows of this control group have a stack. */
static size_t rows_of_unit(const struct window *window, const char *cgroup)
{
	struct process_info info;
	size_t n = 0, i;

	for (i = 0; i < window->n_rows; i++) {
		process_info(window->images[window->rows[i].image].process, &info);
		n += info.cgroup && !strcmp(info.cgroup, cgroup) && window->rows[i].user;
	}
	return n;
}

/*
 * A unit with very many long waits leaves the others rows with stacks, also if only few threads
 * stay. If the others want fewer, it gets what they leave.
 */
static void test_a_flood_leaves_room(void **state)
{
	static const size_t max_images[] = { 0, 40 };
	size_t i, k, others;

	for (others = 12; others <= 60; others += 48) {
		for (i = 0; i < ARRAY_SIZE(max_images); i++) {
			struct window *window = window_make(0, 0), *out;

			for (k = 0; k < 1000 + others; k++)
				flood_row_make(window, k, k < 1000);
			out = fold_images(window, 40, 40, max_images[i]);
			assert_conserved(window, out);
			assert_true(rows_of_unit(out, "/unit1.service") >= 12);
			assert_true(rows_of_unit(out, "/unit0.service") >= 60);
			assert_true(out->n_rows <= 80 + 10 * UNITS * 2 * 2);
			window_unref(out);
			window_unref(window);
		}
	}
}

/* An open wait that stands for several keeps the oldest start and the number of waits. */
static void test_open_waits(void **state)
{
	struct window *window = window_make(0, 0), *out;
	const struct window_open *sum = NULL;
	struct window_open *open;
	uint64_t blocked_ns = 0, folded_ns = 0;
	uint32_t i;

	for (i = 1; i <= 9; i++) {
		/* Processes with the same comm, exe and cgroup. */
		open = window_add_open(window);
		*open = (struct window_open){ .image = i * COMMS * UNITS, .state = 1 };
		open->wake_ns = INT64_MAX;
		open->start_ns = window->start_ns - i * NS_PER_S;
		open->user = stack_ref(&stacks[4]);
	}
	out = fold(window, 2, 5);
	for (i = 0; i < out->n_opens; i++)
		if (out->opens[i].count)
			sum = &out->opens[i];
	for (i = 0; i < out->n_rows; i++)
		blocked_ns += out->rows[i].blocked_ns;
	for (i = 1; i <= 7; i++)
		folded_ns += (5 + i) * (uint64_t)NS_PER_S;
	assert_int_equal(out->n_opens, 3);
	assert_non_null(sum);
	assert_int_equal(sum->count, 7);
	assert_int_equal(sum->processes, 7);
	assert_int_equal(sum->start_ns, window->start_ns - 7 * NS_PER_S);
	assert_int_equal(sum->whole_ns, folded_ns);
	assert_int_equal(blocked_ns, 7 * 5 * NS_PER_S);
	window_unref(out);
	window_unref(window);
}

/*
 * Open waits of threads that have been made runnable are summed apart from those of threads that
 * sleep. Their sum was made runnable when the first of them was.
 */
static void test_open_waits_of_runnable_threads(void **state)
{
	struct window *window = window_make(0, 0), *out;
	const struct window_open *asleep = NULL, *runnable = NULL, *sum;
	struct window_open *open;
	uint32_t i;

	for (i = 1; i <= 10; i++) {
		open = window_add_open(window);
		*open = (struct window_open){ .image = i * COMMS * UNITS, .state = 1 };
		open->start_ns = window->start_ns - i * NS_PER_S;
		open->wake_ns = i % 2 ? INT64_MAX : window->end_ns - i * NS_PER_MS;
		open->user = stack_ref(&stacks[4]);
	}
	out = fold(window, 2, 5);
	assert_int_equal(out->n_opens, 4);
	for (i = 0; i < out->n_opens; i++) {
		sum = &out->opens[i];
		if (sum->count)
			*(sum->wake_ns == INT64_MAX ? &asleep : &runnable) = sum;
	}
	/* The two longest waits, of 9 and 10 s, stay as they are. */
	assert_non_null(asleep);
	assert_int_equal(asleep->count, 4);
	assert_int_equal(asleep->start_ns, window->start_ns - 7 * NS_PER_S);
	assert_int_equal(asleep->whole_runnable_ns, 0);
	assert_non_null(runnable);
	assert_int_equal(runnable->count, 4);
	assert_int_equal(runnable->start_ns, window->start_ns - 8 * NS_PER_S);
	assert_int_equal(runnable->wake_ns, window->end_ns - 8 * NS_PER_MS);
	assert_int_equal(runnable->whole_runnable_ns, (2 + 4 + 6 + 8) * NS_PER_MS);
	window_unref(out);
	window_unref(window);
}

/* A summed row has the longest of all waits, and when that one ended; of equal ones, the last. */
static void test_the_longest_wait(void **state)
{
	static const struct {
		uint64_t max_ns;
		int64_t end_ns;
	} waits[] = { { 5, 40 }, { 9, 10 }, { 9, 30 }, { 9, 20 }, { 3, 50 } };
	struct window *window = window_make(0, 0), *out;
	struct window_row *row;
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		row = window_add_row(window);
		*row = (struct window_row){ .image = (1 + i) * COMMS * UNITS, .state = 1 };
		row->blocked_ns = 10;
		row->max_ns = waits[i].max_ns;
		row->max_end_ns = waits[i].end_ns;
	}
	/* This row stays. */
	row = window_add_row(window);
	*row = (struct window_row){ .image = 2, .state = 1, .blocked_ns = 1000 };
	out = fold(window, 1, 3);
	assert_int_equal(out->n_rows, 2);
	assert_int_equal(out->rows[1].blocked_ns, 50);
	assert_int_equal(out->rows[1].max_ns, 9);
	assert_int_equal(out->rows[1].max_end_ns, 30);
	window_unref(out);
	window_unref(window);
}

/* A row that stands for waits with several wakers names none of them; others keep their waker. */
static void test_wakers(void **state)
{
	struct window *window = window_make(0, 0), *out;
	struct window_waker *waker;
	struct window_row *row;
	uint32_t i;

	for (i = 0; i < 5; i++) {
		row = window_add_row(window);
		*row = (struct window_row){ .image = (1 + i) * COMMS * UNITS, .state = 1 };
		row->blocked_ns = i ? 10 : 1000;
		waker = window_add_waker(window);
		waker->user = stack_ref(&stacks[4 + 2 * i]);
		waker->links[0].context = 1 + i;
	}
	out = fold(window, 1, 0);
	assert_int_equal(out->n_rows, 2);
	assert_int_equal(out->rows[0].blocked_ns, 1000);
	assert_ptr_equal(window_row_waker(out, 0)->user, &stacks[4]);
	assert_int_equal(window_row_waker(out, 0)->links[0].context, 1);
	assert_int_equal(out->rows[1].blocked_ns, 40);
	assert_null(window_row_waker(out, 1)->user);
	assert_int_equal(window_row_waker(out, 1)->links[0].context, 0);
	window_unref(out);
	window_unref(window);
}

/* Several rows and threads of a process count once; each pid is listed with its image. */
static void test_processes(void **state)
{
	struct window *window = window_make(0, 0), *out;
	const struct window_row *sum = NULL;
	struct process_info info;
	struct window_row *row;
	uint32_t i;

	for (i = 0; i < 12; i++) {
		row = window_add_row(window);
		*row = (struct window_row){ .image = 1 + i / 2 * COMMS * UNITS, .state = 1 };
		row->blocked_ns = 10;
		row->user = stack_ref(&stacks[4 + i % 2]); /* two stacks with the same place */
	}
	/* This row stays. */
	row = window_add_row(window);
	*row = (struct window_row){ .image = 2, .state = 1, .blocked_ns = 1000 };
	out = fold(window, 1, 3);
	for (i = 0; i < out->n_rows; i++)
		if (out->rows[i].processes)
			sum = &out->rows[i];
	assert_int_equal(out->n_rows, 2);
	assert_non_null(sum);
	assert_int_equal(sum->blocked_ns, 120);
	assert_int_equal(sum->processes, 6);
	/* Those with odd numbers have started within the window. */
	assert_int_equal(sum->started, 3);
	process_info(out->images[sum->image].process, &info);
	assert_true(info.is_folded);
	assert_int_equal(info.id.pid, 0);
	assert_string_equal(info.comm, "comm1");
	assert_string_equal(info.exe, "/bin/exe1");
	assert_string_equal(info.cgroup, "/unit1.service");
	assert_int_equal(out->images[sum->image].tid, 0);
	for (i = 0; i < 6; i++) {
		const struct window_member wanted = {
			.image = sum->image, .pid = PIDS_FIRST + 1 + (int32_t)i * COMMS * UNITS
		};
		size_t k;

		for (k = 0;
		     k < out->n_members && memcmp(&out->members[k], &wanted, sizeof(wanted)) != 0;
		     k++)
			;
		assert_true(k < out->n_members);
	}
	assert_int_equal(out->folded.unlisted, 0);
	assert_true(out->folded.processes >= 6);
	window_unref(out);
	window_unref(window);
}

/* Returns the time of all waits of the process, and how many rows of it have stacks. */
static uint64_t process_ns(const struct window *window, const struct process *of, const char *comm,
			   size_t *with_stacks)
{
	uint64_t ns = 0;
	size_t i;

	*with_stacks = 0;
	for (i = 0; i < window->n_rows; i++) {
		const struct window_row *row = &window->rows[i];
		const struct window_image *image = &window->images[row->image];

		if (image->process != of || (comm && strcmp(image->comm, comm) != 0))
			continue;
		ns += row->blocked_ns + row->runnable_ns;
		*with_stacks += row->kernel || row->user;
	}
	return ns;
}

/* Returns the CPU time of all entries of the process. */
static uint64_t process_on_ns(const struct window *window, const struct process *of)
{
	uint64_t ns = 0;
	size_t i;

	for (i = 0; i < window->n_images; i++)
		ns += window->images[i].process == of ? window->images[i].sums.on_ns : 0;
	return ns;
}

/* Returns the time of all waits of threads with this comm in the control group of the process. */
static uint64_t likes_ns(const struct window *window, struct process *of, const char *comm)
{
	struct process_info like, info;
	uint64_t ns = 0;
	size_t i;

	process_info(of, &like);
	for (i = 0; i < window->n_rows; i++) {
		const struct window_row *row = &window->rows[i];
		const struct window_image *image = &window->images[row->image];

		process_info(image->process, &info);
		if (!strcmp(image->comm, comm) && info.cgroup && !strcmp(info.cgroup, like.cgroup))
			ns += row->blocked_ns + row->runnable_ns;
	}
	return ns;
}

/*
 * The processes with the most time have their whole sums, however few rows stay, and also after
 * they were folded again; so have threads of one name of theirs, and processes of one name. A
 * process with less is in the sums of others.
 */
static void test_a_process_keeps_its_sum(void **state)
{
	static const size_t rows[] = { 200, 20, 1 }, sums[] = { 30, 5, 1 };
	const uint32_t named = PIDS + 1, own = 2 * COMMS * UNITS;
	struct window *window = window_new(), *out, *once = NULL;
	struct window_image *image;
	size_t i, n;

	window->end_ns = 5 * NS_PER_S;
	images_make(window);
	image = window_add_image(window);
	*image = window->images[own];
	process_ref(image->process);
	image->uid++;
	image->tid += PIDS;
	snprintf(image->comm, sizeof(image->comm), "worker");
	/* A thread without waits. */
	image = window_add_image(window);
	*image = window->images[own];
	process_ref(image->process);
	image->uid += 2;
	image->tid += 2 * PIDS;
	/* Threads with much CPU time stay; those of the process have little. */
	for (i = 0; i < window->n_images; i++)
		window->images[i].sums.on_ns = window->images[i].process == process[own] ? 3 : 5000;
	for (i = 0; i < 2000; i++) {
		struct window_row *row = window_add_row(window);

		/* 800 of the process, 200 of its named thread, and 1000 of all processes. */
		*row = (struct window_row){ .image = (uint32_t)(i % 2	 ? i / 2 % PIDS
								: i % 10 ? own
									 : named) };
		row->state = 1 + 4 * (uint32_t)(i / STACKS / STACKS);
		row->count = 1;
		row->blocked_ns = 1000 + i;
		row->kernel = stack_ref(&stacks[i % STACKS]);
		row->user = stack_ref(&stacks[i / STACKS % STACKS]);
	}
	window_seal(window);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t whole = process_ns(window, process[own], NULL, &n);
		uint64_t worker = process_ns(window, process[own], "worker", &n);
		uint64_t likes = likes_ns(window, process[3], "comm3");

		out = fold_sums(once ? once : window, rows[i], sums[i]);
		assert_conserved(window, out);
		assert_int_equal(process_ns(out, process[own], NULL, &n), whole);
		assert_int_equal(process_on_ns(out, process[own]), 9);
		assert_true(n <= 2 * rows[i]);
		assert_int_equal(process_ns(out, process[own], "worker", &n), worker);
		if (i == 0)
			assert_int_equal(likes_ns(out, process[3], "comm3"), likes);
		assert_in_range(own_count(out), 1, sums[i] + 1);
		assert_true(process_ns(out, process[3], NULL, &n) <
			    process_ns(window, process[3], NULL, &n));
		window_unref(once);
		once = out;
	}
	window_unref(once);
	window_unref(window);
}

/* Of many like processes, few keep their sums apart: a pool would need a row for each and stack. */
static void test_a_pool_is_one(void **state)
{
	struct window *window = window_new(), *out;
	struct window_row *row;
	uint32_t i;

	window->end_ns = 5 * NS_PER_S;
	images_make(window);
	for (i = 0; i < 200; i++) {
		row = window_add_row(window);
		*row = (struct window_row){ .image = i % 10 * COMMS * UNITS, .state = 1 };
		row->count = 1;
		row->blocked_ns = 1000 + i;
		row->kernel = stack_ref(&stacks[4 + i / 10]);
	}
	/* Another process, with less time. */
	row = window_add_row(window);
	*row = (struct window_row){ .image = 3, .state = 1, .count = 1, .blocked_ns = 9 };
	window_seal(window);
	out = fold_sums(window, 5, 5);
	assert_conserved(window, out);
	assert_int_equal(own_count(out), 4 + 1);
	assert_int_equal(likes_ns(out, process[0], "comm0"), likes_ns(window, process[0], "comm0"));
	window_unref(out);
	window_unref(window);
}

/* Of the preempted waits, those with the least time lose their stacks; nothing else changes. */
static void test_preempted(void **state)
{
	const struct window_fold_limits limits = { .max_rows = 1000,
						   .max_folded = 1000,
						   .preempted_percent = 10 };
	struct window *window = window_make(0, 0), *out, *again;
	uint64_t without = 0, total = 0;
	struct window_row *row;
	size_t i, whole = 0;

	for (i = 0; i < 100; i++) {
		row = window_add_row(window);
		*row = (struct window_row){ .image = (uint32_t)i % 10, .state = STATE_PREEMPTED };
		row->runnable_ns = i < 10 ? 9000 : 90;
		row->kernel = stack_ref(&stacks[i % STACKS]);
		total += row->runnable_ns;
	}
	row = window_add_row(window);
	*row = (struct window_row){ .image = 1, .state = 1, .blocked_ns = 1 };
	row->kernel = stack_ref(&stacks[1]);
	assert_int_equal(window_fold(window, &limits, &out), 0);
	assert_conserved(window, out);
	/* Ten rows with their stacks, one row without for each of the ten images, and the sleep. */
	assert_int_equal(out->n_rows, 10 + 10 + 1);
	for (i = 0; i < out->n_rows; i++) {
		whole += out->rows[i].kernel != NULL;
		if (!out->rows[i].kernel)
			without += out->rows[i].runnable_ns;
		assert_int_equal(out->rows[i].processes, 0);
	}
	assert_int_equal(whole, 11);
	assert_int_equal(without, 90 * 90);
	assert_true(without * 10 < total);
	assert_int_equal(window_fold(out, &limits, &again), 0);
	assert_conserved(window, again);
	window_unref(again);
	window_unref(out);
	window_unref(window);
}

/* Adds a row of sampled waits that stand for as many waits as a bucket can count. */
static void full_row_add(struct window *window, uint32_t image, uint32_t state)
{
	uint32_t buckets[WAIT_BUCKETS] = { 0, UINT32_MAX };
	struct window_row *row = window_add_row(window);

	*row = (struct window_row){ .image = image, .state = state | STATE_SAMPLED };
	row->count = UINT32_MAX;
	row->runnable_ns = 90;
	assert_int_equal(window_row_set_buckets(window, row, buckets), 0);
}

/* Weights that fill the buckets of a histogram stop neither kind of folding. */
static void test_full_buckets(void **state)
{
	const struct window_fold_limits limits = { .max_rows = 1000,
						   .max_folded = 1000,
						   .preempted_percent = 10 };
	struct window *window = window_make(0, 0), *out;
	uint64_t buckets[WAIT_BUCKETS] = {}, count = 0;
	uint32_t i;

	for (i = 0; i < 8; i++)
		full_row_add(window, i * COMMS * UNITS, 1);
	out = fold(window, 1, 1);
	for (i = 0; i < out->n_rows; i++) {
		window_row_add_buckets(out, &out->rows[i], buckets);
		count += out->rows[i].count;
	}
	assert_int_equal(count, 8 * (uint64_t)UINT32_MAX);
	assert_in_range(buckets[1], UINT32_MAX, 7 * (uint64_t)UINT32_MAX);
	window_unref(out);
	for (i = 0; i < 3; i++) {
		full_row_add(window, 1, STATE_PREEMPTED);
		window->rows[window->n_rows - 1].kernel = stack_ref(&stacks[i]);
	}
	window->rows[window->n_rows - 1].runnable_ns = 9000;
	assert_int_equal(window_fold(window, &limits, &out), 0);
	for (i = 0, count = 0; i < out->n_rows; i++)
		count += out->rows[i].count;
	assert_int_equal(count, 11 * (uint64_t)UINT32_MAX);
	assert_true(out->n_rows < window->n_rows);
	window_unref(out);
	window_unref(window);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_small_window_stays),
		TEST(test_sums_are_conserved),
		TEST(test_the_folded_time_counts_once),
		TEST(test_folding_twice),
		TEST(test_the_order_does_not_matter),
		TEST(test_few_images),
		TEST(test_the_top_stays),
		TEST(test_ranks),
		TEST(test_a_flood_leaves_room),
		TEST(test_open_waits),
		TEST(test_open_waits_of_runnable_threads),
		TEST(test_the_longest_wait),
		TEST(test_wakers),
		TEST(test_processes),
		TEST(test_a_process_keeps_its_sum),
		TEST(test_a_pool_is_one),
		TEST(test_preempted),
		TEST(test_full_buckets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
