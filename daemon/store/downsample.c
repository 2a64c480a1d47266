/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/downsample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "common/hash_table.h"

struct image_entry {
	/*
	 * identifies a thread and the program that it runs: the thread's number (uid), which an
	 * exec does not change; its process, which an exec changes; its name
	 */
	uint64_t key[4];
	uint32_t image;
	UT_hash_handle hh;
};

struct row_entry {
	uint64_t key[5]; /* identifies a row: thread, task state, kernel stack, user stack, waker */
	struct window_row row;
	const struct window_waker *waker; /* the waker of the row, borrowed; NULL: it has none */
	uint64_t buckets[WAIT_BUCKETS];
	UT_hash_handle hh;
};

struct sample_entry {
	uint64_t key[3]; /* identifies a row of samples: thread, kernel stack, user stack */
	struct window_sample sample;
	UT_hash_handle hh;
};

/*
 * A wait that is in several windows: it ended in a later window than it began in, or had not ended
 * at the end of the last window. The rows of the merged window do not include the wait's time from
 * from_ns to until_ns yet. They may include time before from_ns: if the wait was folded in an
 * earlier window, that window has its time in a row that stands for several processes.
 */
struct wait_entry {
	/* identifies a wait: number of the thread (window_image.uid), start of the wait in ns */
	uint64_t key[2];
	int64_t from_ns;
	/*
	 * end of the time that no row includes yet; if it is equal to from_ns, there is no such
	 * time
	 */
	int64_t until_ns;
	UT_hash_handle hh;
};

struct downsample {
	struct window *out;
	struct image_entry *images;
	struct row_entry *rows;
	struct wait_entry *waits;
	struct sample_entry *samples;
	struct io_entry *ios;
	/* while a window is added: its thread i has the index map[i] in out->images */
	uint32_t *map;
	struct window_member *members;
	size_t n_members, members_capacity;
	bool has_folded; /* a window has rows that stand for several processes (folded rows) */
	int error;
};

static int image_place(struct downsample *downsample, const struct window_image *image,
		       uint32_t *out)
{
	uint64_t key[4] = { image->uid, (uintptr_t)image->process };
	struct image_entry *entry;
	struct window_image *added;

	_Static_assert(COMM_LEN == 2 * sizeof(uint64_t), "a comm is two words");
	memcpy(&key[2], image->comm, COMM_LEN);
	HASH_FIND(hh, downsample->images, key, sizeof(key), entry);
	if (entry) {
		*out = entry->image;
		return 0;
	}
	added = window_add_image(downsample->out);
	if (!added)
		return -ENOMEM;
	*added = *image;
	added->sums = (struct thread_sums){};
	added->estimate = (struct window_estimate){};
	added->folded = added->started = 0;
	process_ref(image->process);
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	memcpy(entry->key, key, sizeof(key));
	entry->image = *out = (uint32_t)downsample->out->n_images - 1;
	HASH_ADD(hh, downsample->images, key, sizeof(entry->key), entry);
	if (HASH_HAS(entry))
		return 0;
	free(entry);
	return -ENOMEM;
}

static void sums_add(struct thread_sums *a, const struct thread_sums *b)
{
	uint64_t *x = (uint64_t *)a;
	const uint64_t *y = (const uint64_t *)b;
	size_t i;

	for (i = 0; i < sizeof(*a) / sizeof(uint64_t); i++)
		x[i] += y[i];
}

static int images_add(struct downsample *downsample, const struct window *window)
{
	struct window_image *added;
	size_t i;
	int r;

	free(downsample->map);
	downsample->map = calloc(window->n_images + 1, sizeof(*downsample->map));
	if (!downsample->map)
		return -ENOMEM;
	for (i = 0; i < window->n_images; i++) {
		r = image_place(downsample, &window->images[i], &downsample->map[i]);
		if (r)
			return r;
		added = &downsample->out->images[downsample->map[i]];
		sums_add(&added->sums, &window->images[i].sums);
		window_estimate_add(&added->estimate, &window->images[i].estimate);
		window_processes_add(&added->folded, &added->started, window->images[i].folded,
				     window->images[i].started);
	}
	return 0;
}

static struct row_entry *row_get(struct downsample *downsample, const struct window_row *row,
				 const struct window_waker *waker)
{
	uint64_t key[5] = { row->image, row->state, (uintptr_t)row->kernel, (uintptr_t)row->user,
			    window_waker_id(waker, true, true) };
	struct row_entry *entry;

	HASH_FIND(hh, downsample->rows, key, sizeof(key), entry);
	if (entry)
		return entry;
	entry = calloc(1, sizeof(*entry));
	if (!entry) {
		downsample->error = -ENOMEM;
		return NULL;
	}
	memcpy(entry->key, key, sizeof(key));
	entry->waker = waker;
	entry->row = (struct window_row){
		.image = row->image,
		.state = row->state,
		.kernel = row->kernel,
		.user = row->user,
	};
	HASH_ADD(hh, downsample->rows, key, sizeof(entry->key), entry);
	if (!HASH_HAS(entry)) {
		free(entry);
		downsample->error = -ENOMEM;
		return NULL;
	}
	return entry;
}

/*
 * Adds the counts and times of `row` to the sum of the rows with the same thread, state, stacks and
 * waker. The sum borrows the stacks. row->image must already be the index that the thread has in
 * the merged window.
 */
static struct row_entry *row_add(struct downsample *downsample, const struct window_row *row,
				 const struct window_waker *waker)
{
	struct row_entry *entry = row_get(downsample, row, waker);

	if (!entry)
		return NULL;
	entry->row.count += row->count;
	entry->row.blocked_ns += row->blocked_ns;
	entry->row.runnable_ns += row->runnable_ns;
	entry->row.throttled_ns += row->throttled_ns;
	window_processes_add(&entry->row.processes, &entry->row.started, row->processes,
			     row->started);
	if (row->max_ns > entry->row.max_ns) {
		entry->row.max_ns = row->max_ns;
		entry->row.max_end_ns = row->max_end_ns;
	}
	return entry;
}

static void rows_add(struct downsample *downsample, const struct window *window)
{
	struct row_entry *entry;
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		struct window_row row = window->rows[i];

		row.image = downsample->map[row.image];
		entry = row_add(downsample, &row, window_row_waker(window, i));
		if (entry)
			window_row_add_buckets(window, &window->rows[i], entry->buckets);
	}
}

static int samples_add(struct downsample *downsample, const struct window *window)
{
	struct sample_entry *entry;
	size_t i;

	for (i = 0; i < window->n_samples; i++) {
		struct window_sample sample = window->samples[i];
		uint64_t key[3] = { downsample->map[sample.image], (uintptr_t)sample.kernel,
				    (uintptr_t)sample.user };

		HASH_FIND(hh, downsample->samples, key, sizeof(key), entry);
		if (!entry) {
			entry = calloc(1, sizeof(*entry));
			if (!entry)
				return -ENOMEM;
			memcpy(entry->key, key, sizeof(key));
			entry->sample = sample;
			entry->sample.image = downsample->map[sample.image];
			entry->sample.count = entry->sample.on_ns = 0;
			entry->sample.processes = entry->sample.started = 0;
			HASH_ADD(hh, downsample->samples, key, sizeof(entry->key), entry);
			if (!HASH_HAS(entry)) {
				free(entry);
				return -ENOMEM;
			}
		}
		entry->sample.count += sample.count;
		entry->sample.on_ns += sample.on_ns;
		window_processes_add(&entry->sample.processes, &entry->sample.started,
				     sample.processes, sample.started);
	}
	return 0;
}

static struct wait_entry *wait_find(struct downsample *downsample, const struct window *window,
				    uint32_t image, int64_t start_ns)
{
	uint64_t key[2] = { window->images[image].uid, (uint64_t)start_ns };
	struct wait_entry *entry;

	HASH_FIND(hh, downsample->waits, key, sizeof(key), entry);
	return entry;
}

static int wait_add(struct downsample *downsample, const struct window *window, uint32_t image,
		    int64_t start_ns)
{
	struct wait_entry *entry;

	if (wait_find(downsample, window, image, start_ns))
		return 0;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	entry->key[0] = window->images[image].uid;
	entry->key[1] = (uint64_t)start_ns;
	HASH_ADD(hh, downsample->waits, key, sizeof(entry->key), entry);
	if (HASH_HAS(entry))
		return 0;
	free(entry);
	return -ENOMEM;
}

static int waits_index(struct downsample *downsample, struct window *const *windows, size_t n)
{
	const struct window *last = windows[n - 1];
	size_t i, k;
	int r = 0;

	for (i = 0; i < n && !r; i++)
		for (k = 0; k < windows[i]->n_spans && !r; k++)
			r = wait_add(downsample, windows[i], windows[i]->spans[k].image,
				     windows[i]->spans[k].start_ns);
	for (k = 0; k < last->n_opens && !r; k++)
		if (!last->opens[k].count)
			r = wait_add(downsample, last, last->opens[k].image,
				     last->opens[k].start_ns);
	return r;
}

/*
 * Returns a row with the time that a wait took between from_ns and until_ns. `image` is the index
 * of the wait's thread in the merged window.
 */
static struct window_row open_row(const struct window_open *open, uint32_t image, int64_t from_ns,
				  int64_t until_ns)
{
	struct window_row row = {
		.image = image,
		.state = open->state,
		.kernel = open->kernel,
		.user = open->user,
		.blocked_ns = window_overlap_ns(open->start_ns, open->wake_ns, from_ns, until_ns),
		.runnable_ns = window_overlap_ns(open->wake_ns, until_ns, from_ns, until_ns),
	};

	if (open->throttled_ns)
		row.throttled_ns = window_overlap_ns(open->wake_ns,
						     open->wake_ns + (int64_t)open->throttled_ns,
						     from_ns, until_ns);
	return row;
}

/*
 * Returns the start of the time that no row of the merged window includes yet, of a wait that lasts
 * until the end of `window` or ends in it. Returns INT64_MIN if no window has folded rows, because
 * then no row includes any time of the wait.
 *
 * A wait may be folded in some windows and not in others. If a window has folded it, a row that
 * stands for several processes includes its time in that window. There may be windows before such a
 * window in which the wait was not folded: no row includes the time from entry->from_ns to
 * entry->until_ns yet. This function then adds that time to a row.
 */
static int64_t wait_from(struct downsample *downsample, const struct window *window,
			 const struct window_open *wait)
{
	struct wait_entry *entry = wait_find(downsample, window, wait->image, wait->start_ns);
	struct window_row row;

	if (!downsample->has_folded || !entry)
		return INT64_MIN;
	if (entry->until_ns == window->start_ns && entry->from_ns < entry->until_ns)
		return entry->from_ns;
	if (entry->from_ns < entry->until_ns) {
		row = open_row(wait, downsample->map[wait->image], entry->from_ns, entry->until_ns);
		row_add(downsample, &row, NULL);
	}
	return window->start_ns;
}

/* Adds to a row the part of a wait that lies after from_ns. */
static void span_to_row(struct downsample *downsample, const struct window_span *span,
			int64_t from_ns)
{
	uint64_t ns = (uint64_t)(span->end_ns - span->start_ns);
	struct window_row row = {
		.image = downsample->map[span->image],
		.state = span->state,
		.kernel = span->kernel,
		.user = span->user,
		.count = 1,
		.blocked_ns =
			window_overlap_ns(span->start_ns, span->wake_ns, from_ns, span->end_ns),
		.runnable_ns = window_overlap_ns(
			span->wake_ns, span->end_ns,
			from_ns > span->start_ns ? from_ns : span->start_ns, INT64_MAX),
		.throttled_ns = span->throttled_ns,
		.max_ns = ns,
		.max_end_ns = span->end_ns,
	};
	struct row_entry *entry;

	if (span->throttled_ns && from_ns > span->wake_ns)
		row.throttled_ns = window_overlap_ns(span->wake_ns,
						     span->wake_ns + (int64_t)span->throttled_ns,
						     from_ns, span->end_ns);
	entry = row_add(downsample, &row, NULL);
	if (entry)
		entry->buckets[wait_bucket(ns)]++;
}

static int spans_add(struct downsample *downsample, const struct window *window)
{
	int64_t start_ns = downsample->out->start_ns, from_ns;
	struct window_span *added;
	size_t i;

	for (i = 0; i < window->n_spans; i++) {
		const struct window_span *span = &window->spans[i];
		const struct window_open wait = {
			.kernel = span->kernel,
			.user = span->user,
			.start_ns = span->start_ns,
			.wake_ns = span->wake_ns,
			.throttled_ns = span->throttled_ns,
			.image = span->image,
			.state = span->state,
		};

		from_ns = wait_from(downsample, window, &wait);
		if (span->start_ns >= start_ns || from_ns > start_ns) {
			span_to_row(downsample, span, from_ns);
			continue;
		}
		added = window_add_span(downsample->out);
		if (!added)
			return -ENOMEM;
		*added = *span;
		added->image = downsample->map[span->image];
		stack_ref(span->kernel);
		stack_ref(span->user);
	}
	return 0;
}

/*
 * Adds a wait that had not ended at the end of the last window. If rows include a part of its time
 * already, adds the rest of its time to a row, too.
 */
static int open_keep(struct downsample *downsample, const struct window *window,
		     const struct window_open *open)
{
	uint32_t image = downsample->map[open->image];
	int64_t from_ns = open->count ? INT64_MIN : wait_from(downsample, window, open);
	struct window_open *added = window_add_open(downsample->out);
	struct window_row row;

	if (!added)
		return -ENOMEM;
	*added = *open;
	added->image = image;
	stack_ref(open->kernel);
	stack_ref(open->user);
	if (from_ns <= downsample->out->start_ns || from_ns <= open->start_ns)
		return 0;
	row = open_row(open, image, from_ns, window->end_ns);
	row_add(downsample, &row, NULL);
	added->count = 1;
	added->whole_ns = (uint64_t)(window->end_ns - open->start_ns);
	added->whole_runnable_ns =
		window_overlap_ns(open->wake_ns, window->end_ns, INT64_MIN, INT64_MAX);
	return 0;
}

/*
 * Extends the part of a wait that no row includes yet (from entry->from_ns to entry->until_ns) to
 * the end of `window`.
 */
static void wait_extend(struct downsample *downsample, const struct window *window,
			const struct window_open *open, struct wait_entry *entry)
{
	entry->from_ns = wait_from(downsample, window, open);
	if (entry->from_ns == INT64_MIN)
		entry->from_ns = window->start_ns;
	entry->until_ns = window->end_ns;
}

/*
 * Handles the waits that had not ended at the end of `window`. If this is the last window, adds
 * them to the merged window as waits that have not ended. In an earlier window, there are two
 * cases. If the wait ended in a later window, or is in the last window, only notes its time in
 * `window`, because the wait is added with that later window. Otherwise, adds its time in `window`
 * to a row. Skips folded waits of earlier windows, because rows include their time already.
 */
static int opens_add(struct downsample *downsample, const struct window *window, bool is_last)
{
	struct wait_entry *entry;
	struct window_row row;
	size_t i;
	int r = 0;

	for (i = 0; i < window->n_opens && !r; i++) {
		const struct window_open *open = &window->opens[i];

		if (is_last) {
			r = open_keep(downsample, window, open);
			continue;
		}
		if (open->count)
			continue;
		entry = wait_find(downsample, window, open->image, open->start_ns);
		if (entry) {
			wait_extend(downsample, window, open, entry);
			continue;
		}
		row = open_row(open, downsample->map[open->image], window->start_ns,
			       window->end_ns);
		row_add(downsample, &row, NULL);
	}
	return r;
}

static int members_add(struct downsample *downsample, const struct window *window)
{
	size_t n = downsample->n_members, i;

	if (array_reserve(downsample->members, downsample->members_capacity, n + window->n_members))
		return -ENOMEM;
	for (i = 0; i < window->n_members; i++)
		downsample->members[n + i] = (struct window_member){
			.image = downsample->map[window->members[i].image],
			.pid = window->members[i].pid,
		};
	downsample->n_members += window->n_members;
	return 0;
}

/*
 * Adds the waker of the row that was just added to the merged window. `waker` is NULL if the row
 * has none.
 */
static int waker_finish(struct downsample *downsample, const struct window_waker *waker)
{
	struct window_waker *added;

	if (!waker)
		return 0;
	added = window_add_waker(downsample->out);
	if (!added)
		return -ENOMEM;
	*added = *waker;
	stack_ref(waker->kernel);
	stack_ref(waker->user);
	return 0;
}

static int rows_finish(struct downsample *downsample)
{
	struct row_entry *entry, *next;
	uint32_t buckets[WAIT_BUCKETS];
	struct window_row *row;

	HASH_ITER (hh, downsample->rows, entry, next) {
		window_buckets_narrow(entry->buckets, buckets);
		row = window_add_row(downsample->out);
		if (!row)
			return -ENOMEM;
		*row = entry->row;
		stack_ref(row->kernel);
		stack_ref(row->user);
		if (window_row_set_buckets(downsample->out, row, buckets) ||
		    waker_finish(downsample, entry->waker))
			return -ENOMEM;
	}
	return 0;
}

static int samples_finish(struct downsample *downsample)
{
	struct sample_entry *entry, *next;
	struct window_sample *sample;

	HASH_ITER (hh, downsample->samples, entry, next) {
		sample = window_add_sample(downsample->out);
		if (!sample)
			return -ENOMEM;
		*sample = entry->sample;
		stack_ref(sample->kernel);
		stack_ref(sample->user);
	}
	return 0;
}

static int window_sum(struct window *out, const struct window *window)
{
	unsigned int i;

	for (i = 0; i < WINDOW_LOST_N; i++)
		out->lost[i] += window->lost[i];
	out->lost_ns += window->lost_ns;
	out->switch_ins += window->switch_ins;
	out->sampled += window->sampled;
	out->parts += window->parts;
	if (window->sample_below_ns > out->sample_below_ns)
		out->sample_below_ns = window->sample_below_ns;
	window_folded_add(&out->folded, &window->folded);
	window_cost_add(&out->cost, &window->cost);
	window_spawns_add(&out->spawns, &window->spawns);
	if (window_held_add(&out->held, &window->held))
		return -ENOMEM;
	return window_pressure_add(&out->pressure, &window->pressure);
}

static int downsample_run(struct downsample *downsample, struct window *const *windows, size_t n)
{
	struct window *out = downsample->out;
	size_t i;
	int r = waits_index(downsample, windows, n);

	for (i = 0; i < n; i++)
		downsample->has_folded |= windows[i]->folded.rows != 0;
	out->run = windows[0]->run;
	out->seq = windows[0]->seq;
	out->session = windows[0]->session;
	out->kind = windows[0]->kind;
	out->start_ns = windows[0]->start_ns;
	out->end_ns = windows[n - 1]->end_ns;
	out->real_offset_ns = windows[n - 1]->real_offset_ns;
	out->boot_offset_ns = windows[n - 1]->boot_offset_ns;
	out->parts = 0;
	for (i = 0; i < n && !r; i++) {
		r = window_sum(out, windows[i]);
		if (!r)
			r = images_add(downsample, windows[i]);
		if (!r)
			r = members_add(downsample, windows[i]);
		if (!r)
			rows_add(downsample, windows[i]);
		if (!r)
			r = samples_add(downsample, windows[i]);
		if (!r)
			r = store_downsample_ios_add(&downsample->ios, windows[i], downsample->map,
						     i + 1 == n);
		if (!r)
			r = spans_add(downsample, windows[i]);
		if (!r)
			r = opens_add(downsample, windows[i], i + 1 == n);
	}
	if (!r)
		r = downsample->error;
	if (!r)
		r = samples_finish(downsample);
	if (!r)
		r = store_downsample_ios_finish(downsample->ios, out);
	if (!r)
		r = window_set_members(out, downsample->members, downsample->n_members);
	return r ? r : rows_finish(downsample);
}

static void downsample_fini(struct downsample *downsample)
{
	struct image_entry *image, *next_image;
	struct wait_entry *wait, *next_wait;
	struct sample_entry *sample, *next_sample;
	struct row_entry *row, *next_row;

	HASH_ITER (hh, downsample->images, image, next_image) {
		HASH_DEL(downsample->images, image);
		free(image);
	}
	HASH_ITER (hh, downsample->rows, row, next_row) {
		HASH_DEL(downsample->rows, row);
		free(row);
	}
	HASH_ITER (hh, downsample->waits, wait, next_wait) {
		HASH_DEL(downsample->waits, wait);
		free(wait);
	}
	HASH_ITER (hh, downsample->samples, sample, next_sample) {
		HASH_DEL(downsample->samples, sample);
		free(sample);
	}
	store_downsample_ios_free(&downsample->ios);
	free(downsample->map);
	free(downsample->members);
}

int store_downsample(struct window *const *windows, size_t n, struct window **out)
{
	struct downsample downsample = { .out = window_new() };
	int r;

	if (!downsample.out)
		return -ENOMEM;
	r = downsample_run(&downsample, windows, n);
	downsample_fini(&downsample);
	if (r) {
		window_unref(downsample.out);
		return r;
	}
	window_spawns_limit(&downsample.out->spawns, WINDOW_SPAWNS_MAX);
	window_held_limit(&downsample.out->held, HELD_WAITS_MAX);
	window_seal(downsample.out);
	*out = downsample.out;
	return 0;
}
