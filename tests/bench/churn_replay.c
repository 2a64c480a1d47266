/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the windows of a recorded database several times, one copy after the other, the last of
 * which ends now, so that bench_history.py has minutes of churn to ask about. In each copy, all
 * processes and threads are other ones. Arguments: the database, a new one, the number of copies,
 * and the number of rows to which each window is folded (0: windows are not folded).
 *
 * With two more arguments, it measures how the store makes room: max_size in MiB, to which the new
 * database is limited, with the default tiers; and the milliseconds from one window to the next,
 * whether the store has written the one or not. It then prints how long the queue became, the CPU
 * time of the store's thread for each window, and how far back the tiers reach.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/store/reader.h"
#include "daemon/store/store.h"
#include "daemon/window/fold.h"

enum { PID_STEP = 100000, UID_STEP_BITS = 40 };

static struct process_table *processes;

static void *must(void *p)
{
	if (!p)
		exit(1);
	return p;
}

/* Moves a time of the window by `shift`; INT64_MAX stands for never. */
static void time_move(int64_t *time, int64_t shift)
{
	if (*time != INT64_MAX)
		*time += shift;
}

static void images_move(struct window *window, unsigned int copy, int64_t shift)
{
	struct process_info info;
	struct process *last = NULL, *made = NULL;
	size_t i;

	for (i = 0; i < window->n_images; i++) {
		struct window_image *image = &window->images[i];

		image->uid += (uint64_t)copy << UID_STEP_BITS;
		image->start_boot_ns += (uint64_t)shift;
		if (image->process != last) {
			last = image->process;
			process_info(last, &info);
			if (info.id.pid > 2 && !info.is_kernel) {
				info.id.pid += (int32_t)copy * PID_STEP;
				image->tid += (int32_t)copy * PID_STEP;
			}
			info.id.start_boot_ns += (uint64_t)shift;
			made = must(process_table_add_stored(processes, &info));
		}
		image->process = made;
	}
}

static void window_move(struct window *window, uint64_t seq, unsigned int copy, int64_t shift)
{
	size_t i;

	window->seq = seq;
	window->start_ns += shift;
	window->end_ns += shift;
	images_move(window, copy, shift);
	for (i = 0; i < window->n_rows; i++)
		time_move(&window->rows[i].max_end_ns, shift);
	for (i = 0; i < window->n_spans; i++) {
		time_move(&window->spans[i].start_ns, shift);
		time_move(&window->spans[i].wake_ns, shift);
		time_move(&window->spans[i].end_ns, shift);
	}
	for (i = 0; i < window->n_opens; i++) {
		time_move(&window->opens[i].start_ns, shift);
		time_move(&window->opens[i].wake_ns, shift);
	}
}

/* Takes over a window and returns it, or what it is folded to. */
static struct window *window_of(struct window *window, const struct window_fold_limits *limits)
{
	struct window *folded = NULL;

	if (window_fold(window, limits, &folded) || !folded)
		return window;
	if (folded != window)
		window_unref(window);
	return folded;
}

static size_t queued_max;

static void window_write(struct store *store, struct window *window, useconds_t pace_us)
{
	struct store_stats stats;

	store_add(store, window);
	window_unref(window);
	if (pace_us) {
		usleep(pace_us);
		store_stats(store, &stats);
		if (stats.queued > queued_max)
			queued_max = stats.queued;
		return;
	}
	do {
		store_stats(store, &stats);
		if (stats.queued > 1)
			usleep(1000);
	} while (stats.queued > 1);
}

/* Limits the database to max_size bytes and sets the default tiers. */
static void limit(struct store_options *options, uint64_t max_size,
		  const struct window_fold_limits *limits)
{
	static const struct store_tier tiers[] = {
		{ 5 * NS_PER_S, 3600 * NS_PER_S, 25 },
		{ 60 * NS_PER_S, 24 * 3600 * NS_PER_S, 35 },
		{ 600 * NS_PER_S, 30 * 24 * 3600 * NS_PER_S, 40 },
	};

	options->max_size = max_size;
	options->fold = *limits;
	options->n_tiers = 3;
	memcpy(options->tiers, tiers, sizeof(tiers));
}

/* Prints what making room has cost. cpu_ns is the CPU time of the main thread. */
static void room_print(struct store *store, int64_t cpu_ns)
{
	struct store_stats stats;
	size_t i;

	store_stats(store, &stats);
	printf("at most %zu windows queued, %.1f ms of CPU a window; %" PRIu64 " evicted\n",
	       queued_max,
	       (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns) / 1e6 / (double)stats.written,
	       stats.evicted_size + stats.evicted_age);
	for (i = 0; i < stats.n_tiers; i++) {
		const struct store_tier_stats *tier = &stats.tiers[i];
		int64_t span = tier->windows ? tier->newest_ns - tier->oldest_ns : 0;

		printf("tier %zu: %" PRIu64 " windows, %.1f of %.1f MiB, %" PRIu64
		       " rows, %.1f min\n",
		       i, tier->windows, (double)tier->bytes / (1 << 20),
		       (double)tier->max_bytes / (1 << 20), tier->max_rows, (double)span / 60e9);
	}
}

int main(int argc, char **argv)
{
	unsigned int copies = argc > 3 ? (unsigned int)atoi(argv[3]) : 5, copy;
	struct store_options options = { .path = argc > 2 ? argv[2] : NULL,
					 .max_size = UINT64_C(8) << 30,
					 .max_age_ns = INT64_MAX / 4,
					 .tiers = { { 5 * NS_PER_S, INT64_MAX / 4, 100 } },
					 .n_tiers = 1,
					 .boot_id = "bench" };
	const struct store_select all = {};
	const struct window_fold_limits limits = {
		.max_rows = argc > 4 ? strtoul(argv[4], NULL, 10) : 0,
		.max_folded = argc > 4 ? strtoul(argv[4], NULL, 10) : 0,
		.max_sums = argc > 4 ? strtoul(argv[4], NULL, 10) / WINDOW_SUMS_SHARE : 0,
	};
	int64_t first = INT64_MAX, last = INT64_MIN, span, offset;
	struct store_reader *reader;
	struct store_entry *entries;
	struct store_stats stats;
	struct window *window;
	struct store *store;
	useconds_t pace_us = argc > 6 ? (useconds_t)(1000 * atof(argv[6])) : 0;
	uint64_t seq = 0;
	size_t n, i;

	if (argc > 5)
		limit(&options, strtoull(argv[5], NULL, 10) << 20, &limits);
	if (argc < 3 || store_reader_open(argv[1], &reader) ||
	    store_reader_list(reader, &all, INT64_MIN, INT64_MAX, STORE_LIST_MAX, &entries, &n) ||
	    process_table_new_stored(&processes) || store_start(&options, &store))
		return 1;
	for (i = 0; i < n; i++) {
		first = store_entry_start(&entries[i]) < first ? store_entry_start(&entries[i])
							       : first;
		last = store_entry_end(&entries[i]) > last ? store_entry_end(&entries[i]) : last;
	}
	span = last - first;
	offset = clock_ns(CLOCK_REALTIME) - last;
	for (copy = 0; copy < copies; copy++) {
		for (i = 0; i < n; i++) {
			int64_t shift = ((int64_t)copy + 1 - copies) * span + offset;

			if (store_reader_load(reader, &entries[i], &window))
				return 1;
			window_move(window, ++seq, copy, shift);
			window_write(store, window_of(window, &limits), pace_us);
		}
	}
	do {
		usleep(10000);
		store_stats(store, &stats);
	} while (stats.written + stats.dropped_write + stats.dropped_queue < seq);
	printf("%" PRIu64 " windows, %.1f min, %.0f MiB, %" PRIu64 " dropped\n", stats.written,
	       (double)copies * (double)span / 60e9, (double)stats.bytes / (1 << 20),
	       stats.dropped_queue + stats.dropped_write);
	if (argc > 5)
		room_print(store, clock_ns(CLOCK_THREAD_CPUTIME_ID));
	store_stop(store);
	return 0;
}
