/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_CALL_STREAM_H
#define STACKD_DAEMON_DRAIN_CALL_STREAM_H

/*
 * The stream of calls from a stacksnoop session to its clients: the drain adds calls, and each
 * reader takes them from its own position on. The newest 8192 calls are kept; a reader that is too
 * slow misses the oldest calls and learns how many it missed. Refcounted, as a reader may outlive
 * the session; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"

struct stack;

struct call {
	int64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t count;	 /* number of calls that this recorded call stands for */
	int32_t pid;
	int32_t tid;
	uint32_t cpu;
	char comm[COMM_LEN];
	struct stack *kernel; /* kernel and user are references; NULL: no such stack */
	struct stack *user;
};

struct call_stream;

/* Returns an empty stream with one reference; NULL when out of memory. */
struct call_stream *call_stream_new(void);
struct call_stream *call_stream_ref(struct call_stream *stream);
struct call_stream *call_stream_unref(struct call_stream *stream);

/* Adds a call, and takes over its references to stacks. Keeps the calls sorted by time. */
void call_stream_put(struct call_stream *stream, const struct call *call);

/* Returns the position for a new reader, which gets only calls that arrive from now on. */
uint64_t call_stream_position(struct call_stream *stream);

/*
 * Copies up to max calls from *position on into out, and returns the number of copies. Stops at the
 * first call that is not older than until_ns or whose stacks have no names yet. The caller must
 * release each copy with call_fini(). Moves *position past the copied calls, and adds to *missed
 * the number of calls that were dropped before this reader took them.
 */
size_t call_stream_take(struct call_stream *stream, uint64_t *position, int64_t until_ns,
			struct call *out, size_t max, uint64_t *missed);

/* Drops the references to stacks that a copied call has. */
void call_fini(struct call *call);

#endif
