/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_UNWIND_FIND_H
#define STACKD_TESTS_UNWIND_FIND_H

/* Looks rows up as the walk in the kernel does. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf/unwind_shared.h"
#include "daemon/unwind/rows.h"

static inline struct unwind_frame find(const struct unwind_rows *rows, uint32_t at)
{
	const struct unwind_part *parts = (const struct unwind_part *)rows->words;
	const uint32_t *pages = (const uint32_t *)rows->words + parts[at >> UNWIND_PART_SHIFT].at;
	const struct unwind_row *row = (const struct unwind_row *)(pages + UNWIND_PART_PAGES);
	uint32_t page = pages[at >> UNWIND_PAGE_SHIFT & (UNWIND_PART_PAGES - 1)];
	uint32_t low = page >> UNWIND_ROWS_BITS, n = page & ((1 << UNWIND_ROWS_BITS) - 1);
	uint32_t in_page = at & ((1 << UNWIND_PAGE_SHIFT) - 1);
	int steps = 0;

	assert_true(at >> UNWIND_PART_SHIFT < rows->n_parts);
	assert_true(n > 0 && n <= rows->n_rows && !row[low].pc);
	while (n > 1) {
		uint32_t half = n / 2;

		if (row[low + half].pc <= in_page)
			low += half;
		n -= half;
		steps++;
	}
	assert_true(steps <= UNWIND_ROW_STEPS);
	assert_true(row[low].pc <= in_page);
	assert_true(row[low].frame < rows->n_frames);
	return ((const struct unwind_frame *)(rows->words +
					      unwind_rows_frames(rows)))[row[low].frame];
}

static inline void check_row(const struct unwind_rows *rows, uint32_t at, int kind, int cfa, int bp)
{
	struct unwind_frame frame = find(rows, at);

	if (frame.kind == UNWIND_RULE)
		frame.cfa = (frame.cfa - (int)rows->n_frames) / 2;
	if (frame.kind != kind || frame.cfa != cfa || frame.bp != bp)
		fail_msg("at %#x: kind %d cfa %d bp %d, expected %d %d %d", at, frame.kind,
			 frame.cfa, frame.bp, kind, cfa, bp);
}

#endif
