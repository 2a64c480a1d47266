/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/store/held_section.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base.h"

/* Writes a name that may fill comm[] without a NUL. */
static void comm_encode(const char comm[COMM_LEN], struct bytes *out)
{
	char text[COMM_LEN + 1] = {};

	memcpy(text, comm, strnlen(comm, COMM_LEN));
	bytes_put_string(out, text);
}

static void wait_encode(const struct held_wait *wait, struct bytes *out)
{
	uint32_t i;

	bytes_put_u64(out, (uint32_t)wait->pid);
	bytes_put_u64(out, (uint32_t)wait->tid);
	comm_encode(wait->comm, out);
	bytes_put_i64(out, wait->since_ns);
	bytes_put_i64(out, wait->looked_ns);
	bytes_put_i64(out, wait->last_ns);
	/* The words of reasons never change, but their numbers do. */
	bytes_put_string(out, wait_reason_word(wait->reason));
	bytes_put_string(out, wait->object);
	bytes_put_string(out, wait->unknown);
	bytes_put_u64(out, wait->more);
	bytes_put_u64(out, wait->n_by);
	for (i = 0; i < wait->n_by; i++) {
		bytes_put_u64(out, (uint32_t)wait->by[i].pid);
		bytes_put_u64(out, (uint32_t)wait->by[i].tid);
		comm_encode(wait->by[i].comm, out);
	}
}

void store_held_encode(const struct window *window, struct bytes *out)
{
	const struct window_held *held = &window->held;
	size_t i;

	bytes_put_u64(out, held->dropped);
	bytes_put_u64(out, held->n);
	for (i = 0; i < held->n; i++)
		wait_encode(&held->v[i], out);
}

/* Reads a name of at most COMM_LEN bytes into comm[], which must be zeroed. */
static int comm_decode(struct bytes_reader *in, char comm[COMM_LEN])
{
	_cleanup_(freep) char *text = bytes_get_string(in);

	if (!text)
		return in->is_out_of_memory ? -ENOMEM : -EBADMSG;
	if (strlen(text) > COMM_LEN)
		return -EBADMSG;
	memcpy(comm, text, strlen(text));
	return 0;
}

/* Reads the texts of a wait, each of which may be missing. */
static int texts_decode(struct bytes_reader *in, struct held_wait *wait)
{
	_cleanup_(freep) char *reason = bytes_get_string(in);

	/* A later version may have more reasons. */
	wait->reason = wait_reason_find(reason);
	if (wait->reason == WAIT_REASON_N)
		wait->reason = REASON_UNKNOWN;
	wait->object = bytes_get_string(in);
	wait->unknown = bytes_get_string(in);
	return bytes_error(in);
}

static int wait_decode(struct bytes_reader *in, struct held_wait *wait)
{
	uint64_t n;
	int r;

	wait->pid = (int32_t)bytes_get_max(in, INT32_MAX);
	wait->tid = (int32_t)bytes_get_max(in, INT32_MAX);
	r = comm_decode(in, wait->comm);
	if (r)
		return r;
	wait->since_ns = bytes_get_i64(in);
	wait->looked_ns = bytes_get_i64(in);
	wait->last_ns = bytes_get_i64(in);
	r = texts_decode(in, wait);
	if (r)
		return r;
	wait->more = (uint32_t)bytes_get_max(in, UINT32_MAX);
	n = bytes_get_max(in, HELD_BY_MAX);
	for (; wait->n_by < n; wait->n_by++) {
		struct held_by *by = &wait->by[wait->n_by];

		by->pid = (int32_t)bytes_get_max(in, INT32_MAX);
		by->tid = (int32_t)bytes_get_max(in, INT32_MAX);
		r = comm_decode(in, by->comm);
		if (r)
			return r;
	}
	r = bytes_error(in);
	if (r)
		return r;
	/* The bounds keep sums of moments from overflowing. */
	if (wait->tid == 0 || wait->since_ns < 0 || wait->looked_ns < 0 ||
	    wait->last_ns < wait->since_ns || wait->last_ns > INT64_MAX / 2)
		return -EBADMSG;
	return 0;
}

int store_held_decode(struct bytes_reader *in, struct window *window)
{
	struct window_held *held = &window->held;
	size_t n;
	int r = 0;

	if (held->v)
		return -EBADMSG;
	held->dropped = bytes_get_u64(in);
	n = (size_t)bytes_get_max(in, HELD_WAITS_MAX);
	while (!r && n--) {
		struct held_wait wait = {};

		r = wait_decode(in, &wait);
		if (r)
			held_wait_fini(&wait);
		else
			r = window_held_put(held, &wait);
	}
	return r ? r : bytes_error(in);
}
