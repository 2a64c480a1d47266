/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes windows of known content through the real store, and checks what can be read back.
 *
 * store_tool write PATH COUNT [MAX_SIZE [MERGE_AFTER_S]] writes COUNT windows of 5 s, 0: without
 * end. For each it prints "SEQ written WRITTEN synced SEQ dropped DROPPED", at the end "problem:
 * ...", "notice: ..." and "merged: ...". The windows end now, or with MERGE_AFTER_S ten times as
 * long ago. Variables of the environment change how it writes:
 *
 * - STORE_BOOT: the id of the boot.
 * - STORE_SHIFT: by how many seconds all windows are later.
 * - STORE_BEGIN: when the first window begins, in seconds since the epoch.
 * - STORE_SYNC: milliseconds between two syncs.
 * - STORE_SMALL: each window has one thread.
 * - STORE_CHURN: each window has processes of its own.
 * - STORE_KINDS: rows are of eight processes in four units, and every third thread was preempted;
 *   with names that need escapes, or with plain ones if it is 2.
 * - STORE_TURNS: stacks take turns, see stack_of_turn().
 * - STORE_LENGTH: length of the windows in milliseconds; five of them make 5 s if it is 1000, so
 *   that they are joined. The last ones wait to be joined, and are not waited for.
 * - STORE_TIERS: "LENGTH:KEEP:SHARE ..." in seconds and percent, instead of the tiers that
 *   MERGE_AFTER_S makes.
 * - STORE_FOLD: windows that are merged, or too large for their tier, are folded to this many rows.
 * - STORE_STEP: after this many windows the clock is set forward by a minute.
 * - STORE_AHEAD: every second window is one of oncpu that ends an hour later than the others;
 *   "synced" is then that of the others, which are of offcpu.
 * - STORE_DIE: it ends by SIGKILL.
 * - STORE_PACE: milliseconds per window.
 * - STORE_RUSH: the next window comes when the writer has used this many milliseconds of CPU time
 *   for the one before, or when the queue is empty: whether other programs use the CPUs does not
 *   matter. All windows are waited for at the end.
 *
 * store_tool check PATH prints the numbers of the windows and "windows N parts N bad N damaged N".
 * It fails if a window is not as it was written. STORE_HOLD: for how many milliseconds it reads.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/shared.h"
#include "common/base.h"
#include "common/inherited.h"
#include "daemon/store/intern.h"
#include "daemon/store/prefetch.h"
#include "daemon/store/store.h"

#define LENGTH_NS (5 * NS_PER_S)

/* After so many windows, other stacks of a turn follow, see stack_of_turn(). */
enum { TOUCH = 16 };

enum {
	IMAGES = 40,
	STACKS = 500,
	FRAMES = 20,
	FILES = 64,
	TURN = 40,
	NO_PID = 0x3f000000 /* above any pid_max */
};

struct known {
	struct process_table *processes;
	struct process *process;
	struct frame frames[STACKS * 4];
	struct stack stacks[STACKS];
	struct frame *members[STACKS][FRAMES];
};

static struct known known;

static int64_t setting(const char *name, int64_t fallback)
{
	const char *text = getenv(name);

	return text ? strtoll(text, NULL, 10) : fallback;
}

/* Returns the file of a frame; there are FILES different ones. */
static struct code_file *file_make(size_t frame)
{
	const struct code_segment segment = { 0x1000, 0x800, 0x100000 + frame % FILES };
	uint8_t build_id[20] = { 0xf1, 0x1e, (uint8_t)(frame % FILES) };
	struct code_file *file;

	file = code_file_new(build_id, sizeof(build_id), &segment, 1);
	if (!file)
		exit(1);
	return file;
}

static void known_make(void)
{
	struct process_info info = { .id = { .pid = NO_PID, .start_boot_ns = 7 }, .comm = "known" };
	char name[64];
	size_t i, k;

	info.exe = "/usr/bin/known";
	if (process_table_new_stored(&known.processes))
		exit(1);
	known.process = process_table_add_stored(known.processes, &info);
	for (i = 0; i < STACKS * 4; i++) {
		snprintf(name, sizeof(name), "function_of_known_name_%zu", i);
		known.frames[i] = (struct frame){ .kind = FRAME_NATIVE, .file_id = 77 };
		known.frames[i].file_offset = 64 * i;
		known.frames[i].name = strdup(name);
		known.frames[i].module = (char *)"/usr/lib/libknown.so";
		known.frames[i].code = file_make(i);
	}
	for (i = 0; i < STACKS; i++) {
		struct stack *stack = &known.stacks[i];

		for (k = 0; k < FRAMES; k++)
			known.members[i][k] = &known.frames[(i * 7 + k * k) % (STACKS * 4)];
		stack->id = stack->place_id = stack->raw_id = 1000 + i;
		stack->frames = known.members[i];
		stack->n_frames = FRAMES;
		stack->refs = 1;
		stack->is_resolved = true;
	}
}

static int64_t length_ns(void)
{
	return setting("STORE_LENGTH", LENGTH_NS / NS_PER_MS) * NS_PER_MS;
}

static uint64_t value(uint64_t seq, uint64_t i)
{
	return (seq * 1000003 + i * 7919) % 1000000 + 1;
}

/*
 * Returns, for the first row: a stack that only one window has; and some windows later, for as many
 * windows, another stack that shares a frame with it (7 + 3 * 3 == 4 * 4, see
 * known_make()). The other rows have stacks that do not matter.
 */
static size_t stack_of_turn(uint64_t seq, uint64_t i)
{
	uint64_t turn = seq / TURN % 32, at = seq % TURN;

	if (i == 0 && at == 0)
		return 2 * turn;
	if (i == 0 && at >= TOUCH - 1 && at < 2 * TOUCH - 1)
		return 2 * turn + 1;
	return 450 + i % 8;
}

static size_t stack_of(uint64_t seq, uint64_t i)
{
	return setting("STORE_TURNS", 0) ? stack_of_turn(seq, i) : (seq * 13 + i * 5) % STACKS;
}

/* Returns a process that no other window has. */
static struct process *process_fresh(uint64_t seq, uint64_t i)
{
	struct process_info info = { .id = { .pid = NO_PID, .start_boot_ns = seq * IMAGES + i } };
	struct process *process;
	char path[4096];

	memcpy(info.comm, "fresh", 6);
	snprintf(path, sizeof(path), "/usr/lib/some/program/of/which/there/are/many%0*d",
		 (int)setting("STORE_CHURN", 1), 0);
	info.exe = path;
	info.cgroup = "/system.slice/system-some\\x2dunit.slice/some-unit@instance.service";
	process = process_table_add_stored(known.processes, &info);
	if (!process)
		exit(1);
	return process;
}

/*
 * Returns one of eight processes in four units, one of which has a name that has to be escaped. The
 * last one is stackd, the one before has its name only.
 */
static struct process *process_kind(uint64_t i)
{
	bool is_plain = setting("STORE_KINDS", 0) == 2;
	const char *const units[] = { "/system.slice/web.service", "/system.slice/db.service",
				      is_plain ? "/system.slice/batch.service"
					       : "/user.slice/a\\x2d'\"\tb.scope" };
	static struct process *processes[8];
	struct process_info info = { .id = { .pid = NO_PID + (int32_t)(i % 8), .start_boot_ns = 9 },
				     .exe = "/usr/bin/kind",
				     .cgroup = units[i % 3] };
	struct process **kind = &processes[i % 8];

	snprintf(info.comm, sizeof(info.comm), "%s%d", is_plain ? "worker" : "it's\t\\",
		 (int)(i % 8));
	if (i % 8 >= 6)
		memcpy(info.comm, "stackd", 7);
	if (i % 8 == 7)
		info.cgroup = "/system.slice/stackd.service";
	if (!*kind)
		*kind = process_table_add_stored(known.processes, &info);
	if (!*kind)
		exit(1);
	return process_ref(*kind);
}

/* Returns the difference of the two clocks, which is the same for all windows of a run. */
static int64_t real_offset(void)
{
	static int64_t offset;

	if (!offset)
		offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	return offset;
}

static struct window *window_make(uint64_t seq, int64_t end_real_ns)
{
	struct window *window = window_new();
	uint64_t i;

	if (!window)
		exit(1);
	window->seq = seq;
	window->session = 1;
	window->real_offset_ns = real_offset();
	window->end_ns = end_real_ns - window->real_offset_ns;
	window->start_ns = window->end_ns - length_ns();
	for (i = 0; i < (setting("STORE_SMALL", 0) ? 1 : IMAGES); i++) {
		uint32_t buckets[WAIT_BUCKETS] = { [3] = (uint32_t)value(seq, i) };
		struct window_image *image = window_add_image(window);
		struct window_row *row = window_add_row(window);

		image->uid = i + 1;
		image->tid = NO_PID + (int32_t)i;
		image->process = setting("STORE_CHURN", 0) ? process_fresh(seq, i)
							   : process_ref(known.process);
		memcpy(image->comm, "known", 6);
		if (setting("STORE_KINDS", 0)) {
			process_unref(image->process);
			image->process = process_kind(i);
			memcpy(image->comm, setting("STORE_KINDS", 0) == 2 ? "worker" : "it's\t\\",
			       7);
		}
		image->sums.on_ns = value(seq, i);
		row->image = (uint32_t)i;
		row->user = stack_ref(&known.stacks[stack_of(seq, i)]);
		row->count = value(seq, i);
		row->blocked_ns = 3 * value(seq, i);
		if (setting("STORE_KINDS", 0)) {
			row->state = i % 3 == 0 ? STATE_PREEMPTED : (uint32_t)(i % 3);
			/* Few rows have most of the time. */
			row->blocked_ns = i < 8 ? 1000 * value(seq, i) : value(seq, i);
		}
		row->max_ns = value(seq, i);
		row->max_end_ns = window->end_ns - (int64_t)i;
		window_row_set_buckets(window, row, buckets);
	}
	window_seal(window);
	return window;
}

/*
 * Sets the tiers: those of STORE_TIERS; or those of MERGE_AFTER_S; or, if that is 0, one that keeps
 * all windows as they are.
 */
static void tiers_set(struct store_options *options, int64_t merge_after_s)
{
	const int64_t after_ns = merge_after_s * NS_PER_S,
		      forever = INT64_C(3650) * 86400 * NS_PER_S;
	const struct store_tier merging[] = {
		{ LENGTH_NS, after_ns, 30 },
		{ 60 * NS_PER_S, 7 * after_ns, 30 },
		{ 600 * NS_PER_S, forever, 40 },
	};
	const char *text = getenv("STORE_TIERS");
	long long length, keep;
	unsigned int share;
	int used;

	options->tiers[0] = (struct store_tier){ LENGTH_NS, forever, 100 };
	options->n_tiers = 1;
	if (after_ns) {
		memcpy(options->tiers, merging, sizeof(merging));
		options->n_tiers = ARRAY_SIZE(merging);
	}
	if (!text)
		return;
	options->n_tiers = 0;
	while (sscanf(text, "%lld:%lld:%u%n", &length, &keep, &share, &used) == 3) {
		options->tiers[options->n_tiers++] =
			(struct store_tier){ length * NS_PER_S, keep * NS_PER_S, share };
		text += used;
	}
}

static struct store *store_begin(const char *path, uint64_t max_size, int64_t merge_after_s)
{
	struct store_options options = {
		.path = path,
		.max_size = max_size,
		.max_age_ns = INT64_C(3650) * 86400 * NS_PER_S,
		.fold = { .max_rows = (size_t)setting("STORE_FOLD", 0),
			  .max_folded = (size_t)setting("STORE_FOLD", 0) },
		.window_ns = LENGTH_NS,
		.boot_id = getenv("STORE_BOOT") ? getenv("STORE_BOOT") : "a-boot",
		.sync_every_ns = setting("STORE_SYNC", 0) * NS_PER_MS,
	};
	struct store *store;

	tiers_set(&options, merge_after_s);
	if (store_start(&options, &store))
		exit(1);
	return store;
}

/* Waits until the window is written or dropped. */
static void written_wait(struct store *store, uint64_t n, struct store_stats *stats)
{
	do {
		usleep(200);
		store_stats(store, stats);
		/* Short windows wait for others in the writer's hands. */
		if (length_ns() < LENGTH_NS && !stats->queued)
			break;
	} while (stats->written + stats->dropped_queue + stats->dropped_write < n);
}

/* Waits until the next window is to come, see STORE_RUSH. */
static void rush_wait(struct store *store, struct store_stats *stats)
{
	static int64_t last;
	int64_t cpu;

	do {
		usleep(200);
		store_stats(store, stats);
		cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
	} while (stats->queued && cpu < last + setting("STORE_RUSH", 0) * NS_PER_MS);
	last = cpu;
}

static int64_t now_begin(int64_t merge_after_s)
{
	int64_t now = clock_ns(CLOCK_REALTIME) - 10 * merge_after_s * NS_PER_S;

	if (getenv("STORE_BEGIN"))
		return setting("STORE_BEGIN", 0) * NS_PER_S;
	return now - now % (600 * NS_PER_S) + setting("STORE_SHIFT", 0) * NS_PER_S;
}

/* Returns the number of the window that ended at this time. */
static uint64_t seq_at(uint64_t first, int64_t begin, int64_t end)
{
	return end < begin ? 0 : first + (uint64_t)((end - begin) / length_ns());
}

/* Makes the window one of the always-on session of oncpu, an hour later. */
static void window_put_ahead(struct window *window)
{
	window->kind = PROBE_ONCPU;
	window->session = PROBE_ONCPU + 1;
	window->start_ns += 3600 * NS_PER_S;
	window->end_ns += 3600 * NS_PER_S;
}

static int do_write(const char *path, uint64_t count, uint64_t max_size, int64_t merge_after_s)
{
	struct store *store = store_begin(path, max_size, merge_after_s);
	uint64_t seq = (uint64_t)(clock_ns(CLOCK_REALTIME) / (100 * NS_PER_US)), n;
	int64_t begin = now_begin(merge_after_s);
	struct store_stats stats = {};
	int64_t added, longest = 0;

	for (n = 1; count == 0 || n <= count; n++, seq++) {
		struct window *window = window_make(seq, begin + (int64_t)n * length_ns());
		int64_t synced_ns;

		if (setting("STORE_AHEAD", 0) && n % 2)
			window_put_ahead(window);
		if (n > (uint64_t)setting("STORE_STEP", INT64_MAX))
			window->real_offset_ns += 60 * NS_PER_S;
		added = clock_ns(CLOCK_MONOTONIC);
		store_add(store, window);
		window_unref(window);
		if (setting("STORE_RUSH", 0))
			rush_wait(store, &stats);
		else
			written_wait(store, n, &stats);
		if (clock_ns(CLOCK_MONOTONIC) - added > longest)
			longest = clock_ns(CLOCK_MONOTONIC) - added;
		synced_ns = setting("STORE_AHEAD", 0) ? stats.synced_always_ns[PROBE_OFFCPU]
						      : stats.synced_ns;
		printf("%" PRIu64 " written %" PRIu64 " synced %" PRIu64 " dropped %" PRIu64 "\n",
		       seq, stats.written, seq_at(seq - n, begin, synced_ns),
		       stats.dropped_queue + stats.dropped_write);
		fflush(stdout);
		usleep((useconds_t)setting("STORE_PACE", 0) * 1000);
	}
	if (setting("STORE_RUSH", 0))
		written_wait(store, count, &stats);
	/* Wait until all old windows are merged. */
	while (merge_after_s && stats.compacted + 24 < count) {
		usleep(100000);
		store_stats(store, &stats);
	}
	printf("dropped %" PRIu64 " evicted %" PRIu64 "\n",
	       stats.dropped_queue + stats.dropped_write, stats.evicted_size);
	printf("longest %" PRId64 " ms\n", longest / NS_PER_MS);
	printf("problem: ");
	for (size_t i = 0; i < STORE_PROBLEMS; i++)
		printf("%s", stats.problems[i]);
	printf("\nnotice: ");
	for (size_t i = 0; i < STORE_NOTICES; i++)
		printf("%s", stats.notices[i].text);
	printf("\nmerged: %" PRIu64 "\n", stats.compacted);
	fflush(stdout);
	if (setting("STORE_DIE", 0))
		raise(SIGKILL);
	store_stop(store);
	return 0;
}

static int fail(const struct window *window, const char *what)
{
	fprintf(stderr, "window %" PRIu64 ": wrong %s\n", window->seq, what);
	return 1;
}

/* number of frames that were read without the file that they had when they were written */
static uint64_t frames_without_file;

static int stack_check(const struct window *window, const struct stack *stack, size_t i)
{
	size_t k;

	/* A frame that is marked as lost is no wrong frame. */
	if (stack->flags & STACK_IS_LOST)
		return 0;
	if (stack->n_frames != FRAMES || stack->id != 1000 + i)
		return fail(window, "stack");
	for (k = 0; k < FRAMES; k++) {
		const struct frame *frame = stack->frames[k];

		if (frame->kind == FRAME_PSEUDO && strcmp(frame->name, "[frame lost on disk]") == 0)
			continue;
		if (strcmp(frame->name, known.members[i][k]->name) != 0)
			return fail(window, "frame");
		if (!frame->code)
			frames_without_file++;
		else if (frame->code->hash != known.members[i][k]->code->hash)
			return fail(window, "file");
	}
	return 0;
}

static int window_check(const struct window *window)
{
	uint64_t seq = window->seq, i;
	int r = 0;

	if (window->n_images != IMAGES || window->n_rows != IMAGES)
		return fail(window, "size");
	for (i = 0; i < IMAGES && !r; i++) {
		const struct window_row *row = &window->rows[i];

		if (row->count != value(seq, i) || row->blocked_ns != 3 * value(seq, i) ||
		    window->images[i].sums.on_ns != value(seq, i) || !row->user)
			return fail(window, "numbers");
		r = stack_check(window, row->user, stack_of(seq, i));
	}
	return r;
}

/* Checks a window; one that replaced several has the sums of all of them. */
static int merged_check(const struct window *window)
{
	uint64_t wanted = 0, count = 0, on = 0, longest = 0, max = 0, seq, i;

	for (seq = window->seq; seq < window->seq + window->merged_from; seq++) {
		for (i = 0; i < IMAGES; i++) {
			wanted += value(seq, i);
			longest = value(seq, i) > longest ? value(seq, i) : longest;
		}
	}
	for (i = 0; i < window->n_rows; i++) {
		count += window->rows[i].count;
		max = window->rows[i].max_ns > max ? window->rows[i].max_ns : max;
	}
	for (i = 0; i < window->n_images; i++)
		on += window->images[i].sums.on_ns;
	if (count != wanted || on != wanted || max != longest)
		return fail(window, "sums");
	return 0;
}

static int do_check(const char *path)
{
	struct store_entry *entries = NULL;
	struct store_reader *reader;
	struct store_prefetch *prefetch;
	struct window *last;
	uint64_t parts = 0, bad = 0;
	size_t n = 0, i;
	int r = store_reader_open(path, &reader), wrong = 0;

	if (!r)
		r = store_reader_list(reader, &(struct store_select){}, INT64_MIN, INT64_MAX,
				      1 << 20, &entries, &n);
	if (r) {
		printf("unreadable: %s\n", strerror(-r));
		return 0;
	}
	/* Read as a query does; a prefetch that is given up early frees the reader for the next. */
	if (store_prefetch_start(reader, entries, n, &prefetch))
		return 1;
	if (n > 1 && store_prefetch_get(prefetch, &entries[n - 1], &last) == 0)
		window_unref(last);
	if (store_prefetch_get(prefetch, &entries[n], &last) != -ESPIPE)
		return 1;
	store_prefetch_free(prefetch);
	if (store_prefetch_start(reader, entries, n, &prefetch))
		return 1;
	for (i = n; i-- > 0;) {
		struct window *window = NULL;

		if (store_prefetch_get(prefetch, &entries[i], &window)) {
			bad++;
			continue;
		}
		wrong |= window->merged_from > 1 || window->folded.rows ? merged_check(window)
									: window_check(window);
		parts += window->merged_from;
		printf("%" PRIu64 "\n", window->seq);
		window_unref(window);
	}
	store_prefetch_free(prefetch);
	usleep((useconds_t)setting("STORE_HOLD", 0) * 1000);
	printf("windows %zu parts %" PRIu64 " bad %" PRIu64 " damaged %" PRIu64
	       " without file %" PRIu64 "\n",
	       n, parts, bad, store_reader_damaged(reader), frames_without_file);
	free(entries);
	store_reader_close(reader);
	return wrong;
}

int main(int argc, char **argv)
{
	inherited_settle();
	known_make();
	if (argc >= 4 && strcmp(argv[1], "write") == 0)
		return do_write(argv[2], strtoull(argv[3], NULL, 10),
				argc > 4 ? strtoull(argv[4], NULL, 10) : 512 << 20,
				argc > 5 ? strtoll(argv[5], NULL, 10) : 0);
	if (argc == 3 && strcmp(argv[1], "check") == 0)
		return do_check(argv[2]);
	fprintf(stderr, "store_tool: see the head of its source\n");
	return 2;
}
