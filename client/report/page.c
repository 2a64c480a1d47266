/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client/report/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/term.h"
#include "client/report/embedded.h"
#include "client/report/json.h"
#include "common/base.h"

/* A row by its size, to find the largest ones. */
struct rank {
	int64_t total;
	uint32_t row;
};

static int compare_ranks(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static struct rank *rank_rows(const struct report_data *data)
{
	struct rank *ranks = must(calloc(data->n_rows + 1, sizeof *ranks));

	for (size_t i = 0; i < data->n_rows; i++)
		ranks[i] = (struct rank){ data->rows[i].blocked + data->rows[i].runnable,
					  (uint32_t)i };
	qsort(ranks, data->n_rows, sizeof *ranks, compare_ranks);
	return ranks;
}

/* Marks the n largest rows, and sums up the others. */
static struct report_cut choose(const struct report_data *data, const struct rank *ranks, size_t n,
				bool *is_kept)
{
	struct report_cut cut = { .rows = data->n_rows - n };
	double all = 0;

	for (size_t i = 0; i < data->n_rows; i++) {
		is_kept[ranks[i].row] = i < n;
		all += (double)ranks[i].total;
		if (i >= n)
			cut.total += ranks[i].total;
	}
	cut.part = all > 0 ? (int64_t)((double)cut.total / all * 1e6) : 0;
	return cut;
}

int report_page_write(struct report_data *data, const struct report_head *head, int64_t max_size,
		      FILE *out, struct report_cut *cut_out)
{
	int64_t room = max_size - (int64_t)(strlen(page_head) + strlen(page_tail));
	struct rank *ranks = rank_rows(data);
	bool *is_kept = must(calloc(data->n_rows + 1, sizeof *is_kept));
	size_t n = data->n_rows, size = 0;
	char *text = NULL;
	int r = 0;

	for (;;) {
		FILE *json = must(open_memstream(&text, &size));

		*cut_out = choose(data, ranks, n, is_kept);
		report_json_print(data, head, cut_out, is_kept, json);
		if (fclose(json) != 0)
			must(NULL);
		if ((int64_t)size <= room || n == 0)
			break;
		free(TAKE(text));
		/* Smaller rows have more names of their own than larger ones: this overshoots. */
		n = room > 0 ? (size_t)((double)n * 0.95 * (double)room / (double)size) : 0;
	}
	if ((int64_t)size > room) {
		r = -EFBIG;
	} else {
		fputs(page_head, out);
		fwrite(text, 1, size, out);
		fputs(page_tail, out);
	}
	free(text);
	free(is_kept);
	free(ranks);
	return r;
}
