/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/drain/call_stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/layout.h"
#include "common/base.h"
#include "daemon/window/stack.h"

/* Number of calls that a stream keeps for readers: enough for some seconds at the usual rate. */
enum { CALL_STREAM_KEPT = 8192 };

struct call_stream {
	_Atomic unsigned int refs;
	pthread_mutex_t lock; /* guards `end` and `v` */
	uint64_t end;	      /* number of the next call; call i is at v[i % CALL_STREAM_KEPT] */
	struct call v[CALL_STREAM_KEPT];
};

struct call_stream *call_stream_new(void)
{
	struct call_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->refs = 1;
	pthread_mutex_init(&stream->lock, NULL);
	return stream;
}

struct call_stream *call_stream_ref(struct call_stream *stream)
{
	atomic_fetch_add(&stream->refs, 1);
	return stream;
}

struct call_exec *call_exec_new(const struct record_exec_call *record)
{
	size_t path = strnlen(record->path, sizeof(record->path) - 1);
	uint32_t n = record->n < EXEC_ARGUMENTS ? record->n : EXEC_ARGUMENTS;
	struct call_exec *exec = calloc(1, sizeof(*exec) + path + 1 + n);

	if (!exec)
		return NULL;
	exec->refs = 1;
	exec->parent = (int32_t)record->parent;
	memcpy(exec->parent_comm, record->parent_comm, strnlen(record->parent_comm, COMM_LEN - 1));
	exec->n = n;
	exec->all = record->all > n ? record->all : n;
	memcpy(exec->text, record->path, path);
	memcpy(exec->text + path + 1, record->arguments, n);
	return exec;
}

static void exec_unref(struct call_exec *exec)
{
	if (exec && atomic_fetch_sub(&exec->refs, 1) == 1)
		free(exec);
}

void call_fini(struct call *call)
{
	call->kernel = stack_unref(call->kernel);
	call->user = stack_unref(call->user);
	exec_unref(call->exec);
	call->exec = NULL;
}

struct call_stream *call_stream_unref(struct call_stream *stream)
{
	size_t i;

	if (!stream || atomic_fetch_sub(&stream->refs, 1) != 1)
		return NULL;
	for (i = 0; i < CALL_STREAM_KEPT; i++)
		call_fini(&stream->v[i]);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
	return NULL;
}

/*
 * Several CPUs send calls at the same time, so the stream may already contain some calls that are
 * newer than this one. Moves these up by one position and puts the call before them: the stream
 * stays sorted by time.
 */
void call_stream_put(struct call_stream *stream, const struct call *call)
{
	uint64_t at, first;

	pthread_mutex_lock(&stream->lock);
	at = stream->end++;
	first = at >= CALL_STREAM_KEPT ? at - CALL_STREAM_KEPT + 1 : 0;
	call_fini(&stream->v[at % CALL_STREAM_KEPT]);
	for (; at > first && stream->v[(at - 1) % CALL_STREAM_KEPT].time_ns > call->time_ns; at--)
		stream->v[at % CALL_STREAM_KEPT] = stream->v[(at - 1) % CALL_STREAM_KEPT];
	stream->v[at % CALL_STREAM_KEPT] = *call;
	pthread_mutex_unlock(&stream->lock);
}

uint64_t call_stream_position(struct call_stream *stream)
{
	uint64_t position;

	pthread_mutex_lock(&stream->lock);
	position = stream->end;
	pthread_mutex_unlock(&stream->lock);
	return position;
}

static bool has_names(const struct call *call)
{
	return (!call->kernel || call->kernel->is_resolved) &&
	       (!call->user || call->user->is_resolved);
}

size_t call_stream_take(struct call_stream *stream, uint64_t *position, int64_t until_ns,
			struct call *out, size_t max, uint64_t *missed)
{
	const struct call *call;
	uint64_t first;
	size_t n = 0;

	pthread_mutex_lock(&stream->lock);
	first = stream->end > CALL_STREAM_KEPT ? stream->end - CALL_STREAM_KEPT : 0;
	if (*position < first) {
		*missed += first - *position;
		*position = first;
	}
	for (; n < max && *position < stream->end; ++*position) {
		call = &stream->v[*position % CALL_STREAM_KEPT];
		if (call->time_ns >= until_ns || !has_names(call))
			break;
		out[n] = *call;
		if (call->kernel)
			stack_ref(call->kernel);
		if (call->user)
			stack_ref(call->user);
		if (call->exec)
			atomic_fetch_add(&call->exec->refs, 1);
		n++;
	}
	pthread_mutex_unlock(&stream->lock);
	return n;
}
