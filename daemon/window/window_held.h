/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_DAEMON_WINDOW_WINDOW_HELD_H
#define STACKD_DAEMON_WINDOW_WINDOW_HELD_H

/*
 * The long waits of a window, or of several windows, with what each was for and who held it, as it
 * was looked up last while the thread waited. A member of struct window; like that, it does not
 * change once the window is made.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/shared.h"
#include "common/wait_reason.h"

/* A wait that is shorter than this at the end of a window is not looked up. */
#define HELD_WAIT_NS INT64_C(1000000000)

/*
 * HELD_WAITS_MAX: the maximum number of waits in one window. HELD_SUM_MAX: the maximum number in a
 * sum of windows. HELD_BY_MAX: the maximum number of holders of one wait. HELD_TEXT: a longer
 * object is cut to this many bytes.
 */
enum { HELD_WAITS_MAX = 128, HELD_SUM_MAX = 4096, HELD_BY_MAX = 8, HELD_TEXT = 255 };

/* Stands for somebody who holds what a thread waits for. */
struct held_by {
	int32_t pid;
	int32_t tid; /* 0: one of the threads of the process, it is not known which */
	char comm[COMM_LEN];
};

/* A wait. All times are in ns since the epoch. */
struct held_wait {
	int32_t pid;
	int32_t tid;
	char comm[COMM_LEN]; /* of the thread that waits */
	int64_t since_ns;    /* when the wait began */
	int64_t looked_ns;   /* when it was looked up; 0: there was nothing to look up */
	int64_t last_ns;     /* the end of the last window that has it as a wait that goes on */
	enum wait_reason reason;
	char *object;  /* what the thread waits for, see stackctl(1); NULL: not known */
	char *unknown; /* why not all holders are known; NULL: they are */
	struct held_by by[HELD_BY_MAX];
	uint32_t n_by;
	uint32_t more; /* number of holders that are not in by[] */
};

struct window_held {
	struct held_wait *v; /* sorted by tid, then by since_ns */
	size_t n;
	size_t capacity;
	uint64_t dropped; /* number of waits for which a sum had no room */
};

/*
 * Moves a wait, with its texts, to the list. If the list has the same wait, keeps what was looked
 * up last, and the later one of both last_ns. Frees the wait and counts it in `dropped` if there
 * are HELD_SUM_MAX waits. Returns 0 or -ENOMEM, with the wait freed.
 */
int window_held_put(struct window_held *held, struct held_wait *wait);

/* Copies a wait to *out, with its texts. Returns 0 or -ENOMEM. */
int held_wait_copy(const struct held_wait *wait, struct held_wait *out);
void held_wait_fini(struct held_wait *wait);

/* Adds copies of the waits of another list. Returns 0 or -ENOMEM. */
int window_held_add(struct window_held *sum, const struct window_held *other);

/* Drops waits until no more than `max` are left: those for locks and the longest ones stay. */
void window_held_limit(struct window_held *held, size_t max);

/*
 * Returns the wait of a thread that began at since_ns, give or take a part of HELD_WAIT_NS, as
 * clocks are read and set in between; NULL if the list does not have it. tid is not 0.
 */
const struct held_wait *window_held_find(const struct window_held *held, int32_t tid,
					 int64_t since_ns);

/* Returns the wait of a thread that went on at this moment; NULL if the list has none. */
const struct held_wait *window_held_at(const struct window_held *held, int32_t tid, int64_t at_ns);

/*
 * Returns when the first step began of a wait of a thread that went on at this moment, and which
 * began at since_ns; since_ns if it is no later step, see step_waits.h.
 */
int64_t window_held_first_step(const struct window_held *held, int32_t tid, int64_t since_ns,
			       int64_t at_ns);

/* Returns the memory of the waits, in bytes. */
size_t window_held_bytes(const struct window_held *held);

/* Frees the waits, and sets all members to 0. */
void window_held_fini(struct window_held *held);

#endif
