/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/session/totals.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/hash_table.h"
#include "common/utf8.h"
#include "daemon/base/log.h"
#include "daemon/window/idle_wait.h"
#include "daemon/window/reason_find.h"

struct totals {
	pthread_mutex_t lock;
	struct totals_data data;
	/*
	 * By index of the unit; the last one is for `others`. seen_ns: end of the last window in
	 * which the unit had threads. owed_ns: what estimates of a class were above the exact time
	 * of the unit, and is to be added with later windows.
	 */
	int64_t seen_ns[TOTALS_UNITS];
	uint64_t owed_ns[TOTALS_UNITS + 1][WAIT_CLASS_N];
	/* the newest window of offcpu, until all of its units are known; NULL: there is none */
	struct window *held;
};

/* The sums of a unit within one window. */
struct unit_sums {
	char path[TOTALS_UNIT_LEN];
	uint64_t exact_ns; /* the blocked time of its threads */
	uint64_t blocked_ns[WAIT_CLASS_N];
	uint64_t runnable_ns;
	uint64_t throttled_ns;
	size_t place; /* index in data.units; TOTALS_UNITS: it has none */
	UT_hash_handle hh;
};

_Static_assert(TOTALS_UNIT_LEN % sizeof(uint64_t) == 0, "hash_table.h wants whole words");

struct window_sums {
	struct unit_sums *units; /* a hash table */
	struct unit_sums **of_image;
	bool *is_kernel; /* by image: it is a thread of the kernel */
};

size_t totals_unit_length(const char *cgroup)
{
	static const char slice[] = ".slice";
	const size_t suffix = sizeof(slice) - 1;
	const char *at = cgroup, *end;

	while (*at == '/') {
		end = at + 1 + strcspn(at + 1, "/");
		if ((size_t)(end - at) <= suffix + 1 || memcmp(end - suffix, slice, suffix) != 0)
			return (size_t)(end - cgroup);
		at = end;
	}
	return (size_t)(at - cgroup);
}

int totals_new(struct totals **out)
{
	struct totals *totals = calloc(1, sizeof(*totals));

	if (!totals)
		return -ENOMEM;
	pthread_mutex_init(&totals->lock, NULL);
	*out = totals;
	return 0;
}

struct totals *totals_free(struct totals *totals)
{
	if (!totals)
		return NULL;
	window_unref(totals->held);
	pthread_mutex_destroy(&totals->lock);
	free(totals);
	return NULL;
}

static void window_sums_fini(struct window_sums *sums)
{
	struct unit_sums *unit, *next;

	HASH_ITER (hh, sums->units, unit, next) {
		HASH_DEL(sums->units, unit);
		free(unit);
	}
	free(sums->of_image);
	free(sums->is_kernel);
}

/*
 * True if a path of n bytes can be a label: in answers, paths that are no UTF-8 might look like one
 * another, and control characters reach terminals and readers that split lines at them.
 */
static bool is_label(const char *path, size_t n)
{
	size_t at = 0, length;

	while (at < n) {
		length = utf8_length(path + at);
		if (!length || (unsigned char)path[at] < ' ' || path[at] == 0x7f)
			return false;
		at += length;
	}
	return n < TOTALS_UNIT_LEN;
}

/*
 * Returns the sums of the unit that a control group belongs to; those of the path "" if the group
 * is not known, or its name is too long or no UTF-8. NULL when out of memory.
 */
static struct unit_sums *unit_get(struct window_sums *sums, const char *cgroup)
{
	const size_t n = cgroup ? totals_unit_length(cgroup) : 0;
	char path[TOTALS_UNIT_LEN] = "";
	struct unit_sums *unit;

	if (n && is_label(cgroup, n))
		memcpy(path, cgroup, n);
	HASH_FIND(hh, sums->units, path, sizeof(path), unit);
	if (unit)
		return unit;
	unit = calloc(1, sizeof(*unit));
	if (!unit)
		return NULL;
	memcpy(unit->path, path, sizeof(path));
	unit->place = TOTALS_UNITS;
	HASH_ADD(hh, sums->units, path, sizeof(unit->path), unit);
	if (HASH_HAS(unit))
		return unit;
	free(unit);
	return NULL;
}

/* Adds the exact times of all threads to those of their units. Returns 0 or -ENOMEM. */
static int images_add(struct window_sums *sums, const struct window *window)
{
	struct process_info process;
	struct unit_sums *unit;
	size_t i;

	sums->of_image = calloc(window->n_images + 1, sizeof(struct unit_sums *));
	sums->is_kernel = calloc(window->n_images + 1, sizeof(bool));
	if (!sums->of_image || !sums->is_kernel)
		return -ENOMEM;
	for (i = 0; i < window->n_images; i++) {
		const struct window_image *image = &window->images[i];

		process_info_at(image->process, window_middle_ns(window), &process);
		unit = unit_get(sums, process.cgroup);
		if (!unit)
			return -ENOMEM;
		sums->of_image[i] = unit;
		sums->is_kernel[i] = process.is_kernel;
		unit->exact_ns += image->sums.blocked_ns;
		unit->runnable_ns += image->sums.runnable_ns;
		unit->throttled_ns += image->sums.throttled_ns;
	}
	return 0;
}

/* Adds the blocked time of waits of one thread, or of one folded entry, to a class of its unit. */
static void class_add(struct window_sums *sums, uint32_t image, uint32_t state,
		      struct stack *kernel, struct stack *user, uint64_t blocked_ns)
{
	enum wait_class class = WAIT_CLASS_IDLE;

	state &= ~STATE_SAMPLED;
	if (!wait_is_idle(state, sums->is_kernel[image], kernel, user))
		class = wait_class_of(reason_find(state, kernel, user));
	sums->of_image[image]->blocked_ns[class] += blocked_ns;
}

static void classes_add(struct window_sums *sums, const struct window *window)
{
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		const struct window_row *row = &window->rows[i];

		class_add(sums, row->image, row->state, row->kernel, row->user, row->blocked_ns);
	}
	for (i = 0; i < window->n_spans; i++) {
		const struct window_span *span = &window->spans[i];

		class_add(sums, span->image, span->state, span->kernel, span->user,
			  window_overlap_ns(span->start_ns, span->wake_ns, window->start_ns,
					    window->end_ns));
	}
	for (i = 0; i < window->n_opens; i++) {
		const struct window_open *open = &window->opens[i];

		/* The time of folded waits is in rows. */
		if (open->count)
			continue;
		class_add(sums, open->image, open->state, open->kernel, open->user,
			  window_overlap_ns(open->start_ns, open->wake_ns, window->start_ns,
					    window->end_ns));
	}
}

/* Returns the time of a unit that is not idle, by which units get counters of their own. */
static uint64_t unit_rank(const struct unit_sums *unit)
{
	uint64_t ns = unit->runnable_ns;
	unsigned int i;

	for (i = 0; i < WAIT_CLASS_N; i++)
		ns += i == WAIT_CLASS_IDLE ? 0 : unit->blocked_ns[i];
	return ns;
}

static int by_rank(struct unit_sums *a, struct unit_sums *b)
{
	const uint64_t x = unit_rank(a), y = unit_rank(b);

	return x != y ? (x < y ? 1 : -1) : strcmp(a->path, b->path);
}

/* Returns a free place for the counters of a unit; TOTALS_UNITS if there is none. */
static size_t place_find(const struct totals *totals, int64_t now_ns)
{
	size_t i, oldest = 0;

	if (totals->data.n_units < TOTALS_UNITS)
		return totals->data.n_units;
	for (i = 1; i < TOTALS_UNITS; i++)
		if (totals->seen_ns[i] < totals->seen_ns[oldest])
			oldest = i;
	return now_ns - totals->seen_ns[oldest] > TOTALS_GONE_NS ? oldest : TOTALS_UNITS;
}

static void place_take(struct totals *totals, struct unit_sums *unit, int64_t now_ns)
{
	const size_t place = place_find(totals, now_ns);
	struct totals_data *data = &totals->data;

	if (place == TOTALS_UNITS)
		return;
	if (place < data->n_units)
		data->given_up++;
	else
		data->n_units++;
	data->units[place] = (struct totals_unit){};
	memcpy(data->units[place].path, unit->path, sizeof(unit->path));
	memset(totals->owed_ns[place], 0, sizeof(totals->owed_ns[place]));
	totals->seen_ns[place] = now_ns;
	unit->place = place;
}

static void places_find(struct totals *totals, struct window_sums *sums, int64_t now_ns)
{
	struct unit_sums *unit;
	size_t i;

	for (i = 0; i < totals->data.n_units; i++) {
		HASH_FIND(hh, sums->units, totals->data.units[i].path, TOTALS_UNIT_LEN, unit);
		if (!unit)
			continue;
		unit->place = i;
		totals->seen_ns[i] = now_ns;
	}
	HASH_SORT(sums->units, by_rank);
	for (unit = sums->units; unit; unit = unit->hh.next)
		if (unit->path[0] && unit->place == TOTALS_UNITS && unit_rank(unit))
			place_take(totals, unit, now_ns);
}

/* Returns the class with the most time. */
static unsigned int longest_of(const uint64_t ns[static WAIT_CLASS_N])
{
	unsigned int i, longest = 0;

	for (i = 1; i < WAIT_CLASS_N; i++)
		if (ns[i] > ns[longest])
			longest = i;
	return longest;
}

/*
 * Adds the sums of a unit to its counters. The class `short` gets what is left of the exact time,
 * so that all classes together are exact. Where estimates are more than the exact time, the longest
 * class gets the rest of its time with later windows.
 */
static void unit_add(struct totals *totals, const struct unit_sums *sums)
{
	struct totals_unit *unit = sums->place < TOTALS_UNITS ? &totals->data.units[sums->place]
							      : &totals->data.others;
	uint64_t *owed_ns = totals->owed_ns[sums->place], ns[WAIT_CLASS_N], classes_ns = 0, cut_ns;
	unsigned int i;

	for (i = 0; i < WAIT_CLASS_N; i++) {
		ns[i] = sums->blocked_ns[i] + owed_ns[i];
		owed_ns[i] = 0;
		classes_ns += ns[i];
	}
	while (classes_ns > sums->exact_ns) {
		i = longest_of(ns);
		cut_ns = classes_ns - sums->exact_ns;
		if (cut_ns > ns[i])
			cut_ns = ns[i];
		ns[i] -= cut_ns;
		owed_ns[i] += cut_ns;
		classes_ns -= cut_ns;
	}
	ns[WAIT_CLASS_SHORT] += sums->exact_ns - classes_ns;
	for (i = 0; i < WAIT_CLASS_N; i++)
		unit->blocked_ns[i] += ns[i];
	unit->runnable_ns += sums->runnable_ns;
	unit->throttled_ns += sums->throttled_ns;
}

/* Adds waits of threads that were preempted or had not run yet: all of their length is run-queue
 * time. */
static void preempted_add(struct totals_data *data, const struct window *window)
{
	const uint32_t states = STATE_PREEMPTED | STATE_NEW;
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		const struct window_row *row = &window->rows[i];

		if (!(row->state & states))
			continue;
		data->preempted_ns += row->runnable_ns;
		window_row_add_buckets(window, row, data->preempted);
	}
	for (i = 0; i < window->n_spans; i++) {
		const struct window_span *span = &window->spans[i];
		const uint64_t ns = (uint64_t)(span->end_ns - span->start_ns);

		if (!(span->state & states))
			continue;
		data->preempted_ns += ns;
		data->preempted[wait_bucket(ns)]++;
	}
}

static void ios_add(struct totals_data *data, const struct window *window)
{
	size_t i;

	for (i = 0; i < window->n_ios; i++) {
		const struct window_io *io = &window->ios[i];
		struct totals_io *sum;

		/* Slow operations are also in a row of all operations. */
		if (io->is_slow || io->layer >= IO_LAYERS || io->op >= IO_OPS)
			continue;
		sum = &data->ios[io->layer][io->op];
		sum->count += io->count;
		sum->total_ns += io->total_ns;
		sum->bytes += io->bytes;
		sum->errors += io->errors;
		sum->async += io->async;
		window_io_add_buckets(window, io, sum->buckets);
	}
}

static void window_count(struct totals_data *data, const struct window *window)
{
	struct totals_probe *probe = &data->probes[window->kind];

	if (probe->windows && window->start_ns > probe->last_mono_ns)
		probe->gap_ns += (uint64_t)(window->start_ns - probe->last_mono_ns);
	probe->windows++;
	probe->covered_ns += (uint64_t)(window->end_ns - window->start_ns);
	probe->last_mono_ns = window->end_ns;
	probe->last_seq = window->seq;
	probe->last_ns = window->end_ns + window->real_offset_ns;
}

/* Adds a window of offcpu to the counters of units, of the host's pressure and of preemption. */
static void units_add(struct totals *totals, const struct window *window)
{
	_cleanup_(window_sums_fini) struct window_sums sums = {};
	struct totals_data *data = &totals->data;
	struct unit_sums *unit;
	int r = images_add(&sums, window);

	if (r) {
		log_err(r, "add a window to the totals");
		data->not_added++;
		return;
	}
	classes_add(&sums, window);
	places_find(totals, &sums, window->end_ns);
	for (unit = sums.units; unit; unit = unit->hh.next)
		unit_add(totals, unit);
	preempted_add(data, window);
	data->pressure_ns += window->pressure.ns;
	data->pressure_state = window->pressure.state;
	pressure_add(&data->stalled, &window->pressure.stalled);
}

static void window_add(struct totals *totals, const struct window *window)
{
	window_count(&totals->data, window);
	ios_add(&totals->data, window);
	if (window->kind == PROBE_OFFCPU)
		units_add(totals, window);
}

/*
 * True if the units of all threads are known, or will never be: that of a process is read from
 * /proc as long as it lives, and a folded entry keeps what was known of its processes.
 */
static bool has_all_units(const struct window *window)
{
	struct process_info process;
	size_t i;

	for (i = 0; i < window->n_images; i++) {
		process_info_at(window->images[i].process, window_middle_ns(window), &process);
		if (!process.cgroup && !process.has_exited && !process.is_replaced &&
		    !process.is_folded && process.id.pid)
			return false;
	}
	return true;
}

/* Adds the window that is held back, if there is one. */
static void held_add(struct totals *totals)
{
	if (!totals->held)
		return;
	window_add(totals, totals->held);
	totals->held = window_unref(totals->held);
}

void totals_add(struct totals *totals, struct window *window)
{
	pthread_mutex_lock(&totals->lock);
	if (window->kind == PROBE_OFFCPU)
		held_add(totals);
	if (window->kind == PROBE_OFFCPU && !has_all_units(window))
		totals->held = window_ref(window);
	else
		window_add(totals, window);
	pthread_mutex_unlock(&totals->lock);
}

void totals_read(struct totals *totals, struct totals_data *out)
{
	pthread_mutex_lock(&totals->lock);
	if (totals->held && has_all_units(totals->held))
		held_add(totals);
	*out = totals->data;
	pthread_mutex_unlock(&totals->lock);
}
