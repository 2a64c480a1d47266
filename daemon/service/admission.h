/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_SERVICE_ADMISSION_H
#define STACKD_DAEMON_SERVICE_ADMISSION_H

/*
 * Limits how many answers are made and sent at the same time, because each takes memory until the
 * client has read it: all together, those with many rows, and those of one user. Further calls wait
 * in a queue, in which a user with fewer answers comes first, and are refused after some time. If a
 * client reads so slowly that others wait for it, it is cut off. Owned by the service; any thread.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base.h"

/*
 * PLACE_RATE: a client that reads this number of bytes a second, or more, is not slow.
 * PLACE_SLOW_NS: a client is not slow before it has spent this time reading.
 * PLACE_EXTRA: bytes that an answer takes besides the [query] max_memory of its sums.
 */
enum { PLACE_RATE = 256 * 1024, PLACE_EXTRA = 4 * 1024 * 1024 };
#define PLACE_SLOW_NS (5 * NS_PER_S)

struct admission_limits {
	size_t max_long; /* maximum number of long answers */
	/*
	 * bytes of all answers together, each of which counts as answer_bytes. One long and one
	 * short answer are always possible.
	 */
	size_t max_bytes;
	size_t answer_bytes;
	size_t max_per_user; /* maximum number of answers to one user; root has no such limit */
	int64_t max_wait_ns; /* maximum time that a call waits for its place */
};

enum place_state {
	PLACE_NONE,
	PLACE_WAITING, /* the call is in the queue */
	PLACE_HELD,    /* the answer is being made and sent */
};

/* Why a place cannot be given to a call. */
enum place_obstacle { PLACE_FREE, PLACE_NO_LONG, PLACE_NO_BYTES, PLACE_NO_SHARE, PLACE_OBSTACLES };

/* The place of one call; all zero at first. */
struct place {
	struct place *prev; /* neighbors in a list of struct admission */
	struct place *next;
	enum place_state state;
	enum place_obstacle
		obstacle; /* of a call that waits: why it did not get a place last time */
	uid_t uid;	  /* the user who calls */
	bool is_long;	  /* the answer may have many rows */
	int64_t since_ns; /* CLOCK_MONOTONIC time since which the call has waited */
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

struct admission {
	pthread_mutex_t lock;
	struct admission_limits limits;
	struct place *held;    /* list of the places that are held */
	struct place *waiting; /* the queue, in the order of arrival */
	size_t n_held;
	size_t n_long;	 /* number of the places in `held` that are for long answers */
	int64_t slow_ns; /* PLACE_SLOW_NS, except in tests */
	/* number of calls that had to wait, by the reason when they came */
	uint64_t waited[PLACE_OBSTACLES];
	uint64_t refused; /* number of calls that were refused because they had waited too long */
	/*
	 * The same without those that waited for answers of their own user; when the last of them
	 * was refused (CLOCK_MONOTONIC), and the name of the limit that it had reached.
	 */
	uint64_t starved;
	int64_t starved_ns;
	const char *starved_by;
	uint64_t cut; /* number of clients that were cut off */
};

void admission_init(struct admission *admission);
void admission_fini(struct admission *admission);
void admission_set_limits(struct admission *admission, const struct admission_limits *limits);

/*
 * Gives the place to a call of place->uid, with place->is_long set, if there is room and no call
 * that waits comes before it. Otherwise puts the call into the queue, and returns false: it has to
 * try again when there may be room. If a call is kept waiting by the memory that others hold, looks
 * for a client that reads slowly, and marks it. `pressed` is a flag of the client, see struct
 * place.
 */
bool admission_enter(struct admission *admission, struct place *place, atomic_bool *pressed);

/* True if the call has waited for as long as a call may. */
bool admission_is_overdue(struct admission *admission, const struct place *place);

/*
 * Gives up the place, or leaves the queue. Does nothing if admission_enter() was not called. Sets
 * all members of *place to zero.
 */
void admission_leave(struct admission *admission, struct place *place);

/* Leaves the queue because admission_is_overdue(). Returns the name of the limit that was reached.
 */
const char *admission_refuse(struct admission *admission, struct place *place);

/* True if a call that waits can have its place now. */
bool admission_has_room(struct admission *admission);

/*
 * Called before the next reply of an answer is made. Returns false if the client has read so slowly
 * that the answer is to be given up.
 */
bool admission_reply_begin(struct admission *admission, struct place *place);

/* Called when a reply of this number of bytes was made. */
void admission_reply_end(struct admission *admission, struct place *place, size_t bytes);

#endif
