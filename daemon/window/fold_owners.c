/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/share.h"
#include "common/base.h"
#include "daemon/window/fold_internal.h"

enum {
	/*
	 * Number of components of a control group's path that belong to an owner: users can only
	 * make groups further down.
	 */
	OWNER_DEPTH = 2,
	OWNER_FACTOR = 3, /* see share_allows() */
};

/* Returns the length of the first components of the path, by which owners differ. */
static size_t owner_size(const char *cgroup)
{
	const char *at = cgroup;
	int i;

	for (i = 0; i < OWNER_DEPTH && *at; i++)
		at += 1 + strcspn(at + 1, "/");
	return (size_t)(at - cgroup);
}

static int path_compare(const char *a, const char *b)
{
	size_t n = owner_size(a), m = owner_size(b);
	int r = memcmp(a, b, n < m ? n : m);

	return r ? r : (n > m) - (n < m);
}

static const char *path_of(const struct fold_image *image)
{
	return image->process.cgroup ? image->process.cgroup : "";
}

static int by_owner(const void *x, const void *y)
{
	const struct fold_image *const *a = x, *const *b = y;

	return path_compare(path_of(*a), path_of(*b));
}

int fold_owners_init(struct fold *fold)
{
	const size_t n = fold->in->n_images;
	_cleanup_(freep) struct fold_image **sorted = calloc(n + 1, sizeof(*sorted));
	size_t i;

	fold->owned = calloc(n + 1, sizeof(*fold->owned));
	if (!sorted || !fold->owned)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		sorted[i] = &fold->images[i];
	qsort(sorted, n, sizeof(struct fold_image *), by_owner);
	for (i = 0; i < n; i++) {
		if (!i || by_owner(&sorted[i - 1], &sorted[i]))
			fold->n_owners++;
		sorted[i]->owner = (uint32_t)fold->n_owners - 1;
	}
	return 0;
}

void fold_owners_fini(struct fold *fold)
{
	free(fold->owned);
}

void fold_owners_choose(struct fold *fold, const uint32_t *images, size_t n, size_t max,
			bool *is_chosen)
{
	size_t taken = 0, i;

	memset(fold->owned, 0, fold->n_owners * sizeof(*fold->owned));
	for (i = 0; i < n; i++) {
		size_t *own = &fold->owned[fold->images[images[i]].owner];

		is_chosen[i] = n <= max || share_allows((int64_t)*own, (int64_t)taken, (int64_t)max,
							OWNER_FACTOR);
		*own += is_chosen[i];
		taken += is_chosen[i];
	}
	/* The few that are left go by rank, as do those that nobody else wanted. */
	for (i = 0; i < n && taken < max; i++) {
		taken += !is_chosen[i];
		is_chosen[i] = true;
	}
}
