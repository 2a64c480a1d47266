/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/spawns_section.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

static void sums_encode(const struct spawn_sums *sums, struct bytes *out)
{
	bytes_put_u64(out, sums->forks);
	bytes_put_u64(out, sums->execs);
	bytes_put_u64(out, sums->exits);
	bytes_put_u64(out, sums->shorts);
	bytes_put_u64(out, sums->cpu_ns);
	bytes_put_u64(out, sums->life_ns);
}

static void sums_decode(struct bytes_reader *in, struct spawn_sums *sums)
{
	sums->forks = bytes_get_u64(in);
	sums->execs = bytes_get_u64(in);
	sums->exits = bytes_get_u64(in);
	sums->shorts = bytes_get_u64(in);
	sums->cpu_ns = bytes_get_u64(in);
	sums->life_ns = bytes_get_u64(in);
}

void store_spawns_encode(const struct window *window, struct bytes *out)
{
	const struct window_spawns *spawns = &window->spawns;
	size_t i;

	bytes_put_u64(out, spawns->ns);
	sums_encode(&spawns->others, out);
	bytes_put_u64(out, spawns->n_others);
	bytes_put_u64(out, spawns->n);
	for (i = 0; i < spawns->n; i++) {
		bytes_put_string(out, spawns->v[i].parent);
		bytes_put_string(out, spawns->v[i].comm);
		sums_encode(&spawns->v[i].sums, out);
	}
}

/* Reads a name of less than COMM_LEN bytes into comm[], which must be zeroed. */
static int comm_decode(struct bytes_reader *in, char comm[COMM_LEN])
{
	_cleanup_(freep) char *text = bytes_get_string(in);

	if (!text)
		return in->is_out_of_memory ? -ENOMEM : -EBADMSG;
	if (strlen(text) >= COMM_LEN)
		return -EBADMSG;
	memcpy(comm, text, strlen(text));
	return 0;
}

static int row_decode(struct bytes_reader *in, struct window_spawns *spawns)
{
	struct window_spawn *row = &spawns->v[spawns->n];
	int r = comm_decode(in, row->parent);

	if (r)
		return r;
	r = comm_decode(in, row->comm);
	if (r)
		return r;
	sums_decode(in, &row->sums);
	/* Rows are found by their names, so they have to be sorted. */
	if (spawns->n && memcmp(row - 1, row, offsetof(struct window_spawn, sums)) >= 0)
		return -EBADMSG;
	spawns->n++;
	return bytes_error(in);
}

int store_spawns_decode(struct bytes_reader *in, struct window *window)
{
	struct window_spawns *spawns = &window->spawns;
	size_t n;
	int r = 0;

	if (spawns->v)
		return -EBADMSG;
	spawns->ns = bytes_get_u64(in);
	sums_decode(in, &spawns->others);
	spawns->n_others = bytes_get_u64(in);
	n = (size_t)bytes_get_max(in, WINDOW_SPAWNS_MAX);
	spawns->v = n ? calloc(n, sizeof(*spawns->v)) : NULL;
	if (n && !spawns->v)
		return -ENOMEM;
	spawns->capacity = n;
	while (!r && spawns->n < n)
		r = row_decode(in, spawns);
	return r ? r : bytes_error(in);
}
