/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Simulates a month of a host whose processes come and go, and prints how far back each tier of the
 * store reaches in 512 MiB. It replays the windows of the always-on probes from a database that
 * stackd recorded on such a host for at least ten minutes, again and again. Each time, processes
 * that were not there all the time are new ones, and stacks that only one window had are new
 * stacks, one in five of them with a frame that is new, too.
 *
 * Before that, it compares the 20 greatest by comm and stacks of each five minutes of the recording
 * with those of the folded windows, and those of all of it with those of one merged window. Waits
 * of preempted threads are left out.
 *
 * To be done within an hour, all but the last day is written in windows of ten minutes, and all but
 * the last hours in windows of one minute, made by the functions that the store uses. The last
 * hours are windows of 5 s, folded as they are when they are recorded.
 *
 * A scale of 10 simulates a tenth of it all: 3 days, 51 MiB, tiers that reach a tenth as far back.
 * A level of 1 to 4 begins with windows whose rows the store has halved so many times: it would
 * come to that by itself, but only after a long time. "steady" leaves out all processes that began
 * after the recording: what is left is a host where processes do not come and go. A list such as
 * ",postgres,nginx," also leaves out all other programs, but no kernel thread.
 *
 * Arguments: a database, an empty directory, scale (1), level (0), "steady", list of programs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "common/base.h"
#include "common/hash_table.h"
#include "daemon/store/downsample.h"
#include "daemon/store/store.h"
#include "tests/bench/month_top.h"

#define LENGTH_NS (5 * NS_PER_S)
#define MINUTE_NS (60 * NS_PER_S)
#define HOUR_NS	  (3600 * NS_PER_S)

/* LOOP: the most 5 s windows of a probe that are replayed; LOOP_LEAST: the least. */
enum {
	PROBES = 3,
	LOOP = 120,
	LOOP_LEAST = 24,
	MINUTE = 12, /* windows of 5 s in a minute */
	RANGE = 5,   /* minutes of a range whose 20 greatest are compared */
	ROWS = 500,
	PREEMPTED = 3,
	MEMBERS_A_ROW = 2, /* pids of folded processes, as in compact.c */
	NEW_FRAMES = 5,
	DAY = 24,
};

static const enum probe_kind kinds[PROBES] = { PROBE_OFFCPU, PROBE_ONCPU, PROBE_IOLAT };
static const struct window_fold_limits limits = {
	.max_rows = ROWS,
	.max_folded = ROWS,
	.max_sums = ROWS / WINDOW_SUMS_SHARE,
	.preempted_percent = PREEMPTED,
};

/* A process or stack of the recording, and the one that stands for it in this turn of the loop. */
struct known {
	const void *old;
	void *new;
	uint64_t last_window; /* the last window that had it, counted from 1 */
	uint64_t windows;     /* number of windows that had it */
	UT_hash_handle hh;
};

struct probe {
	struct window *windows[LOOP];
	size_t n;
	struct window *minutes[LOOP];
	size_t n_minutes;
	struct window *ten; /* all windows as one */
	/*
	 * For each minute, sums of the windows as they were recorded: one by one, and merged into
	 * one window, in which a wait that went on in several of them is one.
	 */
	struct top_sums real[LOOP / MINUTE];
	struct top_sums real_merged[LOOP / MINUTE];
	struct top_sums real_whole; /* all minutes, merged into one window */
};

static struct probe probes[PROBES];
static struct known *known;
static struct process_table *processes;
static uint64_t turn, next_seq = 1;
static uint64_t wanted; /* the number of windows that the open store should have written */
static int64_t now_ns, scale = 1;
static unsigned int level;
static bool is_steady;
static const char *comms;	  /* names of the programs that stay, between commas; NULL: all */
static uint64_t recorded_boot_ns; /* when the recording began, in ns since the boot */

static int64_t now(clockid_t clock)
{
	return now_ns;
}

static void *must(void *p)
{
	if (!p)
		exit(1);
	return p;
}

static void check(int r, const char *what)
{
	if (!r)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-r));
	exit(1);
}

static struct known *known_of(const void *old)
{
	struct known *entry;

	HASH_FIND(hh, known, &old, sizeof(old), entry);
	if (entry)
		return entry;
	entry = must(calloc(1, sizeof(*entry)));
	entry->old = old;
	HASH_ADD(hh, known, old, sizeof(old), entry);
	return entry;
}

static void seen(const void *old, uint64_t window)
{
	struct known *entry = old ? known_of(old) : NULL;

	if (entry && entry->last_window != window) {
		entry->last_window = window;
		entry->windows++;
	}
}

static struct process *process_of(struct process *old)
{
	struct known *entry = known_of(old);
	struct process_info info;

	process_info(old, &info);
	if (info.is_folded || entry->windows > LOOP / 2)
		return process_ref(old);
	if (!entry->new) {
		info.id.start_boot_ns += turn << 40;
		entry->new = must(process_table_add_stored(processes, &info));
	}
	return process_ref(entry->new);
}

static struct stack *stack_of(struct stack *old)
{
	struct known *entry = old ? known_of(old) : NULL;
	struct stack *stack;
	struct frame *frame;

	if (!entry || entry->windows > 1 || !old->n_frames)
		return old;
	if (entry->new)
		return entry->new;
	entry->new = stack = must(calloc(1, sizeof(*stack)));
	stack->flags = old->flags & ~(unsigned int)STACK_IS_AMBIGUOUS;
	stack->is_idle = old->is_idle;
	stack->is_resolved = true;
	stack->refs = 1U << 30;
	stack->n_frames = old->n_frames;
	stack->frames = must(calloc(old->n_frames, sizeof(*stack->frames)));
	memcpy(stack->frames, old->frames, old->n_frames * sizeof(*stack->frames));
	if (old->id % NEW_FRAMES == 0) {
		stack->frames[0] = frame = must(malloc(sizeof(*frame)));
		*frame = *old->frames[0];
		frame->file_offset += turn << 32;
	}
	stack->id = stack->raw_id = stack->place_id = old->id ^ turn * UINT64_C(0x9e3779b97f4a7c15);
	return stack;
}

/* Begins the next turn of the loop: forgets the processes and stacks of the last one. */
static void turn_next(void)
{
	struct known *entry, *next;

	turn++;
	HASH_ITER (hh, known, entry, next)
		entry->new = NULL; /* a few MiB a turn are not worth to be freed */
	check(process_table_new_stored(&processes), "processes");
}

#define STACKS_NEW(array, n)                                                 \
	for (i = 0; i < (n); i++) {                                          \
		struct stack *kernel = stack_of(window->array[i].kernel);    \
		struct stack *user = stack_of(window->array[i].user);        \
                                                                             \
		window->array[i].kernel = kernel ? stack_ref(kernel) : NULL; \
		window->array[i].user = user ? stack_ref(user) : NULL;       \
	}

/* Returns a copy of the window that ends at end_ns, with the processes and stacks of this turn. */
static struct window *replay(struct window *old, int64_t end_ns, int64_t length_ns)
{
	int64_t shift = end_ns - old->end_ns;
	struct window *window;
	size_t i;

	check(store_downsample(&old, 1, &window), "copy a window");
	window->seq = next_seq++;
	window->merged_from = (uint32_t)(length_ns / LENGTH_NS);
	window->end_ns = end_ns;
	window->start_ns = end_ns - length_ns;
	window->real_offset_ns = window->boot_offset_ns = 0;
	for (i = 0; i < window->n_images; i++) {
		struct process *process = process_of(window->images[i].process);

		if (process != window->images[i].process)
			window->images[i].uid ^= turn << 40;
		window->images[i].process = process;
	}
	STACKS_NEW(rows, window->n_rows)
	STACKS_NEW(spans, window->n_spans)
	STACKS_NEW(opens, window->n_opens)
	STACKS_NEW(samples, window->n_samples)
	STACKS_NEW(ios, window->n_ios)
	for (i = 0; i < window->n_spans; i++) {
		window->spans[i].start_ns += shift;
		window->spans[i].wake_ns += shift;
		window->spans[i].end_ns += shift;
	}
	for (i = 0; i < window->n_opens; i++) {
		window->opens[i].start_ns += shift;
		if (window->opens[i].wake_ns != INT64_MAX)
			window->opens[i].wake_ns += shift;
	}
	return window;
}

static void window_seen(const struct window *window, uint64_t number)
{
	size_t i;

	for (i = 0; i < window->n_images; i++)
		seen(window->images[i].process, number);
	for (i = 0; i < window->n_rows; i++) {
		seen(window->rows[i].kernel, number);
		seen(window->rows[i].user, number);
	}
	for (i = 0; i < window->n_samples; i++) {
		seen(window->samples[i].kernel, number);
		seen(window->samples[i].user, number);
	}
}

static struct window *merge(struct window **windows, size_t n, unsigned int times)
{
	const struct window_fold_limits halved = store_fold_limits(&limits, times);
	struct window *merged, *folded;

	check(store_downsample(windows, n, &merged), "merge");
	check(window_fold(merged, &halved, &folded), "fold");
	if (folded->n_members > MEMBERS_A_ROW * store_fold_rows(&limits, times))
		folded->n_members = MEMBERS_A_ROW * store_fold_rows(&limits, times);
	window_unref(merged);
	return folded;
}

static struct store *store_begin(const char *path, bool is_month)
{
	struct store_options options = {
		.path = path,
		.max_size = is_month ? (UINT64_C(512) << 20) / (uint64_t)scale : UINT64_C(64) << 30,
		.max_age_ns = is_month ? 31 * DAY * HOUR_NS : INT64_MAX / 2,
		.tiers = { { LENGTH_NS, INT64_MAX / 2, 100 } },
		.n_tiers = 1,
		.fold = limits,
		.boot_id = "bench",
		.now = now,
	};
	static const struct store_tier tiers[] = {
		{ LENGTH_NS, HOUR_NS, 25 },
		{ MINUTE_NS, DAY * HOUR_NS, 35 },
		{ 10 * MINUTE_NS, 30 * DAY * HOUR_NS, 40 },
	};
	struct store *store;
	size_t i;

	wanted = 0;
	for (i = 0; i < ARRAY_SIZE(tiers) && is_month; i++) {
		options.tiers[i] = tiers[i];
		options.tiers[i].keep_ns /= scale;
		options.n_tiers = i + 1;
	}
	check(store_start(&options, &store), "start the store");
	return store;
}

/* Writes the window, and waits until the store has nothing more to do. */
static void put(struct store *store, struct window *window)
{
	struct store_stats stats;

	wanted += window->merged_from;
	store_add(store, window);
	window_unref(window);
	do {
		usleep(500);
		store_stats(store, &stats);
	} while (stats.written + stats.dropped_write < wanted || stats.is_working);
	if (stats.problems[STORE_PROBLEM_FILE][0]) {
		fprintf(stderr, "%s\n", stats.problems[STORE_PROBLEM_FILE]);
		exit(1);
	}
}

#define KEEP_STEADY(array)                                                          \
	do {                                                                        \
		size_t kept = 0, k;                                                 \
                                                                                    \
		for (k = 0; k < window->n_##array; k++) {                           \
			if (map[window->array[k].image] == UINT32_MAX) {            \
				stack_unref(window->array[k].kernel);               \
				stack_unref(window->array[k].user);                 \
				continue;                                           \
			}                                                           \
			window->array[kept] = window->array[k];                     \
			window->array[kept].image = map[window->array[kept].image]; \
			kept++;                                                     \
		}                                                                   \
		window->n_##array = kept;                                           \
	} while (0)

/* True for a kernel thread, and for a process whose comm is listed. */
static bool is_wanted(const struct process_info *info)
{
	char name[COMM_LEN + 3];

	snprintf(name, sizeof(name), ",%.*s,", COMM_LEN, info->comm);
	return !comms || info->is_kernel || strstr(comms, name);
}

/*
 * Leaves out the processes that began after the recording, if that is wanted. Takes over the window
 * and returns another.
 */
static struct window *steady(struct window *window)
{
	uint32_t *map = must(calloc(window->n_images + 1, sizeof(*map)));
	struct window *copy;
	size_t i, n = 0;

	if (!is_steady) {
		free(map);
		return window;
	}
	for (i = 0; i < window->n_images; i++) {
		struct process_info info;

		process_info(window->images[i].process, &info);
		map[i] = UINT32_MAX;
		if (info.id.start_boot_ns > recorded_boot_ns || !is_wanted(&info)) {
			process_unref(window->images[i].process);
			continue;
		}
		map[i] = (uint32_t)n;
		window->images[n++] = window->images[i];
	}
	window->n_images = n;
	KEEP_STEADY(rows);
	KEEP_STEADY(spans);
	KEEP_STEADY(opens);
	KEEP_STEADY(samples);
	KEEP_STEADY(ios);
	free(map);
	check(store_downsample(&window, 1, &copy), "copy a window");
	window_unref(window);
	return copy;
}

/*
 * Adds the windows of a minute to the sums of the recording. Returns these windows merged into one.
 */
static struct window *minute_sum(struct probe *probe, struct window **unfolded, size_t minute)
{
	struct window *merged;
	size_t i;

	check(store_downsample(unfolded, MINUTE, &merged), "merge");
	top_add(&probe->real_merged[minute], merged);
	for (i = 0; i < MINUTE; i++) {
		top_add(&probe->real[minute], unfolded[i]);
		window_unref(unfolded[i]);
	}
	return merged;
}

/*
 * Reads the recording, folds its windows as stackd does, and writes them to another database, from
 * which they are read back: this leaves out the stacks of rows that were folded.
 */
static void recording_fold(const char *from, const char *to, struct probe *probe,
			   enum probe_kind kind)
{
	const struct store_select select = { .probe = probe_kind_name(kind) };
	struct store *store = store_begin(to, false);
	struct window *unfolded[MINUTE], *minutes[LOOP / MINUTE], *folded;
	struct store_reader *reader = NULL;
	struct store_entry *entries;
	size_t n, i, kept = 0;

	recorded_boot_ns = 0;
	for (i = 0, n = 1; i < n && kept < LOOP; i++) {
		struct window **window = &unfolded[kept % MINUTE];

		if (!reader)
			check(store_reader_open(from, &reader), from);
		check(store_reader_list(reader, &select, INT64_MIN, INT64_MAX, 1 << 16, &entries,
					&n),
		      from);
		check(store_reader_load(reader, &entries[i], window), from);
		free(entries);
		if (!recorded_boot_ns)
			recorded_boot_ns =
				(uint64_t)((*window)->end_ns + (*window)->boot_offset_ns);
		/* Leave out short ones, and the first, in which stackd reads what runs. */
		if (!i || (*window)->end_ns - (*window)->start_ns <= LENGTH_NS / 2) {
			window_unref(*window);
			continue;
		}
		*window = steady(*window);
		check(window_fold(*window, &limits, &folded), "fold");
		put(store, folded);
		if (++kept % MINUTE)
			continue;
		minutes[kept / MINUTE - 1] = minute_sum(probe, unfolded, kept / MINUTE - 1);
		reader = NULL; /* it stays open: it owns the stacks */
	}
	if (kept >= MINUTE) {
		check(store_downsample(minutes, kept / MINUTE, &folded), "merge");
		top_add(&probe->real_whole, folded);
		window_unref(folded);
	}
	while (kept % MINUTE)
		window_unref(unfolded[--kept % MINUTE]);
	store_stop(store);
}

static void recording_load(const char *path, struct probe *probe, enum probe_kind kind)
{
	const struct store_select select = { .probe = probe_kind_name(kind) };
	struct store_entry *entries;
	struct store_reader *reader; /* stays open: it owns the stacks */
	size_t i;

	check(store_reader_open(path, &reader), path);
	check(store_reader_list(reader, &select, INT64_MIN, INT64_MAX, LOOP, &entries, &probe->n),
	      path);
	for (i = 0; i < probe->n; i++) {
		check(store_reader_load(reader, &entries[i], &probe->windows[i]), path);
		window_seen(probe->windows[i], i + 1 + (size_t)kind * LOOP);
	}
	free(entries);
	if (probe->n < LOOP_LEAST) {
		fprintf(stderr, "%s: %zu windows of %s are too few\n", path, probe->n,
			select.probe);
		exit(1);
	}
	for (i = 0; i + MINUTE <= probe->n; i += MINUTE)
		probe->minutes[probe->n_minutes++] = merge(&probe->windows[i], MINUTE, level);
	probe->ten = merge(probe->minutes, probe->n_minutes, level);
	printf("%s: %zu windows; the windows of 5 s, a minute, ten minutes have %zu, %zu, %zu rows\n",
	       select.probe, probe->n,
	       probe->windows[0]->n_rows + probe->windows[0]->n_samples + probe->windows[0]->n_ios,
	       probe->minutes[0]->n_rows + probe->minutes[0]->n_samples + probe->minutes[0]->n_ios,
	       probe->ten->n_rows + probe->ten->n_samples + probe->ten->n_ios);
}

/*
 * Compares the first TOP of each range of RANGE minutes with those of folded windows: of 5 s (times
 * < 0), or of a minute, after the store has halved their rows so many times.
 */
static void ranges_print(struct probe *probe, int times)
{
	struct top_sums folded[LOOP / MINUTE] = {}, a, b;
	struct top_result result = {};
	struct window *minute;
	size_t i, k;

	for (i = 0; i < probe->n_minutes; i++) {
		for (k = 0; k < MINUTE && times < 0; k++)
			top_add(&folded[i], probe->windows[i * MINUTE + k]);
		if (times < 0)
			continue;
		minute = merge(&probe->windows[i * MINUTE], MINUTE, (unsigned int)times);
		top_add(&folded[i], minute);
		window_unref(minute);
	}
	for (i = 0; i + RANGE <= probe->n_minutes; i++) {
		a = b = (struct top_sums){};
		for (k = i; k < i + RANGE; k++) {
			top_add_sums(&a, times < 0 ? &probe->real[k] : &probe->real_merged[k]);
			top_add_sums(&b, &folded[k]);
		}
		top_compare(&a, &b, &result);
		top_clear(&a);
		top_clear(&b);
	}
	for (i = 0; i < probe->n_minutes; i++)
		top_clear(&folded[i]);
	printf(" %zu of %zu (%.2f %%)", result.same, result.ranges, 100 * result.worst);
}

static void tops_print(struct probe *probe, const char *name)
{
	struct top_sums folded = {};
	struct top_result result = {};
	struct window *ten;
	int times;

	printf("%s: ranges with the same top %d, and the largest difference: 5 s:", name, TOP);
	ranges_print(probe, -1);
	for (times = 0; times <= STORE_LEVEL_MAX; times++) {
		printf("; a minute, %d rows:", ROWS >> times);
		ranges_print(probe, times);
	}
	for (times = 0; times <= STORE_LEVEL_MAX; times++) {
		ten = merge(probe->minutes, probe->n_minutes, (unsigned int)times);
		top_add(&folded, ten);
		result = (struct top_result){};
		top_compare(&probe->real_whole, &folded, &result);
		printf("; one window, %d rows: %s (%.2f %%)", ROWS >> times,
		       result.same ? "yes" : "no", 100 * result.worst);
		top_clear(&folded);
		window_unref(ten);
	}
	printf("\n");
}

/* Lets the store find the tiers of all windows by their lengths when it opens the database next. */
static void tiers_by_length(const char *path)
{
	sqlite3 *db;

	if (sqlite3_open(path, &db) != SQLITE_OK ||
	    sqlite3_exec(db, "UPDATE window_tiers SET length_ns = end_real_ns - start_real_ns",
			 NULL, NULL, NULL) != SQLITE_OK)
		exit(1);
	sqlite3_close(db);
}

static void result_print(struct store *store)
{
	struct store_stats stats;
	size_t i;

	store_stats(store, &stats);
	printf("\n%.0f MiB on disk, %" PRIu64 " windows, %" PRIu64 " merged, %" PRIu64
	       " evicted for their size\n",
	       (double)stats.bytes / (1 << 20), stats.windows, stats.compacted, stats.evicted_size);
	for (i = 0; i < stats.n_tiers; i++) {
		const struct store_tier_stats *tier = &stats.tiers[i];

		printf("windows of %3lld s: back %6.2f h of %6.2f h%s; %6" PRIu64
		       " windows, %5.1f MiB of %5.1f, %" PRIu64 " rows each\n",
		       (long long)(tier->tier.length_ns / NS_PER_S),
		       (double)(now_ns - tier->oldest_ns) / (double)HOUR_NS,
		       (double)tier->tier.keep_ns / (double)HOUR_NS,
		       tier->early_ns > now_ns - tier->tier.keep_ns ? ", SHORT" : "", tier->windows,
		       (double)tier->bytes / (1 << 20), (double)tier->max_bytes / (1 << 20),
		       tier->max_rows);
	}
}

int main(int argc, char **argv)
{
	int64_t begin, end, fine_ns, day_ns;
	char folded[PROBES][4096], path[4096];
	uint64_t step = 0;
	struct store *store;
	size_t i;

	if (argc < 3)
		return 1;
	snprintf(path, sizeof(path), "%s/month.db", argv[2]);
	scale = argc > 3 ? strtoll(argv[3], NULL, 10) : 1;
	level = argc > 4 ? (unsigned int)strtoul(argv[4], NULL, 10) : 0;
	is_steady = argc > 5 && strcmp(argv[5], "steady") == 0;
	comms = argc > 6 ? argv[6] : NULL;
	fine_ns = 2 * HOUR_NS / scale;
	day_ns = DAY * HOUR_NS / scale;
	now_ns = 1000 * DAY * HOUR_NS;
	for (i = 0; i < PROBES; i++) {
		snprintf(folded[i], sizeof(folded[i]), "%s/%zu.db", argv[2], i);
		recording_fold(argv[1], folded[i], &probes[i], kinds[i]);
		recording_load(folded[i], &probes[i], kinds[i]);
		tops_print(&probes[i], probe_kind_name(kinds[i]));
	}
	begin = now_ns - 30 * day_ns;
	turn_next();
	store = store_begin(path, false);
	for (end = begin; end < now_ns - fine_ns; step++) {
		bool is_day = end >= now_ns - day_ns;
		int64_t length = is_day ? MINUTE_NS : 10 * MINUTE_NS;

		end += length;
		if (!is_day || step % probes[0].n_minutes == 0)
			turn_next();
		for (i = 0; i < PROBES; i++)
			put(store, replay(is_day ? probes[i].minutes[step % probes[i].n_minutes]
						 : probes[i].ten,
					  end, length));
	}
	store_stop(store);
	tiers_by_length(path);
	end = now_ns - fine_ns;
	now_ns = end;
	store = store_begin(path, true);
	for (step = 0; step < (uint64_t)(fine_ns / LENGTH_NS); step++) {
		now_ns += LENGTH_NS;
		if (step % probes[0].n == 0)
			turn_next();
		for (i = 0; i < PROBES; i++)
			put(store,
			    replay(probes[i].windows[step % probes[i].n], now_ns, LENGTH_NS));
	}
	result_print(store);
	store_stop(store);
	return 0;
}
