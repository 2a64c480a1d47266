/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_CALL_STREAM_H
#define STACKD_DAEMON_DRAIN_CALL_STREAM_H

/*
 * Calls that are streamed one by one: the drain puts them in, readers take them from where each of
 * them was. The newest are kept, and a reader that is too slow misses the oldest and is told how
 * many. Refcounted, as a reader may outlive the session; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"

struct stack;

struct call {
	int64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t count;	 /* of calls that it stands for */
	int32_t pid;
	int32_t tid;
	uint32_t cpu;
	char comm[COMM_LEN];
	struct stack *kernel; /* references; NULL: none */
	struct stack *user;
};

struct call_stream;

/* NULL when out of memory. */
struct call_stream *call_stream_new(void);
struct call_stream *call_stream_ref(struct call_stream *stream);
struct call_stream *call_stream_unref(struct call_stream *stream);

/* Takes the references of the call. They stand in order of time, whatever the order they come in.
 */
void call_stream_put(struct call_stream *stream, const struct call *call);

/* Where a reader begins that wants what comes from now on. */
uint64_t call_stream_position(struct call_stream *stream);

/*
 * Up to max calls from *position on that are older than `until` and whose stacks have names; their
 * references are the caller's, see call_fini(). Moves *position, and adds what it missed to
 * *missed.
 */
size_t call_stream_take(struct call_stream *stream, uint64_t *position, int64_t until_ns,
			struct call *out, size_t max, uint64_t *missed);

void call_fini(struct call *call);

#endif
