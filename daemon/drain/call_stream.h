/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_CALL_STREAM_H
#define STACKD_DAEMON_DRAIN_CALL_STREAM_H

/*
 * Calls of a stacksnoop session on their way to the clients that stream them: the drain puts them
 * in, each reader takes them from its own position on. The newest 8192 are kept; a reader that is
 * too slow misses the oldest and learns how many. Refcounted, as a reader may outlive the session;
 * any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"

struct stack;

struct call {
	int64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t count;	 /* the number of calls that this one stands for */
	int32_t pid;
	int32_t tid;
	uint32_t cpu;
	char comm[COMM_LEN];
	struct stack *kernel; /* references; NULL: no such stack */
	struct stack *user;
};

struct call_stream;

/* NULL when out of memory. */
struct call_stream *call_stream_new(void);
struct call_stream *call_stream_ref(struct call_stream *stream);
struct call_stream *call_stream_unref(struct call_stream *stream);

/* Adds a call, and takes over its references. The stream keeps calls in the order of their time. */
void call_stream_put(struct call_stream *stream, const struct call *call);

/* The position of a reader that wants only calls that arrive from now on. */
uint64_t call_stream_position(struct call_stream *stream);

/*
 * Copies up to max calls from *position on into out, and returns their number. Stops at the first
 * call that is not older than until_ns or whose stacks have no names yet. The caller owns the
 * references of the copies, see call_fini(). Moves *position past them, and adds to *missed the
 * number of calls that were dropped before they could be read.
 */
size_t call_stream_take(struct call_stream *stream, uint64_t *position, int64_t until_ns,
			struct call *out, size_t max, uint64_t *missed);

/* Drops the references of a copy. */
void call_fini(struct call *call);

#endif
