/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/downsample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/base.h"
#include "daemon/base/key_table.h"
#include "daemon/window/row_sums.h"

struct image_entry {
	/*
	 * identifies a thread and the program that it runs: the thread's number (uid), which an
	 * exec does not change; its process, which an exec changes; its name
	 */
	uint64_t key[4];
	uint32_t image;
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
};

struct downsample {
	struct window *out;
	struct key_table images; /* of struct image_entry */
	struct key_table waits;	 /* of struct wait_entry */
	struct row_sums sums;
	/* while a window is added: its thread i has the index map[i] in out->images */
	uint32_t *map;
	struct window_member *members;
	size_t n_members, members_capacity;
	bool has_folded; /* a window has rows that stand for several processes (folded rows) */
};

static int image_place(struct downsample *downsample, const struct window_image *image,
		       uint32_t *out)
{
	uint64_t key[4] = { image->uid, (uintptr_t)image->process };
	struct image_entry *entry;
	struct window_image *added;
	bool is_new;

	_Static_assert(COMM_LEN == 2 * sizeof(uint64_t), "a comm is two words");
	memcpy(&key[2], image->comm, COMM_LEN);
	entry = key_table_get(&downsample->images, key, &is_new);
	if (!entry)
		return -ENOMEM;
	if (is_new) {
		added = window_add_image(downsample->out);
		if (!added)
			return -ENOMEM;
		*added = *image;
		added->sums = (struct thread_sums){};
		added->estimate = (struct window_estimate){};
		added->folded = added->started = 0;
		process_ref(image->process);
		entry->image = (uint32_t)downsample->out->n_images - 1;
	}
	*out = entry->image;
	return 0;
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
		thread_sums_add(&added->sums, &window->images[i].sums);
		window_estimate_add(&added->estimate, &window->images[i].estimate);
		window_processes_add(&added->folded, &added->started, window->images[i].folded,
				     window->images[i].started);
	}
	return 0;
}

static int rows_add(struct downsample *downsample, const struct window *window)
{
	size_t i;
	int r = 0;

	for (i = 0; i < window->n_rows && !r; i++) {
		struct window_row row = window->rows[i];

		row.image = downsample->map[row.image];
		r = row_sums_add(&downsample->sums, window, &row, window_row_waker(window, i));
	}
	return r;
}

static int samples_add(struct downsample *downsample, const struct window *window)
{
	size_t i;
	int r = 0;

	for (i = 0; i < window->n_samples && !r; i++) {
		struct window_sample sample = window->samples[i];

		sample.image = downsample->map[sample.image];
		r = row_sums_add_sample(&downsample->sums, &sample);
	}
	return r;
}

/* Operations that have not ended are left out if a later window has them, too. */
static int ios_add(struct downsample *downsample, const struct window *window, bool is_last)
{
	size_t i;
	int r = 0;

	for (i = 0; i < window->n_ios && !r; i++) {
		struct window_io io = window->ios[i];

		if (io.open && !is_last)
			continue;
		io.image = downsample->map[io.image];
		r = row_sums_add_io(&downsample->sums, window, &io);
	}
	return r;
}

static struct wait_entry *wait_find(const struct downsample *downsample,
				    const struct window *window, uint32_t image, int64_t start_ns)
{
	uint64_t key[2] = { window->images[image].uid, (uint64_t)start_ns };

	return key_table_find(&downsample->waits, key);
}

static int wait_add(struct downsample *downsample, const struct window *window, uint32_t image,
		    int64_t start_ns)
{
	uint64_t key[2] = { window->images[image].uid, (uint64_t)start_ns };
	bool is_new;

	return key_table_get(&downsample->waits, key, &is_new) ? 0 : -ENOMEM;
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
 * Returns a row with the part of a wait that lies in [from_ns, until_ns). `image` is the index of
 * the wait's thread in the merged window.
 */
static struct window_row wait_row(const struct window_open *wait, uint32_t image, int64_t from_ns,
				  int64_t until_ns)
{
	struct window_row row =
		row_of_wait(wait->start_ns, wait->wake_ns, wait->throttled_ns, from_ns, until_ns);

	row.image = image;
	row.state = wait->state;
	row.kernel = wait->kernel;
	row.user = wait->user;
	return row;
}

/* Adds such a row to the sums. Returns 0 or -ENOMEM. */
static int wait_to_row(struct downsample *downsample, const struct window_open *wait,
		       int64_t from_ns, int64_t until_ns)
{
	struct window_row row = wait_row(wait, downsample->map[wait->image], from_ns, until_ns);

	return row_sums_add(&downsample->sums, downsample->out, &row, NULL);
}

/*
 * Sets *from_out to the start of the time that no row of the merged window includes yet, of a wait
 * that lasts until the end of `window` or ends in it. Sets it to INT64_MIN if no window has folded
 * rows, because then no row includes any time of the wait.
 *
 * A wait may be folded in some windows and not in others. If a window has folded it, a row that
 * stands for several processes includes its time in that window. There may be windows before such a
 * window in which the wait was not folded: no row includes the time from entry->from_ns to
 * entry->until_ns yet. This function then adds that time to a row. Returns 0 or -ENOMEM.
 */
static int wait_from(struct downsample *downsample, const struct window *window,
		     const struct window_open *wait, int64_t *from_out)
{
	struct wait_entry *entry = wait_find(downsample, window, wait->image, wait->start_ns);

	*from_out = INT64_MIN;
	if (!downsample->has_folded || !entry)
		return 0;
	*from_out = entry->from_ns;
	if (entry->until_ns == window->start_ns && entry->from_ns < entry->until_ns)
		return 0;
	*from_out = window->start_ns;
	if (entry->from_ns == entry->until_ns)
		return 0;
	return wait_to_row(downsample, wait, entry->from_ns, entry->until_ns);
}

/* Adds to a row the part of a wait that lies after from_ns. `wait` is the same as the span. */
static int span_to_row(struct downsample *downsample, const struct window_span *span,
		       const struct window_open *wait, int64_t from_ns)
{
	struct window_row row = wait_row(wait, downsample->map[span->image], from_ns, span->end_ns);
	struct row_sum *sum;

	row_set_span(&row, span);
	sum = row_sums_get(&downsample->sums, &row, NULL);
	if (!sum)
		return -ENOMEM;
	window_row_add(&sum->row, &row);
	sum->buckets[wait_bucket(row.max_ns)]++;
	return 0;
}

static int span_add(struct downsample *downsample, const struct window *window,
		    const struct window_span *span)
{
	const struct window_open wait = {
		.kernel = span->kernel,
		.user = span->user,
		.start_ns = span->start_ns,
		.wake_ns = span->wake_ns,
		.throttled_ns = span->throttled_ns,
		.image = span->image,
		.state = span->state,
	};
	const int64_t start_ns = downsample->out->start_ns;
	struct window_span *added;
	int64_t from_ns;
	int r = wait_from(downsample, window, &wait, &from_ns);

	if (r)
		return r;
	if (span->start_ns >= start_ns || from_ns > start_ns)
		return span_to_row(downsample, span, &wait, from_ns);
	added = window_add_span(downsample->out);
	if (!added)
		return -ENOMEM;
	*added = *span;
	added->image = downsample->map[span->image];
	stack_ref(span->kernel);
	stack_ref(span->user);
	return 0;
}

static int spans_add(struct downsample *downsample, const struct window *window)
{
	size_t i;
	int r = 0;

	for (i = 0; i < window->n_spans && !r; i++)
		r = span_add(downsample, window, &window->spans[i]);
	return r;
}

/*
 * Adds a wait that had not ended at the end of the last window. If rows include a part of its time
 * already, adds the rest of its time to a row, too.
 */
static int open_keep(struct downsample *downsample, const struct window *window,
		     const struct window_open *open)
{
	struct window_open *added = window_add_open(downsample->out);
	int64_t from_ns = INT64_MIN;
	int r = 0;

	if (!added)
		return -ENOMEM;
	*added = *open;
	added->image = downsample->map[open->image];
	stack_ref(open->kernel);
	stack_ref(open->user);
	if (!open->count)
		r = wait_from(downsample, window, open, &from_ns);
	if (r || from_ns <= downsample->out->start_ns || from_ns <= open->start_ns)
		return r;
	added->count = 1;
	added->whole_ns = (uint64_t)(window->end_ns - open->start_ns);
	added->whole_runnable_ns =
		window_overlap_ns(open->wake_ns, window->end_ns, INT64_MIN, INT64_MAX);
	return wait_to_row(downsample, open, from_ns, window->end_ns);
}

/*
 * Adds a wait that had not ended at the end of an earlier window than the last one. If it ended in
 * a later window, or is in the last one, notes only that no row includes its time in `window` yet,
 * because the wait is added with that later window. Else adds this time to a row. Skips a folded
 * wait, because rows include its time already.
 */
static int open_pass(struct downsample *downsample, const struct window *window,
		     const struct window_open *open)
{
	struct wait_entry *entry;
	int64_t from_ns;
	int r;

	if (open->count)
		return 0;
	entry = wait_find(downsample, window, open->image, open->start_ns);
	if (!entry)
		return wait_to_row(downsample, open, window->start_ns, window->end_ns);
	r = wait_from(downsample, window, open, &from_ns);
	if (r)
		return r;
	entry->from_ns = from_ns == INT64_MIN ? window->start_ns : from_ns;
	entry->until_ns = window->end_ns;
	return 0;
}

static int opens_add(struct downsample *downsample, const struct window *window, bool is_last)
{
	size_t i;
	int r = 0;

	for (i = 0; i < window->n_opens && !r; i++)
		r = is_last ? open_keep(downsample, window, &window->opens[i])
			    : open_pass(downsample, window, &window->opens[i]);
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

static int window_sum(struct window *out, const struct window *window)
{
	unsigned int i;

	for (i = 0; i < WINDOW_LOST_N; i++)
		out->lost[i] += window->lost[i];
	out->lost_ns += window->lost_ns;
	out->switch_ins += window->switch_ins;
	out->sampled += window->sampled;
	out->merged_from += window->merged_from;
	if (window->sample_below_ns > out->sample_below_ns)
		out->sample_below_ns = window->sample_below_ns;
	window_folded_add(&out->folded, &window->folded);
	window_cost_add(&out->cost, &window->cost);
	window_spawns_add(&out->spawns, &window->spawns);
	if (window_held_add(&out->held, &window->held))
		return -ENOMEM;
	return window_pressure_add(&out->pressure, &window->pressure);
}

/* Adds what `window` has. is_last: no later window is merged with it. */
static int window_add(struct downsample *downsample, const struct window *window, bool is_last)
{
	int r = window_sum(downsample->out, window);

	if (r)
		return r;
	r = images_add(downsample, window);
	if (r)
		return r;
	r = members_add(downsample, window);
	if (r)
		return r;
	r = rows_add(downsample, window);
	if (r)
		return r;
	r = samples_add(downsample, window);
	if (r)
		return r;
	r = ios_add(downsample, window, is_last);
	if (r)
		return r;
	r = spans_add(downsample, window);
	return r ? r : opens_add(downsample, window, is_last);
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
	out->merged_from = 0;
	for (i = 0; i < n && !r; i++)
		r = window_add(downsample, windows[i], i + 1 == n);
	if (r)
		return r;
	r = window_set_members(out, downsample->members, downsample->n_members);
	return r ? r : row_sums_finish(&downsample->sums, out);
}

static void downsample_fini(struct downsample *downsample)
{
	key_table_fini(&downsample->images);
	key_table_fini(&downsample->waits);
	row_sums_fini(&downsample->sums);
	free(downsample->map);
	free(downsample->members);
}

int store_downsample(struct window *const *windows, size_t n, struct window **out)
{
	struct downsample downsample = {
		.out = window_new(),
		.images = KEY_TABLE(struct image_entry),
		.waits = KEY_TABLE(struct wait_entry),
		.sums = ROW_SUMS,
	};
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
