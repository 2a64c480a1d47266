/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures the CPU time of an answer over an hour of 5 s windows: the real builder makes windows of
 * made-up threads, which are then aggregated, sorted and turned into the 20 rows of an answer.
 * Arguments: windows, threads (half of them asleep all the time), rounds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/query/answer_stacks.h"
#include "daemon/store/history.h"
#include "daemon/window/builder.h"

extern const struct window_builder_ops build_offcpu;

#define LENGTH_NS (5 * NS_PER_S)

enum { FRAMES = 24, TOP = 20, NO_PID = 0x3f000000 /* above any pid_max */ };

struct bench {
	struct process_table *processes;
	struct stack_table *stacks;
	struct window_builder *builder;
	struct history *history;
	unsigned int threads;
};

static void *must(void *p)
{
	if (!p) {
		fprintf(stderr, "out of memory\n");
		exit(1);
	}
	return p;
}

/* Makes a stack as the resolver leaves it. */
static void stack_make(struct bench *bench, uint64_t id, bool is_user)
{
	uint64_t ip[FRAMES];
	struct stack *stack;
	bool is_new;
	size_t i;

	for (i = 0; i < FRAMES; i++)
		ip[i] = id * 64 + i;
	stack = must(stack_table_put(bench->stacks, id, NULL, ip, FRAMES, &is_new));
	for (i = 0; is_new && i < FRAMES; i++) {
		struct symbol symbol = {
			.kind = is_user ? FRAME_NATIVE : FRAME_KERNEL,
			.file_id = is_user,
			.file_offset = ip[i],
			.name = "a_function_of_usual_length",
			.module = is_user ? "/usr/lib/x86_64-linux-gnu/libc.so.6" : NULL,
		};

		stack->frames[stack->n_frames++] = must(stack_table_frame(bench->stacks, &symbol));
	}
	stack->id = stack->place_id = id;
	stack->is_resolved = true;
}

/* Even threads sleep since before the first window, odd threads wait again and again. */
static void thread_make(struct thread *thread, unsigned int i, unsigned int window)
{
	*thread = (struct thread){
		.uid = i + 1,
		.tid = NO_PID + i,
		.tgid = NO_PID + i - i % 4,
		.start_boot_ns = 1 + i,
		.leader_boot_ns = 1 + i - i % 4,
		.status = i % 2 ? THREAD_ON_CPU : THREAD_BLOCKED,
		.wait_state = 1,
		.since_ns = i % 2 ? (window + 1) * (uint64_t)LENGTH_NS : 1000 + i,
		.open_since_ns = 1000 + i,
		.open_kstack = 1000,
		.comm = "worker",
	};
	if (i % 2)
		thread->sums = (struct thread_sums){
			.on_ns = (window + 1) * UINT64_C(1000000000),
			.blocked_ns = (window + 1) * UINT64_C(4000000000),
			.switches = (window + 1) * 100,
			.short_count = (window + 1) * 50,
			.short_blocked_ns = (window + 1) * UINT64_C(1000000),
		};
}

/* Adds a wait over the cut: it is open in this window and ends in the next. */
static void span_make(struct bench *bench, const struct wait_key *key, int64_t cut_ns)
{
	struct record_wait wait = {
		.head.type = RECORD_WAIT,
		.key = *key,
		.start_ns = (uint64_t)(cut_ns - 5 * NS_PER_MS),
		.wake_ns = (uint64_t)(cut_ns + 5 * NS_PER_MS),
		.end_ns = (uint64_t)(cut_ns + 6 * NS_PER_MS),
	};

	window_builder_add_record(bench->builder, &wait.head);
}

static void window_make(struct bench *bench, unsigned int n)
{
	int64_t start = (int64_t)n * LENGTH_NS;
	struct wait_sums sums = { .count = 50, .max_ns = 3000000, .buckets = { [10] = 50 } };
	struct window *window;
	struct thread thread;
	unsigned int i;

	window_builder_begin(bench->builder, start, start + LENGTH_NS, n + 2);
	for (i = 0; i < bench->threads; i++) {
		struct wait_key key = { .uid = i + 1, .kstack = 1000 + i % 7, .state = 1 };

		thread_make(&thread, i, n);
		window_builder_add_thread(bench->builder, &thread);
		if (i % 2 == 0)
			continue;
		key.ustack = 2000 + i;
		sums.blocked_ns = UINT64_C(100000000);
		sums.max_end_ns = (uint64_t)start + 4000000;
		window_builder_add(bench->builder, &key, &sums);
		span_make(bench, &key, start + LENGTH_NS);
	}
	window = must(window_builder_finish(bench->builder));
	window->seq = n + 1;
	window_seal(window);
	history_add(bench->history, window, NULL, 0);
}

static int by_total(const void *x, const void *y)
{
	const struct aggregate_group *const *a = x, *const *b = y;
	uint64_t p = (*a)->blocked_ns + (*a)->runnable_ns, q = (*b)->blocked_ns + (*b)->runnable_ns;

	return p < q ? 1 : p > q ? -1 : 0;
}

struct took {
	int64_t aggregate_ns;
	int64_t answer_ns;
	size_t windows;
	size_t groups;
};

static void query(struct bench *bench, enum aggregate_by by, struct took *took)
{
	static const struct answer_row_options rows = { .short_below_ns = 100 * NS_PER_US };
	_cleanup_(answer_freep) struct answer *answer = must(answer_new());
	const struct timeline_source source = { .history = bench->history };
	const struct timeline_session session = {};
	const struct timeline_list none = {};
	struct aggregate_options options = {
		.by = by, .by_reasons = by != AGGREGATE_BY_STACK, /* as in answers */
	};
	struct aggregate_group **groups;
	struct filter filter;
	struct wire_error error;
	int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID), aggregated;

	if (filter_init(&filter, NULL, &error) ||
	    timeline_open(&source, &session, INT64_MIN, INT64_MAX, &answer->timeline) ||
	    aggregate_new(timeline_range(answer->timeline), &none, &filter, &options, NULL,
			  &answer->aggregate))
		must(NULL);
	aggregated = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	groups = aggregate_groups(answer->aggregate, &took->groups);
	qsort(groups, took->groups, sizeof(*groups), by_total);
	answer->source.groups = groups;
	answer->source.n = took->groups < TOP ? took->groups : TOP;
	if (answer_source_init(answer, &rows) || answer_rows_make(answer))
		must(NULL);
	took->windows = timeline_range(answer->timeline)->n;
	took->aggregate_ns = aggregated - begin;
	took->answer_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - aggregated;
}

static void report(struct bench *bench, const char *name, enum aggregate_by by, unsigned int rounds)
{
	struct took took, least = { .aggregate_ns = INT64_MAX };

	while (rounds--) {
		query(bench, by, &took);
		if (took.aggregate_ns < least.aggregate_ns)
			least = took;
	}
	printf("by %-8s %4zu windows, %4zu groups: aggregate %6.1f ms, answer %5.2f ms (goal 300 ms)\n",
	       name, least.windows, least.groups, (double)least.aggregate_ns / 1e6,
	       (double)least.answer_ns / 1e6);
}

int main(int argc, char **argv)
{
	unsigned int windows = argc > 1 ? (unsigned int)atoi(argv[1]) : 720, i;
	unsigned int rounds = argc > 3 ? (unsigned int)atoi(argv[3]) : 5;
	struct bench bench = { .threads = argc > 2 ? (unsigned int)atoi(argv[2]) : 300 };
	struct window_builder_options options = {
		.kind = PROBE_OFFCPU,
		.min_wait_ns = 100 * NS_PER_US,
	};

	if (process_table_new(1 << 20, &bench.processes) ||
	    stack_table_new(SIZE_MAX / 2, &bench.stacks) ||
	    history_new(INT64_MAX / 2, SIZE_MAX / 2, &bench.history))
		must(NULL);
	options.processes = bench.processes;
	options.stacks = bench.stacks;
	if (window_builder_new(&build_offcpu, &options, &bench.builder))
		must(NULL);
	for (i = 0; i < 7; i++)
		stack_make(&bench, 1000 + i, false);
	for (i = 0; i < bench.threads; i++)
		stack_make(&bench, 2000 + i, true);
	for (i = 0; i < windows; i++)
		window_make(&bench, i);
	report(&bench, "stack", AGGREGATE_BY_STACK, rounds);
	report(&bench, "thread", AGGREGATE_BY_THREAD, rounds);
	report(&bench, "process", AGGREGATE_BY_PROCESS, rounds);
	window_builder_free(bench.builder);
	history_free(bench.history);
	stack_table_free(bench.stacks);
	process_table_free(bench.processes);
	return 0;
}
