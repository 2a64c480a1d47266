/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdbool.h>

#include "bpf/unwind_shared.h"
#include "daemon/parse/answers.h"

void answer_rows_encode(const struct unwind_rows *rows, struct answer_rows *tail,
			struct answer_part parts[static ANSWER_ROWS_PARTS])
{
	*tail = (struct answer_rows){
		.n_parts = rows->n_parts,
		.n_rows = rows->n_rows,
		.n_frames = rows->n_frames,
		.n_rules = rows->n_rules,
	};
	parts[0] = (struct answer_part){ rows->words, rows->n_words * sizeof(*rows->words) };
	parts[1] = (struct answer_part){ tail, sizeof(*tail) };
}

/* True if the frames are of known kinds, and refer only to rules that the table has. */
static bool frames_check(const struct unwind_rows *rows)
{
	const struct unwind_frame *frames =
		(const struct unwind_frame *)(rows->words + unwind_rows_frames(rows));

	for (uint32_t i = 0; i < rows->n_frames; i++) {
		int64_t rule = (int64_t)frames[i].cfa - rows->n_frames;

		if (frames[i].kind >= UNWIND_KINDS)
			return false;
		if (frames[i].kind == UNWIND_RULE &&
		    (rule < 0 || rule % 2 || rule / 2 >= rows->n_rules))
			return false;
	}
	return true;
}

/* True if the n rows of a page begin at its first byte, are sorted, and refer only to frames that
 * the table has. */
static bool page_check(const struct unwind_row *row, uint32_t n, uint32_t n_frames)
{
	for (uint32_t i = 0; i < n; i++) {
		if (row[i].frame >= n_frames || row[i].pc >> UNWIND_PAGE_SHIFT ||
		    (i ? row[i].pc <= row[i - 1].pc : row[i].pc))
			return false;
	}
	return true;
}

/*
 * True if each page of a part has its rows inside the part. `halves` are the n_halves half words of
 * the part.
 */
static bool part_check(const uint32_t *halves, size_t n_halves, uint32_t n_frames)
{
	const struct unwind_row *rows = (const struct unwind_row *)(halves + UNWIND_PART_PAGES);

	for (uint32_t i = 0; i < UNWIND_PART_PAGES; i++) {
		uint32_t first = halves[i] >> UNWIND_ROWS_BITS;
		uint32_t n = halves[i] & ((1U << UNWIND_ROWS_BITS) - 1);

		if ((size_t)first + n > n_halves - UNWIND_PART_PAGES ||
		    !page_check(rows + first, n, n_frames))
			return false;
	}
	return true;
}

/* True if the parts follow each other and the head without gaps, and each is sound. */
static bool parts_check(const struct unwind_rows *rows)
{
	const struct unwind_part *parts = (const struct unwind_part *)rows->words;
	const uint32_t *halves = (const uint32_t *)rows->words;
	uint64_t first = 2 * unwind_rows_head(rows), end;

	for (uint32_t i = 0; i < rows->n_parts; i++) {
		end = i + 1 < rows->n_parts ? parts[i + 1].at : 2 * rows->n_words;
		if (parts[i].at != first || parts[i].used || end % 2 || end > 2 * rows->n_words ||
		    end < first + UNWIND_PART_PAGES ||
		    !part_check(halves + first, end - first, rows->n_frames))
			return false;
		first = end;
	}
	return true;
}

int answer_rows_decode(void **data, size_t size, uint64_t code_bytes, struct unwind_rows *out)
{
	const struct answer_rows *tail;
	struct unwind_rows rows = { 0 };

	if (size < sizeof(*tail) || size % sizeof(uint64_t) || size > UINT32_MAX)
		return -EPROTO;
	tail = (const void *)((const char *)*data + size - sizeof(*tail));
	rows.words = *data;
	rows.n_words = (size - sizeof(*tail)) / sizeof(uint64_t);
	rows.n_parts = tail->n_parts;
	rows.n_rows = tail->n_rows;
	rows.n_frames = tail->n_frames;
	rows.n_rules = tail->n_rules;
	if (!rows.n_parts || rows.n_parts > (code_bytes >> UNWIND_PART_SHIFT) + 1 ||
	    rows.n_frames > UINT16_MAX + 1U || rows.n_rules > rows.n_frames ||
	    unwind_rows_head(&rows) > rows.n_words || !frames_check(&rows) || !parts_check(&rows))
		return -EPROTO;
	*data = NULL;
	*out = rows;
	return 0;
}
