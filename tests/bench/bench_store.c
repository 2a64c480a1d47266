/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures how much disk a day of 5 s windows takes, and how long it takes to aggregate an hour of
 * them. Windows are made up, with about as many threads, rows and stacks as a busy host of two CPUs
 * has; each window has some stacks that no window before it had.
 * Arguments: a directory, windows (17280), rows in each (600), new stacks in each (6).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/base.h"
#include "daemon/query/aggregate.h"
#include "daemon/store/store.h"
#include "daemon/store/timeline.h"

#define LENGTH_NS (5 * NS_PER_S)

enum { THREADS = 300, FRAMES = 24, RECENT = 2000, HOUR = 720, DAY = 17280, NO_PID = 0x3f000000 };

struct bench {
	struct process_table *processes;
	struct process *process[THREADS / 4];
	struct stack stacks[RECENT];
	uint64_t next_stack;
	uint32_t random;
};

static struct bench bench = { .random = 1 };

static void *must(void *p)
{
	if (!p)
		exit(1);
	return p;
}

static uint32_t chance(uint32_t n)
{
	bench.random = bench.random * 1664525 + 1013904223;
	return (bench.random >> 8) % n;
}

/* Stacks share frames: there are far fewer functions than stacks. */
static struct frame *frame_get(uint32_t i)
{
	static struct frame *frames[12000];
	char name[64];

	if (frames[i])
		return frames[i];
	frames[i] = must(calloc(1, sizeof(**frames)));
	snprintf(name, sizeof(name), "some_function_of_usual_length_%u", i);
	frames[i]->kind = FRAME_NATIVE;
	frames[i]->file_id = UINT64_C(0x9e3779b97f4a7c15) * (i / 400 + 1);
	frames[i]->file_offset = i * 48;
	frames[i]->name = must(strdup(name));
	snprintf(name, sizeof(name), "/usr/lib/x86_64-linux-gnu/libmodule%u.so.6", i / 400);
	frames[i]->module = must(strdup(name));
	return frames[i];
}

static void stack_new(struct stack *stack)
{
	uint64_t id = ++bench.next_stack;
	size_t i;

	if (!stack->frames)
		stack->frames = must(calloc(FRAMES, sizeof(*stack->frames)));
	for (i = 0; i < FRAMES; i++)
		stack->frames[i] = frame_get(chance(i < 4 ? 200 : 12000));
	stack->n_frames = FRAMES;
	stack->raw_id = 1000 + id;
	stack->id = stack->place_id = id * UINT64_C(0x9e3779b97f4a7c15);
	stack->refs = 1;
	stack->is_resolved = true;
}

static void processes_make(void)
{
	struct process_info info = { .exe = "/usr/sbin/program", .comm = "program" };
	size_t i;

	info.cgroup = "/system.slice/program.service";
	if (process_table_new_stored(&bench.processes))
		exit(1);
	for (i = 0; i < THREADS / 4; i++) {
		info.id.pid = NO_PID + (int32_t)(4 * i);
		info.id.start_boot_ns = 1000 + i;
		bench.process[i] = must(process_table_add_stored(bench.processes, &info));
	}
}

static void row_make(struct window *window, uint32_t image)
{
	uint32_t place = chance(6);
	struct window_row *row = must(window_add_row(window));
	uint32_t buckets[WAIT_BUCKETS] = { [8] = chance(300) };

	buckets[9 + chance(6)] = chance(50);
	row->image = image;
	/* A thread waits in a few functions, again and again. */
	row->kernel = stack_ref(&bench.stacks[(image + place) % 100]);
	row->user = image % 4 ? stack_ref(&bench.stacks[100 + (image * 6 + place) % (RECENT - 100)])
			      : NULL;
	row->count = 1 + chance(300);
	row->blocked_ns = row->count * (100000 + chance(5000000));
	row->runnable_ns = row->count * chance(100000);
	row->max_ns = 200000 + chance(9000000);
	row->max_end_ns = window->start_ns + (int64_t)chance(1000000) * 5000;
	row->state = place ? 1 : 2;
	window_row_set_buckets(window, row, buckets);
}

static struct window *window_make(uint64_t seq, size_t rows, size_t fresh, int64_t real_offset_ns)
{
	struct window *window = must(window_new());
	size_t i;

	for (i = 0; i < fresh; i++)
		stack_new(&bench.stacks[100 + chance(RECENT - 100)]);
	window->seq = seq;
	window->session = 1;
	window->start_ns = (int64_t)seq * LENGTH_NS;
	window->end_ns = window->start_ns + LENGTH_NS;
	window->real_offset_ns = real_offset_ns;
	for (i = 0; i < THREADS; i++) {
		struct window_image *image = must(window_add_image(window));
		struct window_open *open = i % 2 ? must(window_add_open(window)) : NULL;

		image->uid = image->start_boot_ns = 1 + i;
		image->tid = NO_PID + (int32_t)i;
		image->process = process_ref(bench.process[i / 4]);
		memcpy(image->comm, "worker", 7);
		image->sums.on_ns = chance(100000000);
		image->sums.blocked_ns = 4000000000 + chance(100000000);
		image->sums.runnable_ns = chance(10000000);
		image->sums.switches = chance(1000);
		image->sums.short_count = chance(400);
		image->sums.short_blocked_ns = chance(20000000);
		if (!open)
			continue;
		open->image = (uint32_t)i;
		open->start_ns = 1000 + (int64_t)i;
		open->wake_ns = INT64_MAX;
		open->kernel = stack_ref(&bench.stacks[i % 100]);
	}
	for (i = 0; i < rows; i++)
		row_make(window, (uint32_t)(i % THREADS));
	window_seal(window);
	return window;
}

static void hour_aggregate(const char *path, int64_t since, int64_t until)
{
	const struct timeline_session session = { .probe = "offcpu" };
	const struct timeline_list *list, none = {};
	struct aggregate_options options = { .by = AGGREGATE_BY_STACK };
	int64_t begin = clock_ns(CLOCK_MONOTONIC), took;
	int64_t cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct timeline_source source = {};
	struct aggregate *aggregate;
	struct timeline *timeline;
	struct wire_error error;
	struct filter filter;
	size_t n;

	if (filter_init(&filter, NULL, &error) || store_reader_open(path, &source.reader) ||
	    timeline_open(&source, &session, since, until, &timeline))
		exit(1);
	list = timeline_range(timeline);
	if (aggregate_new(list, &none, &filter, &options, NULL, &aggregate))
		exit(1);
	aggregate_groups(aggregate, &n);
	took = clock_ns(CLOCK_MONOTONIC) - begin;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%zu windows aggregated into %zu rows in %.0f ms, %.0f ms of CPU (goal: an hour in "
	       "300)\n",
	       list->n, n, (double)took / 1e6, (double)cpu / 1e6);
	aggregate_free(aggregate);
	timeline_close(timeline);
	store_reader_close(source.reader);
}

/*
 * Returns how much a day takes. Most stacks and frames are written in the first minutes, so a short
 * run cannot be multiplied.
 */
static double day_mib(uint64_t windows, uint64_t bytes, uint64_t half_bytes)
{
	double grown = (double)(bytes - half_bytes) / (double)(windows - windows / 2);

	return ((double)bytes + grown * ((double)DAY - (double)windows)) / (1 << 20);
}

int main(int argc, char **argv)
{
	uint64_t windows = argc > 2 ? strtoull(argv[2], NULL, 10) : DAY, seq;
	size_t rows = argc > 3 ? strtoull(argv[3], NULL, 10) : 600;
	size_t fresh = argc > 4 ? strtoull(argv[4], NULL, 10) : 6, i;
	int64_t now = clock_ns(CLOCK_REALTIME), offset = now - (int64_t)windows * LENGTH_NS, begin;
	struct store_options options = { .max_size = UINT64_C(8) << 30,
					 .max_age_ns = INT64_MAX / 4,
					 .tiers = { { LENGTH_NS, INT64_MAX / 4, 100 } },
					 .n_tiers = 1,
					 .boot_id = "bench" };
	struct store_stats stats;
	struct rusage usage;
	uint64_t half_bytes = 0;
	struct store *store;
	char *path;

	if (argc < 2 || asprintf(&path, "%s/bench.db", argv[1]) < 0)
		return 1;
	options.path = path;
	processes_make();
	for (i = 0; i < RECENT; i++)
		stack_new(&bench.stacks[i]);
	if (store_start(&options, &store))
		return 1;
	begin = clock_ns(CLOCK_MONOTONIC);
	for (seq = 1; seq <= windows; seq++) {
		struct window *window = window_make(seq, rows, fresh, offset);

		store_add(store, window);
		window_unref(window);
		do {
			store_stats(store, &stats);
			if (stats.queued > STORE_QUEUE_MAX / 2)
				usleep(1000);
		} while (stats.queued > STORE_QUEUE_MAX / 2);
		if (seq == windows / 2)
			half_bytes = stats.bytes;
	}
	do {
		usleep(10000);
		store_stats(store, &stats);
	} while (stats.written + stats.dropped_write < windows);
	printf("%" PRIu64 " windows of %zu rows, %" PRIu64
	       " stacks: %.1f MiB, %.0f bytes a window, "
	       "%.0f MiB a day (goal 512), %.2f ms to write one\n",
	       stats.written, rows, bench.next_stack, (double)stats.bytes / (1 << 20),
	       (double)stats.bytes / (double)stats.written,
	       day_mib(stats.written, stats.bytes, half_bytes),
	       (double)(clock_ns(CLOCK_MONOTONIC) - begin) / 1e6 / (double)windows);
	for (i = 0; i < 3; i++)
		hour_aggregate(path, now - HOUR * LENGTH_NS, now);
	getrusage(RUSAGE_SELF, &usage);
	printf("at most %ld MiB of memory\n", usage.ru_maxrss / 1024);
	store_stop(store);
	return 0;
}
