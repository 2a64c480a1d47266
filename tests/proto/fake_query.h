/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef STACKD_TESTS_FAKE_QUERY_H
#define STACKD_TESTS_FAKE_QUERY_H

/*
 * Stage 6 without a recorder: answers made up from the request, so that the socket can be tested
 * alone. `top` of a Snapshot says how many rows, its probe which kind of answer.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_FRAMES = 20 };

#define FAKE_PROBE  "offcpu" /* `top` rows of FAKE_FRAMES frames a stack */
#define FAKE_SLOW   "slow"   /* the same, after 300 ms */
#define FAKE_BYTES  "bytes"  /* the same, with names that are not UTF-8 */
#define FAKE_LARGE  "large"  /* the same, the second row's names alone are 3 MiB */
#define FAKE_BROKEN "broken" /* fails, through no fault of the request */
#define FAKE_BEGINS "begins" /* of Start alone: one begins, once nothing is held */

struct recorder {
	atomic_int answers;	/* that were made and not freed */
	atomic_int snapshots;	/* asked so far */
	int64_t windows;	/* in the answer to Windows */
	atomic_bool is_held;	/* Start of FAKE_SLOW and FAKE_BEGINS does not come back */
	atomic_int starting;	/* how many of these there are */
	atomic_int given_up;	/* that began, and were given up as nobody was told */
	atomic_int begun;	/* sessions, of FAKE_BEGINS */
	atomic_bool is_running; /* what began has not ended */
};

#endif
