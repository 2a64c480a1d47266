/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_STREAMS_H
#define STACKD_DAEMON_SERVICE_STREAMS_H

/*
 * Limits how many long answers are made and sent at the same time, because each takes memory until
 * the client has read it. Further calls wait in a queue. If a client reads so slowly that others
 * wait for it, it is cut off. Owned by the service; any thread.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base.h"

/*
 * STREAM_RATE: a client that reads this number of bytes a second, or more, is not slow.
 * STREAM_SLOW_NS: a client is not slow before it has spent this time reading.
 */
enum { STREAMS_DEFAULT = 2, STREAM_RATE = 256 * 1024 };
#define STREAM_SLOW_NS (5 * NS_PER_S)

enum stream_state {
	STREAM_NONE,
	STREAM_WAITING, /* the call is in the queue */
	STREAM_HELD,	/* the answer is being made and sent */
};

/* The place of one call; all zero at first. */
struct stream_place {
	struct stream_place *prev; /* neighbors in a list of struct streams */
	struct stream_place *next;
	enum stream_state state;
	/*
	 * CLOCK_MONOTONIC time at which the last reply was made; 0: the next one is being made
	 */
	int64_t made_ns;
	int64_t reading_ns; /* for how long the client has read replies, without the last one */
	uint64_t sent;	    /* number of bytes in all replies */
	bool is_slow;	    /* the client is to be cut off */
	/* member is_pressed of struct server_peer: set together with is_slow */
	atomic_bool *pressed;
};

struct streams {
	pthread_mutex_t lock;
	struct stream_place *held;    /* list of the places that are held */
	struct stream_place *waiting; /* the queue, of which the first comes next */
	size_t n_held;
	size_t max;	 /* maximum of n_held */
	int64_t slow_ns; /* STREAM_SLOW_NS, except in tests */
	uint64_t waited; /* number of calls that had to wait */
	uint64_t cut;	 /* number of clients that were cut off */
};

void streams_init(struct streams *streams);
void streams_fini(struct streams *streams);
void streams_set_max(struct streams *streams, size_t max);

/*
 * Gives the place to the call if there is room and no other call came before. Otherwise puts the
 * call into the queue, and returns false: it has to try again when there may be room. If the call
 * is the first of the queue, looks for a client that reads slowly, and marks it. `pressed` is a
 * flag of the client, see struct stream_place.
 */
bool streams_enter(struct streams *streams, struct stream_place *place, atomic_bool *pressed);

/* Gives up the place, or leaves the queue. Does nothing if streams_enter() was not called. */
void streams_leave(struct streams *streams, struct stream_place *place);

/* True if there is room for the first call of the queue. */
bool streams_have_room(struct streams *streams);

/*
 * Called before the next reply of an answer is made. Returns false if the client has read so slowly
 * that the answer is to be given up.
 */
bool streams_reply_begin(struct streams *streams, struct stream_place *place);

/* Called when a reply of this number of bytes was made. */
void streams_reply_end(struct streams *streams, struct stream_place *place, size_t bytes);

#endif
