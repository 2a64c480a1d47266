/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Measures what folding takes and what it leaves: a window of made-up processes of which each
 * waited a few times, under 50 commands, in 20 control groups. Arguments: processes, rows of each,
 * rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/window/fold.h"

enum { STACKS = 4000, COMMS = 50, UNITS = 20, NO_PID = 0x3f000000 /* above any pid_max */ };

static struct stack stacks[STACKS];

static int number(char **argv, int argc, int i, int fallback)
{
	return argc > i ? atoi(argv[i]) : fallback;
}

static void image_make(struct window *window, struct process_table *processes, uint32_t i)
{
	struct window_image *image = window_add_image(window);
	char exe[32], cgroup[32];
	struct process_info info = {
		.id = { .pid = NO_PID + (int32_t)i, .start_boot_ns = 1 + i },
		.exe = exe,
		.cgroup = cgroup,
	};

	snprintf(info.comm, sizeof(info.comm), "comm%u", i % COMMS);
	snprintf(exe, sizeof(exe), "/usr/bin/comm%u", i % COMMS);
	snprintf(cgroup, sizeof(cgroup), "/unit%u.service", i % UNITS);
	image->process = process_table_add_stored(processes, &info);
	image->uid = image->start_boot_ns = 1 + i;
	image->tid = info.id.pid;
	memcpy(image->comm, info.comm, sizeof(info.comm));
}

static void row_make(struct window *window, uint32_t image)
{
	uint32_t buckets[WAIT_BUCKETS] = { [5] = 1 };
	struct window_row *row = window_add_row(window);

	row->image = image;
	row->count = 1;
	row->state = 1;
	row->blocked_ns = 1 + (uint64_t)rand() % 1000000;
	row->kernel = stack_ref(&stacks[rand() % STACKS]);
	row->user = stack_ref(&stacks[rand() % STACKS]);
	window_row_set_buckets(window, row, buckets);
}

int main(int argc, char **argv)
{
	const struct window_fold_limits limits = { .max_rows = 500,
						   .max_folded = 500,
						   .max_sums = 500 / WINDOW_SUMS_SHARE };
	int n = number(argv, argc, 1, 100000), rows = number(argv, argc, 2, 3);
	int rounds = number(argv, argc, 3, 5), i, k;
	struct window *window = window_new(), *folded = NULL;
	struct process_table *processes;
	int64_t least = INT64_MAX, begin;

	if (!window || process_table_new_stored(&processes))
		return 1;
	for (i = 0; i < STACKS; i++)
		stacks[i] = (struct stack){ .place_id = 1 + (uint64_t)i, .refs = 1 };
	window->end_ns = 5 * NS_PER_S;
	for (i = 0; i < n; i++) {
		image_make(window, processes, (uint32_t)i);
		for (k = 0; k < rows; k++)
			row_make(window, (uint32_t)i);
	}
	window_seal(window);
	for (i = 0; i < rounds; i++) {
		window_unref(folded);
		begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (window_fold(window, &limits, &folded))
			return 1;
		begin = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
		least = begin < least ? begin : least;
	}
	printf("%d processes, %zu rows, %zu KiB: folded in %.1f ms to %zu images, %zu rows, "
	       "%zu pids, %zu KiB\n",
	       n, window->n_rows, window->bytes >> 10, (double)least / NS_PER_MS, folded->n_images,
	       folded->n_rows, folded->n_members, folded->bytes >> 10);
	window_unref(folded);
	window_unref(window);
	process_table_free(processes);
	return 0;
}
