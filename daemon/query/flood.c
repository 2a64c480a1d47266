/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/flood.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"
#include "daemon/process/process.h"

#define USER_SLICE "/user.slice/user-"

/* The rows of one entry of window.images. */
struct share {
	const char *cgroup;
	size_t size; /* number of bytes of `cgroup` that tell control groups apart */
	uint64_t rows;
};

/* Returns the length of the path up to the end of "user-UID.slice", or of the whole path. */
static size_t user_size(const char *cgroup)
{
	const char *end = NULL;

	if (strncmp(cgroup, USER_SLICE, strlen(USER_SLICE)) == 0)
		end = strchr(cgroup + strlen(USER_SLICE), '/');
	return end ? (size_t)(end - cgroup) : strlen(cgroup);
}

static void row_count(struct share *shares, size_t n, uint32_t image, uint32_t processes)
{
	if (image < n)
		shares[image].rows += processes ? processes : 1;
}

static uint64_t rows_count(const struct window *window, struct share *shares)
{
	const size_t n = window->n_images;
	uint64_t total = 0;
	size_t i;

	for (i = 0; i < window->n_rows; i++)
		row_count(shares, n, window->rows[i].image, window->rows[i].processes);
	for (i = 0; i < window->n_samples; i++)
		row_count(shares, n, window->samples[i].image, window->samples[i].processes);
	for (i = 0; i < window->n_ios; i++)
		row_count(shares, n, window->ios[i].image, window->ios[i].processes);
	for (i = 0; i < n; i++)
		total += shares[i].rows;
	return total;
}

static int share_compare(const void *a, const void *b)
{
	const struct share *x = a, *y = b;
	int r = memcmp(x->cgroup, y->cgroup, x->size < y->size ? x->size : y->size);

	return r ? r : (x->size > y->size) - (x->size < y->size);
}

/* Sorts the entries by control group, and adds up those of one group in its first entry. */
static size_t shares_join(struct share *shares, size_t n)
{
	size_t i, joined = 0;

	qsort(shares, n, sizeof(*shares), share_compare);
	for (i = 0; i < n; i++) {
		if (joined && share_compare(&shares[joined - 1], &shares[i]) == 0)
			shares[joined - 1].rows += shares[i].rows;
		else
			shares[joined++] = shares[i];
	}
	return joined;
}

int flood_find(const struct window *window, struct arena *arena, struct flood *out)
{
	_cleanup_(freep) struct share *shares = calloc(window->n_images + 1, sizeof(*shares));
	struct process_info info;
	uint64_t total;
	size_t i, n;

	*out = (struct flood){};
	if (!shares)
		return -ENOMEM;
	for (i = 0; i < window->n_images; i++) {
		shares[i].cgroup = "";
		if (!window->images[i].process)
			continue;
		process_info_at(window->images[i].process, window_middle_ns(window), &info);
		if (info.cgroup)
			shares[i].cgroup = info.cgroup;
		shares[i].size = user_size(shares[i].cgroup);
	}
	total = rows_count(window, shares);
	n = shares_join(shares, window->n_images);
	for (i = 0; i < n; i++) {
		if (!shares[i].size || !shares[i].rows || shares[i].rows < total - shares[i].rows)
			continue;
		out->percent = (unsigned int)(shares[i].rows * 100 / total);
		out->cgroup = arena_strndup(arena, shares[i].cgroup, shares[i].size);
		return out->cgroup ? 0 : -ENOMEM;
	}
	return 0;
}
