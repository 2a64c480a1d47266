/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/holder/internal.h"

#include <stdlib.h>

#include "common/base.h"
#include "daemon/holder/unix_diag.h"

struct holder_search *holder_search_new(int64_t deadline_ns, int diag_fd)
{
	struct holder_search *search = calloc(1, sizeof(*search));

	if (search) {
		search->deadline_ns = deadline_ns;
		search->diag_fd = diag_fd;
	}
	return search;
}

void holder_search_free(struct holder_search *search)
{
	if (!search)
		return;
	descriptors_fini(&search->descriptors);
	for (size_t i = 0; i < search->n_namespaces; i++)
		inet_table_fini(&search->namespaces[i].table);
	free(search->namespaces);
	if (search->is_diag_own)
		closep(&search->diag_fd);
	free(search);
}

int64_t search_part_ns(const struct holder_search *search)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	return now + (search->deadline_ns - now) / 4 * 3;
}

int search_diag_fd(struct holder_search *search)
{
	/* A negative errno other than -1 stays: the answer would be the same. */
	if (search->diag_fd == -1) {
		search->diag_fd = unix_diag_open();
		search->is_diag_own = search->diag_fd >= 0;
	}
	return search->diag_fd;
}
