/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_BENCH_MONTH_TOP_H
#define STACKD_TESTS_BENCH_MONTH_TOP_H

/*
 * Compares what takes most time, by comm and stacks, in windows as they were recorded and in the
 * same windows after folding. Used by bench_month.c.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/window/window.h"

enum { TOP = 20 };

/* The time of each comm with its stacks in a range, without idle waits. Zeroed: empty. */
struct top_sums {
	struct top_sum *sums;
	uint64_t total_ns; /* also has the time of rows that were summed up without stacks */
};

struct top_result {
	size_t ranges;
	size_t same;  /* ranges whose first TOP are the same ones in the same order */
	double worst; /* largest relative difference of the time of one of these */
};

void top_add(struct top_sums *sums, const struct window *window);
/* Adds the sums `more` to *sums. */
void top_add_sums(struct top_sums *sums, const struct top_sums *more);
void top_clear(struct top_sums *sums);

/* Compares the first TOP of `real` with those of `folded`, and adds the outcome to *result. */
void top_compare(const struct top_sums *real, const struct top_sums *folded,
		 struct top_result *result);

#endif
