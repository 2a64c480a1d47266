/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_DRAIN_CALL_STREAM_H
#define STACKD_DAEMON_DRAIN_CALL_STREAM_H

/*
 * A stream of traced calls, from a stacksnoop session to its clients. The drain adds calls; clients
 * read them, each at its own position in the stream. Only the newest 8192 calls are kept: a reader
 * that is too slow misses the oldest calls and gets the number of these. Refcounted, because a
 * reader may outlive the session; any thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"

struct stack;

/* Says what a call of the tracepoint sched_process_exec is about. Refcounted; any thread. */
struct call_exec {
	_Atomic unsigned int refs;
	int32_t parent;
	char parent_comm[COMM_LEN];
	uint32_t n;   /* number of bytes of arguments in `text` */
	uint32_t all; /* number of bytes of all arguments */
	/* The path, which a NUL ends, then the arguments: a NUL ends each, but for one that is cut.
	 */
	char text[];
};

struct record_exec_call;

struct call {
	int64_t time_ns; /* time of the call, CLOCK_MONOTONIC */
	uint64_t count;	 /* number of calls that this one stands for, itself included */
	int32_t pid;
	int32_t tid;
	uint32_t cpu;
	char comm[COMM_LEN];
	struct stack *kernel; /* `kernel` and `user` are owned references; NULL: no such stack */
	struct stack *user;
	struct call_exec *exec; /* owned reference; NULL: this is another call */
};

struct call_stream;

/* Returns an empty stream with one reference; NULL when out of memory. */
struct call_stream *call_stream_new(void);
struct call_stream *call_stream_ref(struct call_stream *stream);
struct call_stream *call_stream_unref(struct call_stream *stream);

/* Returns what the record of an exec says, with one reference; NULL when out of memory. */
struct call_exec *call_exec_new(const struct record_exec_call *record);

/* Adds a call, and takes over its references. Keeps the calls sorted by time. */
void call_stream_put(struct call_stream *stream, const struct call *call);

/* Returns the position for a new reader, which gets only calls that are added from now on. */
uint64_t call_stream_position(struct call_stream *stream);

/*
 * Copies at most `max` calls from the stream to `out`, beginning at *position, and advances
 * *position by the number of copied calls. Returns this number. Stops at the first call that was
 * made at until_ns or later, and at the first one whose stacks have no names yet. The caller must
 * release each copy with call_fini(). Adds to *missed the number of calls that the stream dropped
 * before this reader took them.
 */
size_t call_stream_take(struct call_stream *stream, uint64_t *position, int64_t until_ns,
			struct call *out, size_t max, uint64_t *missed);

/* Drops the references that the call owns. */
void call_fini(struct call *call);

#endif
