/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/bench/month_top.h"

#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "common/hash_table.h"
#include "daemon/base/hash.h"
#include "daemon/window/fold.h"
#include "daemon/window/idle_wait.h"

/* Stands for the state in keys of I/O operations. */
#define TOP_IO UINT64_MAX

struct top_sum {
	uint64_t key; /* hash of the comm, the stacks and the state */
	uint64_t ns;
	UT_hash_handle hh;
};

static void add_key(struct top_sums *sums, uint64_t key, uint64_t ns)
{
	struct top_sum *sum;

	HASH_FIND(hh, sums->sums, &key, sizeof(key), sum);
	if (!sum) {
		sum = calloc(1, sizeof(*sum));
		if (!sum)
			exit(1);
		sum->key = key;
		HASH_ADD(hh, sums->sums, key, sizeof(key), sum);
	}
	sum->ns += ns;
	sums->total_ns += ns;
}

static void add(struct top_sums *sums, const struct window_image *image, uint64_t state,
		uint64_t kernel, uint64_t user, uint64_t ns)
{
	const uint64_t words[] = { state, kernel, user };

	/* What was summed up without stacks counts for the total only. */
	if (image->folded &&
	    (strcmp(image->comm, WINDOW_OTHERS) == 0 || (state != TOP_IO && !kernel && !user)))
		sums->total_ns += ns;
	else
		add_key(sums,
			hash64(hash64(HASH64_SEED, words, sizeof(words)), image->comm, COMM_LEN),
			ns);
}

void top_add_sums(struct top_sums *sums, const struct top_sums *more)
{
	const struct top_sum *sum;

	for (sum = more->sums; sum; sum = sum->hh.next) {
		add_key(sums, sum->key, sum->ns);
		sums->total_ns -= sum->ns;
	}
	sums->total_ns += more->total_ns;
}

static void add_wait(struct top_sums *sums, const struct window *window, uint32_t image,
		     uint32_t state, const struct stack *kernel, const struct stack *user,
		     uint64_t ns)
{
	struct process_info process;

	process_info(window->images[image].process, &process);
	/* Short waits of preempted threads lose their stacks, see [window] preempted. */
	if (state & STATE_PREEMPTED) {
		sums->total_ns += ns;
		return;
	}
	if (!wait_is_idle(state, process.is_kernel, kernel, user))
		add(sums, &window->images[image], state & ~(STATE_SEEDED | STATE_UNSEEN),
		    stack_place(kernel), stack_place(user), ns);
}

void top_add(struct top_sums *sums, const struct window *window)
{
	int64_t from = window->start_ns, to = window->end_ns;
	size_t i;

	for (i = 0; i < window->n_rows; i++) {
		const struct window_row *row = &window->rows[i];

		add_wait(sums, window, row->image, row->state, row->kernel, row->user,
			 row->blocked_ns + row->runnable_ns);
	}
	for (i = 0; i < window->n_spans; i++) {
		const struct window_span *span = &window->spans[i];

		add_wait(sums, window, span->image, span->state, span->kernel, span->user,
			 window_overlap_ns(span->start_ns, span->end_ns, from, to));
	}
	for (i = 0; i < window->n_opens; i++) {
		const struct window_open *open = &window->opens[i];

		if (!open->count)
			add_wait(sums, window, open->image, open->state, open->kernel, open->user,
				 window_overlap_ns(open->start_ns, to, from, to));
	}
	for (i = 0; i < window->n_samples; i++) {
		const struct window_sample *sample = &window->samples[i];

		/* Samples of a CPU without a process are its idle time. */
		if (window->images[sample->image].tid || window->images[sample->image].folded)
			add(sums, &window->images[sample->image], 0,
			    stack_functions(sample->kernel), stack_functions(sample->user),
			    sample->on_ns);
	}
	for (i = 0; i < window->n_ios; i++)
		if (!window->ios[i].is_slow)
			add(sums, &window->images[window->ios[i].image], TOP_IO, window->ios[i].op,
			    0, window->ios[i].total_ns);
}

void top_clear(struct top_sums *sums)
{
	struct top_sum *sum, *next;

	HASH_ITER (hh, sums->sums, sum, next) {
		HASH_DEL(sums->sums, sum);
		free(sum);
	}
	*sums = (struct top_sums){};
}

static int sum_compare(const void *x, const void *y)
{
	const struct top_sum *const *a = x, *const *b = y;

	if ((*a)->ns != (*b)->ns)
		return (*a)->ns > (*b)->ns ? -1 : 1;
	return (*a)->key < (*b)->key ? -1 : (*a)->key > (*b)->key;
}

/* Returns the first TOP sums, largest first; the caller frees the list. */
static const struct top_sum **first(const struct top_sums *sums, size_t *n_out)
{
	size_t n = HASH_COUNT(sums->sums), i = 0;
	const struct top_sum **list = calloc(n + TOP, sizeof(void *));
	const struct top_sum *sum;

	if (!list)
		exit(1);
	for (sum = sums->sums; sum; sum = sum->hh.next)
		list[i++] = sum;
	qsort(list, n, sizeof(*list), sum_compare);
	*n_out = n < TOP ? n : TOP;
	return list;
}

void top_compare(const struct top_sums *real, const struct top_sums *folded,
		 struct top_result *result)
{
	size_t n, n_folded, i;
	const struct top_sum **a = first(real, &n), **b = first(folded, &n_folded);
	bool is_same = n == n_folded;

	for (i = 0; i < n; i++) {
		struct top_sum *found;
		double off = 1;

		is_same = is_same && a[i]->key == b[i]->key;
		HASH_FIND(hh, folded->sums, &a[i]->key, sizeof(a[i]->key), found);
		if (found)
			off = ((double)a[i]->ns - (double)found->ns) / (double)a[i]->ns;
		if (off < 0)
			off = -off;
		if (off > result->worst)
			result->worst = off;
	}
	result->ranges++;
	result->same += is_same;
	free(a);
	free(b);
}
