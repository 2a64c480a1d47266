/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/call_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "common/base.h"

/* Some seconds at the usual rate. */
enum { CALLS_KEPT = 8192 };

struct calls {
	_Atomic unsigned int refs;
	pthread_mutex_t lock; /* guards what follows */
	uint64_t end;	      /* the number of the next one */
	struct call v[CALLS_KEPT];
};

struct calls *calls_new(void)
{
	struct calls *calls = calloc(1, sizeof(*calls));

	if (!calls)
		return NULL;
	calls->refs = 1;
	pthread_mutex_init(&calls->lock, NULL);
	return calls;
}

struct calls *calls_ref(struct calls *calls)
{
	atomic_fetch_add(&calls->refs, 1);
	return calls;
}

void call_fini(struct call *call)
{
	call->kernel = stack_unref(call->kernel);
	call->user = stack_unref(call->user);
}

struct calls *calls_unref(struct calls *calls)
{
	size_t i;

	if (!calls || atomic_fetch_sub(&calls->refs, 1) != 1)
		return NULL;
	for (i = 0; i < CALLS_KEPT; i++)
		call_fini(&calls->v[i]);
	pthread_mutex_destroy(&calls->lock);
	free(calls);
	return NULL;
}

/* CPUs send at the same time: the last few may have to move up by one. */
void calls_put(struct calls *calls, const struct call *call)
{
	uint64_t at, first;

	pthread_mutex_lock(&calls->lock);
	at = calls->end++;
	first = at >= CALLS_KEPT ? at - CALLS_KEPT + 1 : 0;
	call_fini(&calls->v[at % CALLS_KEPT]);
	for (; at > first && calls->v[(at - 1) % CALLS_KEPT].time_ns > call->time_ns; at--)
		calls->v[at % CALLS_KEPT] = calls->v[(at - 1) % CALLS_KEPT];
	calls->v[at % CALLS_KEPT] = *call;
	pthread_mutex_unlock(&calls->lock);
}

uint64_t calls_position(struct calls *calls)
{
	uint64_t position;

	pthread_mutex_lock(&calls->lock);
	position = calls->end;
	pthread_mutex_unlock(&calls->lock);
	return position;
}

static bool has_names(const struct call *call)
{
	return (!call->kernel || call->kernel->is_resolved) &&
	       (!call->user || call->user->is_resolved);
}

size_t calls_take(struct calls *calls, uint64_t *position, int64_t until_ns, struct call *out,
		  size_t max, uint64_t *missed)
{
	const struct call *call;
	uint64_t first;
	size_t n = 0;

	pthread_mutex_lock(&calls->lock);
	first = calls->end > CALLS_KEPT ? calls->end - CALLS_KEPT : 0;
	if (*position < first) {
		*missed += first - *position;
		*position = first;
	}
	for (; n < max && *position < calls->end; ++*position) {
		call = &calls->v[*position % CALLS_KEPT];
		if (call->time_ns >= until_ns || !has_names(call))
			break;
		out[n] = *call;
		if (call->kernel)
			stack_ref(call->kernel);
		if (call->user)
			stack_ref(call->user);
		n++;
	}
	pthread_mutex_unlock(&calls->lock);
	return n;
}
