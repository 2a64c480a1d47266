/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/query/reason_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef unsigned __int128 uint128;

/* Returns the entry of a reason, or NULL. */
static struct reason_time *time_get(struct reason_time *list, enum wait_reason reason)
{
	while (list && list->reason != reason)
		list = list->next;
	return list;
}

int reason_times_add(struct reason_time **list, enum wait_reason reason, uint64_t ns,
		     struct reason_time **spare, struct arena *arena)
{
	struct reason_time *one = time_get(*list, reason);

	if (one) {
		one->ns = ns < UINT64_MAX - one->ns ? one->ns + ns : UINT64_MAX;
		return 0;
	}
	one = *spare;
	if (one)
		*spare = one->next;
	else
		one = arena_alloc(arena, sizeof(*one));
	if (!one)
		return -ENOMEM;
	*one = (struct reason_time){ .reason = reason, .ns = ns, .next = *list };
	*list = one;
	return 0;
}

void reason_times_move(struct reason_time **to, struct reason_time **from,
		       struct reason_time **spare)
{
	struct reason_time *one, *known, **place;

	while ((one = *from)) {
		*from = one->next;
		known = time_get(*to, one->reason);
		if (known)
			known->ns =
				one->ns < UINT64_MAX - known->ns ? known->ns + one->ns : UINT64_MAX;
		place = known ? spare : to;
		one->next = *place;
		*place = one;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct wire_reason_time *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return strcmp(x->reason, y->reason);
}

/* Returns the part of a time, of `all`, that is left if all is reduced to `whole`. */
static int64_t part_of(uint64_t ns, uint64_t whole, uint128 all)
{
	if (all > whole)
		ns = (uint64_t)((uint128)ns * whole / all);
	return ns < INT64_MAX ? (int64_t)ns : INT64_MAX;
}

int reason_times_wire(const struct reason_time *list, uint64_t whole, struct arena *arena,
		      struct wire_reason_times *out)
{
	const struct reason_time *one;
	struct wire_reason_time *v;
	uint128 all = 0;
	size_t n = 0;

	for (one = list; one; one = one->next) {
		all += one->ns;
		n++;
	}
	v = arena_array(arena, n + 1, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (n = 0, one = list; one; one = one->next)
		v[n++] = (struct wire_reason_time){
			.reason = wait_reason_word(one->reason),
			.total_ns = part_of(one->ns, whole, all),
		};
	qsort(v, n, sizeof(*v), by_time);
	*out = (struct wire_reason_times){ .v = v, .n = n };
	return 0;
}
